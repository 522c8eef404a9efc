"""Checks of a model's answer before it is used: types, shapes, finiteness, ranges, signs, sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Notice, Predictions, RowRefusal, RowStatus
from nodewise.hosting.calls import ImpossibleAnswerError
from nodewise.hosting.soundness import MOST_NAME, MOST_TEXT, is_a, is_name, is_sound_refusal, is_text

__all__ = ["MOST_LOG_SPREAD", "check_predictions"]

BREAKDOWN_TOLERANCE: Final = 1e-6
"""Largest relative difference between a step and the sum of its parts, and largest excess of a utilisation over 1:
rounding of a few dozen additions."""
LEAST_STEP_S: Final = 1e-9
MOST_STEP_S: Final = 1e9
"""Longest step in seconds: no device needs less than a nanosecond for anything, and 1e9 s are 30 years."""
MOST_LOG_SPREAD: Final = 10.0
"""Largest standard deviation of ln(step time): a factor of e^10 = 22,000 either way is no longer a prediction."""
_MEMORY: Final = ("memory_bytes", "excess_memory_bytes")
_OPTIONAL: Final = ("staleness_mean", "staleness_p95", "once_s", *_MEMORY)
_GROUPS: Final = ("breakdown_s", "utilisation", "extra")
_STATUSES: Final = tuple(int(status) for status in RowStatus)
_GROUPS_OF: Final = attrgetter(*_GROUPS)
_OPTIONAL_OF: Final = attrgetter(*_OPTIONAL)
_FLOATS: Final = np.dtype(np.float64)
_TEXT: Final = frozenset({str})
_MOST_KEPT_NAMES: Final = 256
"""Most names of one answer for which the result of the check is cached."""
_FIXED: Final = 3
"""Number of columns before those of the breakdown."""

Columns = Mapping[str, Any]


def check_predictions(predictions: Any, configurations: Configurations) -> Predictions:
    """Return the predictions if they are valid.

    Raises
    ------
    ImpossibleAnswerError
        An invalid column; the text names the column and the fault.
    """
    if not isinstance(predictions, Predictions):
        raise ImpossibleAnswerError(f"a {type(predictions).__name__} instead of Predictions")
    try:
        _check(predictions, len(configurations.workers))
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        # A breakdown that is no mapping, or rows that are no numbers, raise here. They are faults of the plugin, not of
        # the server, and do not need a check each.
        raise ImpossibleAnswerError(f"its columns cannot be read ({type(error).__name__})") from error
    return predictions


def _check(predictions: Predictions, rows: int) -> None:
    _check_names(predictions)
    columns = _columns(predictions)
    _check_shapes(columns, predictions, rows)
    _check_texts(predictions, rows)
    if rows:
        matrix = np.concatenate(columns).reshape(-1, rows)
        # NaN propagates to both the minimum and the maximum of its column.
        least, greatest = np.minimum.reduce(matrix, axis=1).tolist(), np.maximum.reduce(matrix, axis=1).tolist()
        _check_values(predictions, least, greatest)
        _check_rows(predictions, matrix, least[0], greatest[0])


def _columns(predictions: Predictions) -> list[Any]:
    """Return all columns of numbers, in the order of :func:`_by_name`."""
    return [
        predictions.step_s,
        predictions.log_spread,
        predictions.extrapolation,
        *predictions.breakdown_s.values(),
        *predictions.utilisation.values(),
        *(column for column in _OPTIONAL_OF(predictions) if column is not None),
        *predictions.extra.values(),  # last, because only these may be negative
    ]


def _by_name(predictions: Predictions) -> dict[str, Any]:
    """Return all columns of numbers by their names in error texts."""
    names = [
        *("step_s", "log_spread", "extrapolation"),
        *(f"breakdown_s[{name}]" for name in predictions.breakdown_s),
        *(f"utilisation[{name}]" for name in predictions.utilisation),
        *(name for name in _OPTIONAL if getattr(predictions, name) is not None),
        *(f"extra[{name}]" for name in predictions.extra),
    ]
    return dict(zip(names, _columns(predictions), strict=True))


def _check_names(predictions: Predictions) -> None:
    if not is_a(predictions.bottlenecks, tuple):
        raise ImpossibleAnswerError("bottlenecks is no tuple of names")
    parts, shares, extra = _GROUPS_OF(predictions)
    everyone = (*predictions.bottlenecks, *parts, *shares, *extra)
    if len(everyone) <= _MOST_KEPT_NAMES and set(map(type, everyone)) <= _TEXT and _are_names(everyone):
        return
    for column in (*_GROUPS, "bottlenecks"):
        names = getattr(predictions, column)
        if not all(map(is_name, names.keys() if column != "bottlenecks" else names)):
            raise ImpossibleAnswerError(f"{column} has a name that is no printable text of 1 to {MOST_NAME} characters")


@lru_cache(maxsize=64)
def _are_names(names: tuple[str, ...]) -> bool:
    """Check the names of a model's columns. The result is cached: all answers of a model have the same names."""
    return all(map(is_name, names))


def _check_shapes(columns: Sequence[Any], predictions: Predictions, rows: int) -> None:
    shape = (rows,)
    for place, column in enumerate(columns):
        if column.__class__ is np.ndarray and column.dtype is _FLOATS and column.shape == shape:
            continue
        if not isinstance(column, np.ndarray) or column.shape != shape or column.dtype.kind not in "fiu":
            raise ImpossibleAnswerError(_misshapen(list(_by_name(predictions))[place], column, rows))
    indexes: Columns = {"status": predictions.status, "bottleneck_index": predictions.bottleneck_index}
    for name, column in indexes.items():
        if not isinstance(column, np.ndarray) or column.shape != shape or column.dtype.kind not in "fiu":
            raise ImpossibleAnswerError(_misshapen(name, column, rows))
        if column.dtype.kind != "i":
            raise ImpossibleAnswerError(f"{name} holds {column.dtype} instead of whole numbers")


def _misshapen(name: str, column: Any, rows: int) -> str:
    """Describe the fault of a column that does not hold one number per row."""
    if not isinstance(column, np.ndarray):
        return f"{name} is a {type(column).__name__} instead of an array"
    if column.shape != (rows,):
        return f"{name} has shape {column.shape} for {rows} rows"
    return f"{name} holds {column.dtype} instead of numbers"


def _check_texts(predictions: Predictions, rows: int) -> None:
    """Check notices and refusals: their types, their texts, and the rows that they name."""
    if not is_a(predictions.simulated, bool):
        raise ImpossibleAnswerError("simulated is neither True nor False")
    for name in ("notices", "refusals"):
        if not isinstance(getattr(predictions, name), tuple | list):
            raise ImpossibleAnswerError(f"{name} is a {type(getattr(predictions, name)).__name__} instead of a tuple")
    if predictions.notices:
        _check_notices(predictions.notices, rows)
    if predictions.refusals:
        _check_refusals(predictions, rows)


def _check_notices(notices: Iterable[Any], rows: int) -> None:
    for notice in notices:
        if not isinstance(notice, Notice):
            raise ImpossibleAnswerError("notices holds something that is no Notice")
        if not is_name(notice.reason) or not is_text(notice.message):
            problem = f"whose reason is no name or whose message is no text of {MOST_TEXT} characters"
            raise ImpossibleAnswerError(f"notices holds one {problem}")
        if _names_no_row(notice.rows, rows):
            raise ImpossibleAnswerError("notices names a row that is not there")


def _check_refusals(predictions: Predictions, rows: int) -> None:
    refusals: Iterable[Any] = predictions.refusals
    for refused in refusals:
        if not isinstance(refused, RowRefusal):
            raise ImpossibleAnswerError("refusals holds something that is no RowRefusal")
        if not is_sound_refusal(refused.refusal):
            problem = f"without a Reason and a message of at most {MOST_TEXT} characters"
            raise ImpossibleAnswerError(f"refusals holds one {problem}")
        if _names_no_row(refused.rows, rows):
            raise ImpossibleAnswerError("refusals names a row that is not there")
        if len(refused.rows) and predictions.answered[np.asarray(refused.rows)].any():
            raise ImpossibleAnswerError("refusals names a row that is answered")


def _names_no_row(row_numbers: Any, rows: int) -> bool:
    """Whether ``row_numbers`` contains anything that is not the number of a row."""
    if not isinstance(row_numbers, tuple | list):
        return True
    if not row_numbers:
        return False
    numbers = np.asarray(row_numbers)
    return numbers.dtype.kind != "i" or numbers.ndim != 1 or numbers.min() < 0 or numbers.max() >= rows


def _check_values(predictions: Predictions, least: Sequence[float], greatest: Sequence[float]) -> None:
    if not (all(map(isfinite, least)) and all(map(isfinite, greatest))):
        wrong = next(name for name, column in _by_name(predictions).items() if not np.isfinite(column).all())
        raise ImpossibleAnswerError(f"{wrong} is not finite")
    if min(least[: len(least) - len(predictions.extra)]) < 0.0:
        negative = next(name for name, column in _by_name(predictions).items() if column.min() < 0.0)
        raise ImpossibleAnswerError(f"{negative} is negative")
    if greatest[1] > MOST_LOG_SPREAD:
        raise ImpossibleAnswerError(f"log_spread is above {MOST_LOG_SPREAD:g}, a factor of e^{MOST_LOG_SPREAD:g}")
    if predictions.utilisation:
        first = _FIXED + len(predictions.breakdown_s)
        most = max(greatest[first : first + len(predictions.utilisation)])
        if most > 1.0 + BREAKDOWN_TOLERANCE:
            raise ImpossibleAnswerError(f"utilisation is above 1 ({most:g}): it is a share of time")


def _check_rows(predictions: Predictions, matrix: NDArray[Any], shortest_s: float, longest_s: float) -> None:
    step_s, index = predictions.step_s, predictions.bottleneck_index
    if predictions.breakdown_s:
        parts = np.add.reduce(matrix[_FIXED : _FIXED + len(predictions.breakdown_s)], axis=0)
        if np.logical_or.reduce(np.abs(parts - step_s) > BREAKDOWN_TOLERANCE * step_s):
            raise ImpossibleAnswerError("the breakdown does not add up to step_s")
    excess: Any = predictions.excess_memory_bytes
    if not predictions.all_answered:
        is_answered = predictions.answered
        _check_unanswered(predictions, matrix, is_answered)
        step_s, index = step_s[is_answered], index[is_answered]
        shortest_s = np.minimum.reduce(step_s, initial=longest_s)
        excess = None if excess is None else excess[is_answered]
    if excess is not None and excess.any():
        raise ImpossibleAnswerError("excess_memory_bytes is above 0 in an answered row")
    if len(step_s) and (shortest_s < LEAST_STEP_S or longest_s > MOST_STEP_S):
        if shortest_s <= 0.0:
            raise ImpossibleAnswerError("step_s is not positive in an answered row")
        raise ImpossibleAnswerError(f"step_s lies outside {LEAST_STEP_S:g} to {MOST_STEP_S:g} s in an answered row")
    if len(index) and (np.minimum.reduce(index) < -1 or np.maximum.reduce(index) >= len(predictions.bottlenecks)):
        raise ImpossibleAnswerError("bottleneck_index lies outside the dictionary")


def _check_unanswered(predictions: Predictions, matrix: NDArray[Any], is_answered: NDArray[np.bool_]) -> None:
    if not np.isin(predictions.status, _STATUSES).all():
        raise ImpossibleAnswerError("status holds an unknown value")
    is_refused = predictions.status == RowStatus.REFUSED
    # A row that does not fit into memory states only its memory. A refused row states nothing.
    measures = [
        place
        for place, name in enumerate(_by_name(predictions))
        if name not in _MEMORY and not name.startswith("extra[memory_")
    ]
    if matrix[:, is_refused].any() or matrix[measures][:, ~is_answered].any():
        raise ImpossibleAnswerError("a row that is not answered holds a value")
    if (predictions.bottleneck_index[~is_answered] != -1).any():
        raise ImpossibleAnswerError("a row that is not answered names a bottleneck")
    explained_rows = {row for refusal in predictions.refusals for row in refusal.rows}
    if not set(np.flatnonzero(is_refused).tolist()) <= explained_rows:
        raise ImpossibleAnswerError("a refused row has no refusal")
