"""Nodes that ranks share: collectives, and ranks without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import CollectiveKind, Ints
from nodewise_replay.alignment.matching import matched_collectives
from nodewise_replay.alignment.messages import is_pair
from nodewise_replay.building.keys import mix
from nodewise_replay.building.rank import RankPart
from nodewise_replay.graph.graph import HELD_BY_NOTHING, NO_NODE, CollectiveNodes, EdgeKind, NodeKind, Origin
from nodewise_replay.graph.wiring import Edges, NodeColumns

__all__ = ["SharedNodes", "shared_nodes", "world_size"]

SmallInts = NDArray[np.int32]
_SENDS: Final = (int(CollectiveKind.SEND), int(CollectiveKind.PUSH))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedNodes:
    """Nodes after those of the ranks, edges, and participants. ``alone``: collectives that lack a partner."""

    nodes: NodeColumns
    edges: Edges
    collectives: CollectiveNodes
    alone: int
    warnings: tuple[str, ...]


def world_size(parts: Sequence[RankPart]) -> int:
    """Number of ranks of the job: as stated, at least the ranks with traces."""
    stated_size = max((part.trace.world_size for part in parts), default=0)
    return max(stated_size, len(parts), 1 + max((part.trace.rank for part in parts), default=0))


def shared_nodes(parts: Sequence[RankPart], first: Ints, own: NodeColumns, *, has_times: bool) -> SharedNodes:
    """Merge a collective of several ranks into one node: it begins at the last arrival and ends at the first departure.

    Durations of departures in ``own`` become the time left after that.

    Parameters
    ----------
    parts, first : the ranks' parts, and the number of each one's first node.
    own : NodeColumns
        Of all ranks.
    has_times : bool
        Whether times were recorded; where not, a collective takes as long as on the fastest rank, and messages are sent
        before they are requested.
    """
    matches = matched_collectives([part.trace for part in parts])
    ends_of = [_ends_of(part, int(one)) for part, one in zip(parts, first, strict=False)]
    ends = np.array(
        [ends_of[who][:, row] for who, row in zip(matches.who, matches.row, strict=True)], dtype=np.int64
    ).reshape(-1, 2)
    there = (ends >= 0).all(axis=1)
    _, member = np.unique(matches.member[there], return_inverse=True)
    arrival, departure = ends[there, 0], ends[there, 1]
    who, rows = matches.who[there], matches.row[there]
    count = int(member.max(initial=-1)) + 1
    came, left = own.end_ns[arrival], own.end_ns[departure]
    start = np.full(count, HELD_BY_NOTHING, dtype=np.int64)
    np.maximum.at(start, member, came)
    # A rank that left before the last rank came did not wait for it.
    has_waited = left >= start[member]
    over = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(over, member[has_waited], left[has_waited])
    over = np.maximum(over, start)
    rest = np.where(has_waited, left - over[member], left - came)
    held = np.ones(len(member), dtype=np.bool_)
    if not has_times:
        # A sender in a stated graph is done when its own data have left, whether or not a rank takes them yet, and they
        # travel meanwhile: a ring in which every rank first sends and then receives would wait for itself.
        eager = _are_sends(parts, who, rows)
        held = eager | ~np.isin(member, member[eager])
        has_waited = ~eager
        rest[has_waited], rest[eager] = 0, (left - came)[eager]
    transfer = int(first[-1]) + np.arange(count)
    own_way = ~has_waited | ~held
    edges = [
        Edges.exact(arrival[held], transfer[member[held]], 0, EdgeKind.COLLECTIVE),
        Edges.exact(transfer[member[has_waited]], departure[has_waited], 0, EdgeKind.COLLECTIVE),
        Edges.exact(arrival[own_way], departure[own_way], 0, EdgeKind.COLLECTIVE),
    ]
    own.duration_ns[departure] = rest
    own.begin_ns[departure] = left - rest
    one = np.zeros(count, dtype=np.int64)
    one[member[::-1]] = np.arange(len(member))[::-1]
    arrivals = own.rows(arrival[one])
    shared = _of_no_rank(arrivals, NodeKind.TRANSFER, start, over, name=own.name[departure[one]])
    if has_times and count:
        expected, group = _group_sizes(parts, who[one], rows[one])
        absent = np.flatnonzero((np.bincount(member, minlength=count) < expected) & (shared.step >= 0))
        if len(absent):
            begins = _step_begins(parts, first, who[one][absent], shared.step[absent])
            peers, late = _peers(shared, transfer, absent, group, begins, own.end_ns[begins])
            shared, edges = shared.followed_by(peers), [*edges, late]
    ranks = np.array([part.trace.rank for part in parts], dtype=np.int64)
    nodes = CollectiveNodes(transfer=transfer[member], rank=ranks[who], arrival=arrival, departure=departure, row=rows)
    return SharedNodes(
        nodes=shared,
        edges=Edges.none().followed_by(*edges),
        collectives=nodes,
        alone=matches.alone,
        warnings=matches.warnings,
    )


def _are_sends(parts: Sequence[RankPart], who: Ints, rows: Ints) -> NDArray[np.bool_]:
    """Which entries are the sending end of a message."""
    kinds = [part.trace.collectives.kind[row] for part, row in zip((parts[one] for one in who), rows, strict=True)]
    return np.isin(np.array(kinds, dtype=np.int64), _SENDS)


def _ends_of(part: RankPart, first: int) -> Ints:
    """Arrival and departure by row of the trace's collectives; NO_NODE where the span was not recorded."""
    nodes = np.full((2, len(part.trace.collectives)), NO_NODE, dtype=np.int64)
    nodes[0, part.row], nodes[1, part.row] = part.arrival + first, part.departure + first
    return nodes


def _of_no_rank(like: NodeColumns, kind: NodeKind, begin_ns: Ints, end_ns: Ints, **others: SmallInts) -> NodeColumns:
    """Nodes of no rank and lane, at the same place of the program as others."""
    count = len(begin_ns)
    none = np.full(count, NO_NODE, dtype=np.int32)
    return NodeColumns.of(
        like,
        kind=np.full(count, int(kind), dtype=np.int8),
        rank=none,
        lane=none,
        event=none.astype(np.int64),
        duration_ns=end_ns - begin_ns,
        begin_ns=begin_ns,
        end_ns=end_ns,
        release_ns=np.full(count, HELD_BY_NOTHING, dtype=np.int64),
        key=mix(like.key, int(kind)),
        **others,
    )


def _group_sizes(parts: Sequence[RankPart], who: Ints, row: Ints) -> tuple[Ints, Ints]:
    """Number of ranks of each collective, and the number of its group."""
    world = world_size(parts)
    sizes, groups = np.empty(len(who), dtype=np.int64), np.empty(len(who), dtype=np.int64)
    numbers: dict[object, int] = {}
    for place, (which, one) in enumerate(zip(who, row, strict=True)):
        table = parts[which].trace.collectives
        group = table.groups[int(table.group[one])] if table.group[one] >= 0 else None
        sizes[place] = 2 if is_pair(int(table.kind[one])) else (group.size if group and group.size else world)
        groups[place] = numbers.setdefault((group.name, group.ranks) if group else None, len(numbers))
    return sizes, groups


def _peers(
    shared: NodeColumns, transfer: Ints, absent: Ints, group: Ints, begins: Ints, step_begin_ns: Ints
) -> tuple[NodeColumns, Edges]:
    """Split collectives with ranks that have no trace: these ranks arrive late, and then the transfer follows.

    A transfer takes at most as long as the shortest of the same place in other steps, waiting included; longer time was
    spent on waiting for those ranks. They arrive a while after their last collective of the step, the first time after
    the begin of the step.

    Parameters
    ----------
    shared : NodeColumns
        Transfers; their durations are changed.
    transfer : their nodes
    absent : which of them lack ranks
    group : of every transfer
    begins, step_begin_ns : per absent one, the node that ends where the step begins, and when
    """
    over, alike = shared.end_ns[absent], np.unique(shared.key[absent], return_inverse=True)[1]
    shortest = np.full(int(alike.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(shortest, alike, over - shared.begin_ns[absent])
    shared.duration_ns[absent] = shortest[alike]
    came = over - shortest[alike]
    order = np.lexsort((over, group[absent]))
    later, earlier = order[1:], order[:-1]
    step = shared.step[absent]
    follows = (group[absent][later] == group[absent][earlier]) & (step[later] == step[earlier])
    later, earlier = later[follows], earlier[follows]
    source, since = begins.copy(), step_begin_ns.copy()
    source[later], since[later] = transfer[absent[earlier]], over[earlier]
    begin = np.minimum(since, came)
    peers = int(transfer[0]) + len(transfer) + np.arange(len(absent))
    late = Edges.exact(source, peers, begin - since, EdgeKind.COLLECTIVE, Origin.INFERRED)
    peer_edges = Edges.exact(peers, transfer[absent], 0, EdgeKind.COLLECTIVE, Origin.INFERRED)
    return _of_no_rank(shared.rows(absent), NodeKind.PEERS, begin, came), late.followed_by(peer_edges)


def _step_begins(parts: Sequence[RankPart], first: Ints, who: Ints, step: SmallInts) -> Ints:
    """The node that ends where a rank's step begins."""
    begins = np.zeros(len(who), dtype=np.int64)
    for which in np.unique(who):
        part = parts[which]
        main = np.flatnonzero((part.nodes.lane == part.main_lane) & (part.nodes.kind <= NodeKind.CALL))
        steps, place = np.unique(part.nodes.step[main], return_index=True)
        of_step = dict(zip(steps.tolist(), main[place].tolist(), strict=True))
        mine = who == which
        begins[mine] = [of_step.get(int(one), 0) + int(first[which]) for one in step[mine]]
    return begins
