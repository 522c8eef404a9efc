"""Ranks that others wait for: at which exchange, by how much, and what was late on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import ReplayedCollective, Straggler
from nodewise_diagnosis.case import Case
from nodewise_diagnosis.recurring import Exchange
from nodewise_diagnosis.stopwatch import NS
from nodewise_replay.graph.graph import NodeKind
from nodewise_replay.graph.sweep import critical_path

__all__ = ["LateRank", "late_ranks", "stragglers"]

_OFTEN: Final = 0.5
"""A rank is listed for an exchange if it was among the last in at least this share of the steps of the one that most
often was."""


def stragglers(exchanges: Sequence[Exchange], collectives: Mapping[int, ReplayedCollective]) -> tuple[Straggler, ...]:
    """The last rank at each exchange, over the steps of interest; ``collectives`` by transfer node."""
    late_arrivals = []
    for exchange in exchanges:
        replayed_collectives = [collectives[node] for node in exchange.transfers.tolist() if node in collectives]
        replayed_collectives = [one for one in replayed_collectives if len(one.ranks) > 1]
        if not replayed_collectives:
            continue
        # Each step has one vote, shared by ranks that tie.
        votes = Counter(rank for one in replayed_collectives for rank in one.late_ranks)
        most = max(votes.values(), default=0)
        ranks = tuple(rank for rank, count in votes.most_common() if count >= _OFTEN * most)
        late_arrivals.append(
            Straggler(
                collective=exchange.label,
                ranks=ranks,
                margin_s=float(np.mean([one.margin_s for one in replayed_collectives])),
                imposed_wait_s=float(np.mean([sum(one.wait_s) for one in replayed_collectives])),
                transfer_s=float(np.mean([one.transfer_s for one in replayed_collectives])),
            )
        )
    return tuple(late_arrivals)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRank:
    """One rank that was last: at how many exchanges, the others' wait for it in a step, and why it was late."""

    rank: int
    times: int
    imposed_wait_s: float
    cause: str


def late_ranks(
    case: Case, collectives: Mapping[int, ReplayedCollective], late_arrivals: Sequence[Straggler]
) -> list[LateRank]:
    """Ranks by the wait that they impose, with the cause at the exchange where it is longest."""
    by_label = {exchange.label: exchange for exchange in case.exchanges}
    arrivals_by_rank: dict[int, list[Straggler]] = {}
    for straggler in late_arrivals:
        for rank in straggler.ranks[:1]:
            arrivals_by_rank.setdefault(rank, []).append(straggler)
    times = []
    for rank, mine in arrivals_by_rank.items():
        worst = max(mine, key=lambda one: one.imposed_wait_s)
        nodes = by_label[worst.collective].transfers.tolist()
        late = (node for node in nodes if node in collectives and rank in collectives[node].late_ranks)
        node = next(late, None)
        cause = _cause(case, node, rank) if node is not None else ""
        imposed_s = sum(one.imposed_wait_s for one in mine)
        times.append(LateRank(rank=rank, times=len(mine), imposed_wait_s=imposed_s, cause=cause))
    return sorted(times, key=lambda late: -late.imposed_wait_s)


def _cause(case: Case, transfer: int, rank: int) -> str:
    """Walk back from a late arrival until an exchange, or the begin of the recording: what took longer than elsewhere.

    Before an exchange all ranks agree again, as all of them left it.
    """
    graph, rows = case.graph, case.graph.collectives
    arrival = int(rows.arrival[np.flatnonzero((rows.transfer == transfer) & (rows.rank == rank))[0]])
    path = critical_path(graph, graph.begin_ns, graph.end_ns, arrival, joined=True)[::-1]
    own = (graph.rank[path] == rank) & ~np.isin(graph.kind[path], (NodeKind.TRANSFER, NodeKind.DEPARTURE))
    stop = np.flatnonzero(~own)
    segment = path[: stop[0]] if len(stop) else path
    excess = case.likeness.beyond_ranks_ns[segment]
    late_ns = case.late_begins_ns()
    if late_ns is not None and not len(stop) and graph.step[transfer] == 0:
        late = float(late_ns[graph.ranks.index(rank)])
        if late > max(float(excess.sum()), 0.0):
            return f"it began the step {late * NS * 1e3:.3f} ms after the median of the others"
    if not len(segment) or excess.sum() <= 0:
        return ""
    by_name = np.bincount(graph.name[segment], weights=excess)
    worst = int(by_name.argmax())
    name = "host time between events" if graph.names[worst] == "(gap)" else graph.names[worst][:80]
    total = f"{float(excess.sum()) * NS * 1e3:.3f} ms more than on other ranks since the previous exchange"
    return f"{total}, most of it in {name} ({by_name[worst] * NS * 1e3:.3f} ms)"
