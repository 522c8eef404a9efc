"""How the errors of a model's answers hang together: as it says, or as is assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Floats, as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Options
from nodewise.estimation.estimators.check import MOST_LOG_SPREAD
from nodewise.estimation.estimators.supported_rows import SupportedRows
from nodewise.estimation.fit.fitted_model import FittedModel
from nodewise.estimation.question import Answer
from nodewise.hosting.calls import ImpossibleAnswerError, call, has, read, unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import MEASUREMENT_LOG_SPREAD, CovariantModel, EstimatorRecord

__all__ = ["LogCovariance", "add_doubt", "assumed_covariance", "covariance_of", "measure", "wrong_with"]

CORRELATION_SCALE: Final = math.log(4.0)
"""Distance in ln(workers), and in ln(batch), over which assumed errors keep 1/e of their correlation."""

DOUBT_PER_SCALE: Final = 0.1
"""Standard deviation of ln(step time) for each factor of e beyond the largest measured scale (15 % at 4 times): of the
power of the scale by which a model may be wrong where no run has tested it. An assumption, of the size of the errors
that estimators make at 2 to 4 times their evidence (docs/accuracy.md)."""

KNOWN_VARIANCE: Final = 1e-24
"""Variance relative to the largest below which nothing but rounding is left: of ln(step time) to a part in 10^12."""
SYMMETRY_TOLERANCE: Final = 1e-6
"""Asymmetry and negative eigenvalues of a model's covariance that count as rounding, per largest variance."""


@dataclass(frozen=True, slots=True, eq=False)
class LogCovariance:
    """How the errors of the answered rows hang together.

    Attributes
    ----------
    values : float, of shape (answered rows, answered rows)
        Covariance of ln(true step time) - ln(predicted step time).
    measurement_log_spread : float
        Standard deviation of one measurement of ln(step time).
    """

    values: Floats
    measurement_log_spread: float = MEASUREMENT_LOG_SPREAD


def covariance_of(
    plugin: LoadedPlugin[EstimatorRecord],
    fit: FittedModel,
    support: SupportedRows,
    answer: Answer,
    options: Options,
) -> LogCovariance:
    """How the errors of a model's answered rows hang together: as it says, else as is assumed.

    Parameters
    ----------
    fit : FittedModel
        The model, and what its spreads are multiplied by; those of the answer are already.
    support : SupportedRows
        What the model was asked about.

    Raises
    ------
    NodewiseError
        ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT naming what is wrong, or what the model raises.
    """
    model = fit.model
    answered_rows = as_ints(np.flatnonzero(answer.predictions.answered))
    if not has(plugin, model, CovariantModel, "log_covariance"):
        return assumed_covariance(
            answer.configurations.take(answered_rows), answer.predictions.log_spread[answered_rows]
        )
    rows = support.configurations
    check = unless_wrong(lambda values: wrong_with(values, len(rows)))
    values: Floats = call(plugin, model, "log_covariance", rows, options, check=check)
    noise: float = read(plugin, model, "measurement_log_spread", check=_noise, method="log_covariance")
    places = answered_rows if support.rows is None else np.searchsorted(support.rows, answered_rows)
    return LogCovariance(as_floats(values[np.ix_(places, places)] * fit.calibration.factor**2), noise)


def wrong_with(values: Any, rows: int) -> str | None:
    """What is wrong with a model's covariance; None = nothing."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return f"log_covariance is a {type(values).__name__} instead of an array of floats"
    if values.shape != (rows, rows):
        return f"log_covariance has shape {values.shape} for {rows} rows"
    if not np.isfinite(values).all():
        return "log_covariance is not finite"
    most = float(values.diagonal().max(initial=0.0))
    if most > MOST_LOG_SPREAD**2:
        return f"log_covariance has a variance above {MOST_LOG_SPREAD:g} squared"
    if np.abs(values - values.T).max(initial=0.0) > SYMMETRY_TOLERANCE * most:
        return "log_covariance is not symmetric"
    if rows and np.linalg.eigvalsh(values).min() < -SYMMETRY_TOLERANCE * most:
        return "log_covariance is not positive semi-definite"
    return None


def _noise(value: Any) -> float:
    """A model's noise of a measurement, if it can be."""
    if not isinstance(value, float | int) or not 0.0 <= value <= MOST_LOG_SPREAD:
        raise ImpossibleAnswerError(f"measurement_log_spread must be a number from 0 to {MOST_LOG_SPREAD:g}")
    return float(value)


def assumed_covariance(configurations: Configurations, log_spread: Floats) -> LogCovariance:
    """How errors hang together where the model does not say: the more, the closer two rows are in scale.

    ``cov_ij = spread_i spread_j exp(-d_ij)`` with ``d_ij = |ln(workers_i / workers_j)| / ln 4 + |ln(batch_i / batch_j)|
    / ln 4``, and 1 more for another device, synchronisation, or number of servers; a batch per worker that is not known
    counts as one sample, and as another than any known one. A model is wrong in a constant (a
    bandwidth, a compute time) that many rows share, so its errors are alike where the same constant dominates, and that
    changes with the ratio of scales, not with their difference: a correlation of 1/e at four times the workers lets a
    measurement at 8 workers say much of 6 and 12 and little of 1 and 64. No source has measured that length; it is an
    assumption between independent errors, which would have every row measured, and equal ones, which would let one row
    stand for all. It is positive semi-definite, as a product of exponential kernels of one dimension each.

    Parameters
    ----------
    configurations : Configurations
        Resolved rows.
    log_spread : float
        Standard deviation of ln(step time) of each.
    """
    rates = configurations.rates
    batch = rates.samples_per_step / rates.minibatches_per_step
    kinds = (configurations.device_index, configurations.sync_mode, configurations.parameter_servers, batch > 0)
    other = np.any([np.not_equal.outer(kind, kind) for kind in kinds], axis=0)
    scales = (np.log(np.maximum(configurations.workers, 1)), np.log(np.where(batch > 0, batch, 1.0)))
    distance = other + sum(np.abs(np.subtract.outer(scale, scale)) for scale in scales) / CORRELATION_SCALE
    return LogCovariance(as_floats(np.outer(log_spread, log_spread) * np.exp(-distance)))


def add_doubt(covariance: LogCovariance, ratios: Floats) -> LogCovariance:
    """The same with the doubt of extrapolating: one power of the scale, unknown, that all rows beyond it share.

    A model that states no spread is left as it is.

    Parameters
    ----------
    ratios : float
        Scale of each row over the largest measured one, at least 1.
    """
    if not covariance.values.any():
        return covariance
    doubt = DOUBT_PER_SCALE * np.log(ratios)
    return replace(covariance, values=as_floats(covariance.values + np.outer(doubt, doubt)))


def measure(covariance: Floats, row: int, noise: float) -> Floats:
    """The covariance that is left when a row was measured once.

    ``C - c c' / (c_row + noise^2)`` with ``c`` the row's column: the normal distribution conditioned on the
    measurement, whatever it finds. Rounding is cleared: symmetric, no variance below 0. A row that is known as well as
    rounding lets it be teaches nothing.
    """
    column = covariance[:, row]
    total = column[row] + noise**2
    if total <= KNOWN_VARIANCE * covariance.diagonal().max():
        return covariance
    left: Floats = covariance - np.outer(column, column) / total
    left = 0.5 * (left + left.T)
    np.fill_diagonal(left, np.maximum(left.diagonal(), 0.0))
    return left
