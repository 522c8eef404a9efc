"""Laws of service and compute times by shape alone: each has mean 1 and is scaled by the mean of its phase."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats

__all__ = ["DEFAULT_JITTER", "Law", "LawKind"]

DEFAULT_JITTER: Final = 0.02
"""Half width, relative to the mean, of times that are said to be constant. No real phase repeats exactly, and exactly
deterministic phases can run in lock-step for ever."""

_NONE: Final = np.empty(0)


class LawKind(IntEnum):
    """Families of laws; the numbers are what the compiled sampler tells them apart by."""

    UNIFORM = 0
    EXPONENTIAL = 1
    GAMMA = 2
    LOGNORMAL = 3
    HYPEREXPONENTIAL = 4
    EMPIRICAL = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law:
    """Shape of a law of mean 1; made by the class methods.

    Attributes
    ----------
    kind : LawKind
        Family.
    parameter : float
        Uniform: half width. Gamma: number of stages, 1 / cv^2. Lognormal: standard deviation of the logarithm.
        Hyperexponential: probability of the short branch. Otherwise without meaning.
    samples : (m,) array
        Empirical: relative times of mean 1. Otherwise empty.
    """

    kind: LawKind
    parameter: float = 0.0
    samples: Floats = field(default_factory=lambda: _NONE)

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
    def erlang(cls, stages: int) -> Law:
        """Sum of so many equal exponential stages: coefficient of variation 1 / sqrt(stages)."""
        if stages < 1:
            message = f"stages must be at least 1, got {stages!r}"
            raise ValueError(message)
        return cls(kind=LawKind.GAMMA, parameter=float(stages))

    @classmethod
    def gamma(cls, cv: float) -> Law:
        """Gamma of a coefficient of variation above 0."""
        return cls(kind=LawKind.GAMMA, parameter=1.0 / _variation(cv, above=0.0) ** 2)

    @classmethod
    def lognormal(cls, cv: float) -> Law:
        """Lognormal of a coefficient of variation above 0."""
        return cls(kind=LawKind.LOGNORMAL, parameter=math.sqrt(math.log1p(_variation(cv, above=0.0) ** 2)))

    @classmethod
    def hyperexponential(cls, cv: float) -> Law:
        """Two exponential branches that contribute half of the mean each; coefficient of variation above 1.

        With balanced means, p = (1 + sqrt((cv^2 - 1) / (cv^2 + 1))) / 2 is the probability of the short branch, whose
        mean is 1 / (2 p) (H. C. Tijms, "A First Course in Stochastic Models", Wiley 2003, appendix B).
        """
        square = _variation(cv, above=1.0) ** 2
        return cls(kind=LawKind.HYPEREXPONENTIAL, parameter=0.5 * (1.0 + math.sqrt((square - 1.0) / (square + 1.0))))

    @classmethod
    def empirical(cls, samples_s: npt.ArrayLike) -> Law:
        """Drawn from measured times with replacement; their mean is not used, only their shape."""
        samples = np.array(samples_s, dtype=np.float64)
        if samples.ndim != 1 or not samples.size or not np.all((samples >= 0.0) & (samples < np.inf)):
            message = f"samples_s must be one axis of finite times of at least 0 s, got shape {samples.shape}"
            raise ValueError(message)
        mean_s = float(samples.mean())
        if mean_s <= 0.0:
            message = "samples_s must not all be 0 s"
            raise ValueError(message)
        samples /= mean_s
        samples.flags.writeable = False
        return cls(kind=LawKind.EMPIRICAL, samples=samples)


def _variation(cv: float, *, above: float) -> float:
    if not above < cv < math.inf:
        message = f"cv must be finite and above {above:g}, got {cv!r}"
        raise ValueError(message)
    return float(cv)
