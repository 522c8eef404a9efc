"""Numbers of nodes or workers as options give them: ``1-16``, ``1,2,4,8``, ``1-64:2``, ``pow2:1-64``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nodewise_cli.failures import InputError
from nodewise_client import CountRange

__all__ = ["listed_counts", "parse_counts"]

_PART: Final = re.compile(r"(pow2:)?(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
MOST_LISTED: Final = 10_000
_FORM: Final = "must be whole numbers such as 1-16, 1,2,4,8, 1-64:2 or pow2:1-64"


def parse_counts(text: str, option: str) -> tuple[CountRange, ...]:
    """The parts of an option, in order.

    Raises
    ------
    InputError
        Naming the option, what was found and what would be right.
    """
    return tuple(_part(part.strip(), text, option) for part in text.split(","))


def listed_counts(text: str | None, option: str, what: str, *, powers: bool = False) -> tuple[int, ...]:
    """The numbers of an option one by one, in order, none twice; ``what`` they number, for messages. None = none.

    ``powers`` allows powers of two, as in pow2:1-64.

    Raises
    ------
    InputError
        Naming the option, what was found and what would be right.
    """
    all_numbers: set[int] = set()
    for counts in () if text is None else parse_counts(text, option):
        numbers: Sequence[int] = range(counts.first, counts.last + 1, counts.step or 1)
        if counts.powers_of_two:
            if not powers:
                raise InputError(f"{option}: must be {what} such as 2-5 or 1,3, found {text!r}")
            numbers = [1 << bit for bit in range(counts.last.bit_length()) if 1 << bit in numbers]
        if len(numbers) > MOST_LISTED:
            raise InputError(f"{option}: must be at most {MOST_LISTED:,} {what}, found {text!r}")
        all_numbers.update(numbers)
    return tuple(sorted(all_numbers))


def _part(part: str, text: str, option: str) -> CountRange:
    match = _PART.fullmatch(part)
    if match is None:
        raise InputError(f"{option}: {_FORM}, found {text!r}")
    powers = match[1] is not None
    first = int(match[2])
    last = first if match[3] is None else int(match[3])
    step = None if match[4] is None else int(match[4])
    faults = {
        "must start at 1 or more": first < 1,
        f"must not end ({last}) before it starts ({first})": last < first,
        "must have a step of 1 or more": step == 0,
        "must have no step after pow2:": powers and step is not None,
        "must contain a power of two": powers and (1 << (first - 1).bit_length()) > last,
    }
    for fault in (fault for fault, there in faults.items() if there):
        raise InputError(f"{option}: {fault}, found {part!r}")
    return CountRange(first=first, last=last, step=step, powers_of_two=powers)
