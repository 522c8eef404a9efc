"""Small traces and graphs, written down by hand, in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.trace import (
    CollectiveKind,
    Collectives,
    EventKind,
    Lane,
    ProcessGroup,
    SyncKind,
    SyncRecords,
    Trace,
    TraceSteps,
)
from nodewise.plugin import Catalogue
from nodewise_replay.graph.graph import CollectiveNodes, Graph, StepBounds
from nodewise_replay.graph.ordering import topological_order

US = 1_000
MAIN, OTHER, COMPUTE, COMMUNICATION = 0, 1, 2, 3
LANES = (
    Lane(device=-1, number=100, name="main"),
    Lane(device=-1, number=101, name="other"),
    Lane(device=0, number=7),
    Lane(device=0, number=20),
)


class NobodyWaits:
    """A diagnosis with all the time in the world, and the shipped facts about devices."""

    catalogue: Catalogue = load_catalogue(None)

    def remaining_s(self) -> float:
        return 3600.0

    def advanced(self, stage: str, done: int, total: int) -> None:
        assert done <= total, stage


@dataclass
class Recorder:
    """Collects events, then makes a trace of them."""

    rank: int = 0
    world_size: int = 1
    rows: list[tuple[float, float, int, EventKind, str, int, int, int]] = field(default_factory=list)
    steps: list[tuple[int, float, float]] = field(default_factory=list)
    exchanges: list[tuple[int, int, CollectiveKind, int, int, int]] = field(default_factory=list)
    syncs: list[tuple[SyncKind, int, int, int, int]] = field(default_factory=list)

    def event(
        self,
        name: str,
        begin: float,
        end: float,
        *,
        lane: int = MAIN,
        kind: EventKind = EventKind.OPERATOR,
        correlation: int = -1,
        sequence: int = -1,
        forward_lane: int = -1,
    ) -> int:
        self.rows.append((begin, end, lane, kind, name, correlation, sequence, forward_lane))
        return len(self.rows) - 1

    def call(self, name: str, begin: float, end: float, correlation: int = -1, lane: int = MAIN) -> int:
        return self.event(name, begin, end, lane=lane, kind=EventKind.CALL, correlation=correlation)

    def kernel(self, name: str, begin: float, end: float, correlation: int, lane: int = COMPUTE) -> int:
        return self.event(name, begin, end, lane=lane, kind=EventKind.KERNEL, correlation=correlation)

    def step(self, number: int, begin: float, end: float) -> None:
        self.steps.append((number, begin, end))
        self.event(f"ProfilerStep#{number}", begin, end, kind=EventKind.ANNOTATION)

    def collective(
        self, event: int, call: int, kind: CollectiveKind, size: int, *, sequence: int = -1, peer: int = -1
    ) -> None:
        self.exchanges.append((event, call, kind, size, sequence, peer))

    def trace(self) -> Trace:
        order = sorted(range(len(self.rows)), key=lambda row: (self.rows[row][0], -self.rows[row][1]))
        place = {row: index for index, row in enumerate(order)} | {-1: -1}
        rows = [self.rows[row] for row in order]
        names = tuple(dict.fromkeys(row[4] for row in rows))
        exchanges = sorted(self.exchanges, key=lambda one: self.rows[one[0]][0])
        group = ProcessGroup(name="0", size=self.world_size)
        return Trace(
            rank=self.rank,
            world_size=self.world_size,
            format="by hand",
            names=names,
            name=np.array([names.index(row[4]) for row in rows], dtype=np.int32),
            lanes=LANES,
            lane=np.array([row[2] for row in rows], dtype=np.int32),
            kind=np.array([row[3] for row in rows], dtype=np.int8),
            begin_ns=_ns([row[0] for row in rows]),
            duration_ns=_ns([row[1] - row[0] for row in rows]),
            correlation=_ints([row[5] for row in rows]),
            sequence=_ints([row[6] for row in rows]),
            forward_lane=np.array([row[7] for row in rows], dtype=np.int32),
            bytes=_ints([-1 for _ in rows]),
            steps=TraceSteps(
                number=_ints([step[0] for step in self.steps]),
                begin_ns=_ns([step[1] for step in self.steps]),
                end_ns=_ns([step[2] for step in self.steps]),
            ),
            collectives=Collectives(
                event=_ints([place[one[0]] for one in exchanges]),
                call=_ints([place[one[1]] for one in exchanges]),
                kind=np.array([one[2] for one in exchanges], dtype=np.int8),
                group=_ints([0 for _ in exchanges]),
                in_bytes=_ints([one[3] for one in exchanges]),
                out_bytes=_ints([one[3] for one in exchanges]),
                sequence=_ints([one[4] for one in exchanges]),
                peer=_ints([one[5] for one in exchanges]),
                groups=(group,),
            ),
            syncs=SyncRecords(
                kind=np.array([one[0] for one in self.syncs], dtype=np.int8),
                correlation=_ints([one[1] for one in self.syncs]),
                lane=_ints([one[2] for one in self.syncs]),
                awaited_lane=_ints([one[3] for one in self.syncs]),
                awaited_correlation=_ints([one[4] for one in self.syncs]),
            ),
        )


def shifted(trace: Trace, offset_ns: int, drift: float = 0.0) -> Trace:
    """The same recording by a clock that is set otherwise, or goes faster."""
    origin = int(trace.begin_ns.min())

    def on_that_clock(times: np.ndarray) -> np.ndarray:  # type: ignore[type-arg] # whole numbers
        return times + offset_ns + np.rint(drift * (times - origin)).astype(np.int64)

    begin, end = on_that_clock(trace.begin_ns), on_that_clock(trace.end_ns)
    steps = replace(
        trace.steps,
        begin_ns=on_that_clock(trace.steps.begin_ns),
        end_ns=on_that_clock(trace.steps.end_ns),
    )
    return replace(trace, begin_ns=begin, duration_ns=end - begin, steps=steps)


def exchanging(rank: int, world_size: int, arrivals: Sequence[float], ends: Sequence[float], size: int = 4096) -> Trace:
    """A rank whose steps launch one all-reduce each: when its kernels begin and end, per step of 1,000 us."""
    record = Recorder(rank=rank, world_size=world_size)
    for step, (arrival, end) in enumerate(zip(arrivals, ends, strict=True)):
        base = 1_000.0 * step
        record.step(step + 1, base, base + 1_000)
        call = record.event("c10d::allreduce_", base + arrival - 20, base + arrival)
        record.call("cudaLaunchKernel", base + arrival - 10, base + arrival - 5, correlation=step + 1)
        kernel = record.kernel("ncclKernel_AllReduce", base + arrival, base + end, step + 1, lane=COMMUNICATION)
        record.collective(kernel, call, CollectiveKind.ALL_REDUCE, size)
        record.call("cudaDeviceSynchronize", base + arrival + 1, base + end + 3)
    return record.trace()


def graph_of(
    durations_ns: Sequence[int], edges: Sequence[tuple[int, int, int]], releases_ns: Sequence[int] | None = None
) -> Graph:
    """A graph of one rank and step out of (source, target, lag) edges."""
    count = len(durations_ns)
    by_target = sorted(edges, key=lambda edge: edge[1])
    first = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(_ints([edge[1] for edge in by_target]), minlength=count), out=first[1:])
    source = np.array([edge[0] for edge in by_target], dtype=np.int32)
    none, lag = _ints([]), _ints([edge[2] for edge in by_target])
    zeros = np.zeros(count, dtype=np.int64)
    one = np.zeros((1, 1), dtype=np.int64)
    return Graph(
        kind=np.zeros(count, dtype=np.int8),
        rank=np.zeros(count, dtype=np.int32),
        lane=np.zeros(count, dtype=np.int32),
        step=np.zeros(count, dtype=np.int32),
        event=np.arange(count, dtype=np.int64),
        name=np.zeros(count, dtype=np.int32),
        duration_ns=_ints(durations_ns),
        begin_ns=zeros,
        end_ns=zeros.copy(),
        release_ns=_ints(releases_ns if releases_ns is not None else [0] * count),
        first_edge=first,
        source=source,
        lag_ns=lag,
        explained_lag_ns=lag.copy(),
        edge_kind=np.zeros(len(edges), dtype=np.int8),
        origin=np.zeros(len(edges), dtype=np.int8),
        binding=np.ones(len(edges), dtype=np.bool_),
        order=topological_order(first, source),
        key=np.arange(count, dtype=np.int64),
        lanes=((0, LANES[0]),),
        names=("work",),
        ranks=(0,),
        world_size=1,
        steps=StepBounds(number=_ints([1]), begin_ns=one, end_ns=one.copy(), last_node=one.copy()),
        collectives=CollectiveNodes(transfer=none, rank=none, arrival=none, departure=none, row=none),
    )


def _ns(values: Sequence[float]) -> np.ndarray:  # type: ignore[type-arg] # whole numbers
    return np.rint(np.array(values, dtype=np.float64) * US).astype(np.int64)


def _ints(values: Sequence[int]) -> np.ndarray:  # type: ignore[type-arg] # whole numbers
    return np.array(values, dtype=np.int64)
