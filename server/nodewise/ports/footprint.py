"""Estimates of the bytes of a value, for caches, of bounded effort."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

__all__ = ["footprint"]

MOST_VALUES: Final = 20_000
"""Most values that are visited, about ten milliseconds; further ones are not counted."""
SAMPLED: Final = 256
"""Entries of longer lists and mappings that are sampled, and extrapolated to all."""

_NUMBERS: Final = frozenset({int, float, bool, complex, type(None)})
_NUMBER_BYTES: Final = 28
_SHARED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Types of code, which exist once, whatever refers to them."""
_ARRAY_BYTES: Final = 112


def footprint(value: object, but: Collection[object] = ()) -> int:
    """Bytes of a value and of all that it refers to, each counted once.

    Parameters
    ----------
    but : collection
        Values that exist anyway, such as the catalogue.
    """
    seen_ids, objects, looked_ids = {id(each) for each in but}, 0.0, 0
    waiting: list[tuple[Any, float]] = [(value, 1.0)]
    while waiting and looked_ids < MOST_VALUES:
        each, times = waiting.pop()
        kind = type(each)
        if kind in _NUMBERS:
            objects += times * _NUMBER_BYTES
            continue
        if id(each) in seen_ids or isinstance(each, _SHARED):
            continue
        seen_ids.add(id(each))
        looked_ids += 1
        if isinstance(each, np.ndarray):
            objects += times * _array_bytes(each, seen_ids)
            continue
        objects += times * sys.getsizeof(each)
        if kind is not str and kind is not bytes:
            values = _held_values(each, kind)
            if len(values) > SAMPLED:
                step = -(-len(values) // SAMPLED)
                times *= step
                values = values[::step]
            waiting += [(one, times) for one in values]
    return round(objects)


def _array_bytes(array: Any, seen: set[int]) -> int:
    """Bytes of an array, and of the array that it is a view of unless that was counted."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is array:
        return _ARRAY_BYTES + int(array.nbytes)
    if id(base) in seen:
        return _ARRAY_BYTES
    seen.add(id(base))
    return 2 * _ARRAY_BYTES + int(base.nbytes)


def _held_values(value: Any, kind: type) -> list[Any]:
    """The values that a value refers to."""
    if kind in (tuple, list, set, frozenset):
        return list(value)
    if isinstance(value, dict | MappingProxyType):
        return [*value.keys(), *value.values()]
    values = [slots for name in _slots(kind) if (slots := getattr(value, name, None)) is not None]
    own = getattr(value, "__dict__", None)
    return values if own is None else [*values, own]


@lru_cache(maxsize=1024)
def _slots(kind: type) -> tuple[str, ...]:
    """Names of a class's slots that can be read."""
    names: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return tuple(name for name in names if name not in {"__dict__", "__weakref__"} and not name.startswith("__"))
