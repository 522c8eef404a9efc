"""Overlap of all-reduce with the backward pass: the exposed part follows from the times when gradients are ready.

Gradients become ready in the reverse order of the layers. They are exchanged in buckets, one after the other: a bucket
starts when its last gradient is ready and the previous bucket has ended:

    end_k = max(end_(k-1), ready_k) + exchange_k,  exposed = max(0, end of the last - end of the backward pass)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from nodewise.plugin import Floats

__all__ = ["BUCKET_BYTES", "bucket_ends", "exposed_s"]

BUCKET_BYTES: Final = 25.0 * 2**20
"""Gradients that are exchanged together: the default of PyTorch's DistributedDataParallel (S. Li et al., "PyTorch
distributed: experiences on accelerating data parallel training", VLDB 2020)."""


def bucket_ends(parameter_bytes: Floats, bucket_bytes: float = BUCKET_BYTES) -> list[tuple[int, float]]:
    """Return the buckets, last layer first: the layer that completes each bucket, and the bucket's bytes."""
    ends: list[tuple[int, float]] = []
    sum_bytes = 0.0
    for layer in range(len(parameter_bytes) - 1, -1, -1):
        sum_bytes += float(parameter_bytes[layer])
        if sum_bytes >= bucket_bytes or (layer == 0 and sum_bytes > 0.0):
            ends.append((layer, sum_bytes))
            sum_bytes = 0.0
    return ends


def exposed_s(
    backward_s: Floats, buckets: list[tuple[int, float]], exchange_s: Callable[[float], Floats]
) -> tuple[Floats, Floats]:
    """Return the time of the exchange that the backward pass does not hide, and the whole time of the exchange.

    Parameters
    ----------
    backward_s : (L, rows) seconds of each layer's backward pass.
    buckets : of `bucket_ends`.
    exchange_s : (rows,) function that returns the seconds of an exchange of so many bytes.
    """
    # From the last layer to the first: ready[l] = end of the backward pass of layer l.
    ready = np.cumsum(backward_s[::-1], axis=0)[::-1]
    end = np.zeros(backward_s.shape[1])
    whole = np.zeros(backward_s.shape[1])
    for layer, size in buckets:
        seconds = exchange_s(size)
        end = np.maximum(end, ready[layer]) + seconds
        whole = whole + seconds
    return np.maximum(end - ready[0], 0.0), whole
