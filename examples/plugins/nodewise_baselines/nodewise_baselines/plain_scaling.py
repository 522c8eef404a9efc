"""The answer that needs no model: perfect scaling, which is what Sia assumes of a job at its first scale-up.

References
----------
S. Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling", SOSP 2023 (perfect
scaling as the first guess, section on bootstrapping).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.plugin import Floats, SyncMode

from .batch_curve import BatchCurve
from .form import Curve
from .points import Points
from .rows import Rows

__all__ = ["PerfectScaling"]

_MODES: Final = frozenset({SyncMode.ALLREDUCE, SyncMode.SYNC, SyncMode.ASYNC})
_REACH: Final = "rows of a known batch, or of the one unknown batch that was measured"


@dataclass(frozen=True, slots=True)
class PerfectScaling:
    """``T(n, g, m) = T(n0, g0, m)``: a worker's step takes what it took in the smallest run, at equal local batch m.

    The smallest run has the fewest workers g0, then the fewest nodes n0. Between measured batches the step time is
    piecewise linear. With one measured batch it is proportional to m, so that a job of constant global batch M speeds
    up by ``g / g0`` exactly. Parameter servers change nothing.
    """

    sync_modes: frozenset[SyncMode] = _MODES
    reach: str = _REACH

    def lacks(self, points: Points, mode: SyncMode) -> str:  # noqa: ARG002  # the protocol's
        """One run is enough."""
        return "" if len(points) else "a run"

    def fitted(self, points: Points, mode: SyncMode) -> Curve:  # noqa: ARG002  # the protocol's
        """The curve of the smallest run."""
        fewest = points.where(points.rows.workers == points.rows.workers.min())
        return _OfBatch(BatchCurve.of(fewest.where(fewest.rows.nodes == fewest.rows.nodes.min())))


@dataclass(frozen=True, slots=True, eq=False)
class _OfBatch:
    curve: BatchCurve

    def __call__(self, rows: Rows) -> Floats:
        return self.curve.at(rows.batch_samples)
