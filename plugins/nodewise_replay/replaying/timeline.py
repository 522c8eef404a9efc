"""Replayed events, for people to look at beside the recorded ones."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Ints, Timeline
from nodewise_replay.graph.graph import EdgeKind, Graph, NodeKind

__all__ = ["timeline"]


def timeline(graph: Graph, begin_ns: Ints, end_ns: Ints, steps: Ints) -> Timeline:
    """Events of some steps: every piece of an event together, a collective from arrival to departure."""
    chosen = np.flatnonzero((graph.event >= 0) & np.isin(graph.step, steps))
    # A call that blocks is a node from the end of what it waits for: the call began where the one before it ended.
    begin = begin_ns.copy()
    calls = np.flatnonzero(graph.kind == NodeKind.CALL)
    chained = np.flatnonzero(graph.edge_kind == EdgeKind.HOST)
    target = graph.target[chained]
    before = np.full(len(graph), -1, dtype=np.int64)
    before[target[::-1]] = graph.source[chained][::-1]
    known = calls[before[calls] >= 0]
    known = known[graph.step[before[known]] == graph.step[known]]
    begin[known] = np.minimum(begin[known], end_ns[before[known]])
    # Of a collective on a thread of the host only the departure is a piece of the event, which began with the arrival.
    rows = graph.collectives
    begin[rows.departure] = np.minimum(begin[rows.departure], begin_ns[rows.arrival])
    identity = graph.rank[chosen].astype(np.int64) << 40 | graph.event[chosen]
    order = np.argsort(identity, kind="stable")
    chosen, identity = chosen[order], identity[order]
    first = np.flatnonzero(np.diff(identity, prepend=-1)) if len(chosen) else np.zeros(0, dtype=np.int64)
    begins = np.minimum.reduceat(begin[chosen], first) if len(first) else np.zeros(0, dtype=np.int64)
    ends = np.maximum.reduceat(end_ns[chosen], first) if len(first) else np.zeros(0, dtype=np.int64)
    one = chosen[first]
    waiting = _waiting_ns(graph, begin_ns, end_ns, identity[first], ends - begins)
    origin = int(begins.min()) if len(begins) else 0
    by_time = np.lexsort((-(ends - begins), begins))
    return Timeline(
        rank=graph.rank[one][by_time].astype(np.int64),
        lane=graph.lane[one][by_time].astype(np.int64),
        name=graph.name[one][by_time].astype(np.int64),
        begin_ns=(begins - origin)[by_time],
        duration_ns=(ends - begins)[by_time],
        lanes=tuple(
            lane.name or (f"thread {lane.number}" if lane.is_host else f"stream {lane.number}")
            for _, lane in graph.lanes
        ),
        names=graph.names,
        waiting_ns=waiting[by_time],
    )


def _waiting_ns(graph: Graph, begin_ns: Ints, end_ns: Ints, identity: Ints, duration_ns: Ints) -> Ints:
    """How long each event, by rank and number, waits for other ranks at its begin; 0 for all but collectives."""
    waiting = np.zeros(len(identity), dtype=np.int64)
    rows = graph.collectives
    own = graph.rank[rows.departure].astype(np.int64) << 40 | graph.event[rows.departure]
    place = np.searchsorted(identity, own)
    shown = np.flatnonzero(np.isin(own, identity))
    waits = begin_ns[rows.transfer[shown]] - end_ns[rows.arrival[shown]]
    waiting[place[shown]] = np.clip(waits, 0, duration_ns[place[shown]])
    return waiting
