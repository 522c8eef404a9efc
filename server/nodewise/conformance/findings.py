"""Errors of the checks, and comparisons of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

import numpy as np

from nodewise.conformance.evidence import Evidence
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Predictions
from nodewise.hosting.calls import ImpossibleAnswerError
from nodewise.hosting.registry import LoadedPlugin

__all__ = [
    "ROUNDING",
    "Checks",
    "NonConformanceError",
    "difference",
    "for_each",
    "has_path",
    "require",
    "row_difference",
    "sound",
    "sound_answer",
]

ROUNDING: Final = 1e-9
"""Relative difference allowed between rows in other arrays: the order of a library's sums depends on the length."""

AnswerT = TypeVar("AnswerT")

Checks = Mapping[str, Callable[[LoadedPlugin[Any], Evidence], None]]
"""Checks of a kind of plugin, by name."""


class NonConformanceError(AssertionError):
    """A plugin does not conform; the text says what it did, and what it must do."""


def require(holds: object, message: str) -> None:
    """Raise NonConformanceError unless it holds."""
    if not holds:
        raise NonConformanceError(message)


def sound(what: str, call: Callable[[], AnswerT]) -> AnswerT:
    """The answer of a call; a NodewiseError is passed on, any other exception does not conform."""
    try:
        return call()
    except (NodewiseError, NonConformanceError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, ValueError) and "read-only" in str(error):
            raise NonConformanceError(f"{what} writes to an argument; copy an array before changing it") from error
        raise NonConformanceError(
            f"{what} raised {type(error).__name__}: {error}; refuse, or raise a NodewiseError with a reason"
        ) from error


def sound_answer(what: str, call: Callable[[], Any], check: Callable[[Any], AnswerT]) -> AnswerT:
    """The checked answer of a call; the check raises ImpossibleAnswerError for an invalid answer."""
    try:
        return check(sound(what, call))
    except ImpossibleAnswerError as error:
        raise NonConformanceError(f"{what} returns an invalid answer: {error}") from None


def for_each(kind: str, check: Callable[[Any, Any], None]) -> Callable[[LoadedPlugin[Any], Evidence], None]:
    """A check that runs for each item of a field of Evidence."""

    def run(plugin: LoadedPlugin[Any], evidence: Evidence) -> None:
        for one in getattr(evidence, kind):
            check(plugin, one)

    return run


def difference(first: Any, second: Any, path: str = "") -> str | None:
    """Where two values differ, as a path; None = nowhere. Numbers are compared bit for bit."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return None if np.array_equal(first, second, equal_nan=True) else path
    if is_dataclass(first) and not isinstance(first, type):
        if type(first) is not type(second):
            return path
        pairs: Iterable[tuple[str, Any, Any]] = (
            (f"{path}.{each.name}", getattr(first, each.name), getattr(second, each.name))
            for each in fields(first)
            if each.compare or not each.name.startswith("_")
        )
    elif isinstance(first, Mapping) and isinstance(second, Mapping):
        if first.keys() != second.keys():
            return path
        pairs = ((f"{path}[{key}]", first[key], second[key]) for key in first)
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return path
        pairs = ((f"{path}[{index}]", *pair) for index, pair in enumerate(zip(first, second, strict=True)))
    else:
        return None if first is second or first == second else path
    return next((where for name, *both in pairs if (where := difference(both[0], both[1], name)) is not None), None)


def row_difference(first: Predictions, second: Predictions) -> str | None:
    """In which column the rows of two answers differ beyond rounding; None = in none."""
    columns, others = _by_row(first), _by_row(second)
    for name in dict.fromkeys((*columns, *others)):
        one, other = columns.get(name, 0.0), others.get(name, 0.0)
        if not np.allclose(one, other, rtol=ROUNDING, atol=0.0):
            return name
    for name, values_of in (("bottleneck", _bottlenecks), ("refusals", _refusals)):
        if values_of(first) != values_of(second):
            return name
    return None


def _by_row(predictions: Predictions) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for each in fields(predictions):
        value = getattr(predictions, each.name)
        if isinstance(value, np.ndarray) and each.name != "bottleneck_index":
            columns[each.name] = value
        elif isinstance(value, Mapping):
            columns.update({f"{each.name}[{name}]": column for name, column in value.items()})
    return columns


def _bottlenecks(predictions: Predictions) -> list[str]:
    names = (*predictions.bottlenecks, "")
    return [names[index] for index in predictions.bottleneck_index.tolist()]


def _refusals(predictions: Predictions) -> list[Any]:
    refusals: list[Any] = [None] * len(predictions)
    for each in predictions.refusals:
        for row in each.rows:
            refusals[row] = each.refusal.reason
    return refusals


_ROOTS: Final = ("/home/", "/root/", "/Users/", "/tmp/", "/mnt/", "/var/", ":\\")  # noqa: S108  # looked for, not used


def has_path(text: str) -> bool:
    """Whether a text holds an absolute path."""
    return any(root in text for root in _ROOTS)
