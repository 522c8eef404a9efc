"""Events in a buffer of bytes, compiled: where each begins and ends, and its requested fields.

JSON is read strictly, one event at a time, so that an event which is no JSON is noticed where it breaks and the next
one can be looked for.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Ints
from nodewise_laws.object_code import object_code
from nodewise_traces.scanning._text import (
    INCOMPLETE,
    MALFORMED,
    Bytes,
    after_blanks,
    after_string,
    after_value,
    decimal,
)
from nodewise_traces.scanning.fields import (
    BEGIN,
    CATEGORY,
    END,
    FIRST_ARGUMENT,
    MISSING,
    NAME,
    PHASE,
    PID,
    PRESENT_FROM,
    TID,
    TS,
)

__all__ = ["BROKEN", "CLOSED", "FULL", "MORE", "resynchronise", "scan_events"]

MORE: Final = 0
"""The buffer ends inside an event or between two."""
FULL: Final = 1
CLOSED: Final = 2
"""The list of events ends."""
BROKEN: Final = 3
"""The following bytes are no event."""

_NS_PLACES: Final = 3
"""Decimal places from microseconds to nanoseconds."""


@object_code
def scan_events(
    text: Bytes, at: int, end: int, event_keys: Ints, event_columns: Ints, argument_keys: Ints, rows: Ints
) -> tuple[int, int, int, int]:
    """Find events from ``at`` on, behind the opening bracket or behind an event.

    Parameters
    ----------
    text, at, end
        Buffer, where to begin, where it ends.
    event_keys, event_columns, argument_keys
        See ``fields.key_hashes``.
    rows : (capacity, COLUMNS) int64
        Filled in.

    Returns
    -------
    tuple
        Why it stopped, events found, where to go on (at BROKEN: where the broken event begins), and where it broke.
    """
    event_count = 0
    while True:
        at = after_blanks(text, at, end)
        if at < end and text[at] == 44:
            at = after_blanks(text, at + 1, end)
        if at >= end:
            return MORE, event_count, at, at
        if text[at] == 93:
            return CLOSED, event_count, at + 1, at
        if event_count == len(rows):
            return FULL, event_count, at, at
        if text[at] != 123:
            return BROKEN, event_count, at, at
        for column in range(rows.shape[1]):
            rows[event_count, column] = MISSING
        rows[event_count, BEGIN] = at
        behind, reached = _event(text, at, end, event_keys, event_columns, argument_keys, rows, event_count)
        if behind == INCOMPLETE:
            return MORE, event_count, at, end
        if behind == MALFORMED:
            return BROKEN, event_count, at, reached
        rows[event_count, END] = behind
        at = behind
        event_count += 1


@object_code
def _event(  # noqa: C901, PLR0912 - a parser's states; calls between kernels cost more than they explain
    text: Bytes,
    at: int,
    end: int,
    event_keys: Ints,
    event_columns: Ints,
    argument_keys: Ints,
    rows: Ints,
    row: int,
) -> tuple[int, int]:
    """Read the members of an event and, where it reaches them, of its arguments. Behind it, and how far it came."""
    inside = False  # of the arguments
    at += 1
    first = True
    while True:
        at = after_blanks(text, at, end)
        if at >= end:
            return INCOMPLETE, at
        if text[at] == 125:
            at += 1
            if not inside:
                return at, at
            inside = False
            first = False
            continue
        if not first:
            if text[at] != 44:
                return MALFORMED, at
            at = after_blanks(text, at + 1, end)
            if at >= end:
                return INCOMPLETE, at
        first = False
        if text[at] != 34:
            return MALFORMED, at
        key_at = at + 1
        at = after_string(text, key_at, end)
        if at < 0:
            return at, key_at
        key = _hash(text, key_at, at - 1)
        at = after_blanks(text, at, end)
        if at >= end:
            return INCOMPLETE, at
        if text[at] != 58:
            return MALFORMED, at
        at = after_blanks(text, at + 1, end)
        if at >= end:
            return INCOMPLETE, at
        column = MISSING
        place = _place(key, argument_keys if inside else event_keys)
        if inside and place >= 0:
            column = FIRST_ARGUMENT + place
        elif place >= 0:
            column = event_columns[place]
        if column == -1 and text[at] == 123:
            inside = True
            first = True
            at += 1
            continue
        behind = after_value(text, at, end)
        if behind < 0:
            return behind, at
        if column >= 0:
            _keep(text, at, behind, rows, row, column)
        at = behind


@object_code
def _hash(text: Bytes, at: int, end: int) -> int:
    """``fields.key_hash``; longer keys than any of interest need not be distinguished."""
    value = 0
    if end - at > 24:
        return value
    while at < end:
        value = (value * 257 + int(text[np.uint64(at)]) + 1) & 0xFFFF_FFFF_FFFF
        at += 1
    return value


@object_code
def _place(key: int, keys: Ints) -> int:
    """Index of a key among those of interest; MISSING = none."""
    for place in range(len(keys)):
        if keys[place] == key:
            return place
    return MISSING


@object_code
def _keep(text: Bytes, at: int, behind: int, rows: Ints, row: int, column: int) -> None:
    """Write a value into its column: a text as its place, a number as it is, times in nanoseconds."""
    is_quoted = text[at] == 34
    if is_quoted:
        at += 1
        behind -= 1
    if column >= PRESENT_FROM:
        rows[row, column] = 1
    elif column == PHASE:
        rows[row, column] = int(text[at]) if is_quoted and behind > at else MISSING
    elif column in (CATEGORY, NAME):
        if is_quoted:
            rows[row, column] = at
            rows[row, column + 1] = behind
    elif column in (PID, TID):
        rows[row, column] = decimal(text, at, behind, 0)
        if is_quoted and rows[row, column] == MISSING:
            rows[row, column + 1] = at
            rows[row, column + 2] = behind
    elif column == TS or column == TS + 1:
        rows[row, column] = decimal(text, at, behind, _NS_PLACES)
    else:
        rows[row, column] = decimal(text, at, behind, 0)


@object_code
def resynchronise(text: Bytes, at: int, end: int) -> int:
    """The next place where an event seems to begin, or the list to end; -1 = none in this buffer.

    An event begins with an opening brace behind a comma, and then one of the keys of events; the list ends with a
    bracket behind a brace and before the next member or the end of the document.
    """
    while at < end:
        byte = text[at]
        if byte == 123 and _before(text, at) == 44 and _begins_event(text, at + 1, end):
            return at
        if byte == 93 and _before(text, at) == 125:
            follows = after_blanks(text, at + 1, end)
            if follows < end and text[follows] == 125:
                return at
            if follows < end and text[follows] == 44:
                follows = after_blanks(text, follows + 1, end)
                if follows < end and text[follows] == 34:
                    return at
        at += 1
    return INCOMPLETE


@object_code
def _before(text: Bytes, at: int) -> int:
    """The last byte before ``at`` that is no white space; 0 = none."""
    at -= 1
    while at >= 0 and text[at] <= 32:
        at -= 1
    return int(text[at]) if at >= 0 else 0


@object_code
def _begins_event(text: Bytes, at: int, end: int) -> bool:
    """Whether a key follows that events begin with: ph, ts, id, pid, tid, cat, dur, name or args."""
    at = after_blanks(text, at, end)
    if at + 6 >= end or text[at] != 34:
        return False
    a, b, c, d = int(text[at + 1]), int(text[at + 2]), int(text[at + 3]), int(text[at + 4])
    if c == 34:
        return (a == 112 and b == 104) or (a == 116 and b == 115) or (a == 105 and b == 100)
    if d == 34:
        ends_id = b == 105 and c == 100
        return (ends_id and a in (112, 116)) or (a == 99 and b == 97) or (a == 100 and b == 117)
    if text[at + 5] == 34:
        return (a == 110 and b == 97 and c == 109) or (a == 97 and b == 114 and c == 103)
    return False
