"""What one process serves: it tries generations, lets them take over, and follows what other processes decided.

The folder of plugins says who serves. Whoever changes that has tried it; the other processes see the change within
LOOK_S, load the same and switch. A process that starts loads what the folder says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.hosting.registry import PluginConflictError
from nodewise.rpc.calls import run_in
from nodewise.runtime.application import Application
from nodewise.runtime.generations.canary import CanaryWatch, Verdict
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError
from nodewise.runtime.generations.loading import catalogue_bytes, catalogue_digest, loaded, prints_of
from nodewise.runtime.generations.manifest import Canary, Generation, Rule, State
from nodewise.runtime.generations.rooms import Rooms
from nodewise.runtime.generations.switchboard import Tracks
from nodewise.runtime.generations.trial import Trial, tried
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["Outcome", "Reloaded", "Serving"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 0.5
"""Seconds between looks at what other processes decided: one look asks for the time of one file."""
CANARY: Final = "canary"
"""The track beside the default one, as bases name it."""
_UNLOADABLE: Final = (PluginConflictError, SettingsError, PluginsFolderError)


UNTRIED: Final = Trial(trial_unix_s=0.0)


class Outcome(Enum):
    """What came of a call for another generation; as ReloadOutcome of the contract."""

    TAKEN = 1
    UNCHANGED = 2
    FAILED = 3
    RESTARTING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """What came of it.

    Attributes
    ----------
    number : int
        Generation that was tried, or serves already.
    before : int
        Generation that served before.
    """

    outcome: Outcome
    number: int
    before: int
    trial: Trial = UNTRIED

    @classmethod
    def failed(cls, number: int, before: int, why: str) -> Reloaded:
        """Nothing changed."""
        return cls(outcome=Outcome.FAILED, number=number, before=before, trial=Trial(failures=(why,)))


class Serving:
    """Generations of one application.

    Parameters
    ----------
    application : Application
        Serves what the folder said as it was made.
    folder : PluginsFolder
        Of all processes that serve the same.
    restart : callable or None
        Has new processes take the place of all that serve; None = nobody can.
    """

    def __init__(
        self,
        application: Application,
        settings: Settings,
        folder: PluginsFolder,
        restart: Callable[[], object] | None = None,
    ) -> None:
        self.application = application
        self.folder = folder
        self._settings = settings
        self._restart = restart
        generation = folder.generation(application.tracks.stable.plugged.number)
        self._changing = asyncio.Lock()
        self._stamp = folder.stamp()
        self._generation = generation
        self._prints = prints_of(settings, folder, generation)
        self._installed = self._environment()
        self._catalogue = generation.catalogue_digest or catalogue_digest(catalogue_bytes(settings))
        self._watch: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._problem = ""

    # --- following

    async def run(self) -> None:
        """Follow what other processes decide, until cancelled."""
        known: tuple[int, int] | None = None
        while True:
            if (self._stamp != known or self.folder.stamp() != known) and not self._changing.locked():
                try:
                    await self._follow()
                except Exception as error:  # noqa: BLE001  # what serves goes on; the folder may be mended
                    _log.error("generation_not_followed", exc_info=error)
                known = self._stamp
            await asyncio.sleep(LOOK_S)

    def close(self) -> None:
        """Stop to follow; other processes count on this one no more."""
        if self._watch is not None:
            self._watch.cancel()
        if self.folder.path.is_dir():
            self.folder.untell(os.getpid())

    async def _follow(self) -> None:
        async with self._changing:
            self._stamp = self.folder.stamp()
            state = self.folder.state()
            self._problem = ""
            try:
                await self._serve(state)
            except _UNLOADABLE as error:
                self._problem = str(error)
                _log.error("generation_not_loaded", generation=state.stable, problem=str(error))
            if self.folder.path.is_dir():
                self._tell()

    async def _serve(self, state: State) -> None:
        """Switch to what a state says, as far as it is not served yet."""
        tracks, canary = self.application.tracks, state.canary
        stable, beside = tracks.stable, tracks.canary
        if stable.plugged.number != state.stable:
            same = beside is not None and beside.plugged.number == state.stable
            stable = await self._made(state.stable, beside=beside if same else None)
        if canary is None:
            beside = None
        elif beside is None or beside.plugged.number != canary.number:
            beside = await self._made(canary.number, CANARY)
        await self._switch(stable, beside, canary)

    async def _switch(self, stable: Rooms, beside: Rooms | None, canary: Canary | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        tracks = Tracks(stable)
        if beside is not None and canary is not None:
            watch = None
            if canary.rule is not None:
                watch = CanaryWatch(canary.rule, stable, self._decided)
                self._watch = asyncio.get_running_loop().create_task(watch.run())
            tracks = Tracks(stable, beside, canary.share, watch)
        now = self.application.tracks
        if tracks.rooms != now.rooms or tracks.share != now.share:
            _log.info(
                "generation_serves", stable=stable.plugged.number, canary=canary.number if canary is not None else None
            )
        await self.application.switch(tracks)
        if stable.plugged.number != self._generation.number:
            self._generation = self.folder.generation(stable.plugged.number)
            self._prints = prints_of(self._settings, self.folder, self._generation)
            self._installed = self._environment()
            self._catalogue = self._generation.catalogue_digest

    async def _made(self, number: int, track: str = "", *, beside: Rooms | None = None) -> Rooms:
        """Rooms of a generation; of the plugins of rooms that serve it on another track already."""
        plugged = None if beside is None else beside.plugged
        if plugged is None:
            plugged = await run_in(None, self._loaded, self.folder.generation(number))
        return await self.application.rooms_of(plugged, track)

    def _loaded(self, generation: Generation) -> Any:
        return loaded(self._settings, self.folder, generation)

    def _decided(self, verdict: Verdict, why: str) -> None:
        """A canary's rule has decided; off the way of the call that showed it."""
        _log.warning("canary_decided", verdict=verdict.value, why=why)
        deciding = self.promote() if verdict is Verdict.PROMOTE else self.rollback()
        task = asyncio.get_running_loop().create_task(deciding)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- changing

    async def reload(self, number: int | None = None) -> Reloaded:
        """Let a generation take over: one by its number, else the one that waits, else what there is by now.

        Raises
        ------
        NodewiseError
            GENERATION_NOT_FOUND, GENERATION_BUSY.
        """
        async with self._alone():
            before = self.application.tracks.stable.plugged.number
            try:
                wanted, inline = await run_in(None, self._wanted, number)
            except SettingsError as error:
                return Reloaded(
                    outcome=Outcome.FAILED, number=before, before=before, trial=Trial(failures=(str(error),))
                )
            if wanted is None:
                return Reloaded(outcome=Outcome.UNCHANGED, number=before, before=before)
            if inline:
                return self._restarted(wanted, before)
            rooms, trial = await self._try(wanted)
            if rooms is None:
                # Else the next start, which tries nothing, would take it.
                await run_in(None, self.folder.change, lambda now: now.without(wanted.number))
                return Reloaded(outcome=Outcome.FAILED, number=wanted.number, before=before, trial=trial)
            state = await run_in(None, self.folder.change, lambda now: now.promoted(wanted.number))
            await self._take(state, rooms)
            return Reloaded(outcome=Outcome.TAKEN, number=wanted.number, before=before, trial=trial)

    async def set_canary(self, number: int | None, share: float, rule: Rule | None) -> Reloaded:
        """Let a generation answer a share of the jobs; raises as :meth:`reload`, and INVALID_FIELD."""
        async with self._alone():
            state = self.folder.state()
            number = number or (state.canary.number if state.canary is not None else state.candidate)
            if not number or number == state.stable:
                raise invalid_field("generation", "must be another one than serves; none waits for a reload")
            generation, before = self._found(number), state.stable
            beside = self.application.tracks.canary
            trial = UNTRIED
            rooms: Rooms | None = beside if beside is not None and beside.plugged.number == number else None
            if rooms is None:
                if prints_of(self._settings, self.folder, generation)[0] != self._prints[0]:
                    told = "it changes plugins that run in the workers themselves, where one version alone can be"
                    return Reloaded.failed(number, before, told)
                rooms, trial = await self._try(generation, CANARY)
            if rooms is None:
                return Reloaded(outcome=Outcome.FAILED, number=number, before=before, trial=trial)
            canary = Canary(number=number, share=share, rule=rule)
            self.folder.change(lambda now: replace(now, canary=canary))
            self._stamp = self.folder.stamp()
            await self._switch(self.application.tracks.stable, rooms, canary)
            self._tell()
            return Reloaded(outcome=Outcome.TAKEN, number=number, before=before, trial=trial)

    async def promote(self) -> int:
        """Let the canary answer all jobs; raises as :meth:`reload`."""
        async with self._alone():
            canary = self.folder.state().canary
            if canary is None:
                raise NodewiseError(Reason.GENERATION_NOT_FOUND, "there is no canary")
            state = self.folder.change(lambda now: now.promoted(canary.number))
            await self._take(state)
            return canary.number

    async def rollback(self) -> Reloaded:
        """End the canary; without one, return to the stable generation before this one. Raises as :meth:`reload`."""
        async with self._alone():
            state = self.folder.state()
            before = state.stable
            if state.canary is not None:
                await self._take(self.folder.change(lambda now: replace(now, canary=None)))
                return Reloaded(outcome=Outcome.TAKEN, number=before, before=before)
            if not state.previous:
                raise NodewiseError(Reason.GENERATION_NOT_FOUND, "no generation was stable before this one")
            number = state.previous[0]
            generation = self._found(number)
            back = replace(state, stable=number, candidate=0, previous=state.previous[1:])
            if prints_of(self._settings, self.folder, generation)[0] != self._prints[0]:
                return self._restarted(generation, before, back)
            try:
                rooms = await self._made(number)
            except _UNLOADABLE as error:
                return Reloaded(
                    outcome=Outcome.FAILED, number=before, before=before, trial=Trial(failures=(str(error),))
                )
            await self._take(self.folder.change(lambda _: back), rooms)
            return Reloaded(outcome=Outcome.TAKEN, number=number, before=before)

    async def agreed(self, seconds: float) -> None:
        """Wait until all processes serve what the state says, or have said why they do not; or no longer."""
        sequence = self.folder.state().sequence
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    told = await run_in(None, self.folder.told)
                    if len(told) >= self._settings.workers and all(
                        each.get("sequence", -1) >= sequence for each in told.values()
                    ):
                        return
                    await asyncio.sleep(LOOK_S / 10)

    # --- within

    def _alone(self) -> asyncio.Lock:
        """One change at a time."""
        if self._changing.locked():
            raise NodewiseError(Reason.GENERATION_BUSY, "another generation is being tried or taken; retry")
        return self._changing

    def _environment(self) -> dict[str, str]:
        """Builds of the hosted distributions that are installed with the server: pip puts others in their place."""
        return prints_of(self._settings, self.folder, self.folder.generation(0))[1]

    def _found(self, number: int) -> Generation:
        try:
            return self.folder.generation(number)
        except PluginsFolderError as error:
            raise NodewiseError(Reason.GENERATION_NOT_FOUND, str(error), {"generation": str(number)}) from None

    def _wanted(self, number: int | None) -> tuple[Generation | None, bool]:
        """The generation that is to take over (None = nothing differs), and whether inline plugins differ in it."""
        state = self.folder.state()
        number = number if number is not None else state.candidate or None
        if number is not None:
            found = self._found(number)
            if number == self._generation.number and prints_of(self._settings, self.folder, found) == self._prints:
                return None, False
        else:
            content = catalogue_bytes(self._settings)
            prints = prints_of(self._settings, self.folder, self._generation)
            what = [
                *(["the catalogue"] if catalogue_digest(content) != self._catalogue else []),
                *(["what is installed"] if prints != self._prints else []),
            ]
            if not what:
                return None, False
            found = self.folder.add(f"changed: {', '.join(what)}", self._generation.distributions, content)
        return found, prints_of(self._settings, self.folder, found)[0] != self._prints[0]

    def _restarted(self, wanted: Generation, before: int, state: State | None = None) -> Reloaded:
        """What runs inline changed: a process cannot import it again, so others must start."""
        if self._restart is None:
            told = "it changes plugins that run in this process itself: start another one"
            return Reloaded.failed(wanted.number, before, told)
        self.folder.change(lambda now: state or now.promoted(wanted.number))
        self._stamp = self.folder.stamp()
        self._restart()
        return Reloaded(outcome=Outcome.RESTARTING, number=wanted.number, before=before)

    async def _try(self, generation: Generation, track: str = "") -> tuple[Rooms | None, Trial]:
        """Rooms of a generation that passed its trial, or why it did not."""
        rooms = None
        try:
            rooms = await self._made(generation.number, track)
            trial = await tried(self._settings, self.application.tracks.stable, rooms)
        except _UNLOADABLE as error:
            trial = Trial(failures=(str(error),))
        if await run_in(None, self._environment) != self._installed:
            told = "plugins were installed in place of others: these are gone, and a rollback would load the same again"
            trial = replace(trial, notices=(*trial.notices, told))
        if generation.number:
            await run_in(None, self.folder.keep_report, generation.number, trial.report())
        log = _log.warning if trial.failures else _log.info
        log("generation_tried", generation=generation.number, **trial.report())
        if not trial.failures:
            return rooms, trial
        if rooms is not None:
            await run_in(None, rooms.close)
        return None, trial

    async def _take(self, state: State, rooms: Rooms | None = None) -> None:
        """Serve what this process has decided: rooms that were tried, or what the state says."""
        self._stamp = self.folder.stamp()
        if rooms is None:
            await self._serve(state)
        else:
            tracks = self.application.tracks
            beside = tracks.canary if state.canary is not None else None
            await self._switch(rooms, beside, state.canary)
        self._tell()

    def _tell(self) -> None:
        """Let other processes know what this one serves."""
        tracks = self.application.tracks
        told = {
            "sequence": self.folder.state().sequence,
            "stable": tracks.stable.plugged.number,
            "canary": 0 if tracks.canary is None else tracks.canary.plugged.number,
            "problem": self._problem,
        }
        with suppress(OSError):
            self.folder.tell(os.getpid(), told)
