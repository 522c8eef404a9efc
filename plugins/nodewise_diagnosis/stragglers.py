"""Ranks that others wait for: at which exchange, by how much, and what was late on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Ints, ReplayedCollective, Straggler
from nodewise_diagnosis.likeness import Likeness
from nodewise_diagnosis.recurring import Exchange
from nodewise_diagnosis.stopwatch import NS, Stopwatch
from nodewise_replay.graph.graph import NodeKind
from nodewise_replay.graph.sweep import critical_path

__all__ = ["LateRank", "late_ranks", "stragglers"]

_OFTEN: Final = 0.5
"""A rank is listed for an exchange if it was among the last in at least this share of the steps of the one that most
often was."""


def stragglers(exchanges: Sequence[Exchange], collectives: Mapping[int, ReplayedCollective]) -> tuple[Straggler, ...]:
    """Who came last at each exchange, over the steps of interest; ``collectives`` by transfer node."""
    found = []
    for exchange in exchanges:
        seen = [collectives[node] for node in exchange.transfers.tolist() if node in collectives]
        seen = [one for one in seen if len(one.ranks) > 1]
        if not seen:
            continue
        # Each step has one vote, shared by ranks that tie.
        votes: Counter[int] = Counter()
        for one in seen:
            for rank in one.late_ranks:
                votes[rank] += 1
        most = max(votes.values(), default=0)
        ranks = tuple(rank for rank, count in votes.most_common() if count >= _OFTEN * most)
        found.append(
            Straggler(
                collective=exchange.label,
                ranks=ranks,
                margin_s=float(np.mean([one.margin_s for one in seen])),
                imposed_wait_s=float(np.mean([sum(one.wait_s) for one in seen])),
                transfer_s=float(np.mean([one.transfer_s for one in seen])),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRank:
    """One rank that was last: at how many exchanges, what the others waited for it in a step, and why it was late."""

    rank: int
    times: int
    imposed_wait_s: float
    cause: str


def late_ranks(
    watch: Stopwatch,
    likeness: Likeness,
    exchanges: Sequence[Exchange],
    collectives: Mapping[int, ReplayedCollective],
    found: Sequence[Straggler],
) -> list[LateRank]:
    """Ranks by the wait that they impose, with the cause at the exchange where it is longest."""
    by_label = {exchange.label: exchange for exchange in exchanges}
    blamed: dict[int, list[Straggler]] = {}
    for straggler in found:
        for rank in straggler.ranks[:1]:
            blamed.setdefault(rank, []).append(straggler)
    times, begin, end = {}, watch.graph.begin_ns, watch.graph.end_ns
    for rank, mine in blamed.items():
        worst = max(mine, key=lambda one: one.imposed_wait_s)
        exchange = by_label[worst.collective]
        nodes = [
            node for node in exchange.transfers.tolist() if node in collectives and rank in collectives[node].late_ranks
        ]
        cause = _cause(watch, likeness, nodes[0], rank, begin, end) if nodes else ""
        times[rank] = LateRank(
            rank=rank, times=len(mine), imposed_wait_s=sum(one.imposed_wait_s for one in mine), cause=cause
        )
    return sorted(times.values(), key=lambda late: -late.imposed_wait_s)


def _cause(watch: Stopwatch, likeness: Likeness, transfer: int, rank: int, begin_ns: Ints, end_ns: Ints) -> str:
    """Walk back from a late arrival until an exchange, or the begin of the recording: what took longer than elsewhere.

    Before an exchange all ranks agree again, as all of them left it.
    """
    graph = watch.graph
    rows = graph.collectives
    arrival = int(rows.arrival[np.flatnonzero((rows.transfer == transfer) & (rows.rank == rank))[0]])
    path = critical_path(graph, begin_ns, end_ns, arrival, joined=True)[::-1]
    own = (
        (graph.rank[path] == rank) & (graph.kind[path] != NodeKind.TRANSFER) & (graph.kind[path] != NodeKind.DEPARTURE)
    )
    stop = np.flatnonzero(~own)
    until = int(stop[0]) if len(stop) else len(path)
    segment = path[:until]
    excess = likeness.beyond_ranks_ns[segment]
    column = graph.ranks.index(rank)
    if not len(stop) and graph.step[transfer] == watch.steps[0] == 0 and len(graph.ranks) > 1:
        begins = graph.steps.begin_ns[0]
        late = float(begins[column] - np.median(np.delete(begins, column)))
        if late > max(float(excess.sum()), 0.0):
            return f"it began the step {late * NS * 1e3:.3f} ms after the median of the others"
    if not len(segment) or excess.sum() <= 0:
        return ""
    by_name = np.bincount(graph.name[segment], weights=excess)
    worst = int(by_name.argmax())
    name = "host time between events" if graph.names[worst] == "(gap)" else graph.names[worst][:80]
    total = f"{float(excess.sum()) * NS * 1e3:.3f} ms more than elsewhere since the exchange before"
    return f"{total}, most of it in {name} ({by_name[worst] * NS * 1e3:.3f} ms)"
