"""Which fields of an event the scanner finds, and in which column of its output each of them is."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from nodewise.plugin import Ints

__all__ = [
    "ARGUMENT_KEYS",
    "BEGIN",
    "CATEGORY",
    "COLUMNS",
    "DUR",
    "END",
    "EVENT_KEYS",
    "FIRST_ARGUMENT",
    "MISSING",
    "NAME",
    "PHASE",
    "PID",
    "PRESENT_FROM",
    "TID",
    "TS",
    "key_hash",
    "key_hashes",
]

MISSING: Final = -(2**63)
"""Value of a column that an event does not have, or not as a number that fits 64 bits."""

BEGIN: Final = 0
END: Final = 1
PHASE: Final = 2
CATEGORY: Final = 3
"""Text: the column holds where it begins, the next one where it ends; equal = none."""
NAME: Final = 5
PID: Final = 7
"""A number or a text: three columns, the number first."""
TID: Final = 10
TS: Final = 13
DUR: Final = 14
FIRST_ARGUMENT: Final = 15

EVENT_KEYS: Final = (
    ("ph", PHASE),
    ("cat", CATEGORY),
    ("name", NAME),
    ("pid", PID),
    ("tid", TID),
    ("ts", TS),
    ("dur", DUR),
    ("args", -1),
)
"""Members of an event and the column of each."""

ARGUMENT_KEYS: Final = (
    "correlation",
    "device",
    "stream",
    "bytes",
    "External id",
    "Sequence number",
    "Fwd thread id",
    "Device Type",
    "Device Id",
    "Bytes",
    "Total Allocated",
    "Collective name",
    "Input Dims",
)
"""Integer members of ``args`` in the order of their columns. Of the last two, which are none, presence counts."""

PRESENT_FROM: Final = FIRST_ARGUMENT + 11
"""Columns from here on hold 1 where the member is there."""

COLUMNS: Final = FIRST_ARGUMENT + len(ARGUMENT_KEYS)


def key_hash(text: bytes) -> int:
    """The scanner's number of a key; the scanner computes it in the same way."""
    value = 0
    for byte in text:
        value = (value * 257 + byte + 1) & 0xFFFF_FFFF_FFFF
    return value


@cache
def key_hashes() -> tuple[Ints, Ints, Ints]:
    """Hashes of an event's keys, their columns, and hashes of the arguments' keys."""
    return (
        np.array([key_hash(key.encode()) for key, _ in EVENT_KEYS], dtype=np.int64),
        np.array([column for _, column in EVENT_KEYS], dtype=np.int64),
        np.array([key_hash(key.encode()) for key in ARGUMENT_KEYS], dtype=np.int64),
    )
