"""Trees that come again: read once, and made into a plan that puts the values together from the arrays alone.

Calls of one kind differ in their arrays. What of a tree depends on nothing else, and cannot be changed, is built once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nodewise.domain.configurations import COLUMNS, Configurations
from nodewise.domain.predictions import Predictions
from nodewise.hosting.processes.kinds import FIELDS, VALUES
from nodewise.hosting.processes.rows import GROUPS, OPTIONAL, OTHERS, PLAIN

if TYPE_CHECKING:
    from nodewise.hosting.processes.decoder import Decoder

__all__ = ["Planned", "Plans"]

MOST_PLANS: Final = 128
MOST_BYTES: Final = 4_096
"""Of a tree that is remembered: with its plan it takes some twenty times as much."""

Build = Callable[["Decoder"], Any]
_FIXED: Final = frozenset("eifk")
"""Tags of what is the same each time."""


class Planned:
    """A part of a tree that is planned, in place of the part."""

    __slots__ = ("build",)

    def __init__(self, build: Build) -> None:
        self.build = build


class _Fixed:
    """What is the same each time, and cannot be changed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _: Decoder) -> Any:
        return self.value


class Plans:
    """Plans of one reader, by the bytes of trees; the least recently used go first."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, list[Build] | None] = OrderedDict()

    def get(self, tree: bytes) -> list[Build] | None:
        """Of a tree, one for each of its values; None = there is none."""
        found = self._known.get(tree)
        if found is not None:
            self._known.move_to_end(tree)
        return found

    def saw(self, tree: bytes, entries: list[Any], decoder: Decoder) -> None:
        """A tree was read; what is read the second time is planned."""
        if len(tree) > MOST_BYTES:
            return
        self._known[tree] = [_planned(entry, decoder) for entry in entries] if tree in self._known else None
        if len(self._known) > MOST_PLANS:
            self._known.popitem(last=False)


def _planned(entry: Any, decoder: Decoder) -> Build:
    """The plan of a part that has been read without a fault."""
    kind = type(entry)
    if kind is dict:
        parts = {key: _planned(each, decoder) for key, each in entry.items()}
        return lambda found: {key: build(found) for key, build in parts.items()}
    if kind is not list:
        return _Fixed(entry)
    tag = entry[0]
    if tag in _FIXED:
        return _Fixed(decoder.one(entry))
    plan = _PLANNERS.get(tag)
    # What is not listed is read as it always is.
    return (lambda found: found.one(entry)) if plan is None else plan(entry, decoder)


def _all(entries: list[Any], decoder: Decoder) -> list[Build]:
    return [_planned(each, decoder) for each in entries]


def _array(entry: list[Any], _: Decoder) -> Build:
    tag, char, size, begin = entry
    if tag != "a" or not size:
        return lambda found: found.array(entry)
    frombuffer = np.frombuffer
    return lambda found: frombuffer(found.arrays, char, size, begin)


def _tuple(entry: list[Any], decoder: Decoder) -> Build:
    parts = _all(entry[1:], decoder)
    if _are_fixed(parts):
        return _Fixed(decoder.one(entry))
    return lambda found: tuple([build(found) for build in parts])


def _list(entry: list[Any], decoder: Decoder) -> Build:
    parts = _all(entry[1:], decoder)
    return lambda found: [build(found) for build in parts]


def _value(entry: list[Any], decoder: Decoder) -> Build:
    parts, kind = _all(entry[2:], decoder), VALUES[entry[1]]
    if _are_fixed(parts):
        return _Fixed(decoder.one(entry))
    fields = FIELDS[kind]
    return lambda found: kind(**dict(zip(fields, [build(found) for build in parts], strict=True)))


def _options(entry: list[Any], decoder: Decoder) -> Build:
    return _Fixed(decoder.one(entry)) if _are_fixed(_all(entry[2:], decoder)) else lambda found: found.one(entry)


def _new(entry: list[Any], decoder: Decoder) -> Build:
    """A large value that is kept under a number by who reads it."""
    tag, number, value = entry
    part = [tag, number, Planned(_planned(value, decoder))]
    return lambda found: found.one(part)


def _configurations(entry: list[Any], decoder: Decoder) -> Build:
    _, distinct, places, *others = entry
    columns, rest = _all(distinct, decoder), _all(others, decoder)
    names = ("devices", "precisions", "placement", "worker_groups")

    def build(found: Decoder) -> Configurations:
        values = [column(found) for column in columns]
        fields: dict[str, Any] = dict(zip(COLUMNS, [values[place] for place in places], strict=True))
        for name, other in zip(names, rest, strict=True):
            fields[name] = other(found)
        return Configurations(**fields)

    return build


def _predictions(entry: list[Any], decoder: Decoder) -> Build:
    _, columns, names, there, *others = entry
    builds, rest = _all(columns, decoder), _all(others, decoder)
    place = iter(range(len(builds)))
    plain = {name: next(place) for name in PLAIN}
    groups = {group: {key: next(place) for key in keys} for group, keys in zip(GROUPS, names, strict=True)}
    optional = {name: next(place) for name, is_there in zip(OPTIONAL, there, strict=True) if is_there}
    missing: dict[str, Any] = dict.fromkeys(set(OPTIONAL) - set(optional))

    def build(found: Decoder) -> Predictions:
        values = [column(found) for column in builds]
        fields: dict[str, Any] = {name: values[place] for name, place in plain.items()}
        for group, keys in groups.items():
            fields[group] = {key: values[place] for key, place in keys.items()}
        for name, place in optional.items():
            fields[name] = values[place]
        for name, other in zip(OTHERS, rest, strict=True):
            fields[name] = other(found)
        return Predictions(**fields, **missing)

    return build


def _are_fixed(parts: list[Build]) -> bool:
    return all(type(each) is _Fixed for each in parts)


_PLANNERS: Final[Mapping[str, Callable[[list[Any], Any], Build]]] = {
    "a": _array,
    "c": _array,
    "A": _array,
    "t": _tuple,
    "l": _list,
    "o": _value,
    "O": _options,
    "n": _new,
    "C": _configurations,
    "P": _predictions,
}
