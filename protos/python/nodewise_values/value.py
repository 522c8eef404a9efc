"""What all values of the contract share: how they print, how some are made late, how enums keep words not known yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

__all__ = ["LazyValue", "Value", "Word", "field_getters", "lazy_value", "source_of", "unknown_number", "unknown_word"]

LazyT = TypeVar("LazyT", bound="LazyValue")
Readers: TypeAlias = Mapping[str, Callable[[Any], Any]]

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


class LazyValue(Value):
    """Base of messages of many numbers in answers; of one by `lazy_value` a field is made when it is first read.

    Whoever reads it cannot tell: comparing, printing, copying and pickling read every field first.
    """

    # A class that has `__getattr__` is read more slowly, every field of it: only these have one.
    __slots__ = ("_source",)

    if TYPE_CHECKING:
        _source: tuple[Any, Readers]
    else:

        def __getattr__(self, name: str) -> Any:
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            whole, readers = self._source
            held = readers[name](whole)
            object.__setattr__(self, name, held)
            return held


def lazy_value(kind: type[LazyT], whole: Any, readers: Readers) -> LazyT:
    """A value each of whose fields is read from something when it is first read itself.

    Parameters
    ----------
    kind : type of LazyValue
        Of the value.
    whole : object
        Holds all that the fields say, and does not change.
    readers : mapping of str to callable
        What reads a field from it, by the field's name.
    """
    value = object.__new__(kind)
    object.__setattr__(value, "_source", (whole, readers))
    return value


def source_of(value: Any) -> tuple[Any, Readers]:
    """What a value's fields are read from, and how: for who reads many columns once, and leaves none behind in it."""
    kind: Any = type(value)
    try:
        source: tuple[Any, Readers] = value._source  # noqa: SLF001  # ours
    except AttributeError:
        return value, field_getters(kind)
    return source


@cache
def field_getters(kind: Any) -> Readers:
    """What reads the fields of a class's values, by their names."""
    return {name: attrgetter(name) for name in kind.__dataclass_fields__}


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
