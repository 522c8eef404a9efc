"""Checks of what messages hold: fields are numbers, names and columns; what is wrong is collected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np
from google.protobuf.descriptor import Descriptor
from numpy.typing import NDArray

from nodewise.domain.columns import SHARED_ROWS, Floats, Ints, as_ints, constant_floats, constant_ints, freeze
from nodewise.domain.facts import default_of
from nodewise.domain.findings import Findings
from nodewise.domain.profile import UNKNOWN
from nodewise_values.fact import Fact
from nodewise_values.facts import BY_MESSAGE

__all__ = ["PROFILE_ID_RULE", "Reader", "TrustingReader", "quote"]

_PROFILE_ID: Final = re.compile(r"(?!.*/(?:\.{0,2}/))[A-Za-z0-9](?:[A-Za-z0-9._~/-]{0,126}[A-Za-z0-9])?")
PROFILE_ID_RULE: Final = (
    "must be 1 to 128 characters: letters, digits and - . _ ~ /, the first and the last a letter or digit,"
    " no //, /./ or /../"
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 60


class Reader(Findings):
    """What is wrong in a message, field by field.

    Parameters
    ----------
    checks : mapping of type to callable
        (value, path, reader): what more than one field says of a value of this type, wherever it stands in the message.
    parts : mapping of type to callable
        (message, path, reader): reads a part of this type, in place of the mapper.
    """

    TRUSTS: ClassVar = False

    def __init__(
        self,
        checks: Mapping[type, Callable[[Any, str, Reader], None]] = MappingProxyType({}),
        parts: Mapping[type, Callable[[Any, str, Reader], Any]] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self.checks = checks
        self.parts = parts

    def at_most(self, values: Sized, path: str, most: int, what: str = "") -> bool:
        """Whether a list is no longer than it may be."""
        fits = len(values) <= most
        if not fits:
            self.wrong(path, f"must hold at most {most}{what and ' '}{what}, found {len(values)}")
        return fits

    def alike(self, path: str, **columns: Sized) -> None:
        """Lists have as many entries as the first of them."""
        (first, entries), *others = columns.items()
        for name, values in others:
            if len(values) != len(entries):
                text = f"must have as many entries as {first} ({len(entries)}), found {len(values)}"
                self.wrong(f"{path}{name}", text)

    def identifier(self, value: str, path: str) -> str:
        """A name chosen by the client."""
        if not _PROFILE_ID.fullmatch(value):
            self.wrong(path, f"{PROFILE_ID_RULE}; found {quote(value)}")
        return value

    def sha256(self, value: str, path: str) -> str:
        """The hash of a trace or a run."""
        if not _SHA256.fullmatch(value):
            self.wrong(path, "must be 64 hexadecimal digits in lower case")
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
    ) -> float:
        """A finite number within bounds; ``above`` excludes its bound."""
        if not (math.isfinite(value) and least <= value <= most and (above is None or value > above)):
            self.wrong(path, f"must be {_range(least, above, most)}, found {value}")
        return value

    def whole(self, value: int, path: str, *, least: int = 0, most: int = 2**53) -> int:
        """A whole number within bounds."""
        if not least <= value <= most:
            self.wrong(path, f"must be a whole number from {least} to {most}, found {value}")
        return value

    def read_scalars(
        self, message: Any, path: str, *, but: Collection[str] = (), most: float = math.inf
    ) -> dict[str, Any]:
        """The single values that a message states, checked, by their names in a row; what is absent is left out.

        Parameters
        ----------
        but : collection of str
            Fields to leave out.
        most : float
            Greatest number where the facts name none.
        """
        scalars: dict[str, Any] = {}
        for fact, optional in _singles(message.DESCRIPTOR):
            if fact.field in but or (optional and not message.HasField(fact.field)):
                continue
            value = getattr(message, fact.field)
            if fact.kind == "str":
                if value:
                    scalars[fact.row] = self.text(value, f"{path}{fact.field}", fact.maximum_length or 256)
            elif fact.kind != "enum" or value:
                scalars[fact.row] = self.single(value, f"{path}{fact.field}", fact, most)
        return scalars

    def single(self, value: float, path: str, fact: Fact, most: float = math.inf) -> Any:
        """A single number as its fact says: within its bounds; whole ones become ``int``."""
        if fact.kind == "bool":
            return bool(value)
        most = most if fact.maximum is None else fact.maximum
        least = -math.inf if fact.minimum is None else fact.minimum
        if fact.kind == "float" and not fact.whole:
            return self.number(value, path, least=least, above=least if fact.exclusive_minimum else None, most=most)
        if not math.isfinite(value) or value != int(value) or not least <= value <= most:
            high = 2**31 - 1 if most == math.inf else most
            self.wrong(path, f"must be a whole number from {least:.0f} to {high:.0f}, found {value:g}")
            return int(value) if self.TRUSTS else 0
        return int(value)

    def column(
        self, values: Sequence[Any], path: str, rows: int, fact: Fact, mask: Sequence[bool] | None = None
    ) -> NDArray[Any]:
        """A column of numbers as its fact says: empty, one entry for all rows, or one for each.

        ``known`` is the column of booleans beside it that says which rows are known; empty = all of them.
        """
        default = None if fact.required else default_of(fact)
        most = math.inf if fact.maximum is None else fact.maximum
        if fact.kind != "float":
            usual, top = None if default is None else int(default), int(min(most, 2**31 - 1))
            if usual != 1 or fact.minimum == 0:
                return self.ints(values, path, rows, default=usual, least=int(fact.least()), most=top)
            # 0 states nothing in a row where it can be no value.
            whole = self.ints(values, path, rows, default=usual, most=top)
            return whole if whole.all() else freeze(np.where(whole == 0, usual, whole))
        if len(values) == 1 and not mask:
            return self._constant(values[0], f"{path}[0]", rows, fact)
        # A default at the bound is what states nothing, and may stand there.
        above = fact.minimum if fact.exclusive_minimum and fact.minimum != default else None
        numbers = self.floats(values, path, rows, default=default, least=fact.least(), above=above, most=most)
        if fact.default is not None and fact.minimum is not None and fact.minimum > fact.default:
            short = (numbers > fact.default) & (numbers < fact.minimum)
            if short.any():
                row = int(short.argmax())
                self.wrong(
                    f"{path}[{row}]", f"must be {fact.default:g} or at least {fact.minimum:g}, found {numbers[row]:g}"
                )
        if fact.whole:
            return self._whole(numbers, path, rows)
        return self.mask_unknown(numbers, path, rows, mask)

    def _constant(self, value: float, path: str, rows: int, fact: Fact) -> NDArray[Any]:
        """One number for all rows; what states nothing is the default."""
        if value != fact.default:
            value = self.single(value, path, fact)
        return constant_ints(rows, int(value)) if fact.whole else constant_floats(rows, float(value))

    def _whole(self, column: Floats, path: str, rows: int) -> Ints:
        if not self.clean:
            return constant_ints(rows, 0)
        whole = column.astype(np.int64)
        parts = whole != column
        if parts.any():
            row = int(parts.argmax())
            self.wrong(f"{path}[{row}]", f"must be a whole number, found {column[row]:g}")
        return freeze(whole)

    def mask_unknown(self, column: Floats, path: str, rows: int, known_rows: Sequence[bool] | None) -> Floats:
        """A column with -1 in the rows that the column of booleans beside it says are not known; empty = all are."""
        if not known_rows:
            return column
        if len(known_rows) not in (1, rows):
            mask = f"{path.removesuffix('_seconds')}_known"
            self.wrong(mask, f"must have one entry, or one for each of {rows} rows; found {len(known_rows)}")
            return column
        return freeze(np.where(np.array(known_rows, dtype=np.bool_), column, UNKNOWN))

    def entries(
        self, message: Any, path: str, rows: int, of: str, name: Fact, *, nothing: int = 0, elsewhere: bool = False
    ) -> Ints:
        """Row to entry of a dictionary of names, ``nothing`` where there is no dictionary.

        Parameters
        ----------
        of : str
            What is named; the fields are its ``_names`` and ``_indexes``.
        name : Fact
            Of a name.
        elsewhere : bool
            Whether another column says the entries where this one is empty.
        """
        names, indexes = getattr(message, f"{of}_names"), getattr(message, f"{of}_indexes")
        for number, each in enumerate(names):
            self.text(each, f"{path}.{of}_names[{number}]", name.maximum_length or 64)
        if not names:
            if indexes:
                self.wrong(f"{path}.{of}_indexes", f"must be empty without {of}_names")
            return constant_ints(rows, nothing)
        indexes_of_rows = self.ints(indexes, f"{path}.{of}_indexes", rows, default=0, most=len(names) - 1)
        if len(names) > 1 and not indexes and not elsewhere:
            self.wrong(f"{path}.{of}_indexes", f"must be given when there is more than one {of} name")
        return indexes_of_rows

    def offsets(self, values: Sequence[int], path: str, rows: int, entries: int, of: str) -> Ints | None:
        """Where the entries of each row begin, and at last where they end; None = they are wrong."""
        numbers = list(values)
        if len(numbers) != rows + 1 or numbers[0] != 0 or numbers[-1] != entries or numbers != sorted(numbers):
            self.wrong(path, f"must be {rows + 1} ascending numbers from 0 to {entries} (the entries of {of})")
            return None
        return as_ints(numbers)

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
        if not self._has_rows(values, path, rows, default):
            return constant_floats(rows, default or 0.0)
        array = np.array(values, dtype=np.float64)
        bad = ~np.isfinite(array) | (array < least) | (array > most)
        if above is not None:
            bad |= array <= above
        if bad.any():
            row = int(bad.argmax())
            self.wrong(f"{path}[{row}]", f"must be {_range(least, above, most)}, found {array[row]}")
        return constant_floats(rows, float(array[0])) if len(array) == 1 and rows != 1 else freeze(array)

    def ints(
        self, values: Sequence[int], path: str, rows: int, *, default: int | None, least: int = 0, most: int = 2**31 - 1
    ) -> Ints:
        """A column of whole numbers: empty (default; None = must not be empty), one entry, or one per row."""
        if not self._has_rows(values, path, rows, default):
            return constant_ints(rows, default or 0)
        numbers = values[:]  # a list of a message's numbers is quicker than the numbers
        array = np.array(numbers, dtype=np.int64)
        short = len(array) <= SHARED_ROWS
        if (min(numbers) if short else np.minimum.reduce(array)) < least or (
            max(numbers) if short else np.maximum.reduce(array)
        ) > most:
            row = int(((array < least) | (array > most)).argmax())
            self.wrong(f"{path}[{row}]", f"must be a whole number from {least} to {most}, found {array[row]}")
        return constant_ints(rows, int(array[0])) if len(array) == 1 and rows != 1 else freeze(array)

    def _has_rows(self, values: Sequence[float], path: str, rows: int, default: float | None) -> bool:
        """Whether a column holds numbers for its rows."""
        if not values:
            if default is None and rows:
                self.wrong(path, "must be given")
            return False
        if len(values) not in (1, rows):
            self.wrong(path, f"must have one entry, or one for each of {rows} rows; found {len(values)}")
            return False
        return True


class TrustingReader(Reader):
    """For messages that this server wrote itself, into which bounds of requests do not go: nothing in them is wrong."""

    def wrong(self, path: str, description: str) -> None:
        """Nothing is."""

    contradicts = wrong
    TRUSTS = True


_plans: Final[dict[str, tuple[tuple[Fact, bool], ...]]] = {}


def _singles(message: Descriptor) -> tuple[tuple[Fact, bool], ...]:
    """The facts of fields that hold one value, and whether these tell presence."""
    plan = _plans.get(message.full_name)
    if plan is None:
        fields = ((fact, message.fields_by_name[fact.field]) for fact in BY_MESSAGE[message.full_name].values())
        plan = tuple((fact, bool(field.has_presence)) for fact, field in fields if not field.is_repeated)
        _plans[message.full_name] = plan
    return plan


def quote(value: str) -> str:
    """A value from a caller as it may stand in a message: quoted, bounded, printable."""
    text = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
    return ascii(text)


def _range(least: float, above: float | None, most: float) -> str:
    low = f"above {above:g}" if above is not None else ("" if least == -math.inf else f"at least {least:g}")
    high = "" if most == math.inf else f"at most {most:g}"
    bounds = " and ".join(part for part in (low, high) if part)
    return f"a finite number {bounds}".rstrip()
