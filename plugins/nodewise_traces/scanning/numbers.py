"""Numbers as recorders write them: integers, floats, decimal strings, and what is none of these."""

from __future__ import annotations

import math
from typing import Any, Final

__all__ = ["UNRESOLVED", "integer_or", "small_or"]

UNRESOLVED: Final = 4_294_967_295
"""CUPTI's "no such stream or event": -1 as an unsigned 32-bit number."""

_INT64: Final = 2**63


def integer_or(value: Any, otherwise: int) -> int:
    """An integer that fits 64 bits, from a number or a decimal string; ``otherwise`` for anything else."""
    if type(value) is int:
        return value if -_INT64 <= value < _INT64 else otherwise
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return otherwise
    if isinstance(value, float):
        if not math.isfinite(value) or value != int(value):
            return otherwise
        value = int(value)
    if not isinstance(value, int) or not -_INT64 <= value < _INT64:
        return otherwise
    return int(value)


def small_or(value: Any, otherwise: int) -> int:
    """As ``integer_or``, for streams, devices and sizes: what is negative or unresolved is not known either."""
    number = integer_or(value, otherwise)
    return otherwise if number < 0 or number == UNRESOLVED else number
