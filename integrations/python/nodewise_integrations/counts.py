"""Numbers of nodes in the notation of options."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["counted"]

_PART: Final = re.compile(r"(pow2:)?([1-9]\d{0,6})(?:-([1-9]\d{0,6})(?::([1-9]\d{0,6}))?)?", re.ASCII)
_MOST_COUNTS: Final = 4096


def counted(text: str) -> tuple[int, ...]:
    """Read numbers such as `1-16`, `1,2,4,8`, `2-64:2` or `pow2:1-64`; ascending. Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} must be whole numbers such as 1-16, 1,2,4,8, 2-64:2 or pow2:1-64")
        powers, first, last, step = match.groups()
        numbers = range(int(first), int(last or first) + 1, int(step or 1))
        if not numbers or len(numbers) > _MOST_COUNTS or (powers and step):
            raise ValueError(f"{text!r}: {part} names no numbers, or more than {_MOST_COUNTS}")
        found.update(number for number in numbers if not powers or number & (number - 1) == 0)
    if not found:
        raise ValueError(f"{text!r} names no numbers")
    return tuple(sorted(found))
