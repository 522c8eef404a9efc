"""What nodes of a step take, learned from other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.graph.graph import EdgeKind, Graph, NodeKind

__all__ = ["Fitted", "Learner"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fitted:
    """Durations and lags of all nodes and edges as learned.

    ``known`` says which nodes have a counterpart in the steps learned from; others take the mean of all of their name,
    else of their kind.
    """

    duration_ns: Ints
    lag_ns: Ints
    known: NDArray[np.bool_]


class Learner:
    """Nodes and edges of a graph by where in the program they are, so that any choice of steps can be learned from."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        target = graph.target
        self._target_step = graph.step[target]
        self._alike = _groups(graph.key)
        self._named = _groups(graph.name.astype(np.int64) * 64 + graph.kind)
        self._edges_alike = _groups(graph.key[target] * 31 + graph.edge_kind)
        self._edges_typed = _groups(graph.edge_kind.astype(np.int64) * 64 + graph.kind[target])

    def fitted(self, fit_steps: Sequence[int]) -> Fitted:
        """Learn durations and lags from some steps.

        Means, not medians: times of a chain add up, and the sum of the medians of skewed times lies below the median
        of their sum. Lags are learned where they were seen to bind.

        Parameters
        ----------
        fit_steps : sequence of int
            Indexes into the graph's steps.
        """
        graph = self._graph
        steps = np.asarray(fit_steps, dtype=np.int64)
        learned = np.isin(graph.step, steps)
        taken = self._without_waits(learned)
        duration, known = _means(self._alike, learned, taken)
        fallback, named = _means(self._named, learned, taken)
        of_kind, _ = _means(graph.kind.astype(np.int64), learned, taken)
        duration = np.where(known, duration, np.where(named, fallback, of_kind))
        from_learned = np.isin(self._target_step, steps)
        lag, lag_known = _means(self._edges_alike, from_learned & graph.binding, graph.lag_ns)
        typical, typical_known = _means(self._edges_typed, from_learned, graph.explained_lag_ns)
        return Fitted(
            duration_ns=duration,
            lag_ns=np.where(lag_known, lag, np.where(typical_known, typical, 0)),
            known=known,
        )

    def _without_waits(self, learned: NDArray[np.bool_]) -> Ints:
        """Durations as recorded; those of transfers to ranks without a trace split by the steps learned from alone."""
        graph = self._graph
        peers = np.flatnonzero(graph.kind == NodeKind.PEERS)
        if not len(peers):
            return graph.duration_ns
        duration = graph.duration_ns.copy()
        leads = np.flatnonzero((graph.edge_kind == EdgeKind.COLLECTIVE) & (graph.kind[graph.source] == NodeKind.PEERS))
        peers, transfer = graph.source[leads].astype(np.int64), graph.target[leads]
        span = graph.end_ns[transfer] - graph.begin_ns[transfer]
        groups = self._alike[transfer]
        shortest = np.full(int(groups.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
        of_learned = learned[transfer]
        np.minimum.at(shortest, groups[of_learned], span[of_learned])
        split = of_learned
        duration[transfer[split]] = shortest[groups[split]]
        duration[peers[split]] = np.maximum(
            graph.end_ns[transfer[split]] - shortest[groups[split]] - graph.begin_ns[peers[split]], 0
        )
        return duration


def _groups(key: Ints) -> Ints:
    """Number of every row's key."""
    groups: Ints = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return groups


def _means(group: Ints, learned: NDArray[np.bool_], value: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Mean over the learned rows of the same group, for every row; and whether there is any."""
    count = np.bincount(group[learned], minlength=int(group.max(initial=-1)) + 1)
    total = np.bincount(group[learned], weights=value[learned], minlength=len(count))
    mean = np.rint(total / np.maximum(count, 1)).astype(np.int64)
    return mean[group], count[group] > 0
