"""DiagnosisService: replays and diagnoses, with progress, their answers in pieces; times of steps as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

from nodewise.diagnosis.diagnose import diagnosed, replayed, steps_diagnosed
from nodewise.diagnosis.results import TraceQuestion
from nodewise.diagnosis.watching import ALARM, StepWatch
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.replay import Replay, ReplayedCollective, ReplayQuestion, Timeline
from nodewise.domain.step_times import StepTimes
from nodewise.mapper.mapping import to_message
from nodewise.plugin import Catalogue
from nodewise.ports.compute import Compute, LongRun, Work
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_diagnoses import (
    read_asked,
    read_diagnosis,
    read_replay,
    read_report,
    read_since,
    recording_of,
    write_diagnosis,
    write_replay,
)
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = ["Diagnoses", "write_collectives", "write_timeline"]


PIECE_ROWS: Final = 32_768
"""Events of a message: of eight columns of at most ten bytes each it has at most 2.6 MB."""
PIECE_TEXT_BYTES: Final = 1 << 20
"""Words of a message."""
_WORDS: Final = ("names", "lanes", "kinds", "parts")
PIECE_RANKS: Final = 65_536
"""Ranks of all exchanges of a message, which take at most 26 bytes each."""
PIECE_EXCHANGES: Final = 8_192


@dataclass(slots=True, eq=False)
class Diagnoses:
    """Behaviours of DiagnosisService.

    Attributes
    ----------
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        Where traces are read, replayed and diagnosed.
    watch : StepWatch
        Knows the times of steps, and looks at the jobs that report them.
    """

    sources: ProfileSources
    compute: Compute[Workshop]
    watch: StepWatch

    @streamed
    async def replay(self, request: pb.ReplayRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        return await self._asked(_replayed, request, read_replay(request), call)

    @streamed
    async def diagnose(self, request: pb.DiagnoseRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        if request.HasField("since_seconds"):
            profile_id, since_s = read_since(request)
            times = await run_in(self.watch.reads, self.watch.times, profile_id, since_s)
            return LongCall(_steps_diagnosed, (request.diagnoser, *times), read_asked(request)[1])
        return await self._asked(_diagnosed, request, read_diagnosis(request), call)

    async def report_steps(self, request: pb.ReportStepsRequest, call: Call) -> pb.ReportStepsResponse:
        """Store windows, and look at the job once in a while."""
        times = read_report(request)
        watch = self.watch
        labels: Mapping[str, str] = await run_in(watch.reads, watch.store.steps.add, request.profile_id, times)
        watch.look_soon(request.profile_id, labels.get(ALARM, ""))
        return pb.ReportStepsResponse(recording=recording_of(labels))

    async def _asked(
        self, work: Work[Workshop], request: pb.ReplayRequest | pb.DiagnoseRequest, wanted: object, call: Call
    ) -> LongCall:
        asked, budget_s = read_asked(request)
        profile = await self.sources.profile(request.profile, call)
        return LongCall(work, (replace(asked, profile=profile), wanted), budget_s)


def _replayed(workshop: Workshop, asked: tuple[TraceQuestion, ReplayQuestion], run: LongRun) -> Iterator[bytes]:
    answers = workshop.answers
    context = _Context(run, pb.ReplayResponse, answers.estimators.catalogue)
    found = replayed(answers.registry.diagnosers, workshop.traces, *asked, context)
    for piece in _pieces(found.replay, found.recorded):
        yield pb.ReplayResponse(**piece).SerializeToString()
    yield pb.ReplayResponse(result=write_replay(found)).SerializeToString()


def _diagnosed(workshop: Workshop, asked: tuple[TraceQuestion, DiagnosisQuestion], run: LongRun) -> Iterator[bytes]:
    answers = workshop.answers
    context = _Context(run, pb.DiagnoseResponse, answers.estimators.catalogue)
    found = diagnosed(answers.registry.diagnosers, workshop.traces, *asked, context)
    for piece in _pieces(found.diagnosis, found.recorded):
        yield pb.DiagnoseResponse(**piece).SerializeToString()
    yield pb.DiagnoseResponse(result=write_diagnosis(found)).SerializeToString()


def _steps_diagnosed(workshop: Workshop, asked: tuple[str, StepTimes, StepTimes], _run: LongRun) -> Iterator[bytes]:
    found = steps_diagnosed(workshop.answers.registry.diagnosers, *asked)
    result = pb.DiagnosisResult(verdict=found.verdict, complete=True, steps=to_message(found, pb.StepsDiagnosis))
    yield pb.DiagnoseResponse(result=result).SerializeToString()


class _Context:
    """What a diagnoser meets: how far its stages are becomes messages."""

    def __init__(
        self, run: LongRun, response: Callable[..., pb.ReplayResponse | pb.DiagnoseResponse], catalogue: Catalogue
    ) -> None:
        self._run = run
        self._response = response
        self.catalogue = catalogue
        self.remaining_s = run.budget.remaining_s
        self.advanced("", 0, 0)

    def advanced(self, stage: str, done: int, total: int) -> None:
        """How far a stage is."""
        progress = pb.DiagnosisProgress(stage=str(stage)[:64], done_count=int(done), total_count=int(total) or None)
        self._run.tell(lambda: self._response(progress=progress).SerializeToString())


def _pieces(found: Replay | Diagnosis, recorded: Timeline | None) -> Iterator[dict[str, Any]]:
    """Fields of the messages before the result."""
    for timeline, as_recorded in ((found.timeline, False), (recorded, True)):
        if timeline is not None:
            for piece in write_timeline(timeline, recorded=as_recorded):
                yield {"timeline": piece}
    for exchanges in write_collectives(found.collectives):
        yield {"collectives": exchanges}


def write_timeline(timeline: Timeline, *, recorded: bool) -> Iterator[pb.TimelinePiece]:
    """A timeline in pieces: first the words, then the events."""
    for kind in _WORDS:
        for words in _cut(getattr(timeline, kind)):
            piece = pb.TimelinePiece(recorded=recorded)
            getattr(piece, kind).extend(words)
            yield piece
    for begin in range(0, len(timeline), PIECE_ROWS):
        rows = slice(begin, begin + PIECE_ROWS)
        said: dict[str, Any] = dict.fromkeys(_WORDS, ())
        yield to_message(timeline, pb.TimelinePiece, only=rows, recorded=recorded, **said)


def _cut(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Words in order, so many at a time as fit."""
    begin, size = 0, 0
    for place, word in enumerate(words):
        taken = len(word.encode()) + 4
        if size and size + taken > PIECE_TEXT_BYTES:
            yield words[begin:place]
            begin, size = place, 0
        size += taken
    if size:
        yield words[begin:]


def write_collectives(collectives: Sequence[ReplayedCollective]) -> Iterator[pb.ReplayedCollectives]:
    """Exchanges in pieces, in their order."""
    kept: list[ReplayedCollective] = []
    ranks, text = 0, 0
    for found in collectives:
        more = len(found.ranks) + len(found.late_ranks)
        words = len(found.name.encode()) + len(found.kind.encode()) + len(found.group.encode())
        full = len(kept) >= PIECE_EXCHANGES or ranks + more > PIECE_RANKS or text + words > PIECE_TEXT_BYTES
        if kept and full:
            yield _columns(kept)
            kept, ranks, text = [], 0, 0
        kept.append(found)
        ranks, text = ranks + more, text + words
    if kept:
        yield _columns(kept)


def _columns(found: Sequence[ReplayedCollective]) -> pb.ReplayedCollectives:
    return pb.ReplayedCollectives(
        step_ordinals=[each.step for each in found],
        names=[each.name for each in found],
        kinds=[each.kind for each in found],
        bytes=[max(each.bytes, 0) for each in found],
        groups=[each.group for each in found],
        transfer_seconds=[each.transfer_s for each in found],
        end_spread_seconds=[each.end_spread_s for each in found],
        margin_seconds=[each.margin_s for each in found],
        rank_offsets=accumulate((len(each.ranks) for each in found), initial=0),
        rank_numbers=[rank for each in found for rank in each.ranks],
        arrival_seconds=[arrival for each in found for arrival in each.arrival_s],
        wait_seconds=[wait for each in found for wait in each.wait_s],
        late_rank_offsets=accumulate((len(each.late_ranks) for each in found), initial=0),
        late_ranks=[rank for each in found for rank in each.late_ranks],
    )
