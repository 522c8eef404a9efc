"""Replayed events, for people to look at beside the recorded ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Ints, Timeline
from nodewise_replay.graph.graph import EdgeKind, Graph, NodeKind

__all__ = ["timeline"]


def timeline(
    graph: Graph,
    begin_ns: Ints,
    end_ns: Ints,
    steps: Ints,
    part: Ints | None = None,
    parts: tuple[str, ...] = (),
    origin_ns: int | None = None,
) -> Timeline:
    """Events of some steps: every piece of an event together, a collective from arrival to departure.

    Parameters
    ----------
    part : (nodes,) int or None
        Index into ``parts`` of what each node belongs to; -1 = none. An event belongs to what its longest piece does.
        Time between events, and the own time of a span that holds other events, is an event of its own where it
        belongs to something.
    origin_ns : int or None
        What times count from; None = the first event.
    """
    nodes = np.flatnonzero((graph.event >= 0) & np.isin(graph.step, steps))
    # A call that blocks is a node from the end of what it waits for: the call began where the one before it ended.
    begin = begin_ns.copy()
    calls = np.flatnonzero(graph.kind == NodeKind.CALL)
    host_edges = np.flatnonzero(graph.edge_kind == EdgeKind.HOST)
    target = graph.target[host_edges]
    before = np.full(len(graph), -1, dtype=np.int64)
    before[target[::-1]] = graph.source[host_edges][::-1]
    calls_after = calls[before[calls] >= 0]
    calls_after = calls_after[graph.step[before[calls_after]] == graph.step[calls_after]]
    begin[calls_after] = np.minimum(begin[calls_after], end_ns[before[calls_after]])
    # Of a collective on a thread of the host only the departure is a piece of the event, which began with the arrival.
    rows = graph.collectives
    begin[rows.departure] = np.minimum(begin[rows.departure], begin_ns[rows.arrival])
    identity = graph.rank[nodes].astype(np.int64) << 40 | graph.event[nodes]
    order = np.argsort(identity, kind="stable")
    nodes, identity = nodes[order], identity[order]
    first = np.flatnonzero(np.diff(identity, prepend=-1)) if len(nodes) else np.zeros(0, dtype=np.int64)
    begins = np.minimum.reduceat(begin[nodes], first) if len(first) else np.zeros(0, dtype=np.int64)
    ends = np.maximum.reduceat(end_ns[nodes], first) if len(first) else np.zeros(0, dtype=np.int64)
    one = nodes[first]
    waiting = _waiting_ns(graph, begin_ns, end_ns, identity[first], ends - begins)
    name, of_part, kind = graph.name[one].astype(np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if part is not None:
        span = graph.kind[nodes] == NodeKind.GAP
        place = np.repeat(np.arange(len(first)), np.diff(first, append=len(nodes)))
        own = np.bincount(place, weights=graph.duration_ns[nodes] * span, minlength=len(first))
        apart = span & (own < _COVERS * (ends - begins))[place]
        gaps = np.flatnonzero((graph.event < 0) & (graph.kind == NodeKind.GAP) & np.isin(graph.step, steps))
        between = np.concatenate((gaps, nodes[apart]))
        between = between[part[between] >= 0]
        begins, ends = np.concatenate((begins, begin[between])), np.concatenate((ends, end_ns[between]))
        name = np.concatenate((name, len(graph.names) + part[between]))
        of_event = _longest_part(np.where(apart, -1, part[nodes]), graph.duration_ns[nodes], identity)
        of_part = np.concatenate((of_event, part[between]))
        kind = np.concatenate((np.minimum(graph.kind[one], NodeKind.ARRIVAL), np.full(len(between), len(_KINDS) - 1)))
        one, waiting = np.concatenate((one, between)), np.concatenate((waiting, np.zeros_like(between)))
    origin = (int(begins.min()) if len(begins) else 0) if origin_ns is None else origin_ns
    by_time = np.lexsort((-(ends - begins), begins))
    timeline = Timeline(
        rank=graph.rank[one][by_time].astype(np.int64),
        lane=graph.lane[one][by_time].astype(np.int64),
        name=name[by_time],
        begin_ns=(begins - origin)[by_time],
        duration_ns=(ends - begins)[by_time],
        lanes=tuple(
            lane.name or (f"thread {lane.number}" if lane.is_host else f"stream {lane.number}")
            for _, lane in graph.lanes
        ),
        names=graph.names,
        waiting_ns=waiting[by_time],
    )
    if part is None:
        return timeline
    return replace(
        timeline,
        names=(*graph.names, *(text.partition(": ")[2] for text in parts)),
        kind=kind.astype(np.int64)[by_time],
        kinds=_KINDS,
        part=of_part[by_time],
        parts=parts,
    )


_COVERS: Final = 0.9
"""A span whose own time is less than this share of it holds other events."""

_KINDS: Final = ("operator", "annotation", "call", "kernel", "copy", "fill", "collective", "gap")
"""As nodes' kinds are numbered up to an arrival; a gap with an event is a span, and one without is the last."""


def _longest_part(part: Ints, duration_ns: Ints, identity: Ints) -> Ints:
    """Of each event, by ascending identity, the part of its longest piece that has one; -1 = none."""
    order = np.lexsort((duration_ns, part >= 0, identity))
    longest: Ints = part[order][np.flatnonzero(np.diff(identity[order], append=-1))]
    return longest


def _waiting_ns(graph: Graph, begin_ns: Ints, end_ns: Ints, identity: Ints, duration_ns: Ints) -> Ints:
    """How long each event, by rank and number, waits for other ranks at its begin; 0 for all but collectives."""
    waiting = np.zeros(len(identity), dtype=np.int64)
    rows = graph.collectives
    own = graph.rank[rows.departure].astype(np.int64) << 40 | graph.event[rows.departure]
    place = np.searchsorted(identity, own)
    listed_rows = np.flatnonzero(np.isin(own, identity))
    waits = begin_ns[rows.transfer[listed_rows]] - end_ns[rows.arrival[listed_rows]]
    waiting[place[listed_rows]] = np.clip(waits, 0, duration_ns[place[listed_rows]])
    return waiting
