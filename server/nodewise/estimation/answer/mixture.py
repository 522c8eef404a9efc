"""Mixtures: one answer of several estimators' predictions.

The step is the weighted geometric mean: errors of step times are ratios, and one wild prediction moves a mean of
logarithms least. The variance of ln(step) is that within the parts plus that between them (the law of total variance),
so that estimators that disagree widen the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.predictions import Notice, Predictions, RowRefusal, RowStatus

__all__ = ["Part", "mixed"]

Mask = NDArray[np.bool_]

MEAN_TO_DEVIATION: Final = float(np.sqrt(np.pi / 2.0))
"""Standard deviation of a normal variable over the mean of its absolute value."""

UNNAMED_PART: Final = "step"
"""What a prediction without a breakdown counts as."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """An estimator's predictions of every row asked about, its weight, and how far off it is expected to be.

    ``expected_log_error`` stands for the spread of rows that state none.
    """

    estimator: str
    predictions: Predictions
    weight: float
    expected_log_error: float


def mixed(parts: Sequence[Part]) -> Predictions:
    """One answer of all of them, the heaviest first; each row of those that answer it, weighed anew.

    A row that one of them says does not fit into memory does not fit. A row that none answers is refused as by the
    first. Columns that only some have are of those; where not every answered row has one, there is none.
    """
    first = parts[0].predictions
    rows = len(first)
    status = np.stack([part.predictions.status for part in parts])
    answers = status == int(RowStatus.ANSWERED)
    too_large = (status == int(RowStatus.INFEASIBLE_MEMORY)).any(axis=0)
    answered = answers.any(axis=0) & ~too_large
    weights = np.array([[part.weight] for part in parts]) * answers
    total = weights.sum(axis=0)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=answered & (total > 0.0))
    logs = np.stack([_log_steps(part.predictions) for part in parts])
    log_step = (weights * logs).sum(axis=0)
    spreads = np.stack([_spread(part) for part in parts])
    variance = (weights * (spreads**2 + (logs - log_step) ** 2)).sum(axis=0)
    step_s = np.where(answered, np.exp(log_step), 0.0)
    breakdown = _breakdown(parts, weights, step_s)
    furthest = np.max([part.predictions.extrapolation * own for part, own in zip(parts, answers, strict=True)], axis=0)
    names = tuple(breakdown)
    largest = np.argmax(np.stack(list(breakdown.values())), axis=0) if rows else np.zeros(0, dtype=np.int64)

    def mean(read: Callable[[Predictions], Floats | None]) -> Floats | None:
        return _mean(parts, weights, answered, read)

    unfit = _unfit(parts, too_large)
    return Predictions(
        status=freeze(np.select([answered, too_large], [RowStatus.ANSWERED, RowStatus.INFEASIBLE_MEMORY], 2)),
        step_s=freeze(step_s),
        log_spread=freeze(np.sqrt(np.where(answered, variance, 0.0))),
        breakdown_s=breakdown,
        bottlenecks=names,
        bottleneck_index=freeze(np.where(answered, largest, -1)),
        extrapolation=freeze(np.where(answered, furthest, 0.0)),
        utilisation=_by_name(parts, weights, answered, lambda found: found.utilisation),
        staleness_mean=mean(lambda found: found.staleness_mean),
        staleness_p95=mean(lambda found: found.staleness_p95),
        memory_bytes=_with_unfit(mean(lambda found: found.memory_bytes), unfit, "memory_bytes"),
        excess_memory_bytes=_with_unfit(mean(lambda found: found.excess_memory_bytes), unfit, "excess_memory_bytes"),
        once_s=mean(lambda found: found.once_s),
        extra=_by_name(parts, weights, answered, lambda found: found.extra),
        refusals=_refusals(first, ~answered & ~too_large, parts),
        notices=_notices(parts, weights),
    )


def _log_steps(predictions: Predictions) -> Floats:
    """Ln of the step; 0 in rows that are not answered."""
    return np.log(np.where(predictions.answered, predictions.step_s, 1.0))


def _spread(part: Part) -> Floats:
    """Deviation of ln(step): what is stated, else what is expected."""
    stated = part.predictions.log_spread
    return np.where(stated > 0.0, stated, MEAN_TO_DEVIATION * part.expected_log_error)


def _breakdown(parts: Sequence[Part], weights: Floats, step_s: Floats) -> Mapping[str, Floats]:
    """Shares of the step, weighed as the answers are; they add up to the step again."""
    found: dict[str, Floats] = {}
    for part, weight in zip(parts, weights, strict=True):
        own = part.predictions.step_s
        scale = np.divide(weight * step_s, own, out=np.zeros_like(step_s), where=own > 0.0)
        for name, seconds in (part.predictions.breakdown_s or {UNNAMED_PART: own}).items():
            found[name] = found.get(name, 0.0) + scale * seconds
    return {name: freeze(np.asarray(seconds)) for name, seconds in found.items()}


def _mean(
    parts: Sequence[Part], weights: Floats, answered: Mask, read: Callable[[Predictions], Floats | None]
) -> Floats | None:
    """Mean of an optional column over the parts that have it; None unless it is there for every answered row."""
    total, weight = np.zeros(len(answered)), np.zeros(len(answered))
    for part, own in zip(parts, weights, strict=True):
        column = read(part.predictions)
        if column is not None:
            total, weight = total + own * column, weight + own
    if (answered & (weight == 0.0)).any() or not weight.any():
        return None
    return freeze(np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0))


def _by_name(
    parts: Sequence[Part],
    weights: Floats,
    answered: Mask,
    read: Callable[[Predictions], Mapping[str, Floats]],
) -> Mapping[str, Floats]:
    names = dict.fromkeys(name for part in parts for name in read(part.predictions))
    found = {}
    for name in names:

        def named(each: Predictions, name: str = name) -> Floats | None:
            return read(each).get(name)

        column = _mean(parts, weights, answered, named)
        if column is not None:
            found[name] = column
    return found


def _unfit(parts: Sequence[Part], too_large: Mask) -> list[tuple[Mask, Predictions]]:
    """Rows that do not fit into memory, with whom says so first."""
    found, left = [], too_large.copy()
    for part in parts:
        own = left & (part.predictions.status == int(RowStatus.INFEASIBLE_MEMORY))
        if own.any():
            found.append((own, part.predictions))
            left &= ~own
    return found


def _with_unfit(column: Floats | None, unfit: list[tuple[Mask, Predictions]], name: str) -> Floats | None:
    for rows, predictions in unfit:
        own: Floats | None = getattr(predictions, name)
        if own is not None:
            column = freeze(np.where(rows, own, 0.0 if column is None else column))
    return column


def _refusals(first: Predictions, refused: Mask, parts: Sequence[Part]) -> tuple[RowRefusal, ...]:
    """Of each refused row what the first of them says that has a word on it."""
    found: list[RowRefusal] = []
    left = refused.copy()
    for predictions in (first, *(part.predictions for part in parts[1:])):
        for refusal in predictions.refusals:
            rows = tuple(row for row in refusal.rows if left[row])
            if rows:
                left[list(rows)] = False
                found.append(RowRefusal(rows, refusal.refusal))
    return tuple(found)


def _notices(parts: Sequence[Part], weights: Floats) -> tuple[Notice, ...]:
    """What any of them says of rows that it takes part in, and who says it."""
    found: dict[Notice, None] = {}
    for part, own in zip(parts, weights, strict=True):
        there = own > 0.0
        for notice in part.predictions.notices:
            rows = tuple(row for row in notice.rows if there[row])
            if rows or not notice.rows:
                found[Notice(notice.reason, f"{part.estimator}: {notice.message}", rows)] = None
    return tuple(found)
