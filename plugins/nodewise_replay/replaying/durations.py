"""What nodes of a step take, learned from other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.graph.graph import Graph

__all__ = ["Fitted", "fitted"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fitted:
    """Durations and lags of all nodes and edges as learned.

    ``known`` says which nodes have a counterpart in the steps learned from; others take the mean of all of their name,
    else of their kind.
    """

    duration_ns: Ints
    lag_ns: Ints
    known: NDArray[np.bool_]


def fitted(graph: Graph, fit_steps: Sequence[int]) -> Fitted:
    """Learn durations and lags from some steps.

    Means, not medians: times of a chain add up, and the sum of the medians of skewed times lies below the median of
    their sum. Lags are learned where they were seen to bind.

    Parameters
    ----------
    graph : Graph
    fit_steps : sequence of int
        Indexes into ``graph.steps``.
    """
    learned = np.isin(graph.step, np.asarray(fit_steps, dtype=np.int64))
    duration, known = _means(graph.key, learned, graph.duration_ns)
    by_name = graph.name.astype(np.int64) * 64 + graph.kind
    fallback, named = _means(by_name, learned, graph.duration_ns)
    of_kind, _ = _means(graph.kind.astype(np.int64), learned, graph.duration_ns)
    duration = np.where(known, duration, np.where(named, fallback, of_kind))
    target = graph.target
    edge_key = graph.key[target] * 31 + graph.edge_kind
    seen = learned[target] & graph.binding
    lag, lag_known = _means(edge_key, seen, graph.lag_ns)
    typical_key = graph.edge_kind.astype(np.int64) * 64 + graph.kind[target]
    typical, typical_known = _means(typical_key, learned[target], graph.explained_lag_ns)
    lag = np.where(lag_known, lag, np.where(typical_known, typical, 0))
    return Fitted(duration_ns=duration, lag_ns=lag, known=known)


def _means(key: Ints, learned: NDArray[np.bool_], value: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Mean over the learned rows with the same key, for every row; and whether there is any."""
    _, group = np.unique(key, return_inverse=True)
    count = np.bincount(group[learned], minlength=int(group.max(initial=-1)) + 1)
    total = np.bincount(group[learned], weights=value[learned], minlength=len(count))
    mean = np.rint(total / np.maximum(count, 1)).astype(np.int64)
    return mean[group], count[group] > 0
