"""What a diagnoser answers is checked before anyone sees it: types, shapes, finiteness, ranges.

Values are checked as the domain annotates them; numbers are 0 or more unless ``_LEAST`` says otherwise.
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

__all__ = ["wrong_diagnosis", "wrong_replay", "wrong_steps_diagnosis"]

MOST_SECONDS: Final = 1e10
"""Times since 1970 included."""
MOST_NS: Final = 10**18
MOST_TEXT: Final = 16_384
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


class _Wrong(Exception):  # noqa: N818  # a finding, told as a text
    """What is wrong."""


def wrong_replay(answer: Any) -> str | None:
    """Why a replay cannot be true, else None."""
    return _tell(_check_replay, answer)


def wrong_diagnosis(answer: Any) -> str | None:
    """Why a diagnosis cannot be true, else None."""
    return _tell(_check_diagnosis, answer)


def wrong_steps_diagnosis(answer: Any) -> str | None:
    """Why what is said of the times of steps cannot be true, else None."""
    return _tell(lambda found: _check_record(found, StepsDiagnosis), answer)


def _tell(check: Callable[[Any], None], answer: Any) -> str | None:
    try:
        check(answer)
    except _Wrong as wrong:
        return str(wrong)
    return None


def _check_replay(replay: Any) -> None:
    _check_record(replay, Replay)
    if not replay.steps:
        raise _Wrong("steps are none")
    ranks = len(replay.ranks)
    for place, step in enumerate(replay.steps):
        for name in ("rank_measured_host_s", "rank_predicted_host_s"):
            if len(getattr(step, name)) not in {0, ranks}:
                raise _Wrong(f"steps[{place}].{name} has not one entry a rank")
    for name in ("clock_offset_s", "clock_uncertainty_s"):
        column = getattr(replay, name)
        _column(column, ranks, name, "f")
        if not np.isfinite(column).all():
            raise _Wrong(f"{name} is not finite")


def _check_diagnosis(diagnosis: Any) -> None:
    _check_record(diagnosis, Diagnosis)
    if diagnosis.bound_by not in BOUNDS:
        raise _Wrong(f"bound_by is none of {', '.join(sorted(BOUNDS))}")


def _check_record(value: Any, kind: Any, path: str = "") -> None:
    """A value of the domain, field by field."""
    _require_kind(value, kind, path or "the answer")
    before = f"{path}." if path else ""
    for name, annotated in _annotations(kind):
        _check(getattr(value, name), annotated, f"{before}{name}", _LEAST.get((kind, name), 0))
    if kind is Strategy and value.predicted_step_s == 0.0:
        raise _Wrong(f"{before}predicted_step_s is 0")
    if kind is ReplayedCollective and not len(value.ranks) == len(value.arrival_s) == len(value.wait_s):
        raise _Wrong(f"{path} has not one arrival and one wait a rank")
    if kind is RankShares and not len(value.step_ordinals) == len(value.step_begin_ns) == len(value.step_duration_ns):
        raise _Wrong(f"{path} has not one begin and one length a step")
    if kind is Timeline:
        _check_timeline(value)


@cache
def _annotations(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple(get_type_hints(kind).items())


def _check(value: Any, kind: Any, path: str, least: float) -> None:
    """A value as it is annotated; columns are left to those who know how many rows they have."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        _SCALARS[kind](value, path, least)
    elif origin is UnionType:
        if value is not None:
            _check(value, inner[0], path, least)
    elif origin is tuple:
        _check_entries(value, inner[0], path, least)
    elif origin in (dict, Mapping):
        for name, each in value.items():
            _text(name, path)
            _check(each, inner[1], f"{path}[{name}]", least)
    elif is_dataclass(kind):
        _check_record(value, kind, path)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        _require_kind(value, kind, path)


def _check_entries(values: Any, kind: Any, path: str, least: float) -> None:
    if is_dataclass(kind):
        _require_kind(values, tuple, path)
        for place, value in enumerate(values):
            _check_record(value, kind, f"{path}[{place}]")
        return
    if kind is str and (isinstance(values, str) or not isinstance(values, Sequence)):
        raise _Wrong(f"{path} is no sequence of texts")
    for value in values:
        _SCALARS[kind](value, path, least)


def _check_timeline(timeline: Timeline) -> None:
    rows = len(timeline.begin_ns)
    for name in ("rank", "lane", "name", "begin_ns", "duration_ns"):
        _column(getattr(timeline, name), rows, f"timeline.{name}", "iu")
    for name in ("kind", "waiting_ns", "part"):
        _column(getattr(timeline, name), rows if len(getattr(timeline, name)) else 0, f"timeline.{name}", "iu")
    for index, names, least in (
        ("lane", "lanes", 0),
        ("name", "names", 0),
        ("kind", "kinds", 0),
        ("part", "parts", -1),
    ):
        column = getattr(timeline, index)
        if len(column) and not (column.min() >= least and column.max() < len(getattr(timeline, names))):
            raise _Wrong(f"timeline.{index} is no index into {names}")
    for name, least in (("rank", 0), ("begin_ns", -MOST_NS), ("duration_ns", 0), ("waiting_ns", 0)):
        column = getattr(timeline, name)
        if len(column) and not (column.min() >= least and column.max() <= MOST_NS):
            raise _Wrong(f"timeline.{name} is out of range")


def _require_kind(value: Any, kind: type, path: str) -> None:
    if not isinstance(value, kind):
        raise _Wrong(f"{path} is a {type(value).__name__} instead of a {kind.__name__}")


def _column(column: Any, rows: int, path: str, kinds: str) -> None:
    if not isinstance(column, np.ndarray) or column.shape != (rows,) or column.dtype.kind not in kinds:
        raise _Wrong(f"{path} is no column of {rows} numbers")


def _number(value: Any, path: str, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, float | int | np.floating | np.integer):
        raise _Wrong(f"{path} is no number")
    if not (math.isfinite(value) and least <= value <= MOST_SECONDS):
        raise _Wrong(f"{path} is {float(value)}")


def _whole(value: Any, path: str, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**63:
        raise _Wrong(f"{path} is no whole number of {least} or more")


def _text(value: Any, path: str, _least: float = 0) -> None:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise _Wrong(f"{path} is no text of at most {MOST_TEXT} characters")
    value.encode()  # halves of characters have no bytes: a ValueError


_SCALARS: Final[Mapping[Any, Callable[[Any, str, float], None]]] = {float: _number, int: _whole, str: _text}
