"""Numbers for people: significant digits, groups of thousands, a dash for None."""

from __future__ import annotations

__all__ = ["count_of", "format_count", "format_number", "gibibytes", "lasting", "milliseconds", "percent"]


def format_number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits; without decimals if it is larger."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.{digits}g}"
    before = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(digits - before, 0)}f}"


def format_count(count: float | None) -> str:
    """How many of something; a mean of counts may be broken."""
    return "-" if count is None else f"{count:,.0f}" if count == int(count) else f"{count:,.1f}"


def count_of(number: int, noun: str) -> str:
    """A number of things by the name of one: 1 node, 4 nodes."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def milliseconds(seconds: float | None) -> str:
    """A time in milliseconds."""
    return format_number(None if seconds is None else 1e3 * seconds)


def gibibytes(size_bytes: float | None) -> str:
    """A size of memory in GiB."""
    return format_number(None if size_bytes is None else size_bytes / 2**30, 3)


def percent(share: float | None) -> str:
    """A share in percent."""
    return "-" if share is None else f"{100 * share:,.1f} %"


def lasting(seconds: float | None) -> str:
    """A time in the unit that suits it."""
    if seconds is None:
        return "-"
    if seconds < 2 * 3600:
        return f"{format_number(seconds)} s"
    return (
        f"{format_number(seconds / 3600, 3)} h" if seconds < 2 * 86400 else f"{format_number(seconds / 86400, 3)} days"
    )
