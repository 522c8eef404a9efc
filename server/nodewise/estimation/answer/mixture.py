"""Mixtures: combine the predictions of several estimators.

The step time is the weighted median of the parts. An outlier moves it at most to the neighbouring prediction, and of
two parts the one with the larger weight answers. The variance of ln(step) is the variance within the parts plus the
variance between them, so disagreement between estimators widens the interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import (
    UNATTRIBUTED,
    Notice,
    Predictions,
    RowRefusal,
    RowStatus,
    bottlenecks_of,
)
from nodewise.estimation.estimators.check import MOST_LOG_SPREAD
from nodewise.estimation.question import MixtureShare

__all__ = ["Part", "mix"]

Mask = NDArray[np.bool_]

MEAN_TO_DEVIATION: Final = float(np.sqrt(np.pi / 2.0))
"""Ratio of the standard deviation of a centered normal variable to the mean of its absolute value."""

ROUNDING: Final = 1e-9
"""Weights that differ by less count as equal."""

_ALONE: Final = ("staleness_mean", "staleness_p95", "memory_bytes", "excess_memory_bytes", "once_s")
"""Optional columns of a prediction."""

_LOST: Final = Refusal(Reason.ESTIMATOR_UNAVAILABLE, "the estimator that answers this row cannot be asked now")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """An estimator's share of a mixture, and its predictions of every row.

    ``weights`` and ``errors`` hold one value for each row, or one for all rows; None = the value of the share. The
    expected error replaces a spread that is not stated.
    """

    share: MixtureShare
    predictions: Predictions
    weights: Floats | None = None
    errors: Floats | None = None

    def weights_of_rows(self) -> Floats:
        """Return the weight of the part in each row."""
        return np.broadcast_to(self.share.weight if self.weights is None else self.weights, len(self.predictions))


def mix(parts: Sequence[Part]) -> Predictions:
    """Combine parts, given largest weight first. Weights are normalised over the parts that answer a row.

    A row does not fit into memory if any part with a weight in it says so. A row that no part answers gets the refusal
    of the first part. An optional column is the mean over the parts that have it. It is left out unless it covers every
    answered row.
    """
    rows = len(parts[0].predictions)
    shares = np.stack([part.weights_of_rows() for part in parts])
    status = np.where(shares > 0.0, np.stack([part.predictions.status for part in parts]), int(RowStatus.REFUSED))
    answers = status == int(RowStatus.ANSWERED)
    too_large = (status == int(RowStatus.INFEASIBLE_MEMORY)).any(axis=0)
    is_answered = answers.any(axis=0) & ~too_large
    weights = shares * answers
    total = weights.sum(axis=0)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=is_answered & (total > 0.0))
    logs = np.stack([_log_steps(part.predictions) for part in parts])
    log_step = _median(logs, weights)
    spreads = np.stack([_deviation(part) for part in parts])
    variance = (weights * (spreads**2 + (logs - log_step) ** 2)).sum(axis=0)
    step_s = np.where(is_answered, np.exp(log_step), 0.0)
    breakdown = _breakdown(parts, weights, step_s)
    furthest = np.max([part.predictions.extrapolation * own for part, own in zip(parts, answers, strict=True)], axis=0)
    names = tuple(breakdown)
    largest = bottlenecks_of(breakdown, rows)

    def mean(columns: Iterable[Floats | None]) -> Floats | None:
        return _mean(columns, weights, is_answered)

    def by_name(group: str) -> dict[str, Floats]:
        columns = [getattr(part.predictions, group) for part in parts]
        means = {name: mean(own.get(name) for own in columns) for name in dict.fromkeys(chain(*columns))}
        return {name: column for name, column in means.items() if column is not None}

    alone: dict[str, Any] = {name: mean(getattr(part.predictions, name) for part in parts) for name in _ALONE}
    unfit = _unfit(parts, status)
    for name in ("memory_bytes", "excess_memory_bytes"):
        alone[name] = _with_unfit(alone[name], [(rows, getattr(result, name)) for rows, result in unfit])
    extra: dict[str, Floats | None] = {**by_name("extra")}
    for name in dict.fromkeys(name for _, result in unfit for name in result.extra if name.startswith("memory_")):
        extra[name] = _with_unfit(extra.get(name), [(rows, result.extra.get(name)) for rows, result in unfit])
    return Predictions(
        status=freeze(np.select([is_answered, too_large], [RowStatus.ANSWERED, RowStatus.INFEASIBLE_MEMORY], 2)),
        step_s=freeze(step_s),
        log_spread=freeze(np.minimum(np.sqrt(np.where(is_answered, variance, 0.0)), MOST_LOG_SPREAD)),
        breakdown_s=breakdown,
        bottlenecks=names,
        bottleneck_index=freeze(np.where(is_answered, largest, -1)),
        extrapolation=freeze(np.where(is_answered, furthest, 0.0)),
        utilisation=by_name("utilisation"),
        extra={name: column for name, column in extra.items() if column is not None},
        **alone,
        simulated=any(part.predictions.simulated for part in parts),
        refusals=_refusals(~is_answered & ~too_large, parts, shares),
        notices=_notices(parts, weights),
    )


def _median(values: Floats, weights: Floats) -> Floats:
    """Return the weighted median of each column, with half of the weight on either side; the mean of two on a tie."""
    order = np.argsort(values, axis=0, kind="stable")
    values, weights = np.take_along_axis(values, order, axis=0), np.take_along_axis(weights, order, axis=0)
    below = np.cumsum(weights, axis=0)
    half = 0.5 * below[-1]
    columns = np.arange(values.shape[1])
    lower = values[np.argmax(below >= half - ROUNDING, axis=0), columns]
    upper = values[np.argmax(below > half + ROUNDING, axis=0), columns]
    return np.where(half > 0.0, 0.5 * (lower + upper), 0.0)


def _log_steps(predictions: Predictions) -> Floats:
    """Return ln of the step time; 0 in rows that are not answered."""
    return np.log(np.where(predictions.answered, predictions.step_s, 1.0))


def _deviation(part: Part) -> Floats:
    """Return the standard deviation of ln(step): the stated spread, else one derived from the expected error."""
    is_stated = part.predictions.log_spread
    errors = (
        part.share.expected_log_error if part.errors is None else np.where(np.isfinite(part.errors), part.errors, 0.0)
    )
    return np.where(is_stated > 0.0, is_stated, MEAN_TO_DEVIATION * errors)


def _breakdown(parts: Sequence[Part], weights: Floats, step_s: Floats) -> Mapping[str, Floats]:
    """Return the weighted mean of the breakdowns, in seconds, scaled so that they add up to the step time."""
    result: dict[str, Floats] = {}
    for part, weight in zip(parts, weights, strict=True):
        own = part.predictions.step_s
        scale = np.divide(weight * step_s, own, out=np.zeros_like(step_s), where=own > 0.0)
        for name, seconds in (part.predictions.breakdown_s or {UNATTRIBUTED: own}).items():
            result[name] = result.get(name, 0.0) + scale * seconds
    return {name: freeze(np.asarray(seconds)) for name, seconds in result.items()}


def _mean(columns: Iterable[Floats | None], weights: Floats, is_answered: Mask) -> Floats | None:
    """Return the mean of an optional column over the parts that have it; None unless it covers every answered row."""
    total, weight = np.zeros(len(is_answered)), np.zeros(len(is_answered))
    for column, own in zip(columns, weights, strict=True):
        if column is not None:
            total, weight = total + own * column, weight + own
    if (is_answered & (weight == 0.0)).any() or not weight.any():
        return None
    return freeze(np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0))


def _unfit(parts: Sequence[Part], status: NDArray[np.int64]) -> list[tuple[Mask, Predictions]]:
    """Return the rows that do not fit into memory, with the predictions of the first part that says so."""
    result, left = [], np.ones(status.shape[1], dtype=bool)
    for part, notices in zip(parts, status, strict=True):
        own = left & (notices == int(RowStatus.INFEASIBLE_MEMORY))
        if own.any():
            result.append((own, part.predictions))
            left &= ~own
    return result


def _with_unfit(column: Floats | None, unfit: Iterable[tuple[Mask, Floats | None]]) -> Floats | None:
    for rows, own in unfit:
        if own is not None:
            column = freeze(np.where(rows, own, 0.0 if column is None else column))
    return column


def _refusals(is_refused: Mask, parts: Sequence[Part], shares: Floats) -> tuple[RowRefusal, ...]:
    """Return the refusal of each row by the first part with a weight in it, else by the first part that refuses it."""
    result: list[RowRefusal] = []
    left = is_refused.copy()
    for own in (shares > 0.0, np.ones_like(shares, dtype=bool)):
        for part, counts in zip(parts, own, strict=True):
            for refusal in part.predictions.refusals:
                rows = tuple(row for row in refusal.rows if left[row] and counts[row])
                if rows:
                    left[list(rows)] = False
                    result.append(RowRefusal(rows, refusal.refusal))
    if left.any():
        # No part states a refusal: its part is lost, or it answers a row that others find too large.
        result.append(RowRefusal(tuple(np.flatnonzero(left).tolist()), _LOST))
    return tuple(result)


def _notices(parts: Sequence[Part], weights: Floats) -> tuple[Notice, ...]:
    """Return the notices of each part for rows in which it has a weight, prefixed with the estimator's name."""
    result: dict[Notice, None] = {}
    for part, own in zip(parts, weights, strict=True):
        there = own > 0.0
        for notice in part.predictions.notices:
            rows = tuple(row for row in notice.rows if there[row])
            if rows or not notice.rows:
                result[Notice(notice.reason, f"{part.share.estimator}: {notice.message}", rows)] = None
    return tuple(result)
