"""Faults planted into recorded traces: durations are changed, the job is executed again, and traces are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.trace import Trace, TraceSteps
from nodewise_diagnosis.recurring import exchanges_of
from nodewise_diagnosis.roles import Role, roles_of
from nodewise_diagnosis.stopwatch import Edit, Stopwatch, wanted_steps
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.graph import Graph, NodeKind
from nodewise_replay.graph.sweep import sweep_times


class Bed:
    """A recorded job that faults are planted into."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.traces = sorted(traces, key=lambda trace: trace.rank)
        self.graph = build_graph(self.traces)
        self.roles = roles_of(self.graph, self.traces)
        self.watch = Stopwatch(self.graph, wanted_steps(self.graph, ()))
        self.every_step = Stopwatch(self.graph, np.arange(len(self.graph.steps)))
        by_rank = {trace.rank: trace for trace in self.traces}
        self.exchanges = exchanges_of(self.every_step, self.roles, by_rank)

    def slow_rank(self, rank: int, factor: float = 1.3) -> NDArray[np.int64]:
        """Durations with all own work of a rank so many times as long."""
        own = np.isin(self.roles.role, (Role.HOST, Role.COMPUTE)) & (self.graph.rank == rank)
        return np.where(own, np.rint(self.graph.duration_ns * factor), self.graph.duration_ns).astype(np.int64)

    def slow_exchange(self, which: int, factor: float = 5.0) -> NDArray[np.int64]:
        """Durations with one exchange of the step so many times as long, in every step and on all ranks."""
        duration = self.graph.duration_ns.copy()
        duration[self.exchanges[which].nodes] = np.rint(duration[self.exchanges[which].nodes] * factor)
        return duration

    def late_loader(self, rank: int, delay_ns: int) -> NDArray[np.int64]:
        """Durations with every batch of a rank so much later."""
        duration = self.graph.duration_ns.copy()
        loading = (self.roles.role == Role.LOADING) & (self.graph.rank == rank) & self.roles.main
        for step in np.unique(self.graph.step[loading]):
            nodes = np.flatnonzero(loading & (self.graph.step == step))
            duration[nodes[duration[nodes].argmax()]] += delay_ns
        return duration

    def moved_ns(self, duration_ns: NDArray[np.int64]) -> float:
        """By how much longer the mean step is."""
        return self.watch.step_ns(Edit(duration_ns=duration_ns)) - self.watch.step_ns()

    def planted(self, duration_ns: NDArray[np.int64]) -> list[Trace]:
        """Return the traces that would have been recorded with these durations."""
        begin, end = sweep_times(self.graph, duration_ns, joined=True)
        return [_rewritten(self.graph, trace, begin, end) for trace in self.traces]


def _rewritten(graph: Graph, trace: Trace, begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> Trace:
    of_rank = graph.rank == trace.rank
    begins, ends = trace.begin_ns.astype(np.int64).copy(), trace.end_ns.astype(np.int64).copy()
    numbers = {lane: index for index, lane in enumerate(trace.lanes)}
    first = int(trace.begin_ns.min())
    for number, (rank, lane) in enumerate(graph.lanes):
        if rank != trace.rank or not lane.is_host:
            continue
        nodes = np.flatnonzero(of_rank & (graph.lane == number))
        if not len(nodes):
            continue
        # Host events begin and end where pieces end.
        at, moved = _ascending(graph.end_ns[nodes] - first, end_ns[nodes] - graph.end_ns[nodes])
        events = np.flatnonzero(trace.lane == numbers[lane])
        begins[events] += np.rint(np.interp(begins[events] - first, at, moved)).astype(np.int64)
        ends[events] += np.rint(np.interp(ends[events] - first, at, moved)).astype(np.int64)
    for kinds, column, times in (
        ((NodeKind.KERNEL, NodeKind.COPY, NodeKind.FILL, NodeKind.ARRIVAL), begins, begin_ns),
        ((NodeKind.KERNEL, NodeKind.COPY, NodeKind.FILL, NodeKind.DEPARTURE), ends, end_ns),
    ):
        nodes = np.flatnonzero(of_rank & np.isin(graph.kind, kinds) & (graph.event >= 0))
        nodes = nodes[[not graph.lanes[lane][1].is_host for lane in graph.lane[nodes]]]
        column[graph.event[nodes]] = times[nodes]
    ends = np.maximum(ends, begins)
    steps = _moved_steps(trace, begins, ends)
    order = np.lexsort((np.arange(len(begins)), begins - ends, begins))
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    table = trace.collectives
    return replace(
        trace,
        **{
            name: getattr(trace, name)[order]
            for name in ("name", "lane", "kind", "correlation", "sequence", "forward_lane", "bytes")
        },
        begin_ns=begins[order],
        duration_ns=(ends - begins)[order],
        steps=steps,
        collectives=replace(table, event=place[table.event], call=place[table.call]),
    )


def _moved_steps(trace: Trace, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> TraceSteps:
    new_begin, new_end = trace.steps.begin_ns.copy(), trace.steps.end_ns.copy()
    for step in range(len(trace.steps)):
        marked = np.flatnonzero(
            (trace.begin_ns == trace.steps.begin_ns[step]) & (trace.end_ns == trace.steps.end_ns[step])
        )
        new_begin[step], new_end[step] = begins[marked[0]], ends[marked[0]]
    return TraceSteps(number=trace.steps.number, begin_ns=new_begin, end_ns=new_end)


def _ascending(at: NDArray[np.int64], moved: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    unique, first = np.unique(at, return_index=True)
    return unique, moved[first]
