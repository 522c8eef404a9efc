"""What a published model has to bring to become an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from nodewise.plugin import Floats, SyncMode

from .points import Points
from .rows import Rows

__all__ = ["LEAST_STEP_S", "Curve", "Form", "lacks_batch", "lacks_scale"]

Curve = Callable[[Rows], Floats]
"""Seconds per step of each row; NaN where the form says nothing of it."""

LEAST_STEP_S = 1e-6
"""No form predicts a shorter step."""


class Form(Protocol):
    """A published equation with its rule of fitting."""

    @property
    def sync_modes(self) -> frozenset[SyncMode]:
        """Ways of exchanging gradients that the equation covers."""
        ...

    @property
    def reach(self) -> str:
        """Which rows the fitted curve answers, in words for people."""
        ...

    def lacks(self, points: Points, mode: SyncMode) -> str:
        """What the points lack for a fit; empty = nothing."""
        ...

    def fitted(self, points: Points, mode: SyncMode) -> Curve:
        """Fit the equation to points that lack nothing."""
        ...


def lacks_batch(points: Points) -> str:
    """Whether a batch is missing somewhere."""
    return "" if bool((points.rows.batch_samples > 0).all()) else "the batch of every run"


def lacks_scale(points: Points) -> str:
    """Whether nothing tells how the step changes with the number of workers."""
    return "" if len(np.unique(points.rows.workers)) > 1 else "runs with two different numbers of workers"
