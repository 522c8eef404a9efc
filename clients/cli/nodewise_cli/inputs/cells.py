"""Cells of a measurements table: from text to a value, or to what would be right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from nodewise_cli.inputs.bounds import demanded, within
from nodewise_values.fact import Fact

__all__ = [
    "CellError",
    "CellParser",
    "by_fact",
    "choice",
    "groups",
    "moment",
    "placement",
    "text",
]

CellParser = Callable[[str], Any]
"""Reads a cell that is not empty."""

MOST_INT32: Final = (1 << 31) - 1
LONGEST: Final = 256
"""Characters of a text that nothing else bounds."""
TRUE: Final = frozenset({"true", "1", "yes"})
FALSE: Final = frozenset({"false", "0", "no"})
_GROUP: Final = re.compile(r"([0-9]{1,7})(?:\s*x\s*([^*]*[^*\s]))?(?:\s*\*\s*([0-9.]+))?")


class CellError(ValueError):
    """A cell that holds what it must not; the text begins with "must be"."""


def by_fact(fact: Fact) -> CellParser:
    """What a field of the contract holds in a row that states it."""
    if fact.kind == "bool":
        return flag
    if fact.kind == "str":
        return text(fact.maximum_length or LONGEST)
    if fact.kind == "int" or fact.whole:
        return whole(int(fact.minimum or 0), int(fact.maximum or MOST_INT32))

    def parse(cell: str) -> float:
        value = _float(cell)
        if value is None or not within(fact, value):
            raise CellError(demanded(fact))
        return value

    return parse


def text(most: int) -> CellParser:
    """Any text of at most so many characters."""

    def parse(cell: str) -> str:
        if len(cell) > most:
            raise CellError(f"must be at most {most} characters")
        return cell

    return parse


def choice(*words: str) -> CellParser:
    """One of some words."""
    listed = f"{', '.join(words[:-1])} or {words[-1]}"

    def parse(cell: str) -> str:
        if cell not in words:
            raise CellError(f"must be {listed}")
        return cell

    return parse


def whole(least: int, most: int = MOST_INT32) -> CellParser:
    """A whole number; ``4.0`` is one, as spreadsheets and data frames write it."""

    def parse(cell: str) -> int:
        value = _float(cell)
        if value is None or not value.is_integer():
            raise CellError(f"must be a whole number of at least {least}")
        if value < least:
            raise CellError(f"must be at least {least}")
        if value > most:
            raise CellError(f"must be at most {most}")
        return int(value)

    return parse


def flag(cell: str) -> bool:
    """True or false."""
    word = cell.lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise CellError("must be true or false")


def placement(cell: str) -> tuple[int, ...]:
    """Workers on each node, e.g. ``4+4``."""
    parts = cell.split("+")
    if not all(part.strip().isascii() and part.strip().isdigit() and int(part) >= 1 for part in parts):
        raise CellError("must be the workers on each node joined by +, each at least 1, such as 4+4")
    return tuple(int(part) for part in parts)


def groups(cell: str) -> tuple[tuple[int, str, float], ...]:
    """Workers that are not alike: how many, on which device (empty = the row's), the factor of their compute time."""
    found = []
    for part in cell.split("+"):
        match = _GROUP.fullmatch(part.strip())
        factor = None if match is None else _float(match[3] or "1")
        if match is None or not factor or int(match[1]) < 1:
            raise CellError(
                "must be groups of workers joined by +, each a number, x and a device unless it is the row's, and * "
                "and a factor of their compute time unless it is 1, such as 6+2*1.5 or 4xV100+4xK80"
            )
        found.append((int(match[1]), match[2] or "", factor))
    return tuple(found)


def moment(cell: str) -> datetime:
    """A time: seconds since 1970, or ISO 8601 (UTC where it names no zone)."""
    seconds = _float(cell)
    try:
        found = datetime.fromisoformat(cell) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise CellError("must be a time as 2026-03-01T12:00:00Z (ISO 8601) or as seconds since 1970 above 0") from None
    if found.timestamp() <= 0 if found.tzinfo else found.replace(tzinfo=UTC).timestamp() <= 0:
        raise CellError("must be a time after 1970")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _float(cell: str) -> float | None:
    """A finite number in plain ASCII, or None."""
    if not cell.isascii() or "_" in cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
