"""The part of the graph that a trace without times gives: its own edges, and little more."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import EventKind, Ints, Trace
from nodewise_replay.building.keys import mix
from nodewise_replay.building.rank import NODE_OF_EVENT, RankPart
from nodewise_replay.graph.graph import EdgeKind, NodeKind, Origin
from nodewise_replay.graph.ordering import in_circles
from nodewise_replay.graph.wiring import Edges, NodeColumns

__all__ = ["stated_part"]


def stated_part(trace: Trace) -> RankPart:
    """Build the part of a rank whose trace has durations and dependencies but no times.

    Every event is a node and every dependency an edge. Work of a device on which nothing depends is followed by the
    next on its stream, in the order of the trace: an inferred edge. Edges against that order that close a circle are
    left out and counted as missing.
    """
    count = len(trace)
    rows = np.flatnonzero(np.asarray(trace.collectives.event) >= 0)
    events = np.asarray(trace.collectives.event)[rows]
    departure = count + np.arange(len(rows))
    end_node = np.arange(count)
    end_node[events] = departure
    source, target = trace.dependencies[:, 0].astype(np.int64), trace.dependencies[:, 1].astype(np.int64)
    is_valid = (source != target) & (source >= 0) & (target >= 0) & (source < count) & (target < count)
    invalid_count = int((~is_valid).sum())
    source, target = source[is_valid], target[is_valid]
    backward = in_circles(count, source, target) & (source > target)
    invalid_count += int(backward.sum())
    source, target = source[~backward], target[~backward]
    before, after = _stream_edges(trace, source)
    edges = Edges.exact(end_node[source], target, 0, EdgeKind.STATED)
    streams = Edges.exact(end_node[before], after, 0, EdgeKind.STREAM, Origin.INFERRED)
    kind = np.concatenate((NODE_OF_EVENT[trace.kind], np.full(len(rows), int(NodeKind.DEPARTURE), dtype=np.int8)))
    kind[events] = NodeKind.ARRIVAL
    event = np.concatenate((np.arange(count), events))
    duration = np.concatenate((np.maximum(trace.duration_ns, 0), np.zeros(len(rows), dtype=np.int64)))
    zeros = np.zeros(len(event), dtype=np.int64)
    end = zeros.copy()
    end[departure] = duration[events]  # what the collective takes, for the shared node
    duration[events] = 0
    circle = f"rank {trace.rank}: {invalid_count} dependencies are ignored, as they are cyclic or name unknown nodes"
    nodes = NodeColumns(
        kind=kind,
        rank=np.full(len(event), trace.rank, dtype=np.int32),
        lane=trace.lane[event].astype(np.int32),
        step=zeros.astype(np.int32),
        event=event,
        name=trace.name[event],
        duration_ns=duration,
        begin_ns=zeros.copy(),
        end_ns=end,
        release_ns=zeros.copy(),
        key=mix(event + count * (np.arange(len(event)) >= count), trace.rank + 11),
    )
    return RankPart(
        trace=trace,
        nodes=nodes,
        edges=edges.followed_by(streams),
        row=rows,
        arrival=events.astype(np.int64),
        departure=departure,
        missing={EdgeKind.STATED: invalid_count},
        main_lane=-1,
        warnings=(circle,) if invalid_count else (),
    )


def _stream_edges(trace: Trace, source: Ints) -> tuple[Ints, Ints]:
    """Device work on which nothing depends, and the next on its stream."""
    on_device = np.isin(trace.kind, (EventKind.KERNEL, EventKind.COPY, EventKind.FILL))
    work = np.flatnonzero(on_device)
    work = work[np.argsort(trace.lane[work], kind="stable")]
    same = trace.lane[work[1:]] == trace.lane[work[:-1]]
    before, after = work[:-1][same], work[1:][same]
    loose = ~np.isin(before, source)
    return before[loose], after[loose]
