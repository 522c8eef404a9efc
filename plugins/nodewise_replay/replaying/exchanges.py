"""Collectives of a replay: transfer told from waiting, and who came last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from nodewise.plugin import CollectiveKind, Floats, Ints, ReplayedCollective, Trace
from nodewise_replay.graph.graph import EdgeKind, Graph, Origin

__all__ = ["launch_jitter_ns", "replayed_collectives"]

_NS = 1e-9


def launch_jitter_ns(graph: Graph) -> float:
    """How much the time from a launch to the begin of its work varies: from the 5th to the 95th percentile."""
    seen = (graph.edge_kind == EdgeKind.LAUNCH) & graph.binding & (graph.origin == Origin.FOUND)
    if not seen.any():
        return 0.0
    low, high = np.percentile(graph.explained_lag_ns[seen], [5, 95])
    return float(high - low)


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
        Of the recording or of a replay.
    steps : sequence of int
        Indexes into ``graph.steps``.
    uncertainty_ns : (ranks,) float
        Of every rank's clock.
    size_bytes : (nodes,) int, optional
        Bytes of transfers; default: as recorded.

    Notes
    -----
    Nobody can tell which of two ranks was last where they arrived closer together than the uncertainty of both clocks,
    the spread of this collective's own ends and the jitter of launches in sum: these are a tie.
    """
    jitter = launch_jitter_ns(graph)
    rows = graph.collectives
    column = {rank: index for index, rank in enumerate(graph.ranks)}
    found = []
    _, first = np.unique(rows.transfer, return_index=True)
    wanted = set(steps)
    for start, stop in pairwise([*np.sort(first).tolist(), len(rows)]):
        node = int(rows.transfer[start])
        if int(graph.step[node]) not in wanted:
            continue
        ranks = rows.rank[start:stop]
        arrival = end_ns[rows.arrival[start:stop]]
        departure = end_ns[rows.departure[start:stop]]
        last = int(arrival.max())
        spread = int(departure.max() - departure.min())
        doubt = np.array([uncertainty_ns[column[int(rank)]] for rank in ranks])
        latest = int(arrival.argmax())
        late = last - arrival <= doubt + doubt[latest] + spread + jitter
        by_lateness = np.argsort(-arrival, kind="stable")
        others = arrival[~late]
        trace, row = traces[int(ranks[latest])], int(rows.row[start + latest])
        table = trace.collectives
        group = int(table.group[row])
        sizes = np.maximum(table.in_bytes[row], table.out_bytes[row])
        found.append(
            (
                int(begin_ns[node]),
                ReplayedCollective(
                    step=int(graph.step[node]) + 1,
                    name=graph.names[graph.name[node]],
                    kind=CollectiveKind(int(table.kind[row])).name.lower(),
                    bytes=int(sizes if size_bytes is None else size_bytes[node]),
                    group=table.groups[group].name if group >= 0 else "",
                    transfer_s=float(end_ns[node] - begin_ns[node]) * _NS,
                    end_spread_s=spread * _NS,
                    ranks=tuple(int(rank) for rank in ranks),
                    arrival_s=tuple(((arrival - arrival.min()) * _NS).tolist()),
                    wait_s=tuple(((last - arrival) * _NS).tolist()),
                    late_ranks=tuple(ranks[by_lateness[late[by_lateness]]].tolist()) if len(ranks) > 1 else (),
                    margin_s=float(last - others.max()) * _NS if len(others) else 0.0,
                ),
            )
        )
    found.sort(key=lambda one: one[0])
    return tuple(collective for _, collective in found)
