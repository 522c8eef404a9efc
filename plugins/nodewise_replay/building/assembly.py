"""The global graph out of the ranks' parts: shared nodes, edges by target, an order to sweep in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nodewise.plugin import Ints, NodewiseError, Reason, Trace
from nodewise_replay.alignment.clocks import Clock, Clocks
from nodewise_replay.building.rank import RankPart, rank_part
from nodewise_replay.building.sharing import shared_nodes, world_size
from nodewise_replay.building.step_clocks import StepClock, step_clocks
from nodewise_replay.building.untimed_rank import stated_part
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, Graph, StepBounds
from nodewise_replay.graph.ordering import a_circle
from nodewise_replay.graph.sweep import sweep_times
from nodewise_replay.graph.wiring import Edges, NodeColumns, wire_graph

__all__ = ["build_graph"]


def build_graph(traces: Sequence[Trace], clocks: Clocks | None = None) -> Graph:
    """Build the graph of all steps that were recorded.

    Parameters
    ----------
    traces : sequence of Trace
        One per rank, of one job.
    clocks : Clocks, optional
        How to bring the ranks' clocks to one, in the order of the traces; default: as they are.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS for several traces of a rank, or for some with times and some without; EVIDENCE_MISSING
        where nothing was recorded.
    """
    hands = clocks.clocks if clocks is not None else (Clock(),) * len(traces)
    pairs = sorted(zip(traces, hands, strict=True), key=lambda pair: pair[0].rank)
    traces, hands = [trace for trace, _ in pairs], tuple(clock for _, clock in pairs)
    if len({trace.rank for trace in traces}) < len(traces):
        raise NodewiseError(
            Reason.CONTRADICTORY_FACTS, "traces: two traces have the same rank; send one trace per rank of one job"
        )
    if not any(len(trace) for trace in traces):
        raise NodewiseError(Reason.EVIDENCE_MISSING, "traces: no events; record at least one step")
    if len({trace.timed for trace in traces}) > 1:
        raise NodewiseError(
            Reason.CONTRADICTORY_FACTS, ("traces: some traces have times and others have none; send one kind only")
        )
    numbers, steps = step_clocks(traces, hands)
    if traces[0].timed:
        parts = [rank_part(*arguments) for arguments in zip(traces, hands, steps, strict=True)]
        return _assemble(parts, numbers, steps, has_times=True)
    parts = [stated_part(trace) for trace in traces]
    graph = _assemble(parts, np.ones(1, dtype=np.int64), steps, has_times=False)
    begin, end = sweep_times(graph)
    return replace(graph, begin_ns=begin, end_ns=end)


def _assemble(parts: Sequence[RankPart], numbers: Ints, steps: Sequence[StepClock], *, has_times: bool) -> Graph:
    """Join the ranks, keep what belongs to a step; what came before and holds it back becomes its release."""
    first = np.concatenate(([0], np.cumsum([len(part.nodes) for part in parts])))
    first_lane = np.concatenate(([0], np.cumsum([len(part.trace.lanes) for part in parts])))
    names, nodes = _job_nodes(parts, first_lane)
    shared = shared_nodes(parts, first, nodes, has_times=has_times)
    nodes = nodes.followed_by(shared.nodes)
    of_ranks = (part.edges.shift(int(one)) for part, one in zip(parts, first, strict=False))
    edges = Edges.none().followed_by(*of_ranks, shared.edges)
    in_step = nodes.step >= 0
    outside = edges.rows(np.flatnonzero(~in_step[edges.source] & in_step[edges.target]))
    np.maximum.at(nodes.release_ns, outside.target, nodes.end_ns[outside.source] + outside.lag_ns)
    try:
        columns, number = wire_graph(nodes, edges, in_step)
    except NodewiseError as error:
        raise _circle(
            nodes, edges.rows(np.flatnonzero(in_step[edges.source] & in_step[edges.target])), names
        ) from error
    missing = Counter({EdgeKind.COLLECTIVE: shared.alone})
    for part in parts:
        missing.update(part.missing)
    return Graph(
        **columns,
        lanes=tuple((part.trace.rank, lane) for part in parts for lane in part.trace.lanes),
        names=names,
        ranks=tuple(part.trace.rank for part in parts),
        world_size=world_size(parts),
        steps=_bounds(parts, numbers, steps, first_lane, columns),
        collectives=shared.collectives.among(in_step, number),
        missing=dict(missing),
        warnings=(*shared.warnings, *(warning for part in parts for warning in part.warnings)),
        timed=has_times,
    )


def _circle(nodes: NodeColumns, edges: Edges, names: tuple[str, ...]) -> NodewiseError:
    """What waits for each other in a circle, and where the times make that likeliest to be wrong."""
    circle = a_circle(len(nodes), edges.source, edges.target)
    source, target = edges.source[circle], edges.target[circle]
    late_ns = nodes.end_ns[source] - nodes.begin_ns[target]
    worst = int(late_ns.argmax())

    def describe(node: int) -> str:
        rank = int(nodes.rank[node])
        where = f"rank {rank}" if rank >= 0 else "an exchange"
        return f"{names[int(nodes.name[node])][:80]} of {where}"

    events = list(dict.fromkeys(describe(int(node)) for node in target))
    who = sorted({int(rank) for rank in nodes.rank[target] if rank >= 0})
    return NodewiseError(
        Reason.CONTRADICTORY_FACTS,
        f"traces of ranks {', '.join(map(str, who))}: {len(circle)} events wait for each other in a cycle, among them "
        f"{'; '.join(events[:4])}; the likely cause: {describe(int(source[worst]))} is recorded to end "
        f"{late_ns[worst] * 1e-6:.3f} ms after the begin of {describe(int(target[worst]))}, which waits for it. Check "
        "for overwritten times, different clocks, or files of different runs",
        {"nodes": str(len(circle))},
    )


def _job_nodes(parts: Sequence[RankPart], first_lane: Ints) -> tuple[tuple[str, ...], NodeColumns]:
    """One dictionary of names, in which host time outside all events is ``(gap)``, and the nodes of all ranks."""
    numbers: dict[str, int] = {"(gap)": 0}
    nodes = []
    for part, lane in zip(parts, first_lane, strict=False):
        # Host time outside all events has the name -1: the last one.
        names = [numbers.setdefault(name, len(numbers)) for name in part.trace.names]
        table = np.array([*names, 0], dtype=np.int32)
        nodes.append(replace(part.nodes, lane=part.nodes.lane + np.int32(lane), name=table[part.nodes.name]))
    return tuple(numbers), nodes[0].followed_by(*nodes[1:])


def _bounds(
    parts: Sequence[RankPart], numbers: Ints, clocks: Sequence[StepClock], first_lane: Ints, nodes: Mapping[str, Ints]
) -> StepBounds:
    """The last node of every rank's main thread in every step that ends with it at the latest."""
    shape = (len(numbers), len(parts))
    begins, ends = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    last = np.full(shape, NO_NODE, dtype=np.int64)
    for which, (part, clock) in enumerate(zip(parts, clocks, strict=True)):
        begins[:, which], ends[:, which] = clock.begin_ns, np.maximum(clock.end_ns, clock.begin_ns)
        if part.main_lane < 0:
            continue
        main = np.flatnonzero(nodes["lane"] == first_lane[which] + part.main_lane)
        main = main[nodes["end_ns"][main] <= ends[nodes["step"][main], which]]
        # Pieces of a lane are in order, so the last write wins.
        last[nodes["step"][main], which] = main
    return StepBounds(number=numbers, begin_ns=begins, end_ns=ends, last_node=last)
