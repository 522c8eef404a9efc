"""The graph's columns: nodes that take time, and edges with the least time between them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, Lane
from nodewise_replay.graph.columns import Columns

__all__ = [
    "HELD_BY_NOTHING",
    "NO_NODE",
    "CollectiveNodes",
    "EdgeKind",
    "Graph",
    "NodeKind",
    "Origin",
    "StepBounds",
    "matching",
]

NO_NODE = -1
"""Value of an absent index."""

HELD_BY_NOTHING = np.iinfo(np.int64).min // 4
"""A release without effect, far enough from the least number that sums with it do not overflow."""

SmallInts = NDArray[np.int32]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]


def matching(names: Sequence[str], pattern: re.Pattern[str]) -> Flags:
    """Names that match the pattern."""
    return np.fromiter((_is_found(pattern, name) for name in names), dtype=np.bool_, count=len(names))


@lru_cache(maxsize=1 << 14)
def _is_found(pattern: re.Pattern[str], name: str) -> bool:
    """Cached, as a diagnosis uses some patterns many times, and the ranks of a job share names."""
    return pattern.search(name) is not None


class NodeKind(IntEnum):
    """Kind of a node."""

    OPERATOR = 0
    """A framework's operator without its calls: one piece between two of its calls."""
    GAP = 1
    """Host time between events: the interpreter's, or the self time of a named span."""
    CALL = 2
    """A call of the device's runtime; one that blocks begins where what it waits for has ended."""
    KERNEL = 3
    COPY = 4
    FILL = 5
    ARRIVAL = 6
    """A rank comes to a collective: lasts 0; the kernel waits for its peers from here."""
    TRANSFER = 7
    """The collective itself, shared by its ranks (rank -1): begins at the last arrival."""
    DEPARTURE = 8
    """A rank leaves a collective: the time until its own end of it, once the transfer is over."""
    PEERS = 9
    """Ranks that sent no trace (rank -1): from the end of their last collective until they come to the next one."""


class EdgeKind(IntEnum):
    """Reason why one node waits for another."""

    HOST = 0
    LAUNCH = 1
    STREAM = 2
    STREAM_WAIT = 3
    HOST_SYNC = 4
    COLLECTIVE = 5
    FORWARD_BACKWARD = 6
    STATED = 7
    CONTENTION = 8
    """Work of another stream leaves the device to it; the lag may be negative: its last blocks free room early."""
    QUEUE = 9
    """A launch waits until work leaves the device's full queue."""


class Origin(IntEnum):
    """Origin of an edge."""

    FOUND = 0
    INFERRED = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CollectiveNodes(Columns):
    """Participants of collectives, as columns: one row per collective and rank present, by transfer node.

    Attributes
    ----------
    transfer : int
        The shared node.
    rank : int
    arrival, departure : int
        Nodes of this rank before and after the transfer.
    row : int
        Index into the rank's ``Trace.collectives``.
    """

    transfer: Ints
    rank: Ints
    arrival: Ints
    departure: Ints
    row: Ints

    def among(self, is_kept: Flags, number: Ints) -> CollectiveNodes:
        """The rows whose nodes are all kept, with the nodes' new numbers."""
        rows = self.rows(is_kept[self.transfer] & is_kept[self.arrival] & is_kept[self.departure])
        return rows.renumber(number)

    def renumber(self, number: Ints) -> CollectiveNodes:
        """The same rows of nodes of other numbers."""
        nodes = {name: number[getattr(self, name)] for name in ("transfer", "arrival", "departure")}
        return replace(self, **nodes)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepBounds:
    """Steps of every rank, (steps, ranks) each: begin and end of the host's step, and the last node of it.

    ``first_event_ns`` of a rank that lacks a step is 0 and its ``last_node`` NO_NODE.
    """

    number: Ints
    begin_ns: Ints
    end_ns: Ints
    last_node: Ints

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Graph:
    """The executed job. Times are ns on the first rank's clock. Durations and lags are apart from the structure.

    Attributes
    ----------
    kind : (nodes,) int8
        NodeKind.
    rank : (nodes,) int32
        -1 for transfers.
    lane : (nodes,) int32
        Index into ``lanes``; -1 for transfers.
    step : (nodes,) int32
        Index into ``steps``; of the host that caused it.
    event : (nodes,) int64
        Index into the rank's trace; -1 for host time outside all events.
    name : (nodes,) int32
        Index into ``names``.
    duration_ns, begin_ns, end_ns : (nodes,) int64
        As recorded, for the last two on the common clock. A node that waits begins where the wait does, and its
        duration is what is left after it.
    release_ns : (nodes,) int64
        Earliest begin: where something outside the graph delays a node.
    first_edge : (nodes + 1,) int64
        The edges into node v are ``first_edge[v]`` to ``first_edge[v + 1]``.
    source : (edges,) int32
        The node that each comes from.
    lag_ns : (edges,) int64
        Least time from the end of ``source`` to the begin of the target.
    explained_lag_ns : (edges,) int64
        The same without waits that no edge accounts for: used by a replay of the structure only.
    edge_kind, origin : (edges,) int8
        EdgeKind, Origin.
    binding : (edges,) bool
        Whether the target waited for this edge, so that its lag is exact; else it is a typical one.
    order : (nodes,) int32
        Order in which every node comes after all nodes that it waits for.
    key : (nodes,) int64
        Digest of a node's place in the program: corresponding nodes of different steps have the same.
    lanes : tuple of (rank, Lane)
    missing : mapping of EdgeKind to int
        Edges that must exist but could not be inferred.
    timed : bool
        Whether times were recorded; where not, they are those of a sweep.
    """

    kind: Codes
    rank: SmallInts
    lane: SmallInts
    step: SmallInts
    event: Ints
    name: SmallInts
    duration_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    release_ns: Ints
    first_edge: Ints
    source: SmallInts
    lag_ns: Ints
    explained_lag_ns: Ints
    edge_kind: Codes
    origin: Codes
    binding: Flags
    order: SmallInts
    key: Ints
    lanes: tuple[tuple[int, Lane], ...]
    names: tuple[str, ...]
    ranks: tuple[int, ...]
    world_size: int
    steps: StepBounds
    collectives: CollectiveNodes
    missing: Mapping[EdgeKind, int] = field(default_factory=dict)
    timed: bool = True
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.kind)

    def match_names(self, pattern: re.Pattern[str]) -> Flags:
        """Nodes in whose name the pattern is found."""
        return matching(self.names, pattern)[self.name]

    @property
    def column(self) -> Ints:
        """Of every node, the place of its rank in ``ranks``; of nodes that ranks share, the place after all."""
        places = np.searchsorted(self.ranks, np.maximum(self.rank, 0))
        return np.where(self.rank >= 0, places, len(self.ranks))

    @property
    def main_lanes(self) -> SmallInts:
        """Lanes that steps end on, ascending."""
        last = self.steps.last_node
        return np.unique(self.lane[last[last >= 0]])

    @property
    def target(self) -> Ints:
        """The node that every edge leads to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.first_edge))
