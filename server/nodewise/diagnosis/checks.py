"""Checks of a diagnoser's answers before the server uses them: types, shapes, finiteness, ranges.

Values are checked against the domain's annotations; numbers are at least 0 unless ``_LEAST`` states otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

import numpy as np

from nodewise.domain.diagnosis import Bottleneck, Diagnosis, RankShares, StepPart, Strategy
from nodewise.domain.replay import Replay, ReplayedCollective, ReplayedStep, Timeline
from nodewise.domain.step_times import StepAlarm, StepsDiagnosis
from nodewise.hosting.soundness import MOST_TEXT, is_text

__all__ = ["wrong_diagnosis", "wrong_replay", "wrong_steps_diagnosis"]

MOST_SECONDS: Final = 1e10
"""Largest time in seconds, times since 1970 included."""
MOST_NS: Final = 10**18
BOUNDS: Final = frozenset({"none", "host", "device", "network", "skew", "loading"})

_LEAST: Final[Mapping[tuple[type, str], float]] = {
    (Bottleneck, "rank"): -1,
    (Bottleneck, "gain_if_removed_s"): -MOST_SECONDS,
    (RankShares, "memory_high_water_bytes"): -1,
    (RankShares, "step_begin_ns"): -MOST_NS,
    (RankShares, "step_ordinals"): 1,
    (StepPart, "waits_for_rank"): -1,
    (StepAlarm, "node"): -1,
    (StepAlarm, "first_step"): -1,
    (ReplayedCollective, "bytes"): -1,
    (ReplayedCollective, "step"): 1,
    (ReplayedStep, "step"): 1,
}


_TIMELINE: Final = {
    "rank": (0, ""),
    "lane": (0, "lanes"),
    "name": (0, "names"),
    "begin_ns": (-MOST_NS, ""),
    "duration_ns": (0, ""),
    "kind": (0, "kinds"),
    "waiting_ns": (0, ""),
    "part": (-1, "parts"),
}
"""Columns of a timeline: the least entry of each, and the dictionary that it indexes ("" = it is no index)."""
_OPTIONAL: Final = frozenset({"kind", "waiting_ns", "part"})
"""Columns of a timeline that may be empty."""


class _Wrong(Exception):  # noqa: N818  # carries a text
    """An invalid value; the text says which and why."""


def wrong_replay(answer: Any) -> str | None:
    """Why a replay is invalid, else None."""
    return _tell(_check_replay, answer)


def wrong_diagnosis(answer: Any) -> str | None:
    """Why a diagnosis is invalid, else None."""
    return _tell(_check_diagnosis, answer)


def wrong_steps_diagnosis(answer: Any) -> str | None:
    """Why a diagnosis of step times is invalid, else None."""
    return _tell(lambda value: _check(value, StepsDiagnosis, "the answer"), answer)


def _tell(check: Callable[[Any], None], answer: Any) -> str | None:
    try:
        check(answer)
    except _Wrong as wrong:
        return str(wrong)
    return None


def _check_replay(replay: Any) -> None:
    _check(replay, Replay, "the answer")
    _require(replay.steps, "steps is empty")
    ranks = len(replay.ranks)
    for place, step in enumerate(replay.steps):
        for name in ("rank_measured_host_s", "rank_predicted_host_s"):
            _require(len(getattr(step, name)) in {0, ranks}, f"steps[{place}].{name} must have one entry per rank")
    for name in ("clock_offset_s", "clock_uncertainty_s"):
        column = getattr(replay, name)
        _check_column(column, ranks, name, "f")
        _require(np.isfinite(column).all(), f"{name} is not finite")


def _check_diagnosis(diagnosis: Any) -> None:
    _check(diagnosis, Diagnosis, "the answer")
    _require(diagnosis.bound_by in BOUNDS, f"bound_by must be one of {', '.join(sorted(BOUNDS))}")


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise _Wrong(otherwise)


def _check(value: Any, kind: Any, path: str, least: float = 0) -> None:
    """Check a value against its annotation; columns are checked where the number of their rows is known."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        _SCALARS[kind](value, path, least)
    elif origin is UnionType:
        if value is not None:
            _check(value, inner[0], path, least)
    elif origin is tuple:
        records = is_dataclass(inner[0])
        _require(
            isinstance(value, tuple if records else Sequence) and not isinstance(value, str), f"{path} is not a tuple"
        )
        for place, each in enumerate(value):
            _check(each, inner[0], f"{path}[{place}]" if records else path, least)
    elif origin in (dict, Mapping):
        for name, each in value.items():
            _check_text(name, path)
            _check(each, inner[1], f"{path}[{name}]", least)
    elif isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum)):
        _require(isinstance(value, kind), f"{path} is a {type(value).__name__} instead of a {kind.__name__}")
        if is_dataclass(kind):
            _check_record(value, kind, path)


def _check_record(value: Any, kind: type, path: str) -> None:
    """Check a value of the domain, field by field."""
    for name, annotation in _annotations(kind):
        _check(getattr(value, name), annotation, f"{path}.{name}", _LEAST.get((kind, name), 0))
    if kind is Strategy:
        _require(value.predicted_step_s, f"{path}.predicted_step_s is 0")
    elif kind is ReplayedCollective:
        alike = len(value.ranks) == len(value.arrival_s) == len(value.wait_s)
        _require(alike, f"{path} must have one arrival and one wait per rank")
    elif kind is RankShares:
        alike = len(value.step_ordinals) == len(value.step_begin_ns) == len(value.step_duration_ns)
        _require(alike, f"{path} must have one begin and one length per step")
    elif kind is Timeline:
        _check_timeline(value, path)


@cache
def _annotations(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple(get_type_hints(kind).items())


def _check_timeline(timeline: Timeline, path: str) -> None:
    rows = len(timeline.begin_ns)
    for name, (least, words) in _TIMELINE.items():
        column = getattr(timeline, name)
        _check_column(column, 0 if name in _OPTIONAL and not len(column) else rows, f"{path}.{name}", "iu")
        most = len(getattr(timeline, words)) - 1 if words else MOST_NS
        wrong = f"is not an index into {words}" if words else "is out of range"
        _require(not len(column) or (column.min() >= least and column.max() <= most), f"{path}.{name} {wrong}")


def _check_column(column: Any, rows: int, path: str, kinds: str) -> None:
    right = isinstance(column, np.ndarray) and column.shape == (rows,) and column.dtype.kind in kinds
    _require(right, f"{path} is not a column of {rows} numbers")


def _check_number(value: Any, path: str, least: float) -> None:
    right = isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    _require(right, f"{path} is not a number")
    _require(math.isfinite(value) and least <= value <= MOST_SECONDS, f"{path} is {value}")


def _check_whole(value: Any, path: str, least: float) -> None:
    right = isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value < 2**63
    _require(right, f"{path} is not a whole number of at least {least}")


def _check_text(value: Any, path: str, _least: float = 0) -> None:
    _require(is_text(value), f"{path} is not a string of at most {MOST_TEXT} characters")


_SCALARS: Final[Mapping[Any, Callable[[Any, str, float], None]]] = {
    float: _check_number,
    int: _check_whole,
    str: _check_text,
}
