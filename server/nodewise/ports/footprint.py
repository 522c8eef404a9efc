"""How many bytes a value takes: an estimate for caches, of bounded effort."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

__all__ = ["footprint"]

MOST_VALUES: Final = 20_000
"""Values that are looked at, about ten milliseconds; those beyond are not counted."""
SAMPLED: Final = 256
"""Of longer lists and mappings so many are looked at, and stand for the others."""

_NUMBERS: Final = frozenset({int, float, bool, complex, type(None)})
_NUMBER_BYTES: Final = 28
_SHARED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Code: there once, whatever refers to it."""
_ARRAY_BYTES: Final = 112


def footprint(value: object, but: Collection[object] = ()) -> int:
    """Bytes of a value and of all that it refers to, each counted once.

    Parameters
    ----------
    but : collection
        Values that are there anyway, such as the catalogue.
    """
    seen, found, looked = {id(each) for each in but}, 0.0, 0
    waiting: list[tuple[Any, float]] = [(value, 1.0)]
    while waiting and looked < MOST_VALUES:
        each, times = waiting.pop()
        kind = type(each)
        if kind in _NUMBERS:
            found += times * _NUMBER_BYTES
            continue
        if id(each) in seen or isinstance(each, _SHARED):
            continue
        seen.add(id(each))
        looked += 1
        if isinstance(each, np.ndarray):
            found += times * _array_bytes(each, seen)
            continue
        found += times * sys.getsizeof(each)
        if kind is not str and kind is not bytes:
            held = _held(each, kind)
            if len(held) > SAMPLED:
                step = -(-len(held) // SAMPLED)
                times *= step
                held = held[::step]
            waiting += [(one, times) for one in held]
    return round(found)


def _array_bytes(array: Any, seen: set[int]) -> int:
    """Of an array, and of what it is a view of unless that was counted."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is array:
        return _ARRAY_BYTES + int(array.nbytes)
    if id(base) in seen:
        return _ARRAY_BYTES
    seen.add(id(base))
    return 2 * _ARRAY_BYTES + int(base.nbytes)


def _held(value: Any, kind: type) -> list[Any]:
    """What a value refers to."""
    if kind in (tuple, list, set, frozenset):
        return list(value)
    if isinstance(value, dict | MappingProxyType):
        return [*value.keys(), *value.values()]
    held = [found for name in _slots(kind) if (found := getattr(value, name, None)) is not None]
    own = getattr(value, "__dict__", None)
    return held if own is None else [*held, own]


@lru_cache(maxsize=1024)
def _slots(kind: type) -> tuple[str, ...]:
    """Names of a class's slots that can be read."""
    found: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return tuple(name for name in found if name not in {"__dict__", "__weakref__"} and not name.startswith("__"))
