"""Values of ``nodewise.plugin`` as messages and back: a host is not trusted, so only listed classes are built.

For methods without messages of their own; those of estimators are in wire.py.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise import plugin
from nodewise.domain.budget import Budget
from nodewise_protos.plugin.v1 import value_pb2 as pb

__all__ = ["Opaque", "UndecodableError", "read_value", "write_value"]

_OURS: Final = ("nodewise.domain.", "nodewise.plugin.")
_EVERY_NAME: Final = plugin.__all__
"""Read so that all modules of the API are imported: what they bring is what may cross."""


def _classes(base: type) -> dict[str, type]:
    """Classes of the domain and ``nodewise.plugin`` with a base class, or all dataclasses for ``object``."""
    classes: dict[str, type] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_OURS):
            for each in vars(module).values():
                if isinstance(each, type) and each.__module__ == name and issubclass(each, base):
                    classes[each.__name__] = each
    return classes


def _is_value(each: type) -> bool:
    """Whether it is a dataclass and not a plugin's record, whose objects stay in their process."""
    is_record = each.__module__ == "nodewise.plugin.records"
    return dataclasses.is_dataclass(each) and not issubclass(each, Exception | Budget) and not is_record


VALUES: Final[Mapping[str, type]] = MappingProxyType(
    {name: each for name, each in _classes(object).items() if _is_value(each)}
)
"""Frozen dataclasses by name."""

FIELDS: Final[Mapping[type, tuple[str, ...]]] = MappingProxyType(
    {each: tuple(field.name for field in dataclasses.fields(each) if field.init) for each in VALUES.values()}
)
"""The constructor's fields of each."""

ENUMS: Final[Mapping[str, type[Any]]] = MappingProxyType(_classes(Enum))
"""Enumerations by name."""

DTYPES: Final = frozenset("?bBhHiIlLqQefd")
"""Types of arrays that can be sent: booleans and numbers."""
_MOST_DIMENSIONS: Final = 4
_WHOLE: Final = 1 << 63


class UndecodableError(Exception):
    """An invalid message; the text says why."""


class Opaque:
    """The content of a plugin's prior: bytes that only its own host can read."""

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        self.content = content


Other = Callable[[Any], pb.Value]
"""Writes an object that stays in its process."""


def refuse(value: Any) -> pb.Value:
    """Raise UndecodableError: the value cannot be sent."""
    raise UndecodableError(f"a {type(value).__name__}, which cannot be sent")


def write_value(value: Any, other: Other = refuse) -> pb.Value:
    """A value as a message.

    Raises
    ------
    UndecodableError, ValueError, TypeError, RecursionError
        For a text without an encoding, or a value that contains itself.
    """
    kind = type(value)
    write = _WRITERS.get(kind)
    if write is None:
        if isinstance(value, Enum) and kind.__name__ in ENUMS:
            return pb.Value(member=pb.Member(type=kind.__name__, value=write_value(value.value, other)))
        if isinstance(value, np.generic) and value.dtype.char in DTYPES:
            return write_value(value.item(), other)
        write = next((_WRITERS[base] for base in kind.__mro__[1:] if base in _WRITERS), None)
    return other(value) if write is None else write(value, other)


def _integer(value: int, _: Other) -> pb.Value:
    value = int(value)
    return pb.Value(integer=value) if -_WHOLE <= value < _WHOLE else pb.Value(long_integer=str(value))


def _items(items: Any, other: Other) -> pb.Items:
    return pb.Items(items=[write_value(each, other) for each in items])


def _mapping(value: Mapping[Any, Any], other: Other) -> pb.Value:
    return pb.Value(mapping=_items((part for item in value.items() for part in item), other))


def _array(value: np.ndarray[Any, Any], other: Other) -> pb.Value:
    if value.dtype.char not in DTYPES or value.ndim > _MOST_DIMENSIONS:
        return other(value)
    return pb.Value(array=pb.Array(type=value.dtype.char, shape=value.shape, data=value.tobytes()))


def _record_writer(kind: type) -> Callable[[Any, Other], pb.Value]:
    name, fields = kind.__name__, FIELDS[kind]

    def write(value: Any, other: Other) -> pb.Value:
        values = [write_value(getattr(value, field), other) for field in fields]
        return pb.Value(record=pb.Record(type=name, fields=fields, values=values))

    return write


_WRITERS: Final[dict[type, Callable[[Any, Other], pb.Value]]] = {
    type(None): lambda _, __: pb.Value(),
    bool: lambda value, _: pb.Value(boolean=bool(value)),
    str: lambda value, _: pb.Value(text=str(value)),
    int: _integer,
    float: lambda value, _: pb.Value(number=float(value)),
    tuple: lambda value, other: pb.Value(tuple=_items(value, other)),
    list: lambda value, other: pb.Value(list=_items(value, other)),
    frozenset: lambda value, other: pb.Value(set=_items(sorted(value, key=repr), other)),
    set: lambda value, other: pb.Value(set=_items(sorted(value, key=repr), other)),
    dict: _mapping,
    MappingProxyType: _mapping,
    bytes: lambda value, _: pb.Value(content=bytes(value)),
    bytearray: lambda value, _: pb.Value(content=bytes(value)),
    memoryview: lambda value, _: pb.Value(content=bytes(value)),
    Budget: lambda value, _: pb.Value(remaining_seconds=value.remaining_s()),
    Opaque: lambda value, _: pb.Value(opaque=value.content),
    np.ndarray: _array,
    **{kind: _record_writer(kind) for kind in VALUES.values()},
}


def read_value(message: pb.Value, others: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})) -> Any:
    """The value of a message.

    Parameters
    ----------
    others : mapping of field to callable
        Reads objects of other processes.

    Raises
    ------
    UndecodableError
        For an invalid message.
    """
    try:
        return _read(message, others)
    except UndecodableError:
        raise
    except Exception as error:  # noqa: BLE001  # records look at their fields, and refuse them in errors of their own
        raise UndecodableError(f"an invalid message ({type(error).__name__})") from None


def _read(message: pb.Value, others: Mapping[str, Callable[[Any], Any]]) -> Any:
    field = message.WhichOneof("kind")
    if field is None:
        return None
    content = getattr(message, field)
    if field in _PLAIN:
        return content
    if field in others:
        return others[field](content)
    return _READERS[field](content, others)


def _read_array(message: pb.Array, _: Any) -> Any:
    if message.type not in DTYPES or len(message.shape) > _MOST_DIMENSIONS or min(message.shape, default=0) < 0:
        raise UndecodableError("an array of an unexpected type")
    count = math.prod(message.shape)
    if count * np.dtype(message.type).itemsize != len(message.data):
        raise UndecodableError("an array without its entries")
    array = np.frombuffer(message.data, message.type) if count else np.zeros(0, message.type)
    array = array.reshape(tuple(message.shape))
    array.flags.writeable = False
    return array


def _read_record(message: pb.Record, others: Any) -> Any:
    kind = VALUES[message.type]
    values = [_read(each, others) for each in message.values]
    return kind(**dict(zip(message.fields, values, strict=True)))


def _read_mapping(message: pb.Items, others: Any) -> Any:
    parts = [_read(each, others) for each in message.items]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _read_budget(seconds: float, _: Any) -> Budget:
    if math.isnan(seconds):
        raise UndecodableError("a budget that is not a number")
    return Budget(seconds)


_PLAIN: Final = frozenset({"boolean", "integer", "number", "text", "content"})
_READERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "array": _read_array,
        "list": lambda message, others: [_read(each, others) for each in message.items],
        "tuple": lambda message, others: tuple([_read(each, others) for each in message.items]),
        "set": lambda message, others: frozenset([_read(each, others) for each in message.items]),
        "mapping": _read_mapping,
        "record": _read_record,
        "member": lambda message, others: ENUMS[message.type](_read(message.value, others)),
        "remaining_seconds": _read_budget,
        "opaque": lambda content, _: Opaque(content),
        "long_integer": lambda text, _: int(text),
    }
)
