"""DiagnosisService: replays and diagnoses, with progress, their answers in pieces; times of steps as they come."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog

from nodewise.diagnosis.diagnose import diagnosed, replayed, steps_diagnosed
from nodewise.diagnosis.results import TraceQuestion
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.errors import NodewiseError
from nodewise.domain.replay import Replay, ReplayQuestion, Timeline
from nodewise.domain.step_times import StepTimes
from nodewise.ports.compute import Compute, LongRun, Work
from nodewise.profiles.batches import Batch
from nodewise.profiles.naming import Naming
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.writer import StoreWriter
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.long_call import LongCall, Workshop, streamed
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_diagnoses import read_asked, read_diagnosis, read_replay, write_diagnosis, write_replay
from nodewise.rpc.wire_steps import ALARM, alarm_label, read_report, read_since, recording_of, write_steps
from nodewise.rpc.wire_timelines import write_collectives, write_timeline
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

__all__ = ["Diagnoses"]

LOOK_EVERY_S: Final = 10.0
"""Between two looks at what a job's ranks report, by all who share the store: a slowdown lasts minutes before it costs
anything, and a look at a thousand ranks takes seconds of a processor."""
LOOKED_BACK_S: Final = 3600.0
"""Of a look."""
LOOK_S: Final = 60.0
"""Of a look, at most."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Diagnoses:
    """Behaviours of DiagnosisService.

    Attributes
    ----------
    sources : ProfileSources
        Finds profiles.
    compute : Compute
        Where traces are read, replayed and diagnosed.
    store, writer : ProfileStore, StoreWriter
        Where times of steps are, and labels.
    reads : Executor
        Threads for what reaches the disk.
    """

    sources: ProfileSources
    compute: Compute[Workshop]
    store: ProfileStore
    writer: StoreWriter
    reads: Executor
    _next_look_s: dict[str, float] = field(default_factory=dict)
    _looks: set[asyncio.Task[None]] = field(default_factory=set)

    @streamed
    async def replay(self, request: pb.ReplayRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        return await self._asked(_replayed, request, read_replay(request), call)

    @streamed
    async def diagnose(self, request: pb.DiagnoseRequest, call: Call) -> LongCall:
        """Progress, pieces, the result."""
        if request.HasField("since_seconds"):
            profile_id, since_s = read_since(request)
            times = await run_in(self.reads, self._times, profile_id, since_s)
            return LongCall(_steps_diagnosed, (request.diagnoser, *times), read_asked(request)[1])
        return await self._asked(_diagnosed, request, read_diagnosis(request), call)

    def _times(self, profile_id: str, since_s: float) -> tuple[StepTimes, StepTimes]:
        """Windows of a period, and hours."""
        steps = self.store.steps
        return steps.since(profile_id, time.time() - since_s), steps.hours(profile_id)

    async def report_steps(self, request: pb.ReportStepsRequest, call: Call) -> pb.ReportStepsResponse:
        """Store windows, and look at the job once in a while."""
        times = read_report(request)
        labels: Mapping[str, str] = await run_in(self.reads, self.store.steps.add, request.profile_id, times)
        self._look_soon(request.profile_id, labels.get(ALARM, ""))
        return pb.ReportStepsResponse(recording=recording_of(labels))

    def _look_soon(self, profile_id: str, alarm: str) -> None:
        """Look for slowdowns, unless somebody did lately."""
        now_s = time.monotonic()
        if self._next_look_s.get(profile_id, 0.0) > now_s:
            return
        self._next_look_s = {name: at_s for name, at_s in self._next_look_s.items() if at_s > now_s}
        self._next_look_s[profile_id] = now_s + LOOK_EVERY_S
        look = asyncio.create_task(self._look(profile_id, alarm))
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)

    async def _look(self, profile_id: str, before: str) -> None:
        """Diagnose the newest windows; what lasts becomes a label of the profile."""
        try:
            if not await run_in(self.reads, self.store.claim, f"steps of {profile_id}", LOOK_EVERY_S):
                return
            times = await run_in(self.reads, self._times, profile_id, LOOKED_BACK_S)
            end_s = time.monotonic() + LOOK_S
            reply = b""
            async for message in self.compute.run(_steps_diagnosed, ("", *times), end_s, end_s):
                reply = message
            label = alarm_label(pb.DiagnoseResponse.FromString(reply).result.steps, before)
            if label != before:
                batch = Batch(sequence_number=1, naming=Naming(labels={ALARM: label}), commit=True)
                await asyncio.wrap_future(self.writer.append(profile_id, f"alarm-{uuid.uuid4().hex}", (batch,)))
        except NodewiseError as error:  # the next report looks again
            _log.warning("steps_not_diagnosed", profile_id=profile_id, reason=str(error.reason))

    async def _asked(
        self, work: Work[Workshop], request: pb.ReplayRequest | pb.DiagnoseRequest, wanted: object, call: Call
    ) -> LongCall:
        asked, budget_s = read_asked(request)
        profile = await self.sources.profile(request.profile, call)
        return LongCall(work, (replace(asked, profile=profile), wanted), budget_s)


def _replayed(workshop: Workshop, asked: tuple[TraceQuestion, ReplayQuestion], run: LongRun) -> Iterator[bytes]:
    answers, told = workshop.answers, _Told(run, pb.ReplayResponse)
    found = replayed(answers.registry.diagnosers, workshop.traces, *asked, told, answers.estimators.catalogue)
    for piece in _pieces(found.replay, found.recorded):
        yield pb.ReplayResponse(**piece).SerializeToString()
    yield pb.ReplayResponse(result=write_replay(found)).SerializeToString()


def _diagnosed(workshop: Workshop, asked: tuple[TraceQuestion, DiagnosisQuestion], run: LongRun) -> Iterator[bytes]:
    answers, told = workshop.answers, _Told(run, pb.DiagnoseResponse)
    found = diagnosed(answers.registry.diagnosers, workshop.traces, *asked, told, answers.estimators.catalogue)
    for piece in _pieces(found.diagnosis, found.recorded):
        yield pb.DiagnoseResponse(**piece).SerializeToString()
    yield pb.DiagnoseResponse(result=write_diagnosis(found)).SerializeToString()


def _steps_diagnosed(workshop: Workshop, asked: tuple[str, StepTimes, StepTimes], _run: LongRun) -> Iterator[bytes]:
    found = steps_diagnosed(workshop.answers.registry.diagnosers, *asked)
    result = pb.DiagnosisResult(verdict=found.verdict, complete=True, steps=write_steps(found))
    yield pb.DiagnoseResponse(result=result).SerializeToString()


class _Told:
    """The run of a diagnoser: how far its stages are becomes messages."""

    def __init__(self, run: LongRun, response: Callable[..., pb.ReplayResponse | pb.DiagnoseResponse]) -> None:
        self._run = run
        self._response = response
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
