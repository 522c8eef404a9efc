"""What nodes of a step take, learned from other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Ints
from nodewise_replay.graph.graph import Graph, NodeKind

__all__ = ["LearnedDurations", "learn_durations"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LearnedDurations:
    """Durations and lags of all nodes and edges as learned.

    ``known`` says which nodes have a counterpart in the steps learned from; others take the mean of all of their name,
    else of their kind.
    """

    duration_ns: Ints
    lag_ns: Ints
    known: NDArray[np.bool_]


def learn_durations(graph: Graph, fit_steps: Sequence[int], *, own: bool = True) -> LearnedDurations:
    """Learn durations and lags from some steps.

    Means, not medians: times of a chain add up, and the sum of the medians of skewed times lies below the median
    of their sum. Lags are learned where they were seen to bind.

    Parameters
    ----------
    fit_steps : sequence of int
        Indexes into the graph's steps.
    own : bool
        Whether nodes of these steps learn from their own step too; if not, each learns from the others alone.
    """
    target, steps = graph.target, len(graph.steps)
    alike = _Groups.of(graph.key, graph.step, steps)
    same_name = _Groups.of(graph.name.astype(np.int64) * 64 + graph.kind, graph.step, steps)
    same_kind = _Groups.of(graph.kind.astype(np.int64), graph.step, steps)
    edges_alike = _Groups.of(graph.key[target] * 31 + graph.edge_kind, graph.step[target], steps)
    edge_type = graph.edge_kind.astype(np.int64) * 64 + graph.kind[target]
    edges_typed = _Groups.of(edge_type, graph.step[target], steps)
    is_fit_step = np.zeros(steps, dtype=np.bool_)
    is_fit_step[np.asarray(fit_steps, dtype=np.int64)] = True
    is_sample = is_fit_step[graph.step]
    durations_ns = graph.duration_ns.copy()
    leads = np.flatnonzero(graph.kind[graph.source] == NodeKind.PEERS)
    peers, transfers = graph.source[leads].astype(np.int64), target[leads]
    durations_ns[peers] = graph.end_ns[transfers] - graph.begin_ns[peers]
    duration, known = alike.means(is_sample, durations_ns, own=own)
    fallback, has_fallback = same_name.means(is_sample, graph.duration_ns, own=own)
    of_kind, _ = same_kind.means(is_sample, graph.duration_ns, own=own)
    duration = np.where(known, duration, np.where(has_fallback, fallback, of_kind))
    # The wait of ranks without a trace follows from the transfer, by the steps learned from only.
    shortest, has_shortest = _shortest(graph, alike, transfers, is_sample[transfers], own=own)
    duration[transfers[has_shortest]] = shortest[has_shortest]
    duration[peers[has_shortest]] = np.maximum(duration[peers[has_shortest]] - shortest[has_shortest], 0)
    from_learned = is_fit_step[graph.step[target]]
    lag, lag_known = edges_alike.means(from_learned & graph.binding, graph.lag_ns, own=own)
    typical, typical_known = edges_typed.means(from_learned, graph.explained_lag_ns, own=own)
    return LearnedDurations(
        duration_ns=duration,
        lag_ns=np.where(lag_known, lag, np.where(typical_known, typical, 0)),
        known=known,
    )


def _shortest(
    graph: Graph, alike: _Groups, transfers: Ints, is_sample: NDArray[np.bool_], *, own: bool
) -> tuple[Ints, NDArray[np.bool_]]:
    """Shortest span, waiting included, of the transfers learned from in the same place; and where there is one."""
    none = np.iinfo(np.int64).max
    span = graph.end_ns[transfers] - graph.begin_ns[transfers]
    _, group = np.unique(alike.group[transfers], return_inverse=True)
    rows = np.flatnonzero(is_sample)
    rows = rows[np.lexsort((span[rows], group[rows]))]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = group[rows[1:]] != group[rows[:-1]]
    first, second = (np.full(int(group.max(initial=-1)) + 1, none, dtype=np.int64) for _ in range(2))
    first[group[rows[fresh]]] = span[rows[fresh]]
    runners = np.flatnonzero(fresh[:-1] & ~fresh[1:]) + 1
    second[group[rows[runners]]] = span[rows[runners]]
    shortest = first[group]
    if not own:
        holders = rows[fresh]
        shortest[holders] = second[group[holders]]
    return shortest, shortest < none


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Groups:
    """Rows that are alike: the number of each row's group, and of its group in its own step."""

    group: NDArray[np.int32]
    in_step: NDArray[np.int32]

    @staticmethod
    def of(key: Ints, step: NDArray[np.int32], steps: int) -> _Groups:
        """Group rows by key."""
        group = np.unique(key, return_inverse=True)[1]
        in_step = np.unique(group * steps + step, return_inverse=True)[1]
        return _Groups(group=group.astype(np.int32), in_step=in_step.astype(np.int32))

    def means(self, is_sample: NDArray[np.bool_], value: Ints, *, own: bool) -> tuple[Ints, NDArray[np.bool_]]:
        """Mean over the learned rows of every row's group, unless ``own`` without its own step; and if there is any."""
        count, total = _sums(self.group, is_sample, value)
        if not own:
            own_count, own_total = _sums(self.in_step, is_sample, value)
            count, total = count - own_count, total - own_total
        mean: Ints = np.rint(total / np.maximum(count, 1)).astype(np.int64)
        return mean, count > 0


def _sums(group: NDArray[np.int32], is_sample: NDArray[np.bool_], value: Ints) -> tuple[Ints, Floats]:
    """How many rows of every row's group are learned from, and the sum of their values (exact below 2^53 ns)."""
    size = int(group.max(initial=-1)) + 1
    count: Ints = np.bincount(group[is_sample], minlength=size)
    total = np.bincount(group[is_sample], weights=value[is_sample], minlength=size).astype(np.float64)
    return count[group], total[group]
