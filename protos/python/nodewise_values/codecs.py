"""Single entries of fields: what Python may give for each type of the wire, and what JSON may."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import index
from typing import Any, Final

from nodewise_values.value import Word, unknown_number, unknown_word

__all__ = ["INSTANT", "SCALARS", "Codec", "EntryError", "enum_codec", "shown"]

_SHOWN: Final = 60


class EntryError(Exception):
    """An entry that is not what its field holds; the text says what would be right.

    Attributes
    ----------
    field : str
        Where it was, as far as that is known.
    """

    field: str = ""


@dataclass(frozen=True, slots=True)
class Codec:
    """How entries of one type are checked.

    Attributes
    ----------
    name : str
        What an entry is, for people, e.g. "a whole number".
    entry : callable
        Python's entry to the wire's. Raises :class:`EntryError`.
    column : callable
        All entries of a list or tuple at once; None = look at them one by one, something may be wrong.
    from_json : callable
        What JSON holds to Python's entry. Raises :class:`EntryError`.
    exact : type or None
        Whatever is just of this type is the wire's entry already, or a message refuses it.
    """

    name: str
    entry: Callable[[Any], Any]
    column: Callable[[Sequence[Any]], Sequence[Any] | None]
    from_json: Callable[[Any], Any]
    exact: type | None = None


def shown(value: object) -> str:
    """Something that was found, bounded and printable, for an error."""
    text = ascii(str(value) if isinstance(value, str) else value)
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "..."
    return text


def _same_type(kind: type) -> Callable[[Sequence[Any]], Sequence[Any] | None]:
    allowed = {kind}
    return lambda entries: entries if set(map(type, entries)) <= allowed else None


def _whole(least: int, most: int) -> Codec:
    name = "a whole number"

    def entry(value: Any) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise EntryError(f"must be {name}, found {shown(value)}")
        number = index(value)
        if not least <= number <= most:
            raise EntryError(f"must be {name} from {least} to {most}, found {number}")
        return number

    def column(entries: Sequence[Any]) -> Sequence[Any] | None:
        if set(map(type, entries)) != {int} or min(entries) < least or max(entries) > most:
            return None
        return entries

    def from_json(value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            return entry(int(value))
        if isinstance(value, str):
            try:
                return entry(int(value))
            except ValueError:
                raise EntryError(f"must be {name}, found {shown(value)}") from None
        return entry(value)

    return Codec(name, entry, column, from_json, int)


def _float(value: Any) -> float:
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise EntryError(f"must be a finite number, found {shown(value)}")
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = math.inf
    if not math.isfinite(number):
        raise EntryError(f"must be a finite number, found {shown(value)}")
    return number


def _float_column(entries: Sequence[Any]) -> Sequence[Any] | None:
    # A sum that is finite has finite terms only; one that is not may have overflowed.
    try:
        numbers = set(map(type, entries)) <= {float, int}
        return entries if numbers and (math.isfinite(sum(entries)) or all(map(math.isfinite, entries))) else None
    except OverflowError:  # a whole number that no float holds
        return None


def _float_from_json(value: Any) -> float:
    if isinstance(value, str):
        try:
            return _float(float(value))
        except ValueError:
            raise EntryError(f"must be a finite number, found {shown(value)}") from None
    return _float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise EntryError(f"must be true or false, found {shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise EntryError(f"must be text, found {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise EntryError(f"must be text that UTF-8 can hold, found {shown(value)}") from None
    return value


def _text_column(entries: Sequence[Any]) -> Sequence[Any] | None:
    return entries if set(map(type, entries)) <= {str} and "".join(entries).isascii() else None


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise EntryError(f"must be bytes, found {shown(value)}")
    return bytes(value)


def _bytes_from_json(value: Any) -> bytes:
    plain = _text(value).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:  # no base64, or not even ASCII
        raise EntryError(f"must be bytes in base64, found {shown(value)}") from None


def _instant(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise EntryError(f"must be a date and time with a time zone, found {shown(value)}")
    return value


def _instant_from_json(value: Any) -> datetime:
    try:
        return _instant(datetime.fromisoformat(_text(value)))
    except ValueError:
        raise EntryError(f'must be a date and time such as "2026-11-22T12:00:00Z", found {shown(value)}') from None


_INT32: Final = _whole(-(2**31), 2**31 - 1)
_INT64: Final = _whole(-(2**63), 2**63 - 1)
_UINT32: Final = _whole(0, 2**32 - 1)
_UINT64: Final = _whole(0, 2**64 - 1)
_DOUBLE: Final = Codec("a finite number", _float, _float_column, _float_from_json)

SCALARS: Final[Mapping[str, Codec]] = {
    "bool": Codec("true or false", _flag, _same_type(bool), _flag, bool),
    "bytes": Codec("bytes", _bytes, _same_type(bytes), _bytes_from_json, bytes),
    "double": _DOUBLE,
    "int32": _INT32,
    "int64": _INT64,
    "sint32": _INT32,
    "sint64": _INT64,
    "string": Codec("text", _text, _text_column, _text, str),
    "uint32": _UINT32,
    "uint64": _UINT64,
}
"""Codecs by the contract's names of types."""
INSTANT: Final = Codec("a date and time", _instant, lambda _: None, _instant_from_json)


class Words(dict[int, Word | None]):
    """Words of an enum by number; a number that is not known has the word that says so."""

    def __init__(self, kind: type[Word], numbers: Mapping[str, int]) -> None:
        super().__init__({number: kind(word) for word, number in numbers.items()} | {0: None})
        self._kind = kind

    def __missing__(self, number: int) -> Word:
        return self._kind(unknown_word(number))


def enum_codec(numbers: Mapping[str, int], names: Mapping[str, int]) -> Codec:
    """The codec of an enum.

    Parameters
    ----------
    numbers : mapping of str to int
        Numbers of its words.
    names : mapping of str to int
        Numbers of the contract's names, unspecified included; JSON may hold these, words, or numbers.
    """
    by_word: dict[Any, int] = {None: 0, **numbers}
    name = "one of " + ", ".join(numbers)

    def entry(value: Any) -> int:
        number = by_word.get(value) if value is None or isinstance(value, str) else None
        if number is None and isinstance(value, str):
            number = unknown_number(value)
            if number is not None:
                number = _INT32.entry(number)
        if number is None:
            raise EntryError(f"must be {name}, found {shown(value)}")
        return number

    def column(entries: Sequence[Any]) -> Sequence[Any] | None:
        try:
            return [by_word[value] for value in entries]
        except (KeyError, TypeError):
            return None

    def from_json(value: Any) -> str | None:
        if isinstance(value, str):
            number = names.get(value, by_word.get(value, unknown_number(value)))
            if number is None:
                example = next(name for name, known in names.items() if known)
                raise EntryError(f"must be {name} (or the contract's names, such as {example}), found {shown(value)}")
        else:
            number = _INT32.from_json(value)
        found = next((word for word, known in numbers.items() if known == number), None)
        return None if number == 0 else found or unknown_word(number)

    return Codec(name, entry, column, from_json)
