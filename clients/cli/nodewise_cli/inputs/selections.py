"""Selections of rows: ``workers=4,sync=async`` as in ``--also-train``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.columns import COLUMNS, CellError
from nodewise_cli.inputs.tables import Table

__all__ = ["Condition", "also_trained", "parse_selection"]

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ORDERED: Final = (int, float, datetime)
_CONDITION: Final = re.compile(r"\s*([A-Za-z_0-9]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
# A comma ends a condition only before another one: names of jobs may hold commas.
_COMMA: Final = re.compile(rf",(?=\s*(?:{'|'.join(COLUMNS)})\s*[<>!=])")
_FORM: Final = (
    "must be COLUMN OPERATOR VALUE, several joined by commas, with operators = != < <= > >=, such as workers=4"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A column compared with a value. A cell that is not known equals nothing, and is neither below nor above it."""

    column: str
    symbol: str
    value: Any

    def holds(self, table: Table, row: int) -> bool:
        """Whether a row meets it."""
        found = table.columns[self.column][row]
        if found is None:
            return self.symbol == "!="
        return _OPERATORS[self.symbol](found, self.value)


def parse_selection(expression: str, option: str) -> tuple[Condition, ...]:
    """Conditions that a row must meet together.

    Raises
    ------
    InputError
        Naming the option, the part that is wrong, and what would be right.
    """
    return tuple(_condition(part, option) for part in _COMMA.split(expression))


def also_trained(table: Table, expressions: Sequence[str], option: str) -> tuple[Table, int]:
    """The table with the test rows that meet any of the expressions turned into train rows, and how many these are.

    Raises
    ------
    InputError
        For an expression that cannot be read, or one that selects a row which was not measured.
    """
    selections = [parse_selection(expression, option) for expression in expressions]
    split = list(table.columns["split"])
    count = 0
    for row, word in enumerate(split):
        if word == "train" or not any(all(one.holds(table, row) for one in parts) for parts in selections):
            continue
        if table.columns["steps_per_s"][row] is None:
            raise table.error(row, f"column steps_per_s: must be given in a row that {option} selects to learn from")
        split[row] = "train"
        count += 1
    return table.with_split(tuple(split)), count


def _condition(part: str, option: str) -> Condition:
    match = _CONDITION.fullmatch(part)
    if match is None or not match[3]:
        raise InputError(f"{option}: {_FORM}, found {part.strip()!r}")
    name, symbol, cell = match.groups()
    if name not in COLUMNS:
        raise InputError(f"{option}: unknown column {name!r}; known are: {', '.join(COLUMNS)}")
    if name == "steps_per_s":
        raise InputError(
            f"{option}: must not select by steps_per_s: what is predicted must not decide what is learned from"
        )
    try:
        value = COLUMNS[name](cell)
    except CellError as error:
        raise InputError(f"{option}: {name} {error}, found {cell!r}") from None
    if symbol not in {"=", "==", "!="} and (isinstance(value, bool) or not isinstance(value, _ORDERED)):
        raise InputError(f"{option}: {name} has no order, must be compared with = or !=, found {symbol}")
    return Condition(name, symbol, value)
