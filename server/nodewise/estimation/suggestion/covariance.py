"""Covariance of a model's errors: as the model states it, or as assumed."""

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
"""Distance in ln(workers), and in ln(batch), at which the assumed correlation of errors falls to 1/e."""

DOUBT_PER_SCALE: Final = 0.1
"""Standard deviation of ln(step time) for each factor of e beyond the largest measured scale (15 % at 4 times). Where
no run has tested the model, it may be wrong by an unknown power of the scale; this is the deviation of that power. It
is an assumption, of the size of the errors of estimators at 2 to 4 times their evidence (docs/accuracy.md)."""

KNOWN_VARIANCE: Final = 1e-24
"""Variance relative to the largest below which only rounding is left: ln(step time) is known to a part in 10^12."""
SYMMETRY_TOLERANCE: Final = 1e-6
"""Asymmetry and negative eigenvalues of a model's covariance that count as rounding, relative to the largest
variance."""


@dataclass(frozen=True, slots=True, eq=False)
class LogCovariance:
    """Covariance of the errors of the answered rows.

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
    """Return the covariance of a model's errors in the answered rows: as the model states it, else as assumed.

    Parameters
    ----------
    fit : FittedModel
        The model with its calibration factor. The spreads of the answer are already multiplied by it.
    support : SupportedRows
        The rows that the model was asked about.

    Raises
    ------
    NodewiseError
        ESTIMATOR_FAILED, ESTIMATOR_INVALID_RESULT naming the fault, or the error that the model raises.
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
    """Return the fault of a model's covariance; None = it is valid."""
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
    """Return a model's noise of a measurement if it is valid."""
    if not isinstance(value, float | int) or not 0.0 <= value <= MOST_LOG_SPREAD:
        raise ImpossibleAnswerError(f"measurement_log_spread must be a number from 0 to {MOST_LOG_SPREAD:g}")
    return float(value)


def assumed_covariance(configurations: Configurations, log_spread: Floats) -> LogCovariance:
    """Return an assumed covariance of errors, for models that state none: the closer two rows in scale, the larger.

    ``cov_ij = spread_i spread_j exp(-d_ij)`` with ``d_ij = |ln(workers_i / workers_j)| / ln 4 + |ln(batch_i / batch_j)|
    / ln 4``, and 1 more for a different device, sync mode, or number of servers. An unknown batch per worker counts as
    one sample, and as different from any known one.

    A model is wrong in a constant (a bandwidth, a compute time) that many rows share. Its errors are alike where the
    same constant dominates, and that changes with the ratio of scales, not with their difference. With a correlation of
    1/e at four times the workers, a measurement at 8 workers tells much about 6 and 12 and little about 1 and 64. No
    source has measured that length. It is an assumption between independent errors, for which every row would have to
    be measured, and equal errors, for which one row would suffice. The covariance is positive semi-definite, as a
    product of exponential kernels of one dimension each.

    Parameters
    ----------
    configurations : Configurations
        Resolved rows.
    log_spread : float
        Standard deviation of ln(step time) of each row.
    """
    rates = configurations.rates
    batch = rates.samples_per_step / rates.minibatches_per_step
    kinds = (configurations.device_index, configurations.sync_mode, configurations.parameter_servers, batch > 0)
    other = np.any([np.not_equal.outer(kind, kind) for kind in kinds], axis=0)
    scales = (np.log(np.maximum(configurations.workers, 1)), np.log(np.where(batch > 0, batch, 1.0)))
    distance = other + sum(np.abs(np.subtract.outer(scale, scale)) for scale in scales) / CORRELATION_SCALE
    return LogCovariance(as_floats(np.outer(log_spread, log_spread) * np.exp(-distance)))


def add_doubt(covariance: LogCovariance, ratios: Floats) -> LogCovariance:
    """Add the uncertainty of extrapolation: an unknown power of the scale, which all rows beyond the evidence share.

    The covariance of a model that states no spread is not changed.

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
    """Return the covariance that remains after one measurement of a row.

    ``C - c c' / (c_row + noise^2)`` with ``c`` the row's column: the normal distribution conditioned on the
    measurement, whatever its result. Rounding errors are removed: the result is symmetric and no variance is below 0. A
    row whose variance is only rounding leaves the covariance as it is.
    """
    column = covariance[:, row]
    total = column[row] + noise**2
    if total <= KNOWN_VARIANCE * covariance.diagonal().max():
        return covariance
    left: Floats = covariance - np.outer(column, column) / total
    left = 0.5 * (left + left.T)
    np.fill_diagonal(left, np.maximum(left.diagonal(), 0.0))
    return left
