"""The global graph out of the ranks' parts: shared collectives, edges by target, an order to sweep in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, Lane, NodewiseError, Reason, Trace
from nodewise_laws.compiled import compiled
from nodewise_replay.clocks import Clock, Clocks
from nodewise_replay.graph.graph import NO_NODE, CollectiveNodes, EdgeKind, Graph, NodeKind, Origin, StepBounds
from nodewise_replay.graph.keys import mixed
from nodewise_replay.graph.links import EdgeList
from nodewise_replay.graph.matching import matched_collectives
from nodewise_replay.graph.messages import is_pair
from nodewise_replay.graph.rank import RankPart, rank_part
from nodewise_replay.graph.stated import stated_part
from nodewise_replay.graph.steps import StepClock, step_clocks
from nodewise_replay.replaying.sweep import swept

__all__ = ["built"]

_HELD_BY_NOTHING = np.iinfo(np.int64).min // 4


def built(traces: Sequence[Trace], clocks: Clocks | None = None) -> Graph:
    """Build the graph of all steps that were recorded.

    Parameters
    ----------
    traces : sequence of Trace
        One per rank, of one job; timed.
    clocks : Clocks, optional
        How to bring the ranks' clocks to one; default: as they are.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS for several traces of a rank, EVIDENCE_MISSING where nothing was recorded.
    """
    hands = clocks.clocks if clocks is not None else (Clock(),) * len(traces)
    pairs = sorted(zip(traces, hands, strict=True), key=lambda pair: pair[0].rank)
    traces, hands = [trace for trace, _ in pairs], tuple(clock for _, clock in pairs)
    ranks = tuple(trace.rank for trace in traces)
    if len(set(ranks)) < len(ranks):
        raise NodewiseError(
            Reason.CONTRADICTORY_FACTS, "traces: two of the same rank; send one trace per rank of one job"
        )
    if not any(len(trace) for trace in traces):
        raise NodewiseError(Reason.EVIDENCE_MISSING, "traces: no events; record at least one step")
    timed = {trace.timed for trace in traces}
    if len(timed) == 2:
        raise NodewiseError(Reason.CONTRADICTORY_FACTS, "traces: some have times and some have none; send one kind")
    numbers, steps = step_clocks(traces, hands)
    if timed == {True}:
        parts = [rank_part(*arguments) for arguments in zip(traces, hands, steps, strict=True)]
        return _Assembly(parts, ranks, numbers, steps).graph()
    graph = _Assembly([stated_part(trace) for trace in traces], ranks, np.ones(1, dtype=np.int64), steps).graph()
    begin, end = swept(graph)
    return replace(graph, begin_ns=begin, end_ns=end, timed=False)


class _Assembly:
    def __init__(
        self, parts: Sequence[RankPart], ranks: tuple[int, ...], numbers: Ints, clocks: Sequence[StepClock]
    ) -> None:
        self._parts, self._ranks, self._numbers, self._clocks = parts, ranks, numbers, clocks
        counts = [len(part.kind) for part in parts]
        self._first = np.concatenate(([0], np.cumsum(counts)))
        self._edges = EdgeList()
        self._timed = all(part.trace.timed for part in parts)
        self._warnings: list[str] = []
        self._missing_partners = 0

    def graph(self) -> Graph:
        parts = self._parts
        for part, first in zip(parts, self._first, strict=False):
            self._edges.extend(part.edges, int(first))
        kind = np.concatenate([part.kind for part in parts])
        begin = np.concatenate([part.begin_ns for part in parts])
        end = np.concatenate([part.end_ns for part in parts])
        duration = np.concatenate([part.duration_ns for part in parts])
        step = np.concatenate([part.step for part in parts])
        key = np.concatenate([part.key for part in parts])
        lanes, lane = self._lanes()
        names, name = self._names()
        rank = np.repeat(np.array(self._ranks, dtype=np.int32), np.diff(self._first))
        event = np.concatenate([part.event for part in parts])
        release = np.concatenate([part.release_ns for part in parts])
        nodes, shared = self._collectives(begin, end, duration, step, key, name)
        count = len(shared["step"])
        none = np.full(count, NO_NODE)
        return self._selected(
            kind=np.concatenate((kind, shared["kind"].astype(np.int8))),
            rank=np.concatenate((rank, none)).astype(np.int32),
            lane=np.concatenate((lane, none)).astype(np.int32),
            step=np.concatenate((step, shared["step"])).astype(np.int32),
            event=np.concatenate((event, none)),
            name=np.concatenate((name, shared["name"])).astype(np.int32),
            duration=np.concatenate((duration, shared["duration"])),
            begin=np.concatenate((begin, shared["begin"])),
            end=np.concatenate((end, shared["end"])),
            release=np.concatenate((release, shared["release"])),
            key=np.concatenate((key, shared["key"])),
            lanes=lanes,
            names=names,
            nodes=nodes,
        )

    def _lanes(self) -> tuple[tuple[tuple[int, Lane], ...], Ints]:
        lanes: list[tuple[int, Lane]] = []
        columns = []
        for part in self._parts:
            columns.append(part.lane.astype(np.int64) + len(lanes))
            lanes.extend((part.trace.rank, lane) for lane in part.trace.lanes)
        return tuple(lanes), np.concatenate(columns)

    def _names(self) -> tuple[tuple[str, ...], Ints]:
        """One dictionary of names; host time outside all events is called ``(gap)``."""
        numbers: dict[str, int] = {"(gap)": 0}
        columns = []
        for part in self._parts:
            table = np.array([numbers.setdefault(name, len(numbers)) for name in part.trace.names], dtype=np.int64)
            of_event = table[part.trace.name] if len(table) else np.zeros(0, dtype=np.int64)
            columns.append(np.where(part.event >= 0, of_event[np.maximum(part.event, 0)], 0))
        return tuple(numbers), np.concatenate(columns)

    def _collectives(
        self, begin: Ints, end: Ints, duration: Ints, step: NDArray[np.int32], key: Ints, name: Ints
    ) -> tuple[CollectiveNodes, dict[str, Ints]]:
        """Make one node of what ranks did together: it begins at the last arrival and ends at the first departure."""
        matched = matched_collectives([part.trace for part in self._parts])
        nodes = [self._ends_of(part, int(first)) for part, first in zip(self._parts, self._first, strict=False)]
        ends = np.array(
            [nodes[who][:, row] for who, row in zip(matched.who, matched.row, strict=True)], dtype=np.int64
        ).reshape(-1, 2)
        there = (ends >= 0).all(axis=1)
        _, member = np.unique(matched.member[there], return_inverse=True)
        arrival, departure = ends[there].T
        who, rows = matched.who[there], matched.row[there]
        self._warnings.extend(matched.warnings)
        self._missing_partners = matched.alone
        count = int(member.max()) + 1 if len(member) else 0
        start = np.full(count, _HELD_BY_NOTHING, dtype=np.int64)
        np.maximum.at(start, member, end[arrival])
        # A rank that left before the last one came did not wait for it.
        waited = end[departure] >= start[member]
        over = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(over, member[waited], end[departure[waited]])
        over = np.maximum(over, start)
        transfer = self._first[-1] + np.arange(count)
        self._edges.add(arrival, transfer[member], 0, EdgeKind.COLLECTIVE)
        self._edges.add(transfer[member[waited]], departure[waited], 0, EdgeKind.COLLECTIVE)
        early = ~waited
        self._edges.add(arrival[early], departure[early], 0, EdgeKind.COLLECTIVE)
        duration[departure[waited]] = end[departure[waited]] - over[member[waited]]
        duration[departure[early]] = end[departure[early]] - end[arrival[early]]
        if not self._timed:
            duration[departure] = 0
        begin[departure] = end[departure] - duration[departure]
        first = np.zeros(count, dtype=np.int64)
        first[member[::-1]] = np.arange(len(member))[::-1]
        shared = {
            "kind": np.full(count, int(NodeKind.TRANSFER), dtype=np.int64),
            "begin": start,
            "end": over,
            "duration": over - start,
            "release": np.full(count, _HELD_BY_NOTHING, dtype=np.int64),
            "step": step[arrival[first]].astype(np.int64),
            "key": mixed(key[arrival[first]], 2),
            "name": name[departure[first]],
        }
        shared = self._with_peers(shared, transfer, np.bincount(member, minlength=count), who[first], rows[first], end)
        ranks = np.array(self._ranks, dtype=np.int64)
        return CollectiveNodes(
            transfer=transfer[member], rank=ranks[who], arrival=arrival, departure=departure, row=rows
        ), shared

    def _with_peers(
        self, shared: dict[str, Ints], transfer: Ints, present: Ints, who: Ints, row: Ints, end: Ints
    ) -> dict[str, Ints]:
        """Split what ranks without a trace make of a collective: they come late, and then it is transferred.

        The transfer takes at most as long as the shortest of the same place in other steps, waiting included; what is
        longer was spent on waiting for those ranks, which come a while after their last collective.
        """
        world = _world_size(self._parts)
        sizes, groups = np.empty(len(transfer), dtype=np.int64), np.empty(len(transfer), dtype=np.int64)
        numbers: dict[object, int] = {}
        for place, (which, one) in enumerate(zip(who, row, strict=True)):
            table = self._parts[which].trace.collectives
            group = int(table.group[one])
            known = table.groups[group] if group >= 0 else None
            sizes[place] = 2 if is_pair(int(table.kind[one])) else (known.size if known and known.size else world)
            groups[place] = numbers.setdefault((known.name, known.ranks) if known else None, len(numbers))
        partial = np.flatnonzero((present < sizes) & (shared["step"] >= 0))
        if not len(partial) or not self._timed:
            return shared
        span = shared["end"][partial] - shared["begin"][partial]
        _, alike = np.unique(shared["key"][partial], return_inverse=True)
        shortest = np.full(int(alike.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(shortest, alike, span)
        shared["duration"][partial] = shortest[alike]
        came = shared["end"][partial] - shortest[alike]
        order = np.lexsort((shared["end"][partial], groups[partial]))
        later, earlier = order[1:], order[:-1]
        follows = (groups[partial][later] == groups[partial][earlier]) & (
            shared["step"][partial][later] == shared["step"][partial][earlier]
        )
        later, earlier = later[follows], earlier[follows]
        # The first of a step follows the begin of the step.
        source = self._step_begins(who[partial], shared["step"][partial])
        since = end[source]
        source[later], since[later] = transfer[partial[earlier]], shared["end"][partial[earlier]]
        begins = np.minimum(since, came)
        peers = len(transfer) + transfer[0] + np.arange(len(partial))
        self._edges.add(source, peers, begins - since, EdgeKind.COLLECTIVE, Origin.INFERRED)
        self._edges.add(peers, transfer[partial], 0, EdgeKind.COLLECTIVE, Origin.INFERRED)
        extra = {
            "kind": np.full(len(partial), int(NodeKind.PEERS), dtype=np.int64),
            "begin": begins,
            "end": came,
            "duration": came - begins,
            "release": np.full(len(partial), _HELD_BY_NOTHING, dtype=np.int64),
            "step": shared["step"][partial],
            "key": mixed(shared["key"][partial], 3),
            "name": shared["name"][partial],
        }
        return {column: np.concatenate((values, extra[column])) for column, values in shared.items()}

    def _step_begins(self, who: Ints, step: Ints) -> Ints:
        """The node that ends where a rank's step begins."""
        found = np.zeros(len(who), dtype=np.int64)
        for which in np.unique(who):
            part = self._parts[which]
            main = np.flatnonzero((part.lane == part.main_lane) & (part.kind <= NodeKind.CALL))
            _, first = np.unique(part.step[main], return_index=True)
            of_step = dict(zip(part.step[main][first].tolist(), main[first].tolist(), strict=True))
            mine = who == which
            found[mine] = [of_step.get(int(one), 0) + self._first[which] for one in step[mine]]
        return found

    @staticmethod
    def _ends_of(part: RankPart, first: int) -> Ints:
        """Arrival and departure by row of the trace's collectives; -1 where the span was not recorded."""
        nodes = np.full((2, len(part.trace.collectives)), NO_NODE, dtype=np.int64)
        nodes[0, part.row], nodes[1, part.row] = part.arrival + first, part.departure + first
        return nodes

    def _selected(
        self,
        *,
        kind: NDArray[np.int8],
        rank: NDArray[np.int32],
        lane: NDArray[np.int32],
        step: NDArray[np.int32],
        event: Ints,
        name: NDArray[np.int32],
        duration: Ints,
        begin: Ints,
        end: Ints,
        release: Ints,
        key: Ints,
        lanes: tuple[tuple[int, Lane], ...],
        names: tuple[str, ...],
        nodes: CollectiveNodes,
    ) -> Graph:
        """Keep what belongs to a step; what came before and holds it back becomes its release."""
        source, target, lag, explained, edge_kind, origin, binding = self._edges.columns()
        kept = step >= 0
        outside = ~kept[source] & kept[target]
        np.maximum.at(release, target[outside], end[source[outside]] + lag[outside])
        inside = kept[source] & kept[target]
        number = np.cumsum(kept) - 1
        source, target = number[source[inside]], number[target[inside]]
        lag, edge_kind, origin, binding = lag[inside], edge_kind[inside], origin[inside], binding[inside]
        explained = explained[inside]
        by_target = np.argsort(target, kind="stable")
        source, lag, explained = source[by_target].astype(np.int32), lag[by_target], explained[by_target]
        edge_kind, origin, binding = edge_kind[by_target], origin[by_target], binding[by_target]
        count = int(kept.sum())
        first_edge = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(target, minlength=count), out=first_edge[1:])
        order = ordered(first_edge, source)
        held = kept[nodes.transfer] & kept[nodes.arrival] & kept[nodes.departure]
        missing = {EdgeKind.COLLECTIVE: self._missing_partners}
        for part in self._parts:
            for one, many in part.missing.items():
                missing[one] = missing.get(one, 0) + many
        step, rank, lane, end = step[kept], rank[kept], lane[kept], end[kept]
        return Graph(
            kind=kind[kept],
            rank=rank,
            lane=lane,
            step=step,
            event=event[kept],
            name=name[kept],
            duration_ns=duration[kept],
            begin_ns=begin[kept],
            end_ns=end,
            release_ns=release[kept],
            first_edge=first_edge,
            source=source,
            lag_ns=lag,
            explained_lag_ns=explained,
            edge_kind=edge_kind,
            origin=origin,
            binding=binding,
            order=order,
            key=key[kept],
            lanes=lanes,
            names=names,
            ranks=self._ranks,
            world_size=_world_size(self._parts),
            steps=self._bounds(step, rank, lane, end),
            collectives=CollectiveNodes(
                transfer=number[nodes.transfer[held]],
                rank=nodes.rank[held],
                arrival=number[nodes.arrival[held]],
                departure=number[nodes.departure[held]],
                row=nodes.row[held],
            ),
            missing=missing,
            warnings=(*self._warnings, *(warning for part in self._parts for warning in part.warnings)),
        )

    def _bounds(
        self, step: NDArray[np.int32], rank: NDArray[np.int32], lane: NDArray[np.int32], end: Ints
    ) -> StepBounds:
        """The last node of every rank's main thread in every step that ends with it at the latest."""
        steps = len(self._numbers)
        begins, ends = (np.zeros((steps, len(self._parts)), dtype=np.int64) for _ in range(2))
        last = np.full((steps, len(self._parts)), NO_NODE, dtype=np.int64)
        first_lane = np.concatenate(([0], np.cumsum([len(part.trace.lanes) for part in self._parts])))
        for which, (part, clock) in enumerate(zip(self._parts, self._clocks, strict=True)):
            begins[:, which], ends[:, which] = clock.begin_ns, np.maximum(clock.end_ns, clock.begin_ns)
            if part.main_lane < 0:
                continue
            main = np.flatnonzero(lane == first_lane[which] + part.main_lane)
            main = main[end[main] <= ends[step[main], which]]
            # Pieces of a lane are in order, so the last write wins.
            last[step[main], which] = main
        return StepBounds(number=self._numbers, begin_ns=begins, end_ns=ends, last_node=last)


def _world_size(parts: Sequence[RankPart]) -> int:
    """How many ranks the job has: as stated, at least those whose traces are there."""
    stated = max((part.trace.world_size for part in parts), default=0)
    return max(stated, len(parts), 1 + max((part.trace.rank for part in parts), default=0))


def ordered(first_edge: Ints, source: NDArray[np.int32]) -> NDArray[np.int32]:
    """Every node after all that it waits for; of those that may come next, the one let go first.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS if nodes wait for each other in a circle.
    """
    count = len(first_edge) - 1
    after = np.argsort(source, kind="stable")
    targets = np.repeat(np.arange(count, dtype=np.int64), np.diff(first_edge))[after]
    first_after = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(source, minlength=count), out=first_after[1:])
    order = np.empty(count, dtype=np.int32)
    done = _order(np.diff(first_edge), first_after, targets, order)
    if done < count:
        raise NodewiseError(
            Reason.CONTRADICTORY_FACTS,
            f"traces: {count - done} nodes wait for each other in a circle; the stated dependencies must be free of them",
        )
    return order


@compiled
def _order(waiting: Ints, first_after: Ints, targets: Ints, order: NDArray[np.int32]) -> int:
    """Kahn's algorithm; returns how many nodes were reached. ``waiting`` is used up."""
    filled = 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            order[filled] = node
            filled += 1
    position = 0
    while position < filled:
        node = order[position]
        position += 1
        for edge in range(first_after[node], first_after[node + 1]):
            target = targets[edge]
            waiting[target] -= 1
            if waiting[target] == 0:
                order[filled] = target
                filled += 1
    return filled
