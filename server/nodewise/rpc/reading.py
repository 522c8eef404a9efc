"""Checks that every reader of the wire shares: fields are numbers, names and columns; what is wrong is collected."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, constant_floats, constant_ints, freeze
from nodewise.domain.facts import unstated
from nodewise.domain.findings import Findings
from nodewise_values.fact import Fact

__all__ = ["PROFILE_ID_RULE", "Reader"]

_PROFILE_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/+:@=,()#-]{0,126}[A-Za-z0-9._/+:@=,()#-])?")
PROFILE_ID_RULE: Final = (
    "must be 1 to 128 characters: letters, digits, space and . _ / + : @ = , ( ) # -, the first a letter or digit, "
    "the last no space"
)
_SHOWN: Final = 60


class Reader(Findings):
    """What is wrong in a message, field by field."""

    def identifier(self, value: str, path: str) -> str:
        """A name chosen by the client."""
        if not _PROFILE_ID.fullmatch(value):
            self.wrong(path, f"{PROFILE_ID_RULE}; found {shown(value)}")
        return value

    def text(self, value: str, path: str, longest: int = 256) -> str:
        """Text for people."""
        if len(value) > longest:
            self.wrong(path, f"must be at most {longest} characters, found {len(value)}")
        return value

    def number(
        self,
        value: float,
        path: str,
        *,
        least: float = 0.0,
        above: float | None = None,
        most: float = math.inf,
        below: float | None = None,
    ) -> float:
        """A finite number within bounds; ``above`` and ``below`` exclude their bound."""
        right = math.isfinite(value) and least <= value <= most
        if above is not None:
            right = right and value > above
        if below is not None:
            right = right and value < below
        if not right:
            self.wrong(path, f"must be {_range(least, above, most, below)}, found {value}")
        return value

    def whole(self, value: int, path: str, *, least: int = 0, most: int = 2**53) -> int:
        """A whole number within bounds."""
        if not least <= value <= most:
            self.wrong(path, f"must be a whole number from {least} to {most}, found {value}")
        return value

    def column(self, values: Sequence[Any], path: str, rows: int, fact: Fact) -> NDArray[Any]:
        """A column of numbers as its fact says: empty, one entry for all rows, or one for each."""
        default = None if fact.required else unstated(fact)
        most = math.inf if fact.maximum is None else fact.maximum
        if fact.kind != "float":
            whole = None if default is None else int(default)
            return self.ints(values, path, rows, default=whole, least=int(fact.least()), most=int(min(most, 2**31 - 1)))
        # What is not known where nothing is a value of its own: any number below 0.
        least = -math.inf if fact.default is None and not fact.required else fact.least()
        found = self.floats(values, path, rows, default=default, least=least, most=most)
        if fact.default is not None and fact.minimum is not None and fact.minimum > fact.default:
            short = (found > fact.default) & (found < fact.minimum)
            if short.any():
                row = int(short.argmax())
                self.wrong(
                    f"{path}[{row}]", f"must be {fact.default:g} or at least {fact.minimum:g}, found {found[row]}"
                )
        return found

    def stated(self, value: float, path: str, fact: Fact) -> Any:
        """A single number as its fact says."""
        most = math.inf if fact.maximum is None else fact.maximum
        if fact.kind == "int":
            return self.whole(int(value), path, least=int(fact.least()), most=int(most))
        above = fact.minimum if fact.exclusive_minimum else None
        return self.number(value, path, least=fact.least(), above=above, most=most)

    def floats(
        self,
        values: Sequence[float],
        path: str,
        rows: int,
        *,
        default: float | None,
        least: float = 0.0,
        above: float | None = None,
        most: float = math.inf,
    ) -> Floats:
        """A column of finite numbers: empty (default; None = must not be empty), one entry, or one per row."""
        column = self._column(values, path, rows, default)
        if column is None:
            return constant_floats(rows, 0.0 if default is None else default)
        array = np.array(column, dtype=np.float64)
        bad = ~np.isfinite(array) | (array < least) | (array > most)
        if above is not None:
            bad |= array <= above
        if bad.any():
            row = int(bad.argmax())
            self.wrong(f"{path}[{row}]", f"must be {_range(least, above, most, None)}, found {array[row]}")
        if len(array) == 1 and rows != 1:
            return constant_floats(rows, float(array[0]))
        return freeze(array)

    def ints(
        self, values: Sequence[int], path: str, rows: int, *, default: int | None, least: int = 0, most: int = 2**31 - 1
    ) -> Ints:
        """A column of whole numbers: empty (default; None = must not be empty), one entry, or one per row."""
        column = self._column(values, path, rows, default)
        if column is None:
            return constant_ints(rows, 0 if default is None else default)
        array = np.array(column, dtype=np.int64)
        if array.min() < least or array.max() > most:
            row = int(((array < least) | (array > most)).argmax())
            self.wrong(f"{path}[{row}]", f"must be a whole number from {least} to {most}, found {array[row]}")
        if len(array) == 1 and rows != 1:
            return constant_ints(rows, int(array[0]))
        return freeze(array)

    def _column(
        self, values: Sequence[float] | Sequence[int], path: str, rows: int, default: float | None
    ) -> Sequence[float] | Sequence[int] | None:
        if not values:
            if default is None and rows:
                self.wrong(path, "must be given")
            return None
        if len(values) not in (1, rows):
            self.wrong(path, f"must have one entry, or one for each of {rows} rows; found {len(values)}")
            return None
        return values


def shown(value: str) -> str:
    """A value from a caller as it may stand in a message: quoted, bounded, printable."""
    text = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
    return ascii(text)


def _range(least: float, above: float | None, most: float, below: float | None) -> str:
    low = f"above {above:g}" if above is not None else ("" if least == -math.inf else f"at least {least:g}")
    high = f"below {below:g}" if below is not None else ("" if most == math.inf else f"at most {most:g}")
    bounds = " and ".join(part for part in (low, high) if part)
    return f"a finite number {bounds}".rstrip()
