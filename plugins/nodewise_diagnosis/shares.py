"""Where a rank's step goes: compute, exchanges, waiting, loading, the host's own time, nothing at all."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Ints, RankShares, Trace
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS, Stopwatch
from nodewise_replay.alignment.clocks import Clock
from nodewise_replay.graph.graph import NO_NODE, NodeKind

__all__ = ["Intervals", "rank_shares"]


class Intervals:
    """Disjoint stretches of time, ascending, ns."""

    def __init__(self, begin_ns: Ints, end_ns: Ints) -> None:
        order = np.argsort(begin_ns, kind="stable")
        begin, end = np.asarray(begin_ns)[order], np.asarray(end_ns)[order]
        reach = np.maximum.accumulate(end) if len(end) else end
        fresh = np.ones(len(begin), dtype=np.bool_)
        fresh[1:] = begin[1:] > reach[:-1]
        first = np.flatnonzero(fresh)
        last = np.append(first[1:], len(begin)) - 1
        self.begin_ns, self.end_ns = begin[first], reach[last] if len(first) else end

    @property
    def total_ns(self) -> int:
        """Their length."""
        return int((self.end_ns - self.begin_ns).sum())

    def __or__(self, other: Intervals) -> Intervals:
        """Time that is in either."""
        return Intervals(np.concatenate((self.begin_ns, other.begin_ns)), np.concatenate((self.end_ns, other.end_ns)))

    def beyond(self, other: Intervals) -> int:
        """How much of it is not in the other, ns."""
        return (self | other).total_ns - other.total_ns

    def within(self, windows: Intervals) -> Intervals:
        """What of it lies in the windows."""
        begins, ends = [], []
        for begin, end in zip(windows.begin_ns.tolist(), windows.end_ns.tolist(), strict=True):
            low = int(np.searchsorted(self.end_ns, begin, "right"))
            high = int(np.searchsorted(self.begin_ns, end, "left"))
            begins.append(np.maximum(self.begin_ns[low:high], begin))
            ends.append(np.minimum(self.end_ns[low:high], end))
        none = np.zeros(0, dtype=np.int64)
        return Intervals(np.concatenate([none, *begins]), np.concatenate([none, *ends]))


def rank_shares(case: Case) -> tuple[RankShares, ...]:
    """Shares of every rank, mean over the steps of interest, from the recorded times.

    A step divides into compute (at least one kernel, copy or operator runs), exposed communication (an exchange or the
    wait for one, and no compute), loading (neither of these, while the host gets a batch) and idle time. Of the idle
    time the host-bound part passes while the host works. Communication and waiting are whole, hidden or not.
    """
    return tuple(_shares(case, column, rank) for column, rank in enumerate(case.graph.ranks))


def _shares(case: Case, column: int, rank: int) -> RankShares:
    graph, role = case.graph, case.roles.role
    windows = _windows(case.watch, column)
    steps = len(case.watch.steps)
    of_rank = graph.rank == rank
    busy_from = graph.end_ns - graph.duration_ns

    def when(chosen: np.ndarray) -> Intervals:
        nodes = np.flatnonzero(of_rank & chosen & (graph.duration_ns > 0))
        return Intervals(busy_from[nodes], graph.end_ns[nodes]).within(windows)

    rows = graph.collectives
    mine = np.flatnonzero(rows.rank == rank)
    arrived, transfer = graph.end_ns[rows.arrival[mine]], rows.transfer[mine]
    left = graph.end_ns[rows.departure[mine]]
    begun = np.minimum(np.maximum(busy_from[transfer], arrived), left)
    waiting = Intervals(arrived, begun).within(windows)
    exchanging = Intervals(begun, left).within(windows) | when(
        (role == Role.COMMUNICATION) & (graph.kind != NodeKind.DEPARTURE)
    )
    compute = when((role == Role.COMPUTE) | (role == Role.COPY))
    loading, host = when(role == Role.LOADING), when(role == Role.HOST)
    taken = compute | exchanging | waiting
    total = windows.total_ns
    known = taken | loading
    return RankShares(
        rank=rank,
        step_s=total * NS / steps,
        compute_s=compute.total_ns * NS / steps,
        communication_s=exchanging.total_ns * NS / steps,
        exposed_communication_s=(exchanging | waiting).beyond(compute) * NS / steps,
        waiting_s=waiting.total_ns * NS / steps,
        idle_s=max(total - known.total_ns, 0) * NS / steps,
        host_bound_s=host.beyond(known) * NS / steps,
        data_loading_s=loading.beyond(taken) * NS / steps,
        memory_high_water_bytes=_high_water(case.traces[rank], case.clocks.clocks[column], windows),
    )


def _windows(watch: Stopwatch, column: int) -> Intervals:
    """The steps of interest on a rank's host, each until the next one begins or it ends."""
    bounds, graph = watch.graph.steps, watch.graph
    if not graph.timed:
        return Intervals(
            np.zeros(1, dtype=np.int64), graph.end_ns[graph.rank == graph.ranks[column]].max(keepdims=True)
        )
    last = bounds.last_node[watch.steps, column]
    held = last != NO_NODE
    begin = bounds.begin_ns[watch.steps[held], column]
    return Intervals(begin, np.maximum(graph.end_ns[last[held]], begin))


def _high_water(trace: Trace, clock: Clock, windows: Intervals) -> int:
    """Most bytes that the allocator held on any one device during the steps; -1 = not recorded."""
    samples = trace.memory
    if not len(samples) or not len(windows.begin_ns):
        return -1
    time = clock.common(np.asarray(samples.time_ns))
    inside = (time >= windows.begin_ns[0]) & (time <= windows.end_ns[-1])
    return int(samples.allocated_bytes[inside].max()) if inside.any() else -1
