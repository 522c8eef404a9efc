"""What a model answers is checked before anyone sees it: shapes, finiteness, signs, sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Notice, Predictions, RowStatus

__all__ = ["checked"]

BREAKDOWN_TOLERANCE = 1e-6
"""Relative difference allowed between a step and the sum of its parts: rounding over a few dozen additions."""

_OPTIONAL = ("staleness_mean", "staleness_p95", "memory_bytes", "excess_memory_bytes")
_STATUSES = tuple(int(status) for status in RowStatus)
_FIXED = 3
"""Columns of numbers before those of the breakdown."""

Columns = Mapping[str, Any]


def checked(predictions: Any, configurations: Configurations, estimator: str) -> Predictions:
    """The predictions, if they can be true.

    Raises
    ------
    NodewiseError
        ESTIMATOR_INVALID_RESULT, saying what is wrong with which column.
    """
    if isinstance(predictions, Predictions):
        try:
            wrong = _wrong_with(predictions, len(configurations))
        except (AttributeError, TypeError, ValueError) as error:
            # Columns of strings, a breakdown that is no mapping: not worth a check each, but no fault of the server's.
            wrong = f"its columns cannot be read ({type(error).__name__})"
        if wrong is None:
            return predictions
    else:
        wrong = f"a {type(predictions).__name__} instead of Predictions"
    raise NodewiseError(
        Reason.ESTIMATOR_INVALID_RESULT,
        f"estimator {estimator!r} answered with something that cannot be true: {wrong}",
        {"estimator": estimator, "problem": wrong},
    )


def _wrong_with(predictions: Predictions, rows: int) -> str | None:
    columns: dict[str, Any] = {
        "step_s": predictions.step_s,
        "log_spread": predictions.log_spread,
        "extrapolation": predictions.extrapolation,
        **{f"breakdown_s[{name}]": column for name, column in predictions.breakdown_s.items()},
        **{f"utilisation[{name}]": column for name, column in predictions.utilisation.items()},
    }
    for name in _OPTIONAL:
        column = getattr(predictions, name)
        if column is not None:
            columns[name] = column
    wrong = _wrong_shape(columns, predictions, rows)
    if wrong is not None or not rows:
        return wrong
    stacked = np.concatenate(list(columns.values())).reshape(-1, rows)
    return _wrong_values(columns, stacked) or _wrong_rows(predictions, stacked)


def _wrong_shape(columns: Columns, predictions: Predictions, rows: int) -> str | None:
    indexes: Columns = {"status": predictions.status, "bottleneck_index": predictions.bottleneck_index}
    for name, column in (*columns.items(), *indexes.items()):
        if not isinstance(column, np.ndarray):
            return f"{name} is a {type(column).__name__} instead of an array"
        if column.shape != (rows,):
            return f"{name} has shape {column.shape} for {rows} rows"
    for name, column in indexes.items():
        if column.dtype.kind != "i":
            return f"{name} holds {column.dtype} instead of whole numbers"
    if any(not isinstance(notice, Notice) for notice in predictions.notices):
        return "notices holds something that is no Notice"
    return None


def _wrong_values(columns: Columns, stacked: NDArray[Any]) -> str | None:
    # A NaN or an infinity anywhere survives the sum; columns are only told apart when there is one.
    if not math.isfinite(np.add.reduce(stacked, axis=None)):
        return next(
            (f"{name} is not finite" for name, column in columns.items() if not np.isfinite(column).all()), None
        )
    if np.minimum.reduce(stacked, axis=None) < 0.0:
        return next(f"{name} is negative" for name, column in columns.items() if column.min() < 0.0)
    return None


def _wrong_rows(predictions: Predictions, stacked: NDArray[Any]) -> str | None:
    step_s, index = predictions.step_s, predictions.bottleneck_index
    if predictions.breakdown_s:
        parts = np.add.reduce(stacked[_FIXED : _FIXED + len(predictions.breakdown_s)], axis=0)
        if np.logical_or.reduce(np.abs(parts - step_s) > BREAKDOWN_TOLERANCE * step_s):
            return "the breakdown does not add up to step_s"
    if not predictions.all_answered:
        answered = predictions.answered
        wrong = _wrong_refusals(predictions, stacked, answered)
        if wrong is not None:
            return wrong
        step_s, index = step_s[answered], index[answered]
    if len(step_s) and np.minimum.reduce(step_s) <= 0.0:
        return "step_s is not positive in an answered row"
    if len(index) and (np.minimum.reduce(index) < 0 or np.maximum.reduce(index) >= len(predictions.bottlenecks)):
        return "bottleneck_index lies outside the dictionary"
    return None


def _wrong_refusals(predictions: Predictions, stacked: NDArray[Any], answered: NDArray[np.bool_]) -> str | None:
    if not np.isin(predictions.status, _STATUSES).all():
        return "status holds an unknown value"
    if stacked[:, ~answered].any() and predictions.excess_memory_bytes is None:
        return "a row that is not answered holds a value"
    if (predictions.bottleneck_index[~answered] != -1).any():
        return "a row that is not answered names a bottleneck"
    explained = {row for refusal in predictions.refusals for row in refusal.rows}
    if not set(np.flatnonzero(predictions.status == RowStatus.REFUSED).tolist()) <= explained:
        return "a refused row has no refusal"
    return None
