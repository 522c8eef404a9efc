"""A run as some tool logged it: what it states of itself, and what was logged step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = ["LoggedRun", "Options", "Point", "Reader", "flat", "runs_of_rows", "seconds_of"]

STEP_NAMES = (
    *("train/global_step", "trainer/global_step", "global_step", "step", "iteration", "iter", "Step", "_step"),
)
"""Where rows state their step, the training's own before the logger's."""
TIME_NAMES = ("_timestamp", "timestamp", "time", "wall_time", "ts", "_runtime", "elapsed_s")


class Point(NamedTuple):
    """A logged value."""

    step: float
    time_s: float | None
    """When it was logged, by any clock; None = not known."""
    value: float | None
    """None = the step alone was logged."""


@dataclass(slots=True)
class LoggedRun:
    """One run.

    Attributes
    ----------
    source : str
        The file or directory, and what names the run within it.
    job : str
        The name that the tool has for runs that belong together; empty = none.
    settings : dict
        What the run states of itself, by the tool's names.
    series : dict
        Logged values by name.
    totals : dict
        Values that the run states once, such as a throughput of the whole run.
    elapsed_s : float or None
        How long the run took with all that was in it.
    per_worker : set of str
        Names of rates that count one worker.
    """

    source: str
    job: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    series: dict[str, list[Point]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    elapsed_s: float | None = None
    per_worker: set[str] = field(default_factory=set)

    def add(self, name: str, step: float, time_s: float | None, value: float | None) -> None:
        """Add a logged value."""
        self.series.setdefault(name, []).append(Point(step, time_s, value))


class Options(NamedTuple):
    """What a reader may be told."""

    pattern: str | None = None


Reader: TypeAlias = Callable[[Path, Options], Iterable[LoggedRun]]
"""The runs in a file or directory. Raises InputError naming the place."""


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    result: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            result |= flat(value, f"{name}.")
        else:
            result[name] = value
    return result


def seconds_of(value: Any) -> float | None:
    """A moment in seconds: a number (milliseconds where it is that large), or ISO 8601."""
    number = number_of(value)
    if number is not None:
        return number / 1e3 if number > 1e11 else number
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def number_of(value: Any) -> float | None:
    """A finite number; None = it is none."""
    import math

    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def runs_of_rows(run: LoggedRun, rows: Iterable[Mapping[str, Any]]) -> LoggedRun:
    """Add rows that state a step and values by name, as a history has them; texts are settings."""
    for count, row in enumerate(rows):
        step = next((number for name in STEP_NAMES if (number := number_of(row.get(name))) is not None), None)
        time_s = next((moment for name in TIME_NAMES if (moment := seconds_of(row.get(name))) is not None), None)
        at = float(count) if step is None else step
        for name, value in row.items():
            if name in STEP_NAMES or name in TIME_NAMES:
                continue
            if isinstance(value, str) and number_of(value) is None:
                if value:
                    run.settings.setdefault(name, value)
            elif (number := number_of(value)) is not None:
                run.add(name, at, time_s, number)
        if step is not None and time_s is not None:
            run.add("", at, time_s, None)
    return run
