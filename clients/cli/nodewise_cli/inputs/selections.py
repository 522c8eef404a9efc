"""Selections of rows: ``workers=4,sync=async`` as in ``--also-train``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.columns import COLUMNS, CellError
from nodewise_cli.inputs.tables import Table

__all__ = ["also_trained"]

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARABLE_TYPES: Final = (int, float, datetime)
_CONDITION: Final = re.compile(r"\s*([A-Za-z_0-9]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
# A comma ends a condition only before another one: names of jobs may hold commas.
_COMMA: Final = re.compile(rf",(?=\s*(?:{'|'.join(COLUMNS)})\s*[<>!=])")
_FORM: Final = (
    "must be conditions joined by commas, each a column, one of = != < <= > >= and a value, such as workers=4"
)


_Condition: TypeAlias = tuple[str, str, Any]
"""A column, an operator, and what the column is compared with."""


def also_trained(table: Table, expressions: Sequence[str], option: str) -> tuple[Table, int]:
    """The table with the test rows that meet any of the expressions turned into train rows, and how many these are.

    Raises
    ------
    InputError
        For an expression that cannot be read, or one that selects a row which was not measured.
    """
    selections = [[_condition(part, option) for part in _COMMA.split(expression)] for expression in expressions]
    split, count = list(table.columns["split"]), 0
    for row, word in enumerate(split):
        if word == "train" or not any(all(_holds(table, row, *one) for one in parts) for parts in selections):
            continue
        if table.columns["steps_per_s"][row] is None:
            raise table.error(row, f"column steps_per_s: must be given in a row that {option} selects")
        split[row] = "train"
        count += 1
    return replace(table, columns={**table.columns, "split": tuple(split)}), count


def _holds(table: Table, row: int, column: str, symbol: str, value: Any) -> bool:
    """Whether a row meets a condition. A cell that is not known equals nothing, and is neither below nor above it."""
    cell = table.columns[column][row]
    return symbol == "!=" if cell is None else _OPERATORS[symbol](cell, value)


def _condition(part: str, option: str) -> _Condition:
    match = _CONDITION.fullmatch(part)
    if match is None or not match[3]:
        raise InputError(f"{option}: {_FORM}, found {part.strip()!r}")
    name, symbol, cell = match.groups()
    if name not in COLUMNS:
        raise InputError(f"{option}: unknown column {name!r}; columns are: {', '.join(COLUMNS)}")
    if name == "steps_per_s":
        raise InputError(f"{option}: must not select by steps_per_s, which is what the estimators predict")
    try:
        value = COLUMNS[name](cell)
    except CellError as error:
        raise InputError(f"{option}: {name} {error}, found {cell!r}") from None
    if symbol not in {"=", "==", "!="} and (isinstance(value, bool) or not isinstance(value, _COMPARABLE_TYPES)):
        raise InputError(f"{option}: {name} has no order: compare it with = or !=, found {symbol}")
    return name, symbol, value
