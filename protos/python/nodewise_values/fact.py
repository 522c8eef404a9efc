"""One fact about a column or another field of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["Fact", "by_csv", "by_field"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What is known of a field besides its type.

    Attributes
    ----------
    field : str
        Name on the wire, and in the values.
    row : str
        Name of the value that one row has, in the service.
    csv : str or None
        Column of a table of measurements; None = none.
    kind : str
        Type of an entry.
    whole : bool
        Whole numbers only, though the type holds others.
    unit : str
        Empty = dimensionless, or no number.
    default : int, float or None
        What a row holds that states nothing; below ``minimum`` it means just that. None = the job's evidence says, or
        nothing is known.
    minimum, maximum : int, float or None
        Bounds, of an enum those of its numbers; None = the type's, or a limit of the server's own.
    exclusive_minimum : bool
        Values must lie above the minimum.
    maximum_length : int or None
        Most characters of a text.
    required : bool
        Must be given; of a column, one entry for all rows or one for each.
    meaning : str
        What it says, in the contract's words.
    """

    field: str
    row: str
    csv: str | None
    kind: Literal["int", "float", "bool", "str", "enum"]
    unit: str
    whole: bool = False
    default: int | float | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: bool = False
    maximum_length: int | None = None
    required: bool = False
    meaning: str

    def least(self) -> int | float:
        """The least number that may stand in the field: the minimum, or the default where that lies below."""
        numbers = [number for number in (self.minimum, self.default) if number is not None]
        return min(numbers, default=0)


def by_field(*facts: Fact) -> Mapping[str, Fact]:
    """Facts by their names on the wire."""
    return MappingProxyType({fact.field: fact for fact in facts})


def by_csv(*tables: Mapping[str, Fact]) -> Mapping[str, Fact]:
    """Facts of several messages by columns of a table of measurements; of two with the same column the first."""
    found: dict[str, Fact] = {}
    for facts in tables:
        for fact in facts.values():
            if fact.csv is not None:
                found.setdefault(fact.csv, fact)
    return MappingProxyType(found)
