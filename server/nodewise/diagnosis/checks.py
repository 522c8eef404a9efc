"""What a diagnoser answers is checked before anyone sees it: types, shapes, finiteness, ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nodewise.domain.diagnosis import Bottleneck, Diagnosis, RankShares, Straggler, Strategy
from nodewise.domain.replay import Change, EdgeCounts, Replay, ReplayedCollective, ReplayedStep, Timeline

__all__ = ["wrong_diagnosis", "wrong_replay"]

MOST_SECONDS: Final = 1e9
MOST_NS: Final = 10**18
MOST_TEXT: Final = 16_384
BOUNDS: Final = frozenset({"host", "device", "network", "skew", "loading"})

_ERRORS: Final = (
    "host_error",
    "device_error",
    "persistence_error",
    "kernel_start_p50_error_s",
    "kernel_start_p95_error_s",
)
_TIMES: Final = (
    "predicted_host_s",
    "predicted_device_s",
    "measured_host_s",
    "measured_device_s",
    "lower_host_s",
    "upper_host_s",
)
_SHARES: Final = (
    "step_s",
    "compute_s",
    "communication_s",
    "exposed_communication_s",
    "waiting_s",
    "idle_s",
    "host_bound_s",
    "data_loading_s",
)


class _Wrong(Exception):  # noqa: N818  # a finding, told as a text
    """What is wrong."""


def wrong_replay(answer: Any) -> str | None:
    """Why a replay cannot be true, else None."""
    return _told(_check_replay, answer)


def wrong_diagnosis(answer: Any) -> str | None:
    """Why a diagnosis cannot be true, else None."""
    return _told(_check_diagnosis, answer)


def _told(check: Callable[[Any], None], answer: Any) -> str | None:
    try:
        check(answer)
    except _Wrong as wrong:
        return str(wrong)
    return None


def _check_replay(replay: Any) -> None:
    _require_kind(replay, Replay, "the answer")
    _require_all(replay.steps, ReplayedStep, "steps")
    if not replay.steps:
        raise _Wrong("steps are none")
    ranks = len(replay.ranks)
    for step in replay.steps:
        _check_step(step, ranks)
    for name in _ERRORS:
        _optional(getattr(replay, name), name)
    for name in ("build_s", "replay_s"):
        _number(getattr(replay, name), name)
    for name in ("events", "nodes", "world_size"):
        _whole(getattr(replay, name), name)
    for name in ("clock_offset_s", "clock_uncertainty_s"):
        column = getattr(replay, name)
        _column(column, ranks, name, "f")
        if not np.isfinite(column).all():
            raise _Wrong(f"{name} is not finite")
    for rank in replay.ranks:
        _whole(rank, "ranks")
    for name, count in replay.counts.items():
        _text(name, "counts")
        _whole(count, f"counts[{name}]")
    _check_edges(replay.edges)
    _check_collectives(replay.collectives)
    _texts(replay.warnings, "warnings")
    _check_timeline(replay.timeline)


def _check_step(step: ReplayedStep, ranks: int) -> None:
    path = f"steps of ordinal {step.step}"
    _whole(step.step, path, least=1)
    for name in _TIMES:
        _number(getattr(step, name), f"{path}.{name}")
    for name in ("rank_measured_host_s", "rank_predicted_host_s"):
        if len(getattr(step, name)) not in {0, ranks}:
            raise _Wrong(f"{path}.{name} has not one entry a rank")
        for value in getattr(step, name):
            _number(value, f"{path}.{name}")


def _check_diagnosis(diagnosis: Any) -> None:
    _require_kind(diagnosis, Diagnosis, "the answer")
    _require_all(diagnosis.bottlenecks, Bottleneck, "bottlenecks")
    for place, found in enumerate(diagnosis.bottlenecks):
        path = f"bottlenecks[{place}]"
        _texts((found.kind, found.what, found.why), path)
        _whole(found.rank, f"{path}.rank", least=-1)
        _number(found.seconds, f"{path}.seconds")
        _number(found.gain_if_removed_s, f"{path}.gain_if_removed_s", least=-MOST_SECONDS)
    _require_all(diagnosis.strategies, Strategy, "strategies")
    for place, strategy in enumerate(diagnosis.strategies):
        _check_strategy(strategy, f"strategies[{place}]")
    _require_all(diagnosis.stragglers, Straggler, "stragglers")
    for place, straggler in enumerate(diagnosis.stragglers):
        path = f"stragglers[{place}]"
        _text(straggler.collective, path)
        for rank in straggler.ranks:
            _whole(rank, f"{path}.ranks")
        for name in ("margin_s", "imposed_wait_s", "transfer_s"):
            _number(getattr(straggler, name), f"{path}.{name}")
    if diagnosis.bound_by not in BOUNDS:
        raise _Wrong(f"bound_by is none of {', '.join(sorted(BOUNDS))}")
    _text(diagnosis.verdict, "verdict")
    for name in ("step_s", "persistence_s", "exposed_communication_s"):
        _number(getattr(diagnosis, name), name)
    _require_all(diagnosis.ranks, RankShares, "ranks")
    for shares in diagnosis.ranks:
        _whole(shares.rank, "ranks.rank")
        for name in _SHARES:
            _number(getattr(shares, name), f"ranks.{name}")
        _whole(shares.memory_high_water_bytes, "ranks.memory_high_water_bytes", least=-1)
    _check_edges(diagnosis.edges)
    _check_collectives(diagnosis.collectives)
    _texts(diagnosis.warnings, "warnings")
    _check_timeline(diagnosis.timeline)


def _check_strategy(strategy: Strategy, path: str) -> None:
    _texts((strategy.name, strategy.rests_on, strategy.effort, *strategy.parts), path)
    for name in ("predicted_step_s", "speedup", "lower_step_s", "upper_step_s"):
        _number(getattr(strategy, name), f"{path}.{name}")
    if strategy.predicted_step_s == 0.0:
        raise _Wrong(f"{path}.predicted_step_s is 0")
    _require_all(strategy.changes, Change, f"{path}.changes")
    for change in strategy.changes:
        _number(change.value, f"{path}.changes.value")


def _check_edges(edges: Mapping[str, Any]) -> None:
    for kind, counts in edges.items():
        _text(kind, "edges")
        _require_kind(counts, EdgeCounts, f"edges[{kind}]")
        for name in ("found", "inferred", "missing"):
            _whole(getattr(counts, name), f"edges[{kind}].{name}")


def _check_collectives(collectives: Any) -> None:
    _require_all(collectives, ReplayedCollective, "collectives")
    for place, found in enumerate(collectives):
        path = f"collectives[{place}]"
        _whole(found.step, f"{path}.step", least=1)
        _texts((found.name, found.kind, found.group), path)
        _whole(found.bytes, f"{path}.bytes", least=-1)
        for name in ("transfer_s", "end_spread_s", "margin_s"):
            _number(getattr(found, name), f"{path}.{name}")
        if not len(found.ranks) == len(found.arrival_s) == len(found.wait_s):
            raise _Wrong(f"{path} has not one arrival and one wait a rank")
        for value in (*found.arrival_s, *found.wait_s):
            _number(value, path)
        for rank in (*found.ranks, *found.late_ranks):
            _whole(rank, f"{path}.ranks")


def _check_timeline(timeline: Any) -> None:
    if timeline is None:
        return
    _require_kind(timeline, Timeline, "timeline")
    rows = len(timeline.begin_ns)
    for name in ("rank", "lane", "name", "begin_ns", "duration_ns"):
        _column(getattr(timeline, name), rows, f"timeline.{name}", "iu")
    for name in ("kind", "waiting_ns"):
        _column(getattr(timeline, name), rows if len(getattr(timeline, name)) else 0, f"timeline.{name}", "iu")
    for index, names in (("lane", "lanes"), ("name", "names"), ("kind", "kinds")):
        column = getattr(timeline, index)
        _texts(getattr(timeline, names), f"timeline.{names}")
        if len(column) and not (column.min() >= 0 and column.max() < len(getattr(timeline, names))):
            raise _Wrong(f"timeline.{index} is no index into {names}")
    for name, least in (("rank", 0), ("begin_ns", -MOST_NS), ("duration_ns", 0), ("waiting_ns", 0)):
        column = getattr(timeline, name)
        if len(column) and not (column.min() >= least and column.max() <= MOST_NS):
            raise _Wrong(f"timeline.{name} is out of range")


def _require_kind(value: Any, kind: type, path: str) -> None:
    if not isinstance(value, kind):
        raise _Wrong(f"{path} is a {type(value).__name__} instead of a {kind.__name__}")


def _require_all(values: Any, kind: type, path: str) -> None:
    _require_kind(values, tuple, path)
    for value in values:
        _require_kind(value, kind, path)


def _column(column: Any, rows: int, path: str, kinds: str) -> None:
    if not isinstance(column, np.ndarray) or column.shape != (rows,) or column.dtype.kind not in kinds:
        raise _Wrong(f"{path} is no column of {rows} numbers")


def _number(value: Any, path: str, least: float = 0.0) -> None:
    if isinstance(value, bool) or not isinstance(value, float | int | np.floating | np.integer):
        raise _Wrong(f"{path} is no number")
    if not (math.isfinite(value) and least <= value <= MOST_SECONDS):
        raise _Wrong(f"{path} is {float(value)}")


def _optional(value: Any, path: str) -> None:
    if value is not None:
        _number(value, path)


def _whole(value: Any, path: str, least: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**63:
        raise _Wrong(f"{path} is no whole number of {least} or more")


def _texts(values: Iterable[Any], path: str) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise _Wrong(f"{path} is no sequence of texts")
    for value in values:
        _text(value, path)


def _text(value: Any, path: str) -> None:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise _Wrong(f"{path} is no text of at most {MOST_TEXT} characters")
    value.encode()  # halves of characters have no bytes: a ValueError
