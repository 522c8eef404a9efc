"""Laws of service and compute times by shape alone: each has mean 1 and is scaled by the mean of its phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = ["DEFAULT_JITTER", "Law", "LawKind"]

DEFAULT_JITTER: Final = 0.02
"""Half width, relative to the mean, of times that are stated to be constant. No real phase repeats exactly, and exactly
deterministic phases can run in lock-step for ever."""


class LawKind(IntEnum):
    """Families of laws; the numbers are what the compiled sampler tells them apart by."""

    UNIFORM = 0
    EXPONENTIAL = 1
    GAMMA = 2
    LOGNORMAL = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law:
    """Shape of a law of mean 1; made by the class methods.

    Attributes
    ----------
    kind : LawKind
        Family.
    parameter : float
        Uniform: half width. Gamma: number of stages, 1 / cv^2, which is Erlang's where it is whole. Lognormal: standard
        deviation of the logarithm. Exponential: without meaning.
    """

    kind: LawKind
    parameter: float = 0.0

    @classmethod
    def constant(cls, jitter: float = DEFAULT_JITTER) -> Law:
        """Nearly constant: uniform within +-jitter of the mean, relative; jitter 0 is exactly deterministic."""
        return cls.uniform(jitter)

    @classmethod
    def uniform(cls, half_width: float) -> Law:
        """Uniform between (1 - half_width) and (1 + half_width) times the mean; half_width from 0 to 1."""
        if not 0.0 <= half_width <= 1.0:
            message = f"half_width must be from 0 to 1, got {half_width!r}"
            raise ValueError(message)
        return cls(kind=LawKind.UNIFORM, parameter=float(half_width))

    @classmethod
    def exponential(cls) -> Law:
        """Exponential: coefficient of variation 1."""
        return cls(kind=LawKind.EXPONENTIAL)

    @classmethod
    def gamma(cls, cv: float) -> Law:
        """Gamma of a coefficient of variation above 0."""
        return cls(kind=LawKind.GAMMA, parameter=1.0 / _variation(cv) ** 2)

    @classmethod
    def lognormal(cls, cv: float) -> Law:
        """Lognormal of a coefficient of variation above 0."""
        return cls(kind=LawKind.LOGNORMAL, parameter=math.sqrt(math.log1p(_variation(cv) ** 2)))


def _variation(cv: float) -> float:
    if not 0.0 < cv < math.inf:
        message = f"cv must be finite and above 0, got {cv!r}"
        raise ValueError(message)
    return float(cv)
