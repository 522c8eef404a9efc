"""Nodes that should take equally long: the same place of the program on other ranks and in other steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_diagnosis.roles import Roles
from nodewise_diagnosis.stopwatch import Stopwatch
from nodewise_diagnosis.vocabulary import families
from nodewise_replay.graph.ordering import occurrences

__all__ = ["Likeness", "likeness_of"]

_SAME_PROGRAM: Final = 0.5
"""Ranks are compared where they share more than this part of all places of both: workers, but not with a server."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Likeness:
    """Columns by node, ns; 0 where there is nothing to compare with.

    Attributes
    ----------
    beyond_ranks_ns : (nodes,) float
        Excess of this place on this rank over the median of the others: median over steps.
    beyond_ranks_in_step_ns : (nodes,) float
        The excess of a single step beyond that median.
    beyond_steps_ns : (nodes,) float
        Excess of the node over the same place on the same rank in the median step.
    compared : (nodes,) bool
        Whether other ranks have the place.
    """

    beyond_ranks_ns: Floats
    beyond_ranks_in_step_ns: Floats
    beyond_steps_ns: Floats
    compared: np.ndarray


def likeness_of(watch: Stopwatch, roles: Roles) -> Likeness:
    """Compare all nodes of the steps of interest.

    A place is the n-th node of its name, kind and role in a step of a rank. Where ranks do not have equally many of
    them, their means are compared: one that serves the others exchanges more often, not more slowly.
    """
    graph = watch.graph
    count = len(graph)
    nodes = np.flatnonzero(np.isin(graph.step, watch.steps) & (graph.rank >= 0))
    # A lane by what it is, not by its number, which differs from rank to rank.
    group = (
        (families(graph.names)[graph.name[nodes]] * 16 + graph.kind[nodes]) * 16
        + roles.role[nodes] * 2
        + roles.main[nodes]
    )
    _, group = np.unique(group, return_inverse=True)
    column = graph.column[nodes]
    row = np.searchsorted(watch.steps, graph.step[nodes])
    duration = graph.duration_ns[nodes].astype(np.float64)
    table = _Table(group, column, row, graph.begin_ns[nodes], duration, len(graph.ranks), len(watch.steps))
    beyond_ranks, in_step, compared = table.beyond_ranks()
    result = np.zeros((3, count))
    result[0, nodes], result[1, nodes], result[2, nodes] = beyond_ranks, in_step, table.beyond_steps()
    with_peers = np.zeros(count, dtype=np.bool_)
    with_peers[nodes] = compared
    return Likeness(
        beyond_ranks_ns=result[0],
        beyond_ranks_in_step_ns=result[1],
        beyond_steps_ns=result[2],
        compared=with_peers,
    )


class _Table:
    """Durations by place, rank and step."""

    def __init__(
        self, group: Ints, column: Ints, row: Ints, begin_ns: Ints, duration_ns: Floats, ranks: int, steps: int
    ) -> None:
        self._duration, self._column, self._row = duration_ns, column, row
        cell = (group * ranks + column) * steps + row
        occurrence = occurrences(cell, np.lexsort((begin_ns, cell)))
        groups = int(group.max(initial=-1)) + 1
        sizes = np.bincount(cell, minlength=groups * ranks * steps).reshape(groups, ranks * steps)
        largest = sizes.max(axis=1, initial=0)
        met = np.where(sizes > 0, sizes, largest[:, None]).min(axis=1, initial=2**62)
        alike = met == largest
        # Places of groups that are alike everywhere are single nodes; of others the whole group is one place.
        first = np.concatenate(([0], np.cumsum(np.where(alike, largest, 1))))
        self._place = first[group] + np.where(alike[group], occurrence, 0)
        places = int(first[-1])
        total = np.zeros((places, ranks, steps))
        np.add.at(total, (self._place, column, row), duration_ns)
        here = np.zeros((places, ranks, steps), dtype=np.bool_)
        here[self._place, column, row] = True
        number = np.zeros((places, ranks, steps))
        np.add.at(number, (self._place, column, row), 1.0)
        # Where ranks have different numbers of a group's nodes, their means are compared.
        self._total = np.divide(total, number, out=np.full_like(total, np.nan), where=here)
        self._cell_total = self._total[self._place, column, row]

    def beyond_ranks(self) -> tuple[Floats, Floats, np.ndarray]:
        """Per node, its place's excess over the median of the other ranks, and what its step has beyond it.

        The third is whether there are other ranks.
        """
        usual = _median(self._total, axis=2)
        excess, in_step = np.full_like(usual, np.nan), np.full_like(self._total, np.nan)
        for rank, others in enumerate(self._peers(usual)):
            if others.any():
                excess[:, rank] = usual[:, rank] - _median(usual[:, others], axis=1)
                in_step[:, rank] = self._total[:, rank] - _median(self._total[:, others], axis=1)
        is_known = ~np.isnan(excess)
        at = self._place, self._column
        share = np.where(is_known, excess, 0.0)
        of_step = np.nan_to_num(in_step - share[:, :, None])
        return self._shared_out(share[at]), self._shared_out(of_step[(*at, self._row)]), is_known[at]

    @staticmethod
    def _peers(usual: Floats) -> np.ndarray:
        """Which ranks run the same program, (ranks, ranks): they share most of their places."""
        here = (~np.isnan(usual)).astype(np.float64)
        both = here.T @ here
        own = np.diag(both)
        either = own[:, None] + own[None, :] - both
        peers: np.ndarray = both > _SAME_PROGRAM * either
        np.fill_diagonal(peers, val=False)
        return peers

    def beyond_steps(self) -> Floats:
        """Per node, its place's excess over the same rank's median of the other steps."""
        if self._total.shape[2] < 2:
            return np.zeros(len(self._duration))
        # What a step lacks takes no time in it: what happens in a single step has its like, too.
        total = np.nan_to_num(self._total)
        others = np.stack([np.median(np.delete(total, step, axis=2), axis=2) for step in range(total.shape[2])], axis=2)
        excess = total - others
        return self._shared_out(excess[self._place, self._column, self._row])

    def _shared_out(self, excess: Floats) -> Floats:
        """The excess of a place over its nodes in a step, in proportion to duration; never more than they take."""
        share = np.divide(self._duration, self._cell_total, out=np.zeros_like(excess), where=self._cell_total > 0)
        part_ns: Floats = np.minimum(excess * share, self._duration)
        return part_ns


def _median(values: Floats, axis: int) -> Floats:
    """Median of what is not NaN; NaN where nothing is."""
    sorted_values = np.sort(values, axis=axis)  # NaNs go last
    known_count = (~np.isnan(values)).sum(axis=axis, keepdims=True)
    low, high = (
        np.take_along_axis(sorted_values, at, axis=axis)
        for at in (np.maximum(known_count - 1, 0) // 2, known_count // 2)
    )
    middle: Floats = ((low + high) / 2).squeeze(axis)
    return middle
