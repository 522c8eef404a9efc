"""What one process serves: it follows what was decided, whichever process did, and tells what it serves.

The folder of plugins says who serves. Whoever changes that has tried it; the other processes see the change within
LOOK_S, load the same and switch. A process that starts loads what the folder says.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import structlog

from nodewise.hosting.registry import PluginConflictError
from nodewise.rpc.calls import run_in
from nodewise.runtime.application import Application
from nodewise.runtime.generations.arriving import with_arrivals
from nodewise.runtime.generations.canary import CanaryWatch, Compared, Verdict, verdict_of
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.loading import loaded
from nodewise.runtime.generations.manifest import Canary, State
from nodewise.runtime.generations.rooms import Plugged, Rooms
from nodewise.runtime.generations.standing import Standing
from nodewise.runtime.generations.switchboard import Tracks
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["CANARY", "LOOK_S", "NEEDS_NEW", "UNLOADABLE", "Serving"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 0.5
"""Seconds between looks at what other processes decided: one look asks for the time of one file."""
AGAIN_S: Final = 30.0
"""Seconds until what could not be loaded is tried again: a disk may have room by then. A trial may start hosts."""
CANARY: Final = "canary"
"""The track beside the default one, as bases name it."""
NEEDS_NEW: Final = "it changes plugins that run in the workers themselves, where one version alone can be"
UNLOADABLE: Final = (PluginConflictError, SettingsError, PluginsFolderError)
"""What keeps a generation from being loaded, in words for the operator."""


class Serving:
    """Generations of one application.

    Parameters
    ----------
    application : Application
        Serves what the folder said as it was made.
    folder : PluginsFolder
        Of all processes that serve the same.

    Attributes
    ----------
    changing : Lock
        Held by who changes what this process serves.
    standing : Standing
        What serves now.
    """

    def __init__(self, application: Application, settings: Settings, folder: PluginsFolder) -> None:
        self.application = application
        self.folder = folder
        self.settings = settings
        self.changing = asyncio.Lock()
        self.standing = Standing.at_start(settings, folder, application.tracks.stable.plugged.number)
        self._looked: tuple[int, int] | None = None
        self._again_s = math.inf
        self._sequence = 0
        self._watch: CanaryWatch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._problem = ""

    async def run(self) -> None:
        """Follow what other processes decide, and judge a canary by its rule, until cancelled."""
        while True:
            if not self.changing.locked():
                try:
                    if self.folder.stamp() != self._looked or time.monotonic() >= self._again_s:
                        await self._follow()
                    if any(rooms.plugged.registry.arrived for rooms in self.application.tracks.rooms):
                        await self._welcome()
                    if self._watch is not None:
                        await self._judge(self._watch)
                except Exception as error:  # noqa: BLE001  # what serves goes on; the folder may be mended
                    _log.error("generation_not_followed", exc_info=error)
            await asyncio.sleep(LOOK_S)

    def close(self) -> None:
        """Stop to follow; other processes count on this one no more."""
        self._watch_none()
        if self.folder.path.is_dir():
            self.folder.untell(os.getpid())

    # --- for who changes what serves, with the lock held

    async def take(self, state: State, rooms: Rooms | None = None) -> None:
        """Serve what this process has decided: rooms that were tried, or what the state says.

        Raises
        ------
        PluginConflictError, SettingsError, PluginsFolderError
            It cannot be loaded.
        """
        if rooms is None:
            await self._serve(state)
        else:
            beside = self.application.tracks.canary if state.canary is not None else None
            await self.switch(rooms, beside, state.canary)
        await self._tell(state)

    async def set_beside(self, state: State, rooms: Rooms) -> None:
        """Let rooms that were tried answer the share of the canary that the state has."""
        await self.switch(self.application.tracks.stable, rooms, state.canary)
        await self._tell(state)

    async def made(self, number: int, track: str = "", *, beside: Rooms | None = None) -> Rooms:
        """Rooms of a generation; of the plugins of rooms that serve it on another track already. Raises as above."""
        plugged = None if beside is None else beside.plugged
        if plugged is None:
            plugged = await run_in(None, self._loaded, number)
        return await self.application.rooms_of(plugged, track)

    async def switch(self, stable: Rooms, beside: Rooms | None, canary: Canary | None) -> None:
        """Let these serve. What reads files does so before, and away from the event loop."""
        standing = self.standing
        if stable.plugged.number != standing.generation.number:
            standing = await run_in(None, self._standing, stable.plugged.number)
        watch = self._watched(stable, canary if beside is not None else None)
        tracks = Tracks(stable)
        if beside is not None and canary is not None:
            tracks = Tracks(stable, beside, canary.share, watch)
        now = self.application.tracks
        if tracks.rooms != now.rooms or tracks.share != now.share:
            _log.info(
                "generation_serves", stable=stable.plugged.number, canary=canary.number if canary is not None else None
            )
        await self.application.switch(tracks)
        self.standing = standing

    def _needs_new(self, number: int) -> bool:
        return self.standing.needs_new_processes(self.folder.generation(number))

    def _standing(self, number: int) -> Standing:
        return Standing.of(self.settings, self.folder, self.folder.generation(number))

    # --- following

    async def _follow(self) -> None:
        async with self.changing:
            self._looked, self._again_s = self.folder.stamp(), time.monotonic() + AGAIN_S
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

    async def _serve(self, state: State) -> None:
        """Switch to what a state says, as far as it is not served yet."""
        tracks, canary = self.application.tracks, state.canary
        stable, beside = tracks.stable, tracks.canary
        if stable.plugged.number != state.stable:
            if await run_in(None, self._needs_new, state.stable):
                raise PluginsFolderError(NEEDS_NEW)
            same = beside is not None and beside.plugged.number == state.stable
            stable = await self.made(state.stable, beside=beside if same else None)
        if canary is None:
            beside = None
        elif beside is None or beside.plugged.number != canary.number:
            try:
                if await run_in(None, self._needs_new, canary.number):
                    raise PluginsFolderError(f"the canary, generation {canary.number}: {NEEDS_NEW}")  # noqa: TRY301
                beside = await self.made(canary.number, CANARY)
            except Exception:
                await self.switch(stable, None, None)
                raise
        await self.switch(stable, beside, canary)

    async def _welcome(self) -> None:
        """Let plugins join that were loaded while others served."""
        async with self.changing:
            tracks, canary = self.application.tracks, (await run_in(None, self.folder.state)).canary
            stable = await self._with_arrivals(tracks.stable)
            beside = None if tracks.canary is None else await self._with_arrivals(tracks.canary, CANARY)
            await self.switch(stable, beside, canary)
            left = [name for rooms in self.application.tracks.rooms for name in rooms.plugged.registry.arriving]
            _log.info("plugins_arrived", still_loading=left)

    async def _with_arrivals(self, rooms: Rooms, track: str = "") -> Rooms:
        if not rooms.plugged.registry.arrived:
            return rooms
        return await self.application.rooms_of(await run_in(None, with_arrivals, rooms.plugged), track, warm=False)

    def _loaded(self, number: int) -> Plugged:
        generation = self.folder.generation(number)
        serving = [rooms.plugged.registry for rooms in self.application.tracks.rooms]
        return loaded(self.settings, self.folder, generation, serving)

    async def _tell(self, state: State | None, problem: str = "") -> None:
        """Let other processes know what this one serves, and what it saw of a canary that a rule judges.

        Parameters
        ----------
        state : State or None
            That was served, or could not be for the problem; None = the same as before.
        """
        if state is not None:
            self._sequence = state.sequence
        self._problem = problem
        tracks, watch = self.application.tracks, self._watch
        told: dict[str, Any] = {
            "sequence": self._sequence,
            "stable": tracks.stable.plugged.number,
            "canary": 0 if tracks.canary is None else tracks.canary.plugged.number,
            "problem": problem,
        }
        if watch is not None:
            told["watched"] = {"since": watch.canary.since, **watch.seen.plain()}
        with suppress(OSError):
            await run_in(None, self.folder.tell, os.getpid(), told)

    # --- judging

    def _watched(self, stable: Rooms, canary: Canary | None) -> CanaryWatch | None:
        """What hears of the calls of both tracks; the same for as long as these are."""
        if canary is None or canary.rule is None:
            self._watch_none()
        elif self._watch is None or self._watch.canary != canary or self._watch.stable is not stable:
            self._watch_none()
            self._watch = CanaryWatch(canary, stable)
            self._watching = asyncio.get_running_loop().create_task(self._watch.run())
        return self._watch

    def _watch_none(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self._watch = self._watching = None

    async def _judge(self, watch: CanaryWatch) -> None:
        """Say what this process saw, and decide by what all of them did; whoever is first decides for all."""
        await self._tell(None, self._problem)
        rule = watch.canary.rule
        told = (each.get("watched") for each in (await run_in(None, self.folder.told)).values())
        seen = [Compared.read(each) for each in told if each is not None and each["since"] == watch.canary.since]
        verdict, why = (Verdict.WAIT, "") if rule is None else verdict_of(rule, Compared.together(seen))
        if verdict is Verdict.WAIT or self.changing.locked():
            return
        async with self.changing:
            canary, promoted = watch.canary, verdict is Verdict.PROMOTE

            def decided(now: State) -> State:
                if now.canary != canary:  # somebody else was first
                    return now
                return now.promoted(canary.number) if promoted else replace(now, canary=None)

            before = await run_in(None, self.folder.state)
            state = await run_in(None, self.folder.change, decided)
            if state != before:
                _log.warning("canary_decided", canary=canary.number, verdict=verdict.value, why=why, workers=len(seen))
            await self.take(state)
