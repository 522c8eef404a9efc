"""Where a rank's step goes: compute, exchanges, waiting, loading, the host's own time, nothing at all."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Ints, RankShares, StepPart, Trace
from nodewise_diagnosis.accounting import HOST_PARTS, Accounting
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.roles import Role
from nodewise_diagnosis.stopwatch import NS
from nodewise_replay.alignment.clocks import Clock
from nodewise_replay.graph.graph import NodeKind

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
        """The part of it within the windows."""
        begins, ends = [], []
        for begin, end in zip(windows.begin_ns.tolist(), windows.end_ns.tolist(), strict=True):
            low = int(np.searchsorted(self.end_ns, begin, "right"))
            high = int(np.searchsorted(self.begin_ns, end, "left"))
            begins.append(np.maximum(self.begin_ns[low:high], begin))
            ends.append(np.minimum(self.end_ns[low:high], end))
        none = np.zeros(0, dtype=np.int64)
        return Intervals(np.concatenate([none, *begins]), np.concatenate([none, *ends]))


def rank_shares(case: Case, accounting: Accounting) -> tuple[RankShares, ...]:
    """Shares of every rank, mean over the steps of interest, from the recorded times.

    The parts of the accounting in sums: compute, exposed communication (exchanges and waits for them that no compute
    hides), loading and idle time add up to the step. Of idle time the host-bound part passes while the device waits
    for its host. Communication and waiting are whole, hidden or not.
    """
    return tuple(_shares(case, column, rank, accounting.parts[column]) for column, rank in enumerate(case.graph.ranks))


def _shares(case: Case, column: int, rank: int, parts: tuple[StepPart, ...]) -> RankShares:
    graph, role = case.graph, case.roles.role
    ordinals, begin_ns, end_ns = case.watch.steps_ns(column)
    windows = Intervals(begin_ns, end_ns)
    steps = len(case.watch.steps)
    busy_from = graph.end_ns - graph.duration_ns
    rows = graph.collectives
    mine = np.flatnonzero(rows.rank == rank)
    arrival_ns, transfer = graph.end_ns[rows.arrival[mine]], rows.transfer[mine]
    left = graph.end_ns[rows.departure[mine]]
    wait_end_ns = np.minimum(np.maximum(busy_from[transfer], arrival_ns), left)
    waiting = Intervals(arrival_ns, wait_end_ns).within(windows)
    hosts = np.flatnonzero(
        (graph.rank == rank)
        & (role == Role.COMMUNICATION)
        & (graph.kind != NodeKind.DEPARTURE)
        & (graph.duration_ns > 0)
    )
    exchanging = (Intervals(wait_end_ns, left) | Intervals(busy_from[hosts], graph.end_ns[hosts])).within(windows)

    def seconds_of(*kinds: str) -> float:
        return sum(part.seconds for part in parts if part.kind in kinds)

    return RankShares(
        rank=rank,
        step_s=windows.total_ns * NS / steps,
        compute_s=seconds_of("computation"),
        communication_s=exchanging.total_ns * NS / steps,
        exposed_communication_s=seconds_of("transfer", "waiting"),
        waiting_s=waiting.total_ns * NS / steps,
        idle_s=seconds_of("dependency", *HOST_PARTS),
        host_bound_s=seconds_of(*HOST_PARTS),
        data_loading_s=seconds_of("loading"),
        memory_high_water_bytes=_high_water(case.traces[rank], case.clocks.clocks[column], windows),
        parts=parts,
        step_ordinals=tuple((ordinals + 1).tolist()),
        step_begin_ns=tuple((begin_ns - case.watch.origin_ns()).tolist()),
        step_duration_ns=tuple((end_ns - begin_ns).tolist()),
    )


def _high_water(trace: Trace, clock: Clock, windows: Intervals) -> int:
    """Most bytes that the allocator held on any one device during the steps; -1 = not recorded."""
    samples = trace.memory
    if not len(samples) or not len(windows.begin_ns):
        return -1
    time = clock.common(np.asarray(samples.time_ns))
    inside = (time >= windows.begin_ns[0]) & (time <= windows.end_ns[-1])
    return int(samples.allocated_bytes[inside].max()) if inside.any() else -1
