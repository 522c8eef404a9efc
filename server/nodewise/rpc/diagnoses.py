"""DiagnosisService: replays and diagnoses, with progress, their answers in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from nodewise.diagnosis.diagnose import diagnosed, replayed
from nodewise.diagnosis.results import TraceQuestion
from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.replay import ReplayedCollective, ReplayQuestion, Timeline
from nodewise.ports.compute import Compute, LongRun
from nodewise.rpc.calls import Call
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_diagnoses import read_asked, read_diagnosis, read_replay, write_diagnosis, write_replay
from nodewise.rpc.wire_timelines import write_collectives, write_timeline
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = ["Diagnoses"]


class Diagnoses:
    """Behaviours of DiagnosisService.

    Parameters
    ----------
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        Where traces are read, replayed and diagnosed.
    """

    def __init__(self, sources: ProfileSources, compute: Compute[Workshop]) -> None:
        self._sources = sources
        self.compute = compute

    @streamed
    async def replay(self, request: pb.ReplayRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        wanted = read_replay(request)
        asked, budget_s = await self._asked(request, call)
        return LongCall(_replayed, (asked, wanted), budget_s)

    @streamed
    async def diagnose(self, request: pb.DiagnoseRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        wanted = read_diagnosis(request)
        asked, budget_s = await self._asked(request, call)
        return LongCall(_diagnosed, (asked, wanted), budget_s)

    async def _asked(self, request: pb.ReplayRequest | pb.DiagnoseRequest, call: Call) -> tuple[TraceQuestion, float]:
        asked, budget_s = read_asked(request)
        return replace(asked, profile=await self._sources.profile(request.profile, call)), budget_s


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
            progress = pb.DiagnosisProgress(stage=name, done_count=of[0], total_count=of[1] or None)
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
