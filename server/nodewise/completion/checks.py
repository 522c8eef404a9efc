"""Checks of an estimator's answers about completion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, fields, is_dataclass
from typing import Any, Final, TypeVar

from nodewise.domain.completions import Completion
from nodewise.hosting.calls import ImpossibleAnswerError

__all__ = ["checked_as", "checked_completion"]

AnswerT = TypeVar("AnswerT")

BREAKDOWN_TOLERANCE: Final = 1e-6
"""Relative difference allowed between the mean time and the sum of its parts."""


def checked_as(kind: type[AnswerT]) -> Callable[[Any], AnswerT]:
    """A check that an answer is of a class, and that its numbers are finite."""

    def check(answer: Any) -> AnswerT:
        if not isinstance(answer, kind):
            raise ImpossibleAnswerError(f"it is a {type(answer).__name__} instead of a {kind.__name__}")
        _finite(answer, "")
        return answer

    return check


def checked_completion(answer: Any) -> Completion:
    """Check a completion: finite numbers, probabilities from 0 to 1, and parts that add up."""
    completion = checked_as(Completion)(answer)
    for name in ("deadline_probability", "failure_probability"):
        share = getattr(completion, name)
        if share is not None and not 0.0 <= share <= 1.0:
            raise ImpossibleAnswerError(f"{name} is {share}")
    parts, mean = completion.breakdown, completion.time_s.mean
    if parts is not None and mean is not None:
        total = math.fsum(astuple(parts))
        if abs(total - mean) > BREAKDOWN_TOLERANCE * mean:
            raise ImpossibleAnswerError(f"parts of the time add up to {total:g} s, and its mean is {mean:g} s")
    return completion


def _finite(value: Any, path: str) -> None:
    """Require that every number in a value is finite; unknown numbers are None."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ImpossibleAnswerError(f"{path} is {value}")
    if is_dataclass(value):
        for each in fields(value):
            _finite(getattr(value, each.name), each.name)
    elif isinstance(value, tuple):
        for each in value:
            _finite(each, path)
