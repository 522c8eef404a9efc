"""Rows of the same text, compiled: whatever names mean is then looked up once for all rows of a name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nodewise.plugin import Ints
from nodewise_laws.object_code import object_code
from nodewise_traces.scanning._text import Bytes

__all__ = ["number_texts"]


def number_texts(text: bytes, begin: Ints, end: Ints, number: Callable[[bytes], int]) -> Ints:
    """The number of each row's text.

    Parameters
    ----------
    text, begin, end
        Buffer, and where in it the text of each row lies.
    number : callable
        Called once for each text, in the order of their first rows.
    """
    rows = len(begin)
    first = np.empty(rows, dtype=np.int64)
    table = np.full(2 << rows.bit_length(), -1, dtype=np.int64)
    _fill_first(np.frombuffer(text or b" ", dtype=np.uint8), begin.copy(), end.copy(), table, first)
    firsts = np.flatnonzero(first == np.arange(rows))
    numbers = np.empty(rows, dtype=np.int64)
    numbers[firsts] = [number(text[since:until]) for since, until in zip(begin[firsts].tolist(), end[firsts].tolist())]
    return numbers[first]


@object_code
def _fill_first(text: Bytes, begin: Ints, end: Ints, table: Ints, first: Ints) -> None:
    """The first row with each row's text; ``table`` holds -1, in a power of two of places, twice the rows at least."""
    mask = len(table) - 1
    for row in range(len(begin)):
        since, size = begin[row], end[row] - begin[row]
        mixed = size
        for at in range(since, since + size):
            mixed = (mixed ^ int(text[at])) * 0x1000_0000_01B3
        place = (mixed ^ (mixed >> 32)) & mask
        while True:
            other = table[place]
            if other < 0:
                table[place] = row
                first[row] = row
                break
            alike = end[other] - begin[other] == size
            at = 0
            while alike and at < size:
                alike = text[begin[other] + at] == text[since + at]
                at += 1
            if alike:
                first[row] = other
                break
            place = (place + 1) & mask
