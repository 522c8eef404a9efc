"""DiagnosisService: replays and diagnoses, with progress and results in pieces; reports of step times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

from nodewise.diagnosis.diagnose import diagnose_step_times, diagnose_traces, replay_traces
from nodewise.diagnosis.results import TraceQuestion
from nodewise.diagnosis.watching import ALARM, StepWatch
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.replay import Replay, ReplayedCollective, ReplayQuestion, Timeline
from nodewise.domain.step_times import StepTimes
from nodewise.mapper.mapping import to_message
from nodewise.plugin import Catalogue
from nodewise.ports.compute import Compute, LongRun, Work
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.long_call import LongCall, Workshop, stream_result
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_diagnoses import (
    read_diagnosis,
    read_replay,
    read_report,
    read_since,
    read_trace_question,
    recording_of,
    write_diagnosis,
    write_replay,
)
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = ["Diagnoses", "write_collectives", "write_timeline"]


PIECE_ROWS: Final = 32_768
"""Most events of a message: with eight columns of at most ten bytes each it has at most 2.6 MB."""
PIECE_TEXT_BYTES: Final = 1 << 20
"""Most bytes of names in a message."""
_WORDS: Final = ("names", "lanes", "kinds", "parts")
PIECE_RANKS: Final = 65_536
"""Most ranks of all exchanges of a message, which take at most 26 bytes each."""
PIECE_EXCHANGES: Final = 8_192


@dataclass(slots=True, eq=False)
class Diagnoses:
    """Behaviours of DiagnosisService.

    Attributes
    ----------
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        The pool that reads, replays and diagnoses traces.
    watch : StepWatch
        Stores step times, and diagnoses the jobs that report them.
    """

    sources: ProfileSources
    compute: Compute[Workshop]
    watch: StepWatch

    @stream_result
    async def replay(self, request: pb.ReplayRequest, call: Call) -> LongCall:
        """Sends progress, then pieces, then the result."""
        return await self._prepare(_replay, request, read_replay(request), call)

    @stream_result
    async def diagnose(self, request: pb.DiagnoseRequest, call: Call) -> LongCall:
        """Sends progress, then pieces, then the result."""
        if request.HasField("since_seconds"):
            profile_id, since_s = read_since(request)
            times = await run_in(self.watch.reads, self.watch.times, profile_id, since_s)
            return LongCall(_diagnose_steps, (request.diagnoser, *times), read_trace_question(request)[1])
        return await self._prepare(_diagnose, request, read_diagnosis(request), call)

    async def report_steps(self, request: pb.ReportStepsRequest, call: Call) -> pb.ReportStepsResponse:
        """Store windows, and diagnose the job from time to time."""
        times = read_report(request)
        watch = self.watch
        labels: Mapping[str, str] = await run_in(watch.reads, watch.store.steps.add, request.profile_id, times)
        watch.look_soon(request.profile_id, labels.get(ALARM, ""))
        return pb.ReportStepsResponse(recording=recording_of(labels))

    async def _prepare(
        self, work: Work[Workshop], request: pb.ReplayRequest | pb.DiagnoseRequest, options: object, call: Call
    ) -> LongCall:
        question, budget_s = read_trace_question(request)
        profile = await self.sources.profile(request.profile, call)
        return LongCall(work, (replace(question, profile=profile), options), budget_s)


def _replay(workshop: Workshop, questions: tuple[TraceQuestion, ReplayQuestion], run: LongRun) -> Iterator[bytes]:
    answers = workshop.answers
    context = _Context(run, pb.ReplayResponse, answers.estimators.catalogue)
    result = replay_traces(answers.registry.diagnosers, workshop.traces, *questions, context)
    for piece in _pieces(result.replay, result.recorded):
        yield pb.ReplayResponse(**piece).SerializeToString()
    yield pb.ReplayResponse(result=write_replay(result)).SerializeToString()


def _diagnose(workshop: Workshop, questions: tuple[TraceQuestion, DiagnosisQuestion], run: LongRun) -> Iterator[bytes]:
    answers = workshop.answers
    context = _Context(run, pb.DiagnoseResponse, answers.estimators.catalogue)
    result = diagnose_traces(answers.registry.diagnosers, workshop.traces, *questions, context)
    for piece in _pieces(result.diagnosis, result.recorded):
        yield pb.DiagnoseResponse(**piece).SerializeToString()
    yield pb.DiagnoseResponse(result=write_diagnosis(result)).SerializeToString()


def _diagnose_steps(workshop: Workshop, arguments: tuple[str, StepTimes, StepTimes], _run: LongRun) -> Iterator[bytes]:
    answer = diagnose_step_times(workshop.answers.registry.diagnosers, *arguments)
    result = pb.DiagnosisResult(verdict=answer.verdict, complete=True, steps=to_message(answer, pb.StepsDiagnosis))
    yield pb.DiagnoseResponse(result=result).SerializeToString()


class _Context:
    """The context of a diagnoser, which sends its progress as messages."""

    def __init__(
        self, run: LongRun, response: Callable[..., pb.ReplayResponse | pb.DiagnoseResponse], catalogue: Catalogue
    ) -> None:
        self._run = run
        self._response = response
        self.catalogue = catalogue
        self.remaining_s = run.budget.remaining_s
        self.advanced("", 0, 0)

    def advanced(self, stage: str, done: int, total: int) -> None:
        """Send the progress of a stage."""
        progress = pb.DiagnosisProgress(stage=str(stage)[:64], done_count=int(done), total_count=int(total) or None)
        self._run.tell(lambda: self._response(progress=progress).SerializeToString())


def _pieces(result: Replay | Diagnosis, recorded_timeline: Timeline | None) -> Iterator[dict[str, Any]]:
    """The fields of the messages before the result."""
    for timeline, as_recorded in ((result.timeline, False), (recorded_timeline, True)):
        if timeline is not None:
            for piece in write_timeline(timeline, recorded=as_recorded):
                yield {"timeline": piece}
    for exchanges in write_collectives(result.collectives):
        yield {"collectives": exchanges}


def write_timeline(timeline: Timeline, *, recorded: bool) -> Iterator[pb.TimelinePiece]:
    """A timeline in pieces: first the names, then the events."""
    for kind in _WORDS:
        for words in _cut(getattr(timeline, kind)):
            piece = pb.TimelinePiece(recorded=recorded)
            getattr(piece, kind).extend(words)
            yield piece
    for begin in range(0, len(timeline), PIECE_ROWS):
        rows = slice(begin, begin + PIECE_ROWS)
        columns_of_words: dict[str, Any] = dict.fromkeys(_WORDS, ())
        yield to_message(timeline, pb.TimelinePiece, only=rows, recorded=recorded, **columns_of_words)


def _cut(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names in order, in parts that fit a message."""
    begin, size = 0, 0
    for place, word in enumerate(words):
        size_bytes = len(word.encode()) + 4
        if size and size + size_bytes > PIECE_TEXT_BYTES:
            yield words[begin:place]
            begin, size = place, 0
        size += size_bytes
    if size:
        yield words[begin:]


def write_collectives(collectives: Sequence[ReplayedCollective]) -> Iterator[pb.ReplayedCollectives]:
    """Exchanges in pieces, in order."""
    waiting: list[ReplayedCollective] = []
    ranks, text = 0, 0
    for each in collectives:
        more = len(each.ranks) + len(each.late_ranks)
        words = len(each.name.encode()) + len(each.kind.encode()) + len(each.group.encode())
        full = len(waiting) >= PIECE_EXCHANGES or ranks + more > PIECE_RANKS or text + words > PIECE_TEXT_BYTES
        if waiting and full:
            yield _columns(waiting)
            waiting, ranks, text = [], 0, 0
        waiting.append(each)
        ranks, text = ranks + more, text + words
    if waiting:
        yield _columns(waiting)


def _columns(collectives: Sequence[ReplayedCollective]) -> pb.ReplayedCollectives:
    return pb.ReplayedCollectives(
        step_ordinals=[each.step for each in collectives],
        names=[each.name for each in collectives],
        kinds=[each.kind for each in collectives],
        bytes=[max(each.bytes, 0) for each in collectives],
        groups=[each.group for each in collectives],
        transfer_seconds=[each.transfer_s for each in collectives],
        end_spread_seconds=[each.end_spread_s for each in collectives],
        margin_seconds=[each.margin_s for each in collectives],
        rank_offsets=accumulate((len(each.ranks) for each in collectives), initial=0),
        rank_numbers=[rank for each in collectives for rank in each.ranks],
        arrival_seconds=[arrival for each in collectives for arrival in each.arrival_s],
        wait_seconds=[wait for each in collectives for wait in each.wait_s],
        late_rank_offsets=accumulate((len(each.late_ranks) for each in collectives), initial=0),
        late_ranks=[rank for each in collectives for rank in each.late_ranks],
    )
