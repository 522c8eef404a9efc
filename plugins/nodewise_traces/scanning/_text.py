"""Pieces of JSON in a buffer of bytes, compiled: strings, numbers, and values to be skipped.

Functions return where they stop; ``INCOMPLETE`` where the buffer ends first, ``MALFORMED`` where it is no JSON.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise_laws.object_code import object_code
from nodewise_traces.scanning.fields import MISSING

__all__ = ["INCOMPLETE", "MALFORMED", "Bytes", "after_blanks", "after_string", "after_value", "decimal", "skip_on"]

Bytes = NDArray[np.uint8]

INCOMPLETE: Final = -1
MALFORMED: Final = -2

_SAFE: Final = (2**63 - 10) // 10
_MOST_DIGITS: Final = 64
"""Characters of a number beyond which it is not accepted as one."""


@object_code
def after_blanks(text: Bytes, at: int, end: int) -> int:
    """The next byte that is no white space; ``end`` if there is none."""
    while at < end:
        byte = text[np.uint64(at)]  # an unsigned index is not checked for counting from the end
        if byte not in (32, 10, 13, 9):
            break
        at += 1
    return at


@object_code
def after_string(text: Bytes, at: int, end: int) -> int:
    """Behind the closing quote of a string whose first character is at ``at``.

    A control character is malformed, which finds quotes that were not escaped: a line ends inside the string.
    """
    while at < end:
        byte = text[np.uint64(at)]
        if byte == 34:
            return at + 1
        if byte == 92:
            at += 1
        elif byte < 32:
            return MALFORMED
        at += 1
    return INCOMPLETE


@object_code
def after_value(text: Bytes, at: int, end: int) -> int:
    """Behind a value of any kind that begins at ``at``."""
    first = text[at]
    if first == 34:
        return after_string(text, at + 1, end)
    if first in (123, 91):
        depth = 0
        while at < end:
            byte = text[np.uint64(at)]
            if byte == 34:
                at = after_string(text, at + 1, end)
                if at < 0:
                    return at
                continue
            if byte in (123, 91):
                depth += 1
            elif byte in (125, 93):
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        return INCOMPLETE
    begin = at
    while at < end:
        byte = text[np.uint64(at)]
        if byte == 44 or byte in (125, 93) or byte <= 32:
            return at if at > begin else MALFORMED
        if byte in (34, 58, 123, 91):
            return MALFORMED
        at += 1
    return INCOMPLETE


@object_code
def decimal(text: Bytes, at: int, end: int, places: int) -> int:  # noqa: C901, PLR0912 - a parser's states
    """A decimal number times 10^places, rounded to the nearest integer; MISSING if it is none or does not fit.

    Exact: binary floating point would lose the nanoseconds of microseconds since 1970.
    """
    if end - at > _MOST_DIGITS or at >= end:
        return MISSING
    negative = text[at] == 45
    if negative:
        at += 1
    value = 0
    shift = places
    digits = 0
    rounding = 0
    after_point = False
    while at < end:
        byte = int(text[at])
        if 48 <= byte <= 57:
            digits += 1
            if after_point and shift == 0 and not _exponent_follows(text, at, end):
                if rounding == 0:
                    rounding = byte - 47  # 1 to 10; the first digit that is cut decides
            else:
                if value > _SAFE:
                    return MISSING
                value = value * 10 + byte - 48
                if after_point:
                    shift -= 1
        elif byte == 46 and not after_point:
            after_point = True
        elif byte in (69, 101) and digits > 0:
            exponent = _exponent(text, at + 1, end)
            if exponent == MISSING:
                return MISSING
            shift += exponent
            at = end
            break
        else:
            return MISSING
        at += 1
    if digits == 0:
        return MISSING
    while shift > 0 and value != 0:
        if value > _SAFE:
            return MISSING
        value *= 10
        shift -= 1
    while shift < 0 and value != 0:
        rounding = value % 10 + 1
        value //= 10
        shift += 1
    if rounding > 5:
        value += 1
    return -value if negative else value


@object_code
def _exponent_follows(text: Bytes, at: int, end: int) -> bool:
    while at < end:
        if text[at] in (69, 101):
            return True
        at += 1
    return False


@object_code
def _exponent(text: Bytes, at: int, end: int) -> int:
    negative = at < end and text[at] == 45
    if at < end and text[at] in (45, 43):
        at += 1
    if at >= end or end - at > 3:
        return MISSING
    value = 0
    while at < end:
        byte = int(text[at])
        if not 48 <= byte <= 57:
            return MISSING
        value = value * 10 + byte - 48
        at += 1
    return -value if negative else value


@object_code
def skip_on(text: Bytes, at: int, end: int, state: NDArray[np.int64]) -> int:  # noqa: C901 - a parser's states
    """Skip a value that may be longer than the buffer.

    ``state`` is depth, whether inside a string, and whether behind a backslash; zeros at first.
    Returns where the value ends, or INCOMPLETE, to go on at the next buffer's first byte.
    """
    while at < end:
        byte = text[at]
        if state[1]:
            if state[2]:
                state[2] = 0
            elif byte == 92:
                state[2] = 1
            elif byte == 34:
                state[1] = 0
                if state[0] == 0:
                    return at + 1
        elif byte == 34:
            state[1] = 1
        elif byte in (123, 91):
            state[0] += 1
        elif byte in (125, 93):
            if state[0] == 0:
                return at
            state[0] -= 1
            if state[0] == 0:
                return at + 1
        elif byte == 44 and state[0] == 0:
            return at
        at += 1
    return INCOMPLETE
