"""Changes of the serving generations: trial, activation, canary and rollback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar

import structlog
from google.protobuf.json_format import MessageToDict

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.rpc.calls import run_in
from nodewise.runtime.generations.folder import PluginsFolderError
from nodewise.runtime.generations.load_check import load_failures
from nodewise.runtime.generations.manifest import Canary, Generation, State
from nodewise.runtime.generations.serving import CANARY, LOOK_S, NEEDS_NEW, UNLOADABLE, Serving
from nodewise.runtime.generations.standing import folder_faults, generation_in
from nodewise.runtime.generations.trial import run_trial, trial_of
from nodewise.runtime.settings import SettingsError
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["Changes", "Outcome", "ReloadResult"]

_log = structlog.get_logger(__name__)

_T = TypeVar("_T")


class Outcome(Enum):
    """Outcome of a request for another generation: ReloadOutcome of the contract."""

    TAKEN = 1
    UNCHANGED = 2
    FAILED = 3
    RESTARTING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadResult:
    """The result of a change.

    Attributes
    ----------
    number : int
        Generation that was tried, or that serves already.
    before : int
        Generation that served before.
    """

    outcome: Outcome
    number: int
    before: int
    trial: pb.Trial = field(default_factory=pb.Trial)

    @classmethod
    def failure(cls, number: int, before: int, why: str) -> ReloadResult:
        """The result of a change that failed."""
        return cls(outcome=Outcome.FAILED, number=number, before=before, trial=trial_of(why))


class Changes:
    """Applies changes for callers and signals, one at a time.

    A change is completed once it has begun, even if its caller cancels.

    Parameters
    ----------
    serving : Serving
        State of this process. The other processes follow its decisions.
    restart : callable or None
        Replaces all worker processes; None = not possible.
    """

    def __init__(self, serving: Serving, restart: Callable[[], object] | None = None) -> None:
        self.serving = serving
        self.folder = serving.folder
        self._restart = restart
        self._changing: asyncio.Task[Any] | None = None

    async def reload(self, number: int | None = None) -> ReloadResult:
        """Activate a generation: the one with this number, else the candidate, else the plugins installed now.

        Raises
        ------
        NodewiseError
            GENERATION_NOT_FOUND, GENERATION_BUSY.
        """
        return await self._alone(self._reload(number))

    async def _reload(self, number: int | None) -> ReloadResult:
        before = self._stable
        try:
            generation = await run_in(None, self.serving.standing.next_generation, number)
        except SettingsError as error:
            return ReloadResult.failure(before, before, str(error))
        if generation is None:
            return ReloadResult(outcome=Outcome.UNCHANGED, number=before, before=before)
        return await self._take(generation, lambda now: now.with_stable(generation.number))

    async def set_canary(self, number: int | None, share: float) -> ReloadResult:
        """Let a generation answer a share of the jobs. Raises as :meth:`reload`, and INVALID_FIELD."""
        return await self._alone(self._set_canary(number, share))

    async def _set_canary(self, number: int | None, share: float) -> ReloadResult:
        state = await run_in(None, self.folder.state)
        generation = await run_in(None, generation_in, self.folder, _beside(state, number))
        canary, beside = Canary(number=generation.number, share=share), self.serving.application.tracks.canary

        def update(now: State) -> State:
            return replace(now, canary=canary)

        if beside is None or beside.loaded_plugins.number != canary.number:
            return await self._take(generation, update, CANARY)
        await self.serving.take(await self._decide(update))
        return ReloadResult(outcome=Outcome.TAKEN, number=canary.number, before=state.stable)

    async def promote(self) -> int:
        """Let the canary answer all jobs. Raises as :meth:`reload`."""
        return await self._alone(self._promote())

    async def _promote(self) -> int:
        canary = (await run_in(None, self.folder.state)).canary
        if canary is None:
            raise NodewiseError(Reason.GENERATION_NOT_FOUND, "there is no canary; set one with SetCanary")
        await self.serving.take(await self._decide(lambda now: now.with_stable(canary.number)))
        return int(canary.number)

    async def rollback(self) -> ReloadResult:
        """End the canary, or without one return to the previous stable generation. Raises as :meth:`reload`."""
        return await self._alone(self._rollback())

    async def _rollback(self) -> ReloadResult:
        state: State = await run_in(None, self.folder.state)
        before = state.stable
        if state.canary is not None:
            await self.serving.take(await self._decide(lambda now: replace(now, canary=None)))
            return ReloadResult(outcome=Outcome.TAKEN, number=before, before=before)
        if not state.previous:
            raise NodewiseError(Reason.GENERATION_NOT_FOUND, "no generation was stable before this one")
        number = state.previous[0]
        generation = await run_in(None, generation_in, self.folder, number)
        back = replace(state, stable=number, candidate=0, previous=state.previous[1:])
        return await self._take(generation, lambda _: back, tries=False)

    async def wait_for_agreement(self, seconds: float) -> None:
        """Wait at most so many seconds until all processes serve the state or have reported why they do not."""
        with folder_faults():
            sequence = (await run_in(None, self.folder.state)).sequence
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    reports = await run_in(None, self.folder.reports)
                    if len(reports) >= self.serving.settings.workers and all(
                        each.get("sequence", -1) >= sequence for each in reports.values()
                    ):
                        return
                    await asyncio.sleep(LOOK_S / 10)

    async def _decide(self, update: Callable[[State], State]) -> State:
        """Change the state that all processes serve."""
        state: State = await run_in(None, self.folder.change, update)
        return state

    @property
    def _stable(self) -> int:
        return self.serving.application.tracks.stable.loaded_plugins.number

    async def _alone(self, change: Coroutine[Any, Any, _T]) -> _T:
        """Run one change at a time, to its end, after any change of another process that this one is following.

        Raises
        ------
        NodewiseError
            GENERATION_BUSY, STORE_UNAVAILABLE.
        """
        if self._changing is not None and not self._changing.done():
            change.close()
            raise NodewiseError(Reason.GENERATION_BUSY, "another generation is being tried or taken; retry")
        changing = asyncio.get_running_loop().create_task(self._apply(change))
        self._changing = changing
        changing.add_done_callback(_log_failure)
        return await asyncio.shield(changing)

    async def _apply(self, change: Coroutine[Any, Any, _T]) -> _T:
        async with self.serving.changing:
            with folder_faults():
                return await change

    async def _take(
        self, generation: Generation, update: Callable[[State], State], track: str = "", *, tries: bool = True
    ) -> ReloadResult:
        """Try a generation. If its trial succeeds, serve it on a track and update the state."""
        serving, before, serving_state, trial = self.serving, self._stable, None, pb.Trial()
        if await run_in(None, serving.standing.needs_new_processes, generation):
            if track:
                return ReloadResult.failure(generation.number, before, NEEDS_NEW)
            return await self._take_by_restart(generation, before, update)
        try:
            try:
                serving_state = await serving.make_state(generation.number, track)
            except UNLOADABLE as error:
                trial = trial_of(str(error))
            else:
                if tries:
                    trial = await run_trial(serving.settings, serving.application.tracks.stable, serving_state)
            if trial.HasField("trial_time"):
                trial = await self._keep(generation, trial)
            if not trial.failures:
                await serving.take(await self._decide(update), serving_state)
                return ReloadResult(outcome=Outcome.TAKEN, number=generation.number, before=before, trial=trial)
        except Exception:
            await self._wait_no_more(generation)
            raise
        finally:
            # If it does not serve, for any reason, the hosts of its plugins end.
            if serving_state is not None and serving_state not in serving.application.tracks.serving_states:
                await run_in(None, serving_state.close)
        await self._wait_no_more(generation)
        return ReloadResult(outcome=Outcome.FAILED, number=generation.number, before=before, trial=trial)

    async def _take_by_restart(
        self, generation: Generation, before: int, update: Callable[[State], State]
    ) -> ReloadResult:
        """Activate a generation with changed inline plugins by new processes: a process imports a module only once."""
        if self._restart is None:
            why = "it changes plugins that run in this process itself: restart the process"
            return ReloadResult.failure(generation.number, before, why)
        serving = self.serving
        registry = serving.application.tracks.stable.loaded_plugins.registry
        failures = await run_in(None, load_failures, serving.settings, self.folder, generation.number, registry)
        if failures:
            trial = await self._keep(generation, trial_of(*failures))
            await self._wait_no_more(generation)
            return ReloadResult(outcome=Outcome.FAILED, number=generation.number, before=before, trial=trial)
        await self._decide(update)
        self._restart()
        return ReloadResult(outcome=Outcome.RESTARTING, number=generation.number, before=before)

    async def _wait_no_more(self, generation: Generation) -> None:
        """Remove the candidate; otherwise the next start would activate it without a trial."""
        with suppress(PluginsFolderError):  # the next change reports a folder that cannot be written
            await self._decide(lambda now: now.without(generation.number))

    async def _keep(self, generation: Generation, trial: pb.Trial) -> pb.Trial:
        """Store and log the result of a trial. ListGenerations shows it."""
        try:
            if generation.number:
                await run_in(None, self.folder.keep_report, generation.number, trial)
        except PluginsFolderError as error:  # the trial is valid, even if it cannot be listed later
            trial.notices.append(f"the report of the trial cannot be stored: {error}")
        log = _log.warning if trial.failures else _log.info
        log("generation_tried", generation=generation.number, **MessageToDict(trial, preserving_proto_field_name=True))
        return trial


def _beside(state: State, number: int | None) -> int:
    """Return the generation for the canary: the one with this number, else the current canary, else the candidate.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    if number is None:
        number = state.canary.number if state.canary is not None else state.candidate or None
    if number is None:
        raise invalid_field("generation", "must be given: there is no canary, and no generation waits for a reload")
    if number == state.stable:
        raise invalid_field("generation", f"must not be the stable generation, found {number}")
    return number


def _log_failure(changing: asyncio.Task[Any]) -> None:
    """Log a failure, because the caller may have left."""
    if not changing.cancelled() and (error := changing.exception()) is not None:
        _log.warning("generation_not_changed", problem=str(error))
