"""Lifetime of a machine: one form for every law, the share revoked as a function of age, linear between knots.

Machines left beyond the last knot end at the cap, if there is one (an atom), and otherwise never. Weibull and
exponential laws are tabulated finely enough that no answer shows it; so drawing, conditioning on the age, renewals and
distances are the same few lines for measured, fitted and recorded lifetimes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats
from nodewise_transient.provenance import Provenance

__all__ = ["Lifetime", "exponential", "never", "piecewise_linear", "weibull"]

_TAIL: Final = 1e-9
_KNOTS: Final = 1500
"""Knots of each half of a parametric law, geometric in the share revoked and in the share left, down to 1e-9: shares
between knots err by less than (ln(1e9) / 1500)^2 / 8 = 2.4e-5 of themselves."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lifetime:
    """The law of one machine's lifetime.

    Attributes
    ----------
    knots_s : rising ages, the first 0.
    revoked : share of machines revoked up to each knot; does not fall, the first 0.
    cap_s : age at which the provider ends what is left; infinite without such a rule.
    provenance : what the law rests on.
    """

    knots_s: Floats
    revoked: Floats
    cap_s: float = math.inf
    provenance: Provenance

    def __post_init__(self) -> None:
        knots, shares = self.knots_s, self.revoked
        if len(knots) != len(shares) or not len(knots) or knots[0] != 0.0 or shares[0] != 0.0:
            raise ValueError("knots_s and revoked must be equally long and start with 0")
        if np.any(np.diff(knots) <= 0.0) or np.any(np.diff(shares) < 0.0) or shares[-1] > 1.0 + 1e-12:
            raise ValueError("knots_s must rise; revoked must not fall, and must be at most 1")
        if not self.cap_s >= knots[-1]:
            raise ValueError("cap_s must be at least the last of knots_s")

    def revoked_by(self, age_s: npt.ArrayLike) -> Floats:
        """Share of machines gone at an age; 1 from the cap on."""
        ages = np.asarray(age_s, dtype=np.float64)
        return np.where(ages >= self.cap_s, 1.0, np.interp(ages, self.knots_s, self.revoked))

    def revoked_within(self, seconds: npt.ArrayLike, *, age_s: float) -> Floats:
        """P(life <= age + seconds | life > age): the remaining life of a machine that runs already."""
        before = float(self.revoked_by(age_s))
        if before >= 1.0:
            raise ValueError(f"no machine of this law lives for {age_s} s")
        return (self.revoked_by(age_s + np.asarray(seconds, dtype=np.float64)) - before) / (1.0 - before)

    def remaining_s(self, chance: npt.ArrayLike, *, age_s: float = 0.0) -> Floats:
        """Remaining life at a quantile from 0 to 1: the inverse of `revoked_within`; infinite for what never ends."""
        before = float(self.revoked_by(age_s))
        share = before + np.asarray(chance, dtype=np.float64) * (1.0 - before)
        inside = np.interp(share, self.revoked, self.knots_s)
        # At a chance of 0 the inverse may be before the age, where no machine was lost around it.
        return np.maximum(np.where(share > self.revoked[-1], self.cap_s, inside) - age_s, 0.0)

    def mean_s(self) -> float:
        """Mean lifetime: the integral of the surviving share; infinite where some never end."""
        left = 1.0 - self.revoked
        body = float(np.sum(0.5 * (left[1:] + left[:-1]) * np.diff(self.knots_s)))
        rest = float(left[-1])
        return body if rest <= 2.0 * _TAIL else body + rest * (self.cap_s - float(self.knots_s[-1]))

    def with_cap(self, cap_s: float) -> Lifetime:
        """The same law under a provider's cap."""
        if cap_s >= self.cap_s:
            return self
        is_before_cap = self.knots_s < cap_s
        knots = np.append(self.knots_s[is_before_cap], cap_s)
        shares = np.append(self.revoked[is_before_cap], np.interp(cap_s, self.knots_s, self.revoked))
        return replace(self, knots_s=knots, revoked=shares, cap_s=cap_s)


def piecewise_linear(
    ages_s: npt.ArrayLike, revoked: npt.ArrayLike, *, cap_s: float = math.inf, provenance: Provenance
) -> Lifetime:
    """A law from shares revoked up to some ages, linear in between; machines left beyond end at the cap.

    Knots at or after the cap are ignored: what ends there ends by the cap, not by revocation.
    """
    ages, shares = np.asarray(ages_s, dtype=np.float64), np.asarray(revoked, dtype=np.float64)
    inside = (ages > 0.0) & (ages <= cap_s)
    return Lifetime(
        knots_s=np.concatenate(([0.0], ages[inside])),
        revoked=np.concatenate(([0.0], shares[inside])),
        cap_s=cap_s,
        provenance=provenance,
    )


def weibull(scale_s: float, shape: float, *, cap_s: float = math.inf, provenance: Provenance) -> Lifetime:
    """S(t) = exp(-(t / scale)^shape), up to the cap. A shape below 1 is infant mortality."""
    if not (scale_s > 0.0 and shape > 0.0):
        raise ValueError("scale_s and shape must be positive")
    half = math.log(2.0)
    low = -np.log1p(-np.geomspace(_TAIL, 0.5, _KNOTS))
    high = -np.log(np.geomspace(0.5, _TAIL, _KNOTS))[1:]
    hazard = np.concatenate(([0.0], low[low < half * (1.0 - 1e-12)], [half], high))
    # Ages beyond floats do not occur: the law continues to its cap.
    with np.errstate(over="ignore"):
        ages = scale_s * hazard ** (1.0 / shape)
    is_knot = np.isfinite(ages) & np.append(True, np.diff(ages) > 0.0)
    law = Lifetime(knots_s=ages[is_knot], revoked=-np.expm1(-hazard[is_knot]), provenance=provenance)
    return law.with_cap(cap_s)


def exponential(mean_s: float, *, cap_s: float = math.inf, provenance: Provenance) -> Lifetime:
    """S(t) = exp(-t / mean), up to the cap: a machine does not age."""
    return weibull(mean_s, 1.0, cap_s=cap_s, provenance=provenance)


def never(provenance: Provenance | None = None) -> Lifetime:
    """A machine that is never taken away: on demand, or reserved."""
    zero = np.zeros(1)
    return Lifetime(knots_s=zero, revoked=zero, provenance=provenance or Provenance(data_set="on demand"))
