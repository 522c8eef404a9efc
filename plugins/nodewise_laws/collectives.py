"""Costs of collective operations by latency and bandwidth (the alpha-beta model).

`size_bytes` is the full tensor in every formula: what each rank ends with (all-gather), starts with (reduce-scatter),
or both (all-reduce). `ranks` take part, `latency_s` passes per message, a rank sends `bytes_per_s` in one direction.
A single rank does not communicate: 0 s. Every function takes numbers or arrays that broadcast, and checks nothing: they
are the innermost part of searches over millions of configurations.

Sources: A. N. Kahira et al., "An oracle for guiding large-scale model/hybrid parallel training of convolutional neural
networks", HPDC 2021 (ring); P. Sanders, J. Speck and J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast,
reduction and scan", Parallel Computing 35(12), 2009 (trees); NVIDIA nccl-tests, "Performance reported by NCCL tests"
(bus bandwidth).
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray

__all__ = [
    "affine_s",
    "hierarchical_all_reduce_s",
    "interpolated_s",
    "quickest_all_reduce_s",
    "ring_all_gather_s",
    "ring_all_reduce_s",
    "ring_bus_bytes_per_s",
    "tree_all_reduce_s",
]

Value = TypeVar("Value", float, FloatArray)

TREE_SHARE: Final = 0.92
"""Of a ring's bandwidth that a tree reaches: NCCL's own model of its algorithms (`tuning.cc`)."""


def ring_all_reduce_s(size_bytes: Value, ranks: Value, latency_s: float, bytes_per_s: Value) -> Value:
    """All-reduce around a ring: a reduce-scatter, then an all-gather."""
    return 2.0 * (ranks - 1.0) * (latency_s + size_bytes / (ranks * bytes_per_s))


def ring_all_gather_s(size_bytes: Value, ranks: Value, latency_s: float, bytes_per_s: Value) -> Value:
    """All-gather around a ring; a reduce-scatter takes as long."""
    return (ranks - 1.0) * (latency_s + size_bytes / (ranks * bytes_per_s))


def tree_all_reduce_s(size_bytes: Value, ranks: Value, latency_s: float, bytes_per_s: Value) -> Value:
    """All-reduce up and down a pipelined double binary tree."""
    several = np.minimum(ranks - 1.0, 1.0)
    seconds: Value = 2.0 * np.ceil(np.log2(ranks)) * latency_s + several * 2.0 * size_bytes / bytes_per_s
    return seconds


def quickest_all_reduce_s(size_bytes: Value, ranks: Value, latency_s: float, bytes_per_s: Value) -> Value:
    """Ring or tree, whichever is quicker, as collective libraries choose: many ranks and few bytes go by trees."""
    ring = ring_all_reduce_s(size_bytes, ranks, latency_s, bytes_per_s)
    tree = tree_all_reduce_s(size_bytes, ranks, latency_s, TREE_SHARE * bytes_per_s)
    seconds: Value = np.minimum(ring, tree)
    return seconds


def hierarchical_all_reduce_s(
    size_bytes: Value,
    ranks_per_node: Value,
    nodes: Value,
    node_latency_s: float,
    node_bytes_per_s: Value,
    network_latency_s: float,
    network_bytes_per_s: Value,
) -> Value:
    """Reduce-scatter inside nodes, as many all-reduces across nodes as each has ranks, all-gather inside nodes.

    `network_bytes_per_s` is what each of these all-reduces across nodes gets: where they share a node's adapters, its
    share.
    """
    inside = ring_all_reduce_s(size_bytes, ranks_per_node, node_latency_s, node_bytes_per_s)
    across = ring_all_reduce_s(size_bytes / ranks_per_node, nodes, network_latency_s, network_bytes_per_s)
    return inside + across


def ring_bus_bytes_per_s(size_bytes: Value, ranks: Value, seconds: Value) -> Value:
    """What each link of a ring carried in an all-reduce that took `seconds`: the bus bandwidth of nccl-tests."""
    return 2.0 * (ranks - 1.0) / ranks * size_bytes / seconds


def interpolated_s(size_bytes: npt.ArrayLike, log_sizes: FloatArray, log_seconds: FloatArray) -> FloatArray:
    """Seconds of a measured collective of other sizes.

    Linear between the logarithms of measured sizes. Below the smallest the time is that of the smallest, for latency
    is all that is left; above the largest it grows in proportion.

    Parameters
    ----------
    size_bytes : (...) numbers above 0.
    log_sizes : (K,) natural logarithms of measured sizes, ascending.
    log_seconds : (K,) natural logarithms of measured seconds.
    """
    size = np.log(size_bytes)
    beyond = np.maximum(size - log_sizes[-1], 0.0)
    return np.asarray(np.exp(np.interp(size, log_sizes, log_seconds) + beyond))


def affine_s(sizes: npt.ArrayLike, seconds: npt.ArrayLike) -> tuple[float, float]:
    """Seconds to start with, and per unit of size, of measured times: t = a + S b, both at least 0.

    Least squares of relative errors: a table's largest sizes have no more say than its smallest.

    Parameters
    ----------
    sizes, seconds : (K,) numbers above 0, at least two sizes that differ.
    """
    rate = 1.0 / np.asarray(seconds, dtype=float)
    scaled = np.asarray(sizes, dtype=float) * rate
    (start, slope), *_ = np.linalg.lstsq(np.stack([rate, scaled], axis=1), np.ones(len(rate)), rcond=None)
    if start < 0.0:
        start, slope = 0.0, scaled.sum() / (scaled**2).sum()
    elif slope < 0.0:
        start, slope = rate.sum() / (rate**2).sum(), 0.0
    return float(start), float(slope)
