"""DiagnosisService: replays and diagnoses, in a thread, with progress, their answers in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from functools import partial
from typing import Any, Final, TypeVar

from nodewise.diagnosis.diagnose import diagnosed, replayed
from nodewise.diagnosis.results import Diagnosed, Replayed
from nodewise.domain.replay import ReplayedCollective, Timeline
from nodewise.estimation.registry import Loaded, Registry
from nodewise.plugin import Catalogue, DiagnoserRecord, TraceReaderRecord
from nodewise.profiles.reading import TraceLoader
from nodewise.rpc.budgets import CallBudget
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.paging import page
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_diagnoses import read_asked, read_diagnosis, read_replay, write_diagnosis, write_replay
from nodewise.rpc.wire_plugins import write_problem
from nodewise.rpc.wire_timelines import write_collectives, write_timeline
from nodewise_protos.v1 import diagnosis_service_pb2 as pb

__all__ = ["Diagnoses"]

PROGRESS_EVERY_S: Final = 0.1
"""Least time between two messages about progress."""
AT_ONCE: Final = 2
"""Replays and diagnoses that run at the same time; more wait, so that they leave the threads to others."""

Answer = TypeVar("Answer", Replayed, Diagnosed)
Response = TypeVar("Response", pb.ReplayResponse, pb.DiagnoseResponse)


class Diagnoses:
    """Behaviours of DiagnosisService.

    Parameters
    ----------
    registry : Registry
        Who answers.
    loader : TraceLoader
        Reads traces.
    sources : ProfileSources
        Finds profiles.
    executor : Executor
        Threads that this runs in.
    catalogue : Catalogue
        What diagnosers know of devices and links.
    """

    def __init__(
        self,
        registry: Registry,
        loader: TraceLoader,
        sources: ProfileSources,
        executor: Executor,
        catalogue: Catalogue,
    ) -> None:
        self._registry = registry
        self._loader = loader
        self._sources = sources
        self._executor = executor
        self._catalogue = catalogue
        self._free = asyncio.Semaphore(AT_ONCE)

    async def replay(self, request: pb.ReplayRequest, call: Call) -> AsyncIterator[pb.ReplayResponse]:
        """Progress, pieces, the result. A replay whose caller has gone ends as soon as the diagnoser looks."""
        wanted = read_replay(request)
        answered = self._answered(request, call, partial(replayed, wanted=wanted), pb.ReplayResponse)
        async with aclosing(answered) as messages:
            async for message in messages:
                if not isinstance(message, Replayed):
                    yield message
                    continue
                replay = message.replay
                async for piece in self._written(replay.timeline, message.recorded, replay.collectives):
                    yield pb.ReplayResponse(**piece)
                yield pb.ReplayResponse(result=write_replay(message))

    async def diagnose(self, request: pb.DiagnoseRequest, call: Call) -> AsyncIterator[pb.DiagnoseResponse]:
        """Progress, pieces, the result. A diagnosis whose caller has gone ends as soon as the diagnoser looks."""
        wanted = read_diagnosis(request)
        answered = self._answered(request, call, partial(diagnosed, wanted=wanted), pb.DiagnoseResponse)
        async with aclosing(answered) as messages:
            async for message in messages:
                if not isinstance(message, Diagnosed):
                    yield message
                    continue
                found = message.diagnosis
                async for piece in self._written(found.timeline, message.recorded, found.collectives):
                    yield pb.DiagnoseResponse(**piece)
                yield pb.DiagnoseResponse(result=write_diagnosis(message))

    async def list_diagnosers(self, request: pb.ListDiagnosersRequest, call: Call) -> pb.ListDiagnosersResponse:
        """Who can be asked, and whose traces can be read."""
        diagnosers, readers = self._registry.diagnosers, self._registry.trace_readers
        names, next_token = page(sorted(diagnosers), request.page_size, request.page_token)
        response = pb.ListDiagnosersResponse(next_page_token=next_token)
        response.diagnosers.extend(pb.Diagnoser(**_listed(diagnosers[name])) for name in names)
        if not request.page_token:
            response.trace_readers.extend(pb.TraceReader(**_listed(readers[name])) for name in sorted(readers))
        response.problems.extend(
            write_problem(problem)
            for problem in self._registry.problems
            if problem.kind in ("diagnoser", "trace_reader", "plugin")
        )
        return response

    async def _answered(
        self,
        request: pb.ReplayRequest | pb.DiagnoseRequest,
        call: Call,
        compute: Callable[..., Answer],
        response: Callable[..., Response],
    ) -> AsyncGenerator[Answer | Response, None]:
        """Progress while the answer is computed, at least once, then the answer."""
        profile = await self._sources.profile(request.profile)
        asked, budget_s = read_asked(request, profile)
        budget = CallBudget(call)
        budget.shorten(budget_s)
        async with self._free:
            run = _Run(budget)
            work: asyncio.Future[Answer] = asyncio.get_running_loop().run_in_executor(
                self._executor,
                partial(compute, self._registry.diagnosers, self._loader, asked, run=run, catalogue=self._catalogue),
            )
            try:
                told: tuple[str, int, int] | None = None
                while not work.done():
                    await asyncio.wait((work,), timeout=PROGRESS_EVERY_S)
                    if run.progress is not told and not work.done():
                        told = run.progress
                        yield response(progress=_progress(told))
                answer = work.result()
                if run.progress is not told:
                    yield response(progress=_progress(run.progress))
                yield answer
            finally:
                budget.end()
                work.cancel()

    async def _written(
        self, executed: Timeline | None, recorded: Timeline | None, collectives: Sequence[ReplayedCollective]
    ) -> AsyncIterator[dict[str, Any]]:
        """Pieces of an answer as they are made, in a thread: a million events take seconds."""
        pieces = _pieces(executed, recorded, collectives)
        while (piece := await run_in(self._executor, next, pieces, None)) is not None:
            yield piece


def _pieces(
    executed: Timeline | None, recorded: Timeline | None, collectives: Sequence[ReplayedCollective]
) -> Iterator[dict[str, Any]]:
    """Fields of the messages before the result."""
    for timeline, as_recorded in ((executed, False), (recorded, True)):
        if timeline is not None:
            for piece in write_timeline(timeline, recorded=as_recorded):
                yield {"timeline": piece}
    for exchanges in write_collectives(collectives):
        yield {"collectives": exchanges}


def _listed(loaded: Loaded[DiagnoserRecord] | Loaded[TraceReaderRecord]) -> dict[str, str]:
    """Fields that say what a plugin is."""
    record = loaded.record
    return {
        "name": record.name,
        "version": record.version,
        "description": record.description,
        "distribution": loaded.distribution,
        "mode": loaded.mode,
    }


def _progress(told: tuple[str, int, int] | None) -> pb.DiagnosisProgress:
    stage, done, total = told or ("", 0, 0)
    return pb.DiagnosisProgress(stage=stage, done_count=done, total_count=total)


class _Run:
    """What the thread tells the event loop, and how long it has."""

    def __init__(self, budget: CallBudget) -> None:
        self._budget = budget
        self.progress: tuple[str, int, int] | None = None

    def remaining_s(self) -> float:
        """Seconds left; nothing once nobody waits any more."""
        return self._budget.remaining_s()

    def advanced(self, stage: str, done: int, total: int) -> None:
        """How far a stage is."""
        self.progress = (str(stage)[:64], int(done), int(total))
