"""Time that is left."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Budget"]


class Budget(Protocol):
    """Time that is left for a decision or a simulation."""

    def remaining_s(self) -> float:
        """Seconds left; 0 or less = end now."""
        ...
