"""Tables of architectures: one model a row, with the facts that are known of it before it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.csv_tables import CsvTable, open_table
from nodewise_client import Architectures
from nodewise_values.fact import by_csv
from nodewise_values.facts import ARCHITECTURES

__all__ = ["ArchitectureTable", "read_architectures"]

NAME: Final = "architecture"
_FACTS: Final = by_csv(ARCHITECTURES)
_COLUMNS: Final = (NAME, *_FACTS)


@dataclass(frozen=True, slots=True)
class ArchitectureTable:
    """Architectures with their names for people, in the order of the file; one without a name is its line."""

    names: tuple[str, ...]
    architectures: Architectures


def read_architectures(path: Path) -> ArchitectureTable:
    """Read a table. Numbers that cannot be are the service's to refuse, row by row.

    Raises
    ------
    InputError
        Naming the file, and where there is one the line and the column, and what would be right.
    """
    read = open_table(path, _COLUMNS)
    _check_header(read)
    names: list[str] = []
    columns: dict[str, list[Any]] = {name: [] for name in read.header if name != NAME}
    for line, cells in read.rows:
        texts = dict(zip(read.header, (cell.strip() for cell in cells), strict=True))
        names.append(texts.pop(NAME, "") or f"line {line}")
        for name, cell in texts.items():
            columns[name].append(_value(name, cell, f"{path}:{line}"))
    if not names:
        raise InputError(f"{path}: has no rows below the header")
    families = columns.pop("family", [])
    distinct = {name: place for place, name in enumerate(dict.fromkeys(families))}
    facts = {_FACTS[name].field: tuple(column) for name, column in columns.items()}
    return ArchitectureTable(
        tuple(names),
        Architectures(**facts, family_names=tuple(distinct), family_indexes=tuple(distinct[name] for name in families)),
    )


def _check_header(read: CsvTable) -> None:
    for name in read.header:
        if name not in _COLUMNS:
            raise read.error(f"unknown column {name!r}; columns are: {', '.join(_COLUMNS)}")
    read.refuse_twice()
    if not set(read.header) & set(_FACTS):
        raise read.error(f"must have at least one of the columns {', '.join(_FACTS)}")


def _value(name: str, cell: str, where: str) -> str | float:
    fact = _FACTS[name]
    if fact.kind == "str":
        if len(cell) > (fact.maximum_length or 0):
            raise InputError(f"{where}: column {name}: must be at most {fact.maximum_length} characters")
        return cell
    try:
        value = float(cell or 0.0)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (fact.kind == "int" and (value != int(value) or abs(value) >= 2**31)):
        right = "a whole number" if fact.kind == "int" else "a number"
        raise InputError(f"{where}: column {name}: must be {right}, or empty if not known, found {cell!r}")
    return int(value) if fact.kind == "int" else value
