"""Collectives of a replay: transfer and waiting separated, and the last rank to arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from nodewise.plugin import CollectiveKind, Floats, Ints, ReplayedCollective, Trace
from nodewise_replay.graph.graph import Graph

__all__ = ["replayed_collectives"]

_NS = 1e-9


def replayed_collectives(
    graph: Graph,
    traces: Mapping[int, Trace],
    begin_ns: Ints,
    end_ns: Ints,
    steps: Sequence[int],
    uncertainty_ns: Floats,
    size_bytes: Ints | None = None,
) -> tuple[ReplayedCollective, ...]:
    """Collectives of some steps, by begin of their transfer.

    Parameters
    ----------
    graph : Graph
    traces : mapping of rank to Trace
        Of the rank, or of the one that it is a copy of.
    begin_ns, end_ns : (nodes,)
        Of a replay; of the recording with begins after all waits: ``graph.end_ns - graph.duration_ns``.
    steps : sequence of int
        Indexes into ``graph.steps``.
    uncertainty_ns : (ranks,) float
        Of every rank's clock.
    size_bytes : (nodes,) int, optional
        Bytes of transfers; default: as recorded.

    Notes
    -----
    The ends of a collective are one instant, so their spread shows the error of the recorded times of a rank. The last
    rank is open where two arrivals are closer than twice that and the uncertainty of both clocks: a tie. A spread below
    the median of all collectives is chance; the median counts then.
    """
    rows = graph.collectives
    column = {rank: index for index, rank in enumerate(graph.ranks)}
    collectives = []
    _, first = np.unique(rows.transfer, return_index=True)
    step_set = set(steps)
    starts = np.sort(first)
    usual = _median_spread(end_ns[rows.departure], starts)
    for start, stop in pairwise([*starts.tolist(), len(rows)]):
        node = int(rows.transfer[start])
        if int(graph.step[node]) not in step_set:
            continue
        ranks = rows.rank[start:stop]
        arrival = end_ns[rows.arrival[start:stop]]
        departure = end_ns[rows.departure[start:stop]]
        last, began = int(arrival.max()), int(begin_ns[node])
        spread = int(departure.max() - departure.min())
        doubt = np.array([uncertainty_ns[column[int(rank)]] for rank in ranks])
        latest = int(arrival.argmax())
        unsure = doubt + doubt[latest] + 2 * max(spread, usual)
        late = last - arrival <= unsure
        # Where ranks without a trace came later than all these, none of these was last.
        is_certain = len(ranks) > 1 and began - last <= unsure[latest]
        by_lateness = np.argsort(-arrival, kind="stable")
        others = arrival[~late]
        trace, row = traces[int(ranks[latest])], int(rows.row[start + latest])
        table = trace.collectives
        group = int(table.group[row])
        sizes = np.maximum(table.in_bytes[row], table.out_bytes[row])
        collectives.append(
            (
                began,
                ReplayedCollective(
                    step=int(graph.step[node]) + 1,
                    name=graph.names[graph.name[node]],
                    kind=CollectiveKind(int(table.kind[row])).name.lower(),
                    bytes=int(sizes if size_bytes is None else size_bytes[node]),
                    group=table.groups[group].name if group >= 0 else "",
                    transfer_s=float(end_ns[node] - began) * _NS,
                    end_spread_s=spread * _NS,
                    ranks=tuple(int(rank) for rank in ranks),
                    arrival_s=tuple(((arrival - arrival.min()) * _NS).tolist()),
                    wait_s=tuple((np.maximum(began - arrival, 0) * _NS).tolist()),
                    late_ranks=tuple(ranks[by_lateness[late[by_lateness]]].tolist()) if is_certain else (),
                    margin_s=float(last - others.max()) * _NS if is_certain and len(others) else 0.0,
                ),
            )
        )
    collectives.sort(key=lambda one: one[0])
    return tuple(collective for _, collective in collectives)


def _median_spread(departure_ns: Ints, starts: Ints) -> float:
    """Of the ends of collectives that begin at ``starts`` of a column."""
    if not len(starts):
        return 0.0
    spread = np.maximum.reduceat(departure_ns, starts) - np.minimum.reduceat(departure_ns, starts)
    return float(np.median(spread))
