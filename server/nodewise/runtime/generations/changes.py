"""Changing what a server serves: a generation is tried, taken, set beside the stable one, or left again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.rpc.calls import run_in
from nodewise.runtime.generations.manifest import Canary, Generation, Rule, State
from nodewise.runtime.generations.rooms import Rooms
from nodewise.runtime.generations.serving import CANARY, LOOK_S, NEEDS_NEW, UNLOADABLE, Serving
from nodewise.runtime.generations.standing import found_in
from nodewise.runtime.generations.trial import Trial, tried
from nodewise.runtime.settings import SettingsError

__all__ = ["Changes", "Outcome", "Reloaded"]

_log = structlog.get_logger(__name__)

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


class Changes:
    """What callers and signals may change, one change at a time.

    Parameters
    ----------
    serving : Serving
        Of the process that is asked; the others follow what it decides.
    restart : callable or None
        Has new processes take the place of all that serve; None = nobody can.
    """

    def __init__(self, serving: Serving, restart: Callable[[], object] | None = None) -> None:
        self.serving = serving
        self.folder = serving.folder
        self._restart = restart

    async def reload(self, number: int | None = None) -> Reloaded:
        """Let a generation take over: one by its number, else the one that waits, else what there is by now.

        Raises
        ------
        NodewiseError
            GENERATION_NOT_FOUND, GENERATION_BUSY.
        """
        async with self._alone():
            before, standing = self._stable, self.serving.standing
            try:
                wanted = await run_in(None, standing.wanted, number)
            except SettingsError as error:
                return Reloaded.failed(before, before, str(error))
            if wanted is None:
                return Reloaded(outcome=Outcome.UNCHANGED, number=before, before=before)
            if standing.needs_new_processes(wanted):
                return self._restarted(wanted, before)
            rooms, trial = await self._try(wanted)
            if rooms is None:
                # Else the next start, which tries nothing, would take it.
                await run_in(None, self.folder.change, lambda now: now.without(wanted.number))
                return Reloaded(outcome=Outcome.FAILED, number=wanted.number, before=before, trial=trial)
            state = await run_in(None, self.folder.change, lambda now: now.promoted(wanted.number))
            await self.serving.take(state, rooms)
            return Reloaded(outcome=Outcome.TAKEN, number=wanted.number, before=before, trial=trial)

    async def set_canary(self, number: int | None, share: float, rule: Rule | None) -> Reloaded:
        """Let a generation answer a share of the jobs; raises as :meth:`reload`, and INVALID_FIELD."""
        async with self._alone():
            state = self.folder.state()
            number = number or (state.canary.number if state.canary is not None else state.candidate)
            if not number or number == state.stable:
                raise invalid_field("generation", "must be another one than serves; none waits for a reload")
            generation, before = found_in(self.folder, number), state.stable
            beside = self.serving.application.tracks.canary
            trial = UNTRIED
            rooms: Rooms | None = beside if beside is not None and beside.plugged.number == number else None
            if rooms is None:
                if self.serving.standing.needs_new_processes(generation):
                    return Reloaded.failed(number, before, NEEDS_NEW)
                rooms, trial = await self._try(generation, CANARY)
            if rooms is None:
                return Reloaded(outcome=Outcome.FAILED, number=number, before=before, trial=trial)
            canary = Canary(number=number, share=share, rule=rule)
            state = await run_in(None, self.folder.change, lambda now: now.beside(canary))
            assert state.canary is not None
            await self.serving.set_beside(rooms, state.canary)
            return Reloaded(outcome=Outcome.TAKEN, number=number, before=before, trial=trial)

    async def promote(self) -> int:
        """Let the canary answer all jobs; raises as :meth:`reload`."""
        async with self._alone():
            canary = self.folder.state().canary
            if canary is None:
                raise NodewiseError(Reason.GENERATION_NOT_FOUND, "there is no canary")
            await self.serving.take(await run_in(None, self.folder.change, lambda now: now.promoted(canary.number)))
            return canary.number

    async def rollback(self) -> Reloaded:
        """End the canary; without one, return to the stable generation before this one. Raises as :meth:`reload`."""
        async with self._alone():
            state = self.folder.state()
            before = state.stable
            if state.canary is not None:
                await self.serving.take(await run_in(None, self.folder.change, lambda now: replace(now, canary=None)))
                return Reloaded(outcome=Outcome.TAKEN, number=before, before=before)
            if not state.previous:
                raise NodewiseError(Reason.GENERATION_NOT_FOUND, "no generation was stable before this one")
            number = state.previous[0]
            generation = found_in(self.folder, number)
            back = replace(state, stable=number, candidate=0, previous=state.previous[1:])
            if self.serving.standing.needs_new_processes(generation):
                return self._restarted(generation, before, back)
            try:
                rooms = await self.serving.made(number)
            except UNLOADABLE as error:
                return Reloaded.failed(before, before, str(error))
            await self.serving.take(await run_in(None, self.folder.change, lambda _: back), rooms)
            return Reloaded(outcome=Outcome.TAKEN, number=number, before=before)

    async def agreed(self, seconds: float) -> None:
        """Wait until all processes serve what the state says, or have said why they do not; or no longer."""
        sequence = self.folder.state().sequence
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    told = await run_in(None, self.folder.told)
                    if len(told) >= self.serving.settings.workers and all(
                        each.get("sequence", -1) >= sequence for each in told.values()
                    ):
                        return
                    await asyncio.sleep(LOOK_S / 10)

    @property
    def _stable(self) -> int:
        return self.serving.application.tracks.stable.plugged.number

    def _alone(self) -> asyncio.Lock:
        """One change at a time."""
        if self.serving.changing.locked():
            raise NodewiseError(Reason.GENERATION_BUSY, "another generation is being tried or taken; retry")
        return self.serving.changing

    def _restarted(self, wanted: Generation, before: int, state: State | None = None) -> Reloaded:
        """What runs inline changed: a process cannot import it again, so others must start."""
        if self._restart is None:
            told = "it changes plugins that run in this process itself: start another one"
            return Reloaded.failed(wanted.number, before, told)
        self.folder.change(lambda now: state or now.promoted(wanted.number))
        self.serving.told_elsewhere()
        self._restart()
        return Reloaded(outcome=Outcome.RESTARTING, number=wanted.number, before=before)

    async def _try(self, generation: Generation, track: str = "") -> tuple[Rooms | None, Trial]:
        """Rooms of a generation that passed its trial, or why it did not."""
        rooms, serving = None, self.serving
        try:
            rooms = await serving.made(generation.number, track)
            trial = await tried(serving.settings, serving.application.tracks.stable, rooms)
        except UNLOADABLE as error:
            trial = Trial(failures=(str(error),))
        if await run_in(None, serving.standing.replaced):
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
