"""Numbers in texts for people."""

from __future__ import annotations

__all__ = ["number", "pluralize"]


def number(value: float) -> str:
    """A number for people: four digits, no exponent where that can be avoided."""
    return f"{value:,.0f}" if 1000 <= value < 1e15 else f"{value:.4g}"


def pluralize(count: int, what: str) -> str:
    """A number of things by the name of one: 1 node, 4 nodes."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
