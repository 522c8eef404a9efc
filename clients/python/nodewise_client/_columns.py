"""Columns: a value for all rows, or one per row; and the contract's values that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from nodewise_values import Observations, PhaseTimings
from nodewise_values.fact import Fact
from nodewise_values.facts import OBSERVATIONS, PHASE_TIMINGS

Item = TypeVar("Item")
NOT_KNOWN = -1.0


def frozen(given: Any) -> tuple[Any, ...]:
    """One value or many, as a tuple that can be read more than once; None as no value."""
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def broadcast(values: Sequence[Item], rows: int, name: str) -> tuple[Item, ...]:
    """A column with one value per row; an empty column stays empty."""
    if len(values) == rows or not values:
        return tuple(values)
    if len(values) == 1:
        return (values[0],) * rows
    raise ValueError(f"{name} has {len(values)} values for {rows} rows; give none, one or {rows}")


def stated(facts: Mapping[str, Fact], name: str, given: Any) -> tuple[Any, ...]:
    """A column as the contract writes it: None is what stands for "not known"; nothing known = no column."""
    column = frozen(given)
    if None not in column:
        return column
    return tuple(absent(facts, name) if value is None else value for value in column) if any_stated(column) else ()


def absent(facts: Mapping[str, Fact], name: str) -> Any:
    """What a row holds that states nothing in a column."""
    fact = facts[name]
    if fact.kind == "enum":
        return None
    if fact.kind == "str":
        return ""
    return NOT_KNOWN if fact.default is None else fact.default


def any_stated(column: Sequence[Any]) -> bool:
    """Whether any row states something."""
    return any(value is not None for value in column)


def observations(**columns: Any) -> Observations:
    """Runs that were measured, as columns of `Observations`: a value for all runs or one per run; None = not known.

    `observations(configurations=configurations(nodes=[1, 2]), steps_per_second=[9.1, 17.4])`
    """
    return Observations(**{name: _stated(OBSERVATIONS, name, given) for name, given in columns.items()})


def phase_timings(**columns: Any) -> PhaseTimings:
    """Phases of one worker's step, as columns of `PhaseTimings`: a value for all runs or one per run; None = not known.

    `phase_timings(compute_seconds=0.21, download_seconds=0.03, upload_seconds=0.03, update_seconds=0.002)`
    """
    return PhaseTimings(**{name: _stated(PHASE_TIMINGS, name, given) for name, given in columns.items()})


def _stated(facts: Mapping[str, Fact], name: str, given: Any) -> Any:
    return stated(facts, name, given) if name in facts else given
