"""Columns: a value for all rows, or one per row; and the contract's values that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from nodewise_values import Observations, PhaseTimings
from nodewise_values.fact import Fact
from nodewise_values.facts import OBSERVATIONS, PHASE_TIMINGS

Item = TypeVar("Item")
_MASK: Final = "_known"


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One value or many, as a tuple that can be read more than once; None as no value."""
    if value is None:
        return ()
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return (value,)
    return tuple(value)


def broadcast(values: Sequence[Item], rows: int, name: str) -> tuple[Item, ...]:
    """A column with one value per row; an empty column stays empty."""
    if len(values) == rows or not values:
        return tuple(values)
    if len(values) == 1:
        return (values[0],) * rows
    raise ValueError(f"{name} has {len(values)} values for {rows} rows; give none, one or {rows}")


@cache
def masks(kind: Any) -> Mapping[str, str]:
    """The columns of a value's class beside which another says which rows are known, each with the name of that one."""
    names = tuple(kind.__dataclass_fields__)
    masks_by_column = {}
    for mask in names:
        stem = mask.removesuffix(_MASK)
        if stem != mask:
            masks_by_column[next(name for name in names if name == stem or name.startswith(f"{stem}_"))] = mask
    return masks_by_column


def write_columns(kind: Any, facts: Mapping[str, Fact], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as the contract writes them. None is "not stated" in a row; a column that states nothing is left out.

    Columns without facts stay as they are given.
    """
    result: dict[str, Any] = {}
    for name, entries in columns.items():
        if name not in facts:
            result[name] = entries
            continue
        column = as_tuple(entries)
        if None not in column:
            result |= {name: column} if column else {}
            continue
        is_known = tuple(value is not None for value in column)
        if any(is_known) or facts[name].required:
            nothing = absent(kind, facts[name])
            result[name] = tuple(nothing if value is None else value for value in column)
            if name in masks(kind):
                result[masks(kind)[name]] = is_known
    return result


def absent(kind: Any, fact: Fact) -> Any:
    """What a row holds that states nothing in a column.

    Raises
    ------
        ValueError: where every row must state something, or none may.
    """
    if fact.kind == "enum":
        return None
    if fact.kind == "str":
        return ""
    if fact.default is not None:
        return fact.default if fact.kind != "bool" else bool(fact.default)
    if fact.field in masks(kind):
        return 0.0
    rest = "every row needs a value" if fact.required else "give every row a value, or leave the column out"
    raise ValueError(f"{fact.field} is None in a row: {rest}")


def leaves_rows_open(kind: Any, fact: Fact) -> bool:
    """Whether single rows of a column may state nothing."""
    return fact.kind in {"enum", "str"} or fact.default is not None or fact.field in masks(kind)


def read(kind: Any, columns: Any, name: str, rows: int) -> tuple[Any, ...]:
    """A column with one value per row, None where its row is not known; an empty column stays empty."""
    column_values = getattr(columns, name)
    if not len(column_values):
        return ()
    column = broadcast(tuple(column_values), rows, name)
    mask = masks(kind).get(name)
    is_known = () if mask is None else broadcast(tuple(getattr(columns, mask)), rows, mask)
    return tuple(value if sure else None for value, sure in zip(column, is_known, strict=True)) if is_known else column


def observations(**columns: Any) -> Observations:
    """Runs that were measured, as columns of `Observations`: a value for all runs or one per run; None = not known.

    `observations(configurations=configurations(nodes=[1, 2]), steps_per_second=[9.1, 17.4])`
    """
    return Observations(**write_columns(Observations, OBSERVATIONS, columns))


def phase_timings(**columns: Any) -> PhaseTimings:
    """Phases of one worker's step, as columns of `PhaseTimings`: a value for all runs or one per run; None = not known.

    `phase_timings(compute_seconds=0.21, download_seconds=0.03, upload_seconds=0.03, update_seconds=0.002)`
    """
    return PhaseTimings(**write_columns(PhaseTimings, PHASE_TIMINGS, columns))
