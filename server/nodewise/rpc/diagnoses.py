"""DiagnosisService: replays and diagnoses, with progress, their answers in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nodewise.diagnosis.diagnose import diagnosed, replayed
from nodewise.diagnosis.results import TraceQuestion
from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.replay import ReplayedCollective, ReplayQuestion, Timeline
from nodewise.hosting.registry import Loaded, Registry
from nodewise.plugin import DiagnoserRecord, TraceReaderRecord
from nodewise.ports.compute import Compute, LongRun
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.paging import page
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_diagnoses import read_asked, read_diagnosis, read_replay, write_diagnosis, write_replay
from nodewise.rpc.wire_plugins import write_problem
from nodewise.rpc.wire_timelines import write_collectives, write_timeline
from nodewise_protos.v1 import diagnosis_service_pb2 as pb

__all__ = ["Diagnoses"]


class Diagnoses:
    """Behaviours of DiagnosisService.

    Parameters
    ----------
    registry : Registry
        Who can be asked.
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        Where traces are read, replayed and diagnosed.
    """

    def __init__(self, registry: Registry, sources: ProfileSources, compute: Compute[Workshop]) -> None:
        self._registry = registry
        self._sources = sources
        self.compute = compute

    @streamed
    async def replay(self, request: pb.ReplayRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        wanted = read_replay(request)
        asked, budget_s = read_asked(request, await self._sources.profile(request.profile))
        return LongCall(_replayed, (asked, wanted), budget_s)

    @streamed
    async def diagnose(self, request: pb.DiagnoseRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        wanted = read_diagnosis(request)
        asked, budget_s = read_asked(request, await self._sources.profile(request.profile))
        return LongCall(_diagnosed, (asked, wanted), budget_s)

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


def _replayed(workshop: Workshop, asked: tuple[TraceQuestion, ReplayQuestion], run: LongRun) -> Iterator[bytes]:
    question, wanted = asked
    told = _Told(run, pb.ReplayResponse)
    answers = workshop.answers
    found = replayed(answers.registry.diagnosers, workshop.traces, question, wanted, told, answers.estimators.catalogue)
    for piece in _pieces(found.replay.timeline, found.recorded, found.replay.collectives):
        yield pb.ReplayResponse(**piece).SerializeToString()
    yield pb.ReplayResponse(result=write_replay(found)).SerializeToString()


def _diagnosed(workshop: Workshop, asked: tuple[TraceQuestion, DiagnosisQuestion], run: LongRun) -> Iterator[bytes]:
    question, wanted = asked
    told = _Told(run, pb.DiagnoseResponse)
    answers = workshop.answers
    found = diagnosed(
        answers.registry.diagnosers, workshop.traces, question, wanted, told, answers.estimators.catalogue
    )
    for piece in _pieces(found.diagnosis.timeline, found.recorded, found.diagnosis.collectives):
        yield pb.DiagnoseResponse(**piece).SerializeToString()
    yield pb.DiagnoseResponse(result=write_diagnosis(found)).SerializeToString()


class _Told:
    """The run of a diagnoser: how far its stages are becomes messages."""

    def __init__(self, run: LongRun, response: Callable[..., pb.ReplayResponse | pb.DiagnoseResponse]) -> None:
        self._run = run
        self._response = response
        self.remaining_s = run.budget.remaining_s
        self.advanced("", 0, 0)

    def advanced(self, stage: str, done: int, total: int) -> None:
        """How far a stage is."""
        name, of = str(stage)[:64], (int(done), int(total))

        def write() -> bytes:
            progress = pb.DiagnosisProgress(stage=name, done_count=of[0], total_count=of[1])
            return self._response(progress=progress).SerializeToString()

        self._run.tell(write)


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
