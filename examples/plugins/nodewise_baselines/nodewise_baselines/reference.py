"""The reference form: terms inside a node and across nodes kept apart, fitted to relative errors.

No peer's model but a plain yardstick with what the peers lack: synchronisation that saturates in the number of nodes,
and topology. The ring's share (n - 1)/n of an all-reduce is that of R. Thakur, R. Rabenseifner, W. Gropp,
"Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, SyncMode, as_floats

from .form import Curve, lacks_batch, lacks_scale
from .linear_form import LinearCurve, non_negative
from .points import Points
from .rows import Rows

__all__ = ["Reference", "terms"]

_MODES: Final = frozenset({SyncMode.ALLREDUCE})


def terms(rows: Rows) -> Floats:
    """``[1, m, 1{g>1}, 1{n>1}, 1{n>1} g/n, 1{n>1} ln n, g, 1{n>1} (n-1)/n, (g-1)/g]``."""
    n, g, m = rows.nodes, rows.workers, rows.batch_samples
    across = (n > 1).astype(np.float64)
    columns = [
        np.ones(len(g)),
        m,
        (g > 1).astype(np.float64),
        across,
        across * g / n,
        across * np.log(n),
        g,
        across * (n - 1) / n,
        (g - 1) / g,
    ]
    return as_floats(np.stack(columns, axis=1))


@dataclass(frozen=True, slots=True)
class Reference:
    """Non-negative least squares on relative errors.

    Where all runs across nodes used one number of nodes, three terms (``1{n>1}``, ``1{n>1} ln n`` and
    ``1{n>1} (n-1)/n``) coincide, and no run tells whether the step grows beyond it. The first is used: it does not.
    """

    sync_modes: frozenset[SyncMode] = _MODES
    reach: str = "rows of a known batch"

    def lacks(self, points: Points, mode: SyncMode) -> str:  # noqa: ARG002  # the protocol's
        """Batches and two numbers of workers."""
        return lacks_batch(points) or lacks_scale(points)

    def fitted(self, points: Points, mode: SyncMode) -> Curve:  # noqa: ARG002  # the protocol's
        """NNLS."""
        return LinearCurve(terms, non_negative(terms, points, relative=True))
