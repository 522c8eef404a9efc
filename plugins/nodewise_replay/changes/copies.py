"""Copies of a recorded rank."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Ints, Lane
from nodewise_replay.changes.scenario import GraphDraft, Scenario
from nodewise_replay.graph.graph import Graph

__all__ = ["copied_rank"]

_ODD: Final = 0x5851F42D4C957F2D
"""Of Knuth's 64-bit linear congruential generator: spreads the bits of a step's number."""


def copied_rank(
    draft: GraphDraft,
    scenario: Scenario,
    source: int,
    rank: int,
    lanes: list[tuple[int, Lane]],
    *,
    shift: int,
    shared: bool = True,
) -> Ints:
    """Add a copy of a rank; returns the number of every node's copy, of other ranks' nodes their own.

    The copy's work takes what the same work of ``source`` took ``shift`` steps later (around the end to the first).
    Exchanges are shared with it unless ``shared`` is False.
    """
    graph = scenario.graph
    mine = np.flatnonzero(graph.rank == source)
    own = [place for place, (of_rank, _) in enumerate(graph.lanes) if of_rank == source]
    table = np.arange(len(graph.lanes) + 1, dtype=np.int64)
    table[own] = len(lanes) + np.arange(len(own))
    lanes.extend((rank, graph.lanes[place][1]) for place in own)
    duration = _of_another_step(graph, scenario.duration_ns, mine, shift)
    copies = draft.copy_nodes(mine, rank=rank, lane=table[graph.lane[mine]], duration=duration)
    number = np.arange(len(graph), dtype=np.int64)
    number[mine] = copies
    is_mine = graph.rank == source
    leaves, enters = is_mine[graph.source], is_mine[graph.target]
    draft.copy_edges(np.flatnonzero(leaves | enters if shared else leaves & enters), number)
    rows = graph.collectives
    held = rows.rank == source
    if shared:
        draft.add_rows(
            rows.transfer[held],
            np.full(int(held.sum()), rank),
            number[rows.arrival[held]],
            number[rows.departure[held]],
            rows.row[held],
        )
    return number


def _of_another_step(graph: Graph, duration: Ints, nodes: Ints, shift: int) -> Ints:
    """Durations of the same place in the program some steps later; of nodes without such, their own."""
    own: Ints = duration[nodes].copy()
    steps = np.unique(graph.step[nodes])
    if len(steps) < 2 or shift % len(steps) == 0:
        return own
    place = np.searchsorted(steps, graph.step[nodes])
    wanted = steps[(place + shift) % len(steps)]
    key, step = graph.key[nodes], graph.step[nodes]
    digest = key ^ (step.astype(np.int64) * _ODD)
    order = np.argsort(digest, kind="stable")
    at = np.searchsorted(digest[order], key ^ (wanted.astype(np.int64) * _ODD))
    found = order[np.minimum(at, len(order) - 1)]
    same = (step[found] == wanted) & (key[found] == key)
    own[same] = duration[nodes][found[same]]
    return own
