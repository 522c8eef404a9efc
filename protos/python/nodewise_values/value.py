"""What all values of the contract share: how they print, and how their enums keep words that are not known yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from enum import StrEnum
from typing import Any, Final

__all__ = ["Value", "Word", "unknown_number", "unknown_word"]

SHOWN_ENTRIES: Final = 6
"""Entries of a column that are printed: the first ones and, of longer columns, the last."""
SHOWN_CHARACTERS: Final = 80
_UNKNOWN: Final = re.compile(r"unknown_(-?\d{1,10})")


class Value:
    """Base of all messages as values. Prints only what is stated, and of long columns only the ends."""

    __slots__ = ()

    def __repr__(self) -> str:
        stated = []
        for each in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            held = getattr(self, each.name)
            if held != _default(each):
                stated.append(f"{each.name}={_shown(held)}")
        return f"{type(self).__name__}({', '.join(stated)})"


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _shown(held: Any) -> str:
    if isinstance(held, StrEnum):
        return repr(str(held))
    if isinstance(held, str | bytes):
        text = repr(held[: SHOWN_CHARACTERS + 1])
        return text if len(held) <= SHOWN_CHARACTERS else f"{text[:-2]}...{text[-1]}"
    if isinstance(held, Mapping):
        return "{" + ", ".join(f"{key!r}: {_shown(entry)}" for key, entry in held.items()) + "}"
    if isinstance(held, list | tuple):
        if len(held) <= SHOWN_ENTRIES + 1:
            entries = [_shown(entry) for entry in held]
        else:
            entries = [_shown(entry) for entry in held[: SHOWN_ENTRIES - 1]]
            entries += [f"... {len(held) - SHOWN_ENTRIES} more ...", _shown(held[-1])]
        return f"({', '.join(entries)}{',' if len(held) == 1 else ''})"
    return repr(held)


class Word(StrEnum):
    """Base of all enums: words such as `SyncMode.ASYNC == "async"`; unspecified is None where a field holds one.

    A number that this release does not know, from a newer server, is the word `unknown_7`: it prints, compares and goes
    back to the wire as the same number.
    """

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if not isinstance(value, str) or _UNKNOWN.fullmatch(value) is None:
            return None
        word = str.__new__(cls, value)
        word._name_ = value.upper()
        word._value_ = value
        return word


def unknown_word(number: int) -> str:
    """The word of a number that has none."""
    return f"unknown_{number}"


def unknown_number(word: str) -> int | None:
    """The number of such a word; None for any other text."""
    found = _UNKNOWN.fullmatch(word)
    return None if found is None else int(found[1])
