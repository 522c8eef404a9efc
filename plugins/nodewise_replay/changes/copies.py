"""Copies of recorded ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Ints
from nodewise_replay.changes.scenario import GraphDraft, Scenario
from nodewise_replay.graph.graph import NO_NODE, Graph

__all__ = ["RankCopies"]

_ODD: Final = 0x5851F42D4C957F2D
"""Of Knuth's 64-bit linear congruential generator: spreads the bits of a step's number."""


class RankCopies:
    """Ranks that a draft gets as copies of recorded ones, numbered on from the world's size."""

    def __init__(self, draft: GraphDraft, scenario: Scenario) -> None:
        graph = scenario.graph
        self._draft, self._scenario = draft, scenario
        self._ranks, self._lanes = list(graph.ranks), list(graph.lanes)
        self._bounds = {name: [getattr(graph.steps, name)] for name in ("begin_ns", "end_ns", "last_node")}
        self._recorded_rank = dict(scenario.recorded_rank)

    def add(self, source: int, *, shift: int, shared: bool = True) -> tuple[int, Ints]:
        """Add a copy of a rank; returns the new rank, and every node's number in it: of other ranks' nodes their own.

        The copy's work takes what the same work of ``source`` took ``shift`` steps later (around the end to the first).
        Exchanges are shared with it unless ``shared`` is False.
        """
        graph, draft, rows = self._scenario.graph, self._draft, self._scenario.graph.collectives
        rank = graph.world_size + len(self._ranks) - len(graph.ranks)
        is_mine = graph.rank == source
        mine = np.flatnonzero(is_mine)
        own = [place for place, (of_rank, _) in enumerate(graph.lanes) if of_rank == source]
        table = np.arange(len(graph.lanes) + 1, dtype=np.int64)
        table[own] = len(self._lanes) + np.arange(len(own))
        self._lanes.extend((rank, graph.lanes[place][1]) for place in own)
        duration = _of_another_step(graph, self._scenario.duration_ns, mine, shift)
        number = np.arange(len(graph), dtype=np.int64)
        number[mine] = draft.copy_nodes(mine, rank=rank, lane=table[graph.lane[mine]], duration_ns=duration)
        leaves, enters = is_mine[graph.source], is_mine[graph.target]
        draft.copy_edges(np.flatnonzero(leaves | enters if shared else leaves & enters), number)
        if shared:
            own_rows = rows.rows(rows.rank == source).renumber(number)
            draft.add_rows(replace(own_rows, rank=np.full(len(own_rows), rank)))
        column = graph.ranks.index(source)
        for name, parts in self._bounds.items():
            bound = parts[0][:, column]
            if name == "last_node":
                bound = np.where(bound >= 0, number[np.maximum(bound, 0)], NO_NODE)
            parts.append(bound[:, None])
        self._recorded_rank[rank] = self._scenario.recorded_rank[source]
        self._ranks.append(rank)
        return rank, number

    def scenario(self, world_size: int, *rests_on: str) -> Scenario:
        """The graph as drafted, with these ranks."""
        bounds = {name: np.concatenate(parts, axis=1) for name, parts in self._bounds.items()}
        return self._draft.scenario(
            *rests_on,
            recorded_rank=self._recorded_rank,
            steps=replace(self._scenario.graph.steps, **bounds),
            ranks=tuple(self._ranks),
            world_size=world_size,
            lanes=tuple(self._lanes),
        )


def _of_another_step(graph: Graph, duration: Ints, nodes: Ints, shift: int) -> Ints:
    """Durations of the same place in the program some steps later; of nodes without such, their own."""
    own: Ints = duration[nodes].copy()
    steps = np.unique(graph.step[nodes])
    if len(steps) < 2 or shift % len(steps) == 0:
        return own
    place = np.searchsorted(steps, graph.step[nodes])
    other_step = steps[(place + shift) % len(steps)]
    key, step = graph.key[nodes], graph.step[nodes]
    digest = key ^ (step.astype(np.int64) * _ODD)
    order = np.argsort(digest, kind="stable")
    at = np.searchsorted(digest[order], key ^ (other_step.astype(np.int64) * _ODD))
    candidates = order[np.minimum(at, len(order) - 1)]
    same = (step[candidates] == other_step) & (key[candidates] == key)
    own[same] = duration[nodes][candidates[same]]
    return own
