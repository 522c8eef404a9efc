"""The generations that one process serves. It follows the decisions of all processes and reports what it serves.

The state in the plugins folder names the serving generations. The process that changes it has run the trial; the others
see the change within LOOK_S, load the same generation and switch. A new process loads what the state names.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from contextlib import suppress
from typing import Final

import structlog

from nodewise.hosting.registry import PluginConflictError
from nodewise.rpc.calls import run_in
from nodewise.runtime.application import Application
from nodewise.runtime.generations.arriving import with_arrivals
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.loading import load_generation
from nodewise.runtime.generations.manifest import State
from nodewise.runtime.generations.serving_state import LoadedPlugins, ServingState
from nodewise.runtime.generations.standing import Standing
from nodewise.runtime.generations.traffic_router import Tracks
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["CANARY", "LOOK_S", "NEEDS_NEW", "UNLOADABLE", "Serving"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 0.5
"""Seconds between checks of what other processes decided; a check reads the time of one file."""
AGAIN_S: Final = 30.0
"""Seconds until a generation that could not be loaded is tried again; a trial may start hosts."""
CANARY: Final = "canary"
"""Name of the second track in bases."""
NEEDS_NEW: Final = "it changes plugins that run in the workers themselves, where one version alone can be"
UNLOADABLE: Final = (PluginConflictError, SettingsError, PluginsFolderError)
"""What keeps a generation from being loaded, in words for the operator."""


class Serving:
    """Generations of one application.

    Parameters
    ----------
    application : Application
        Serves the generation that the folder named at its creation.
    folder : PluginsFolder
        Shared by all processes of the server.

    Attributes
    ----------
    changing : Lock
        Locked while this process changes what it serves.
    standing : Standing
        The generation that serves now.
    """

    def __init__(self, application: Application, settings: Settings, folder: PluginsFolder) -> None:
        self.application = application
        self.folder = folder
        self.settings = settings
        self.changing = asyncio.Lock()
        self.standing = Standing.at_start(settings, folder, application.tracks.stable.loaded_plugins.number)
        self._last_stamp: tuple[int, int] | None = None
        self._again_s = math.inf
        self._sequence = 0
        self._problem = ""

    async def run(self) -> None:
        """Follow the decisions of other processes, until cancelled."""
        while True:
            if not self.changing.locked():
                try:
                    if self.folder.stamp() != self._last_stamp or time.monotonic() >= self._again_s:
                        await self._follow()
                    if any(registry.is_stale for registry in self.application.tracks.registries):
                        await self._welcome()
                except Exception as error:  # noqa: BLE001  # the current generations serve on; the folder may be repaired
                    _log.error("generation_not_followed", exc_info=error)
            await asyncio.sleep(LOOK_S)

    def close(self) -> None:
        """Stop following, and remove this process's report."""
        if self.folder.path.is_dir():
            self.folder.untell(os.getpid())

    async def take(self, state: State, trial_state: ServingState | None = None) -> None:
        """Serve the state that this process has decided on. The caller holds the lock.

        Parameters
        ----------
        tried : ServingState or None
            Serving state of the new generation; None = it is loaded here.

        Raises
        ------
        PluginConflictError, SettingsError, PluginsFolderError
            It cannot be loaded.
        """
        await self._serve(state, trial_state)
        await self._tell(state)

    async def make_state(self, number: int, track: str = "", *, beside: ServingState | None = None) -> ServingState:
        """Return a serving state of a generation, sharing plugins with another one if given. Raises as :meth:`take`."""
        loaded_plugins = None if beside is None else beside.loaded_plugins
        if loaded_plugins is None:
            loaded_plugins = await run_in(None, self._load, number)
        return await self.application.serving_state_of(loaded_plugins, track)

    async def _follow(self) -> None:
        async with self.changing:
            self._last_stamp, self._again_s = self.folder.stamp(), time.monotonic() + AGAIN_S
            problem, state = "", None
            try:
                state = await run_in(None, self.folder.state)
                await self._serve(state)
                self._again_s = math.inf
            except UNLOADABLE as error:
                problem = str(error)
                if problem != self._problem:
                    _log.error("generation_not_loaded", problem=problem)
            if self.folder.path.is_dir():
                await self._tell(state, problem)

    async def _serve(self, state: State, trial_state: ServingState | None = None) -> None:
        """Switch to the generations of a state that are not served yet."""
        tracks, canary = self.application.tracks, state.canary
        stable, beside = tracks.stable, tracks.canary
        if trial_state is not None and canary is not None and trial_state.loaded_plugins.number == canary.number:
            beside = trial_state
        elif trial_state is not None:
            stable = trial_state
        if stable.loaded_plugins.number != state.stable:
            await self._check_loadable(state.stable, "")
            same = beside is not None and beside.loaded_plugins.number == state.stable
            stable = await self.make_state(state.stable, beside=beside if same else None)
        if canary is None:
            beside = None
        elif beside is None or beside.loaded_plugins.number != canary.number:
            try:
                await self._check_loadable(canary.number, f"the canary, generation {canary.number}: ")
                beside = await self.make_state(canary.number, CANARY)
            except Exception:
                await self._switch(Tracks(stable))
                raise
        await self._switch(Tracks(stable, beside, 0.0 if canary is None else canary.share))

    async def _switch(self, tracks: Tracks) -> None:
        """Let these tracks serve. Files were read before, outside the event loop."""
        standing, now = self.standing, self.application.tracks
        number = tracks.stable.loaded_plugins.number
        if number != standing.generation.number:
            standing = await run_in(None, self._standing, number)
        if tracks.serving_states != now.serving_states or tracks.share != now.share:
            beside = None if tracks.canary is None else tracks.canary.loaded_plugins.number
            _log.info("generation_serves", stable=number, canary=beside)
        await self.application.switch(tracks)
        self.standing = standing

    async def _check_loadable(self, number: int, which: str) -> None:
        """Raise PluginsFolderError for other builds of inline plugins, which a process imports only once."""
        if await run_in(None, lambda: self.standing.needs_new_processes(self.folder.generation(number))):
            raise PluginsFolderError(f"{which}{NEEDS_NEW}")

    def _standing(self, number: int) -> Standing:
        return Standing.of(self.settings, self.folder, self.folder.generation(number))

    async def _welcome(self) -> None:
        """Add plugins that finished loading while others served."""
        async with self.changing:
            tracks = self.application.tracks
            stable = await self._with_arrivals(tracks.stable)
            beside = None if tracks.canary is None else await self._with_arrivals(tracks.canary, CANARY)
            await self._switch(Tracks(stable, beside, tracks.share))
            left = [name for registry in self.application.tracks.registries for name in registry.loading_distributions]
            _log.info("plugins_arrived", still_loading=left)

    async def _with_arrivals(self, serving_state: ServingState, track: str = "") -> ServingState:
        if not serving_state.loaded_plugins.registry.is_stale:
            return serving_state
        return await self.application.serving_state_of(
            await run_in(None, with_arrivals, serving_state.loaded_plugins), track, warm=False
        )

    def _load(self, number: int) -> LoadedPlugins:
        generation = self.folder.generation(number)
        return load_generation(self.settings, self.folder, generation, self.application.tracks.registries)

    async def _tell(self, state: State | None, problem: str = "") -> None:
        """Report what this process serves, by which state (None = none could be read), or why it does not serve it."""
        self._problem, tracks = problem, self.application.tracks
        if state is not None:
            self._sequence = state.sequence
        report = {
            "sequence": self._sequence,
            "stable": tracks.stable.loaded_plugins.number,
            "canary": 0 if tracks.canary is None else tracks.canary.loaded_plugins.number,
            "problem": problem,
        }
        with suppress(OSError):
            await run_in(None, self.folder.tell, os.getpid(), report)
