"""Pollux: its fit, with the rules for constants that the runs do not identify.

References
----------
A. Qiao et al., "Pollux: Co-adaptive cluster scheduling for goodput-optimized deep learning", OSDI 2021; the rules and
the start as published in petuum/adaptdl (Apache-2.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from scipy.optimize import Bounds, minimize

from nodewise.plugin import Floats, SyncMode, as_floats

from .batch_curve import BatchCurve
from .form import Curve, lacks_batch
from .points import Points
from .pollux_equations import ALPHA_C, ALPHA_N, ALPHA_R, BETA_N, BETA_R, GAMMA, SMALL, Loss, step_s
from .rows import Rows

__all__ = ["Pollux", "constants_of", "scaled_starts", "sync_s_of"]

_MODES: Final = frozenset({SyncMode.ALLREDUCE})
_START: Final = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
"""Pollux' own: seconds and seconds per sample or GPU, and gamma."""
_SCALED: Final = ((0.05, 0.5, 0.9), (0.02, 0.5), (1.2, 3.0))
"""Shares of a step that start as constant and as network, and gammas: the searches spread out from these."""
_SLOPE: Final = 0.1
"""Share of the network's time that starts as growing with the GPUs."""
_MOST_GAMMA: Final = 10.0
_LEAST_SYNC_S: Final = 1e-6
_MOST_SYNC: Final = 0.95
"""Share of a step that synchronisation can be."""
_ACROSS_INSIDE: Final = 1.1
"""Crossing nodes is taken to cost at least this many times what staying inside one does."""


@dataclass(frozen=True, slots=True)
class Pollux:
    """Pollux' throughput model.

    It needs the part of the step that is not synchronisation. Where the runs do not state ``exposed_sync_s`` it is
    derived: the time beyond one GPU's at the same batch (see :func:`sync_s_of`). A single run of one GPU is enough: as
    in Pollux the network then costs nothing, which is perfect scaling.

    The loss has several minima, and the published fit searches from one start: which minimum it ends in may hang on
    rounding. With ``restarts`` it searches from :func:`scaled_starts` as well and takes the lowest minimum found.
    """

    restarts: bool = False
    sync_modes: frozenset[SyncMode] = _MODES
    reach: str = "rows of a known batch"

    def lacks(self, points: Points, mode: SyncMode) -> str:  # noqa: ARG002  # the protocol's
        """Batches, and one GPU's runs unless all runs state their synchronisation."""
        if lacks_batch(points):
            return lacks_batch(points)
        derivable = bool((points.rows.workers == 1).any() or np.isfinite(points.sync_s).all())
        return "" if derivable else "a run of one worker, or the exposed synchronisation of every run"

    def fitted(self, points: Points, mode: SyncMode) -> Curve:  # noqa: ARG002  # the protocol's
        """L-BFGS-B from each start."""
        return _PolluxCurve(constants_of(points, restarts=self.restarts))


@dataclass(frozen=True, slots=True, eq=False)
class _PolluxCurve:
    constants: Floats

    def __call__(self, rows: Rows) -> Floats:
        return as_floats(np.where(rows.batch_samples > 0, step_s(self.constants, rows), np.nan))


def sync_s_of(points: Points) -> Floats:
    """Exposed synchronisation: as measured, else the step less one GPU's step at the same batch.

    One GPU's curve is piecewise linear in the batch; with a single batch it is proportional to it. The difference is
    kept within 1 microsecond and 95 % of the step.
    """
    measured = points.sync_s
    alone = points.where(points.rows.workers == 1)
    if len(alone):
        one_gpu_s = BatchCurve.of(alone).at(points.rows.batch_samples)
        measured = as_floats(np.where(np.isfinite(measured), measured, points.step_s - one_gpu_s))
    return as_floats(np.clip(measured, _LEAST_SYNC_S, _MOST_SYNC * points.step_s))


def constants_of(points: Points, *, restarts: bool) -> Floats:
    """The seven constants of the lowest minimum found."""
    compute_s = as_floats(points.step_s - sync_s_of(points))
    start, lower, upper = np.array(_START), np.full(7, SMALL), np.full(7, np.inf)
    lower[GAMMA], upper[GAMMA] = 1.0, _MOST_GAMMA
    for place, value in _not_identified(points.rows, compute_s).items():
        start[place] = lower[place] = upper[place] = value
    loss, bounds = Loss(points.rows, compute_s, points.step_s), Bounds(lower, upper, keep_feasible=True)
    starts = [start, *(np.clip(other, lower, upper) for other in scaled_starts(points))] if restarts else [start]
    found = [minimize(loss, each, jac=True, bounds=bounds, method="L-BFGS-B") for each in starts]
    constants = np.array(min(found, key=lambda result: float(result.fun)).x)
    if not bool((points.rows.nodes > 1).any()):
        constants[ALPHA_N] = max(constants[ALPHA_N], _ACROSS_INSIDE * constants[ALPHA_R])
        constants[BETA_N] = max(constants[BETA_N], _ACROSS_INSIDE * constants[BETA_R])
    return as_floats(constants)


def scaled_starts(points: Points) -> list[Floats]:
    """Starts of the size of the job's own steps, which Pollux' seconds and tenths may be far from.

    All combinations of three constant shares of the shortest step, two network shares of the median step, and two
    gammas.
    """
    shortest_s, median_s = float(points.step_s.min()), float(np.median(points.step_s))
    batch, most = float(np.median(points.rows.batch_samples)), float(points.rows.workers.max())
    starts = []
    for constant, network, gamma in product(*_SCALED):
        alpha_c, beta_c = constant * shortest_s, (1.0 - constant) * shortest_s / batch
        alpha, beta = network * median_s, _SLOPE * network * median_s / most
        starts.append(as_floats([alpha_c, beta_c, alpha, beta, alpha, beta, gamma]))
    return starts


def _not_identified(rows: Rows, compute_s: Floats) -> dict[int, float]:
    """Constants that the runs say nothing of, and what Pollux fixes them at."""
    fixed: dict[int, float] = {}
    if len(np.unique(rows.batch_samples)) == 1:
        fixed[ALPHA_C] = float(compute_s.mean()) / 2.0
    if not bool((rows.nodes > 1).any()):
        fixed |= {ALPHA_N: SMALL, BETA_N: SMALL}
    if not bool(((rows.nodes == 1) & (rows.workers > 1)).any()):
        fixed |= {ALPHA_R: SMALL, BETA_R: SMALL}
    if not bool((rows.workers > 2).any()):
        fixed |= {BETA_N: SMALL, BETA_R: SMALL}
    return fixed
