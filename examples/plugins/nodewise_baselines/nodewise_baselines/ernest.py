"""Ernest: computation that shrinks with the machines, plus communication that grows with them.

References
----------
S. Venkataraman et al., "Ernest: Efficient performance prediction for large-scale advanced analytics", NSDI 2016:
``time = t0 + t1 s/k + t2 k + t3 ln k`` for a share s of the input on k machines, constants by non-negative least
squares; as published in amplab/ernest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, SyncMode, as_floats

from .form import Curve, lacks_batch, lacks_scale
from .linear_form import Features, LinearCurve, non_negative
from .points import Points
from .rows import Rows

__all__ = ["Ernest", "per_gpu", "per_node"]

_MODES: Final = frozenset({SyncMode.ALLREDUCE})


def per_gpu(rows: Rows) -> Floats:
    """Terms with k = GPUs g: ``[1, m, g, ln g]``. The input per machine s/k is the local batch m."""
    g, m = rows.workers, rows.batch_samples
    return as_floats(np.stack([np.ones(len(g)), m, g, np.log(g)], axis=1))


def per_node(rows: Rows) -> Floats:
    """Terms with k = nodes n: ``[1, m g/n, n, ln n]``. The input per machine is that of all GPUs of a node."""
    n, g, m = rows.nodes, rows.workers, rows.batch_samples
    return as_floats(np.stack([np.ones(len(g)), m * g / n, n, np.log(n)], axis=1))


@dataclass(frozen=True, slots=True)
class Ernest:
    """Ernest's form by GPUs or by nodes, least squares in seconds as its authors fit it.

    It is fitted from two points on, as long as they differ in workers: where there are fewer points than terms, the
    constants are those that NNLS finds first.
    """

    features: Features
    sync_modes: frozenset[SyncMode] = _MODES
    reach: str = "rows of a known batch"

    def lacks(self, points: Points, mode: SyncMode) -> str:  # noqa: ARG002  # the protocol's
        """Batches and two numbers of workers."""
        return lacks_batch(points) or lacks_scale(points)

    def fitted(self, points: Points, mode: SyncMode) -> Curve:  # noqa: ARG002  # the protocol's
        """NNLS."""
        return LinearCurve(self.features, non_negative(self.features, points, relative=False))
