"""Parameters of policies."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PolicyParameter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyParameter:
    """A parameter of a policy; the description carries the unit."""

    name: str
    description: str
    default: float
    minimum: float
    maximum: float
