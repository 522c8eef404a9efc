"""How reasons that people read say numbers."""

from __future__ import annotations

__all__ = ["number"]


def number(value: float) -> str:
    """A number for people: four digits, no exponent where that can be avoided."""
    return f"{value:,.0f}" if 1000 <= value < 1e15 else f"{value:.4g}"
