"""What a model answers is checked before anyone sees it: shapes, finiteness, signs, sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Predictions, RowStatus

__all__ = ["checked"]

BREAKDOWN_TOLERANCE = 1e-6
"""Relative difference allowed between a step and the sum of its parts: rounding over a few dozen additions."""


def checked(predictions: Any, configurations: Configurations, estimator: str) -> Predictions:
    """The predictions, if they can be true.

    Raises
    ------
    NodewiseError
        ESTIMATOR_INVALID_RESULT, saying what is wrong with which column.
    """
    try:
        wrong = _wrong_with(predictions, len(configurations))
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        # Columns of strings, a breakdown that is no mapping: not worth a check each, but no fault of the server's.
        wrong = f"its columns cannot be read ({type(error).__name__})"
    if wrong is None:
        assert isinstance(predictions, Predictions)
        return predictions
    raise NodewiseError(
        Reason.ESTIMATOR_INVALID_RESULT,
        f"estimator {estimator!r} answered with something that cannot be true: {wrong}",
        {"estimator": estimator, "problem": wrong},
    )


def _wrong_with(predictions: Any, rows: int) -> str | None:
    if not isinstance(predictions, Predictions):
        return f"a {type(predictions).__name__} instead of Predictions"
    columns = {
        "step_s": predictions.step_s,
        "log_spread": predictions.log_spread,
        "extrapolation": predictions.extrapolation,
        **{f"breakdown_s[{name}]": column for name, column in predictions.breakdown_s.items()},
        **{f"utilisation[{name}]": column for name, column in predictions.utilisation.items()},
    }
    for name in ("staleness_mean", "staleness_p95", "memory_bytes", "excess_memory_bytes"):
        column = getattr(predictions, name)
        if column is not None:
            columns[name] = column
    for name, column in (
        *columns.items(),
        ("status", predictions.status),
        ("bottleneck_index", predictions.bottleneck_index),
    ):
        if not isinstance(column, np.ndarray):
            return f"{name} is a {type(column).__name__} instead of an array"
        if column.shape != (rows,):
            return f"{name} has shape {column.shape} for {rows} rows"
    for name, column in (("status", predictions.status), ("bottleneck_index", predictions.bottleneck_index)):
        if column.dtype.kind != "i":
            return f"{name} holds {column.dtype} instead of whole numbers"
    if not rows:
        return None
    stacked = np.array(list(columns.values()))
    # A NaN or an infinity anywhere survives the sum; columns are only told apart when there is one.
    if not math.isfinite(stacked.sum()):
        return next(f"{name} is not finite" for name, column in columns.items() if not np.isfinite(column).all())
    if stacked.min() < 0.0:
        return next(f"{name} is negative" for name, column in columns.items() if column.min() < 0.0)
    answered = predictions.answered
    everything = bool(answered.all())
    if not everything and not np.isin(predictions.status, [int(status) for status in RowStatus]).all():
        return "status holds an unknown value"
    step_s = predictions.step_s if everything else predictions.step_s[answered]
    if len(step_s) and step_s.min() <= 0.0:
        return "step_s is not positive in an answered row"
    if not everything and stacked[:, ~answered].any() and predictions.excess_memory_bytes is None:
        return "a row that is not answered holds a value"
    if predictions.breakdown_s:
        parts = stacked[3 : 3 + len(predictions.breakdown_s)].sum(axis=0)
        if (np.abs(parts - predictions.step_s) > BREAKDOWN_TOLERANCE * predictions.step_s).any():
            return "the breakdown does not add up to step_s"
    index = predictions.bottleneck_index
    named = index if everything else index[answered]
    if index.max() >= len(predictions.bottlenecks) or (len(named) and named.min() < 0):
        return "bottleneck_index lies outside the dictionary"
    explained = {row for refusal in predictions.refusals for row in refusal.rows}
    if not everything and not set(np.flatnonzero(predictions.status == RowStatus.REFUSED).tolist()) <= explained:
        return "a refused row has no refusal"
    return None
