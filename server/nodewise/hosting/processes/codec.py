"""Values as bytes without pickling: a host is not trusted, so a worker builds nothing that is not listed (decoder.py).

A message is a tree in JSON and the arrays' bytes behind it. Plain texts, numbers, truth values and None stand for
themselves, an object of JSON for a dictionary of texts, and a list for everything else: its first entry says what.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import orjson

from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.hosting.processes.kinds import ENUMS, FIELDS, VALUES
from nodewise.hosting.processes.laid import DTYPES, MOST_SHARED, is_column, laid
from nodewise.hosting.processes.rows import (
    write_configurations,
    write_predictions,
)
from nodewise.plugin import Catalogue, Prior

__all__ = ["HEADER", "INTERNED", "NUMBER", "SECONDS", "Encoder", "Opaque", "UndecodableError"]

HEADER: Final = struct.Struct("<IIQ")
"""Bytes of the tree and of the arrays, and the number of the exchange that both belong to, in front of them."""
ALIGNED: Final = 8
"""Bytes to which arrays are aligned: the widest number's."""
SECONDS: Final = struct.Struct("<d")
NUMBER: Final = struct.Struct("<q")
"""Numbers behind the tree, so that calls that differ in them alone have one tree."""
_PADDING: Final = bytes(ALIGNED)
_WHOLE: Final = 1 << 63
_MOST_DIMENSIONS: Final = 4

INTERNED: Final = (Profile, Catalogue, Configurations, Prior)
"""Large values that calls bring again and again."""


class UndecodableError(Exception):
    """A message that is none; the text says why."""


class Opaque:
    """What a plugin keeps in a prior: bytes that only its own host makes sense of."""

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        self.content = content


class Encoder:
    """Writes one message.

    Parameters
    ----------
    other : callable
        Writes what is no value: gets this encoder and the object.
    intern : callable or None
        Writes a value of INTERNED, so that it is sent once: gets this encoder, the value, and what writes it in full.
    """

    __slots__ = ("_arrays", "_other", "_seen", "_shared", "_size", "intern")

    def __init__(self, other: Callable[[Encoder, Any], Any], intern: Callable[..., Any] | None = None) -> None:
        self._other = other
        self.intern = intern
        self._arrays: list[Any] = []
        self._seen: dict[int, tuple[Any, list[Any]]] = {}
        self._shared = 0
        self._size = 0

    def message(self, exchange: int, *values: Any) -> bytes:
        """The values as one message of an exchange."""
        one = self.one
        try:
            tree = orjson.dumps([one(value) for value in values])
        except (TypeError, ValueError, RecursionError) as error:
            raise UndecodableError(f"a value that cannot be sent ({type(error).__name__})") from None
        tree += b" " * (-len(tree) % ALIGNED)
        return b"".join((HEADER.pack(len(tree), self._size, exchange), tree, *self._arrays))

    def one(self, value: Any) -> Any:
        """A value as part of the tree."""
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        write = _WRITERS.get(kind)
        if write is not None:
            return write(self, value)
        return self._slowly(value, kind)

    def bytes(self, content: Any) -> int:
        """Put bytes behind the tree; where they begin."""
        begin = self._size
        size = len(content)
        self._arrays.append(content)
        rest = -size % ALIGNED
        if rest:
            self._arrays.append(_PADDING[:rest])
        self._size = begin + size + rest
        return begin

    def number(self, value: int) -> int:
        """Put a number behind the tree, so that calls that differ in it alone have one tree; where it is."""
        return self.bytes(NUMBER.pack(value))

    def seconds(self, value: float) -> int:
        """As :meth:`number`."""
        return self.bytes(SECONDS.pack(value))

    def array(self, value: np.ndarray[Any, Any]) -> Any:
        """An array; one that comes again is sent once."""
        known = self._seen.get(id(value))
        if known is not None:
            return known[1]
        if value.dtype.char not in DTYPES or value.ndim > _MOST_DIMENSIONS:
            return self._other(self, value)
        if value.ndim == 1:
            tag, char, size, content = laid(value, shares=False)
            entry = [tag, char, size, self.bytes(content)]
        else:
            entry = ["A", value.dtype.char, list(value.shape), self.bytes(value.tobytes())]
        self._seen[id(value)] = (value, entry)  # held, so that no other array gets its identity meanwhile
        return entry

    def columns(self, columns: list[Any]) -> tuple[tuple[str, str, int, Any], ...] | None:
        """Put one-dimensional arrays behind the tree, and say where; None = one of them is no such array."""
        if not all(map(is_column, columns)):
            return None
        found: list[tuple[str, str, int, Any]] = []
        for each in columns:
            tag, char, size, content = laid(each, shares=self._shared < MOST_SHARED)
            if tag == "k":
                self._shared += 1
                found.append((tag, char, size, content))
            else:
                found.append((tag, char, size, self.bytes(content)))
        return tuple(found)

    def _slowly(self, value: Any, kind: type) -> Any:
        """What is not listed itself: of a class that is, or none at all."""
        if isinstance(value, Enum):
            return ["e", kind.__name__, value.value] if kind.__name__ in ENUMS else self._other(self, value)
        if isinstance(value, NodewiseError):
            return _error(self, value)
        if isinstance(value, np.generic) and value.dtype.char in DTYPES:
            return self.one(value.item())
        for base in kind.__mro__[1:]:
            write = _WRITERS.get(base)
            if write is not None:
                return write(self, value)
        return self._other(self, value)


def _int(_: Encoder, value: int) -> Any:
    value = int(value)
    return value if -_WHOLE <= value < _WHOLE else ["i", str(value)]


def _float(_: Encoder, value: float) -> Any:
    value = float(value)
    return value if math.isfinite(value) else ["f", repr(value)]


def _tuple(encoder: Encoder, value: tuple[Any, ...]) -> Any:
    one = encoder.one
    return ["t", *[one(each) for each in value]]


def _list(encoder: Encoder, value: list[Any]) -> Any:
    one = encoder.one
    return ["l", *[one(each) for each in value]]


def _set(encoder: Encoder, value: frozenset[Any]) -> Any:
    return ["s", *[encoder.one(each) for each in sorted(value, key=repr)]]


def _dict(encoder: Encoder, value: Mapping[Any, Any]) -> Any:
    one = encoder.one
    if all(type(key) is str for key in value):
        return {key: one(each) for key, each in value.items()}
    return ["m", *[one(part) for item in value.items() for part in item]]


def _proxy(encoder: Encoder, value: Mapping[Any, Any]) -> Any:
    return ["M", _dict(encoder, value)]


def _bytes(encoder: Encoder, value: Any) -> Any:
    content = bytes(value)
    return ["b", len(content), encoder.bytes(content)]


def _budget(encoder: Encoder, value: Budget) -> Any:
    return ["B", encoder.seconds(value.remaining_s())]


def _error(_: Encoder, value: NodewiseError) -> Any:
    metadata = {str(key): str(each) for key, each in value.metadata.items()}
    violations = [[str(each.field), str(each.description)] for each in value.violations]
    return ["E", Reason(value.reason).value, str(value.message), metadata, violations, value.retry_after_s]


def _opaque(encoder: Encoder, value: Opaque) -> Any:
    return ["p", len(value.content), encoder.bytes(value.content)]


def _value_writer(kind: type) -> Callable[[Encoder, Any], Any]:
    name, fields = kind.__name__, FIELDS[kind]

    def write(encoder: Encoder, value: Any) -> Any:
        one = encoder.one
        return ["o", name, *[one(getattr(value, field)) for field in fields]]

    return write


def _options(encoder: Encoder, value: Options) -> Any:
    one = encoder.one
    return ["O", int(value.fidelity), one(value.seed), one(value.simulated_steps), one(value.budget)]


def _predictions(encoder: Encoder, value: Predictions) -> Any:
    entry = write_predictions(encoder, value)
    return _any_predictions(encoder, value) if entry is None else entry


def _interned_writer(kind: type) -> Callable[[Encoder, Any], Any]:
    write: Callable[[Encoder, Any], Any] = write_configurations if kind is Configurations else _value_writer(kind)

    def interned(encoder: Encoder, value: Any) -> Any:
        intern = encoder.intern
        return write(encoder, value) if intern is None else intern(encoder, value, write)

    return interned


_any_predictions: Final = _value_writer(Predictions)

_WRITERS: Final[dict[type, Callable[[Encoder, Any], Any]]] = {
    bool: lambda _, value: bool(value),
    str: lambda _, value: str(value),
    int: _int,
    float: _float,
    tuple: _tuple,
    list: _list,
    frozenset: _set,
    set: _set,
    dict: _dict,
    MappingProxyType: _proxy,
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _bytes,
    Budget: _budget,
    Opaque: _opaque,
    np.ndarray: Encoder.array,
    **{kind: _value_writer(kind) for kind in VALUES.values()},
    **{kind: _interned_writer(kind) for kind in INTERNED},
    Options: _options,
    Predictions: _predictions,
}
