"""Traces in a format of the tests' own, its reader, and a diagnoser that answers from them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np
from patience import PATIENCE_S

from nodewise.plugin import (
    Bottleneck,
    Catalogue,
    CollectiveKind,
    Collectives,
    DiagnoserContext,
    DiagnoserRecord,
    Diagnosis,
    DiagnosisQuestion,
    EdgeCounts,
    EventKind,
    Lane,
    NodewiseError,
    ProcessGroup,
    Profile,
    RankShares,
    Reason,
    Replay,
    ReplayedCollective,
    ReplayedStep,
    ReplayQuestion,
    StepPart,
    Straggler,
    Strategy,
    Timeline,
    Trace,
    TraceReaderRecord,
    TraceReport,
    TraceSource,
    TraceSteps,
    Violation,
    as_floats,
    as_ints,
)

MAGIC = b"tiny trace\n"
STEP_NS = 1_000_000


def tiny(rank: int = 0, world_size: int = 2, *, steps: int = 3, events: int = 4, name: str = "matmul") -> bytes:
    """A file: so many steps of a millisecond, of so many events each, on a thread and a stream."""
    stated = {"rank": rank, "world_size": world_size, "steps": steps, "events": events, "name": name}
    return MAGIC + json.dumps(stated).encode() + b"\n" + b"." * 200


def trace_of(rank: int, world_size: int, steps: int, events: int, name: str = "matmul") -> Trace:
    """What the file says; the last event of a step is an exchange."""
    count = steps * events
    begin = np.arange(count, dtype=np.int64) // events * STEP_NS + np.arange(count) % events * (STEP_NS // events)
    last = np.arange(events - 1, count, events, dtype=np.int64)
    kind = np.where(np.arange(count) % 2, EventKind.KERNEL, EventKind.OPERATOR).astype(np.int8)
    unknown = np.full(count, -1, dtype=np.int64)
    of_exchanges = np.full(steps, -1, dtype=np.int64)
    return Trace(
        rank=rank,
        world_size=world_size,
        format="tiny",
        names=(name, "all_reduce"),
        name=np.isin(np.arange(count), last).astype(np.int32),
        lanes=(Lane(device=-1, number=1, name="main"), Lane(device=0, number=7)),
        lane=(np.arange(count) % 2).astype(np.int32),
        kind=kind,
        begin_ns=begin,
        duration_ns=np.full(count, STEP_NS // events // 2, dtype=np.int64),
        correlation=unknown,
        sequence=unknown,
        forward_lane=np.full(count, -1, dtype=np.int32),
        bytes=unknown,
        steps=TraceSteps(
            number=np.arange(steps, dtype=np.int64),
            begin_ns=np.arange(steps, dtype=np.int64) * STEP_NS,
            end_ns=np.arange(1, steps + 1, dtype=np.int64) * STEP_NS,
        ),
        collectives=Collectives(
            event=last,
            call=of_exchanges,
            kind=np.full(steps, CollectiveKind.ALL_REDUCE, dtype=np.int8),
            group=np.zeros(steps, dtype=np.int64),
            in_bytes=of_exchanges,
            out_bytes=of_exchanges,
            sequence=of_exchanges,
            peer=of_exchanges,
            groups=(ProcessGroup(name="world", size=world_size, ranks=tuple(range(world_size))),),
        ),
        report=TraceReport(counts={"events": count}, warnings=("a warning of the reader",) if name == "warned" else ()),
    )


class TinyReader:
    """Reads the format; ``answer`` stands in for what it would return."""

    def __init__(self, answer: Callable[[Trace], Any] | None = None) -> None:
        self.reads = 0
        self.sources: list[TraceSource] = []
        self.answer = answer
        self.began = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def recognises(self, head: bytes, source: TraceSource) -> float:
        return 0.9 if head.startswith(MAGIC) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        self.reads += 1
        self.sources.append(source)
        self.began.set()
        self.go.wait(PATIENCE_S)
        assert stream.readline() == MAGIC
        try:
            stated = json.loads(stream.readline())
        except json.JSONDecodeError:
            raise NodewiseError.invalid([Violation("trace", "line 2 is no JSON")], Reason.INVALID_FIELD) from None
        while stream.read(64):
            pass
        if source.rank >= 0:
            stated["rank"] = source.rank
        trace = trace_of(**stated)
        return [trace] if self.answer is None else self.answer(trace)


def reader(answering: Any, name: str = "tiny", version: str = "1.0") -> TraceReaderRecord:
    return TraceReaderRecord(name=name, version=version, description="for tests", reader=answering)


class TinyDiagnoser:
    """Answers from what the traces say; ``wrong`` holds fields to answer instead."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong
        self.asked: list[Any] = []
        self.catalogues: list[Catalogue] = []

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, context: DiagnoserContext) -> Any:
        self.asked.append((traces, question))
        self.catalogues.append(context.catalogue)
        context.advanced("replaying", 1, 2)
        if "raises" in self.wrong:
            raise self.wrong["raises"]
        ranks = tuple(trace.rank for trace in traces)
        tested = question.test_steps or tuple(range(1, len(traces[0].steps) + 1))
        measured = 0.0 if question.changes else 0.001
        answer: dict[str, Any] = {
            "steps": tuple(
                ReplayedStep(
                    step=step,
                    measured_host_s=measured,
                    predicted_host_s=0.00101,
                    measured_device_s=measured,
                    predicted_device_s=0.00099,
                    rank_measured_host_s=() if question.changes else (measured,) * len(ranks),
                    rank_predicted_host_s=(0.00101,) * len(ranks),
                    lower_host_s=0.0009 if question.changes else 0.0,
                    upper_host_s=0.0011 if question.changes else 0.0,
                )
                for step in tested
            ),
            "host_error": None if question.changes else 0.01,
            "device_error": None if question.changes else 0.01,
            "persistence_error": None if len(tested) == 1 else 0.02,
            "kernel_start_p50_error_s": 1e-6,
            "kernel_start_p95_error_s": 2e-6,
            "in_sample": question.in_sample,
            "events": sum(map(len, traces)),
            "nodes": 2 * sum(map(len, traces)),
            "ranks": ranks,
            "world_size": traces[0].world_size,
            "edges": {"launch": EdgeCounts(found=3, inferred=2, missing=1)},
            "clock_offset_s": as_floats([1e-3 * rank for rank in ranks]),
            "clock_uncertainty_s": as_floats([1e-6] * len(ranks)),
            "collectives": tuple(exchange(step, ranks) for step in tested),
            "build_s": 0.1,
            "replay_s": 0.2,
            "counts": {"matched": 3},
            "warnings": ("a warning of the diagnoser",),
            "timeline": timeline_of(traces) if question.timeline else None,
        }
        return Replay(**(answer | self.wrong))

    def diagnose(
        self, traces: Sequence[Trace], profile: Profile, question: DiagnosisQuestion, context: DiagnoserContext
    ) -> Any:
        self.asked.append((traces, profile, question))
        self.catalogues.append(context.catalogue)
        context.advanced("searching", 1, 1)
        if "raises" in self.wrong:
            raise self.wrong["raises"]
        ranks = tuple(trace.rank for trace in traces)
        answer: dict[str, Any] = {
            "bottlenecks": tuple(
                Bottleneck(kind="kernel", what=f"kernel {place}", rank=-1, seconds=0.5, gain_if_removed_s=0.4)
                for place in range(30)
            ),
            "strategies": (Strategy(name="larger buckets", predicted_step_s=0.0009, speedup=1.11, parts=("a", "b")),),
            "stragglers": (Straggler(collective="all_reduce 0", ranks=ranks[-2:], margin_s=9e-6, imposed_wait_s=1e-3),),
            "bound_by": "skew",
            "verdict": "Ranks wait for each other.",
            "step_s": 0.001,
            "persistence_s": 1e-5,
            "exposed_communication_s": 2e-4,
            "ranks": tuple(
                RankShares(
                    rank=rank,
                    step_s=0.001,
                    compute_s=0.0005,
                    communication_s=0.0003,
                    exposed_communication_s=0.0002,
                    waiting_s=0.0001,
                    idle_s=0.0001,
                    host_bound_s=0.0,
                    memory_high_water_bytes=1 << 30 if rank else -1,
                    parts=(StepPart(kind="waiting", what="all_reduce 0", seconds=1e-4, waits_for_rank=rank - 1),),
                )
                for rank in ranks
            ),
            "collectives": (exchange(1, ranks),),
            "edges": {"launch": EdgeCounts(found=3)},
            "warnings": (),
            "timeline": timeline_of(traces) if question.timeline else None,
        }
        return Diagnosis(**(answer | self.wrong))


def exchange(step: int, ranks: tuple[int, ...]) -> ReplayedCollective:
    return ReplayedCollective(
        step=step,
        name="all_reduce",
        kind="all_reduce",
        bytes=-1 if step == 2 else 4096,
        group="world",
        transfer_s=1e-5,
        end_spread_s=1e-6,
        ranks=ranks,
        arrival_s=tuple(1e-4 * place for place in range(len(ranks))),
        wait_s=tuple(1e-4 * (len(ranks) - 1 - place) for place in range(len(ranks))),
        late_ranks=ranks[-1:],
        margin_s=1e-4,
    )


def timeline_of(traces: Sequence[Trace]) -> Timeline:
    """As recorded, but for the waiting of exchanges."""
    rows = [len(trace) for trace in traces]
    count = sum(rows)
    exchanges = np.concatenate([np.isin(np.arange(len(trace)), trace.collectives.event) for trace in traces])
    duration = np.concatenate([trace.duration_ns for trace in traces])
    return Timeline(
        rank=as_ints(np.repeat([trace.rank for trace in traces], rows)),
        lane=as_ints(np.concatenate([trace.lane for trace in traces])),
        name=as_ints(np.concatenate([trace.name for trace in traces])),
        begin_ns=as_ints(np.concatenate([trace.begin_ns for trace in traces])),
        duration_ns=as_ints(duration),
        lanes=("thread 1 main", "device 0 stream 7"),
        names=(*traces[0].names[:-1], "</script> all_reduce"),
        kind=as_ints(np.where(exchanges, 1, 0)),
        kinds=("kernel", "collective"),
        waiting_ns=as_ints(np.where(exchanges, duration // 2, np.zeros(count, dtype=np.int64))),
    )


def diagnoser(answering: Any, name: str = "tiny") -> DiagnoserRecord:
    return DiagnoserRecord(name=name, version="1.0", description="for tests", diagnoser=answering)
