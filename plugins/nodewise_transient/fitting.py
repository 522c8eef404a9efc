"""Laws fitted to observed lifetimes; machines that survived the observation count as censored.

Binned shares (how many were gone after each hour) take the likelihood of intervals: sum over bins p ln[S(a) - S(b)],
and (1 - F) ln S(end) for the rest. Single lifetimes take the usual censored likelihood, and Kaplan and Meier's estimate
(E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53, 1958) for
what was observed. The error of a law is the largest distance (Kolmogorov-Smirnov) at the bins' ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import scipy

from nodewise.plugin import Floats
from nodewise_transient.lifetimes import Lifetime, piecewise_linear, weibull
from nodewise_transient.provenance import Provenance

__all__ = ["Fit", "LifetimeSample", "choose", "empirical", "fit", "sample_of_bins", "single"]

LEAST_SHAPE: Final = 0.2
"""A Weibull law this flat means that some machines are lost at once and the rest hardly ever: it is no law of ageing.
The
likelihood then rises up to the bound, whatever the bound."""
MOST_SHAPE: Final = 20.0
"""Steeper, all machines live equally long to a few per cent."""
KS_CRITICAL: Final = 1.36
"""A distance above 1.36 / sqrt(n) rejects a stated law at 5 % (Kolmogorov's limit); fitted ones a little earlier."""

Family = Literal["weibull", "exponential"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LifetimeSample:
    """Observed lifetimes.

    Attributes
    ----------
    ages_s : ends of the bins, or ages at which single machines were revoked; rising.
    revoked : share revoked up to each of them; of single machines by Kaplan and Meier.
    machines : how many were observed.
    cap_s : the provider's cap.
    events, exposure_s : revocations, and machine-seconds in which they happened.
    lives_s, ended : single lifetimes and whether a revocation ended them; absent for bins.
    provenance : of the observations.
    """

    ages_s: Floats
    revoked: Floats
    machines: int
    cap_s: float
    events: float
    exposure_s: float
    lives_s: Floats | None = None
    ended: npt.NDArray[np.bool_] | None = None
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """A fitted law: its parameters, its distance from the observations, and whether it is degenerate."""

    law: Lifetime
    scale_s: float
    shape: float
    ks: float
    degenerate: bool


def sample_of_bins(
    ends_s: npt.ArrayLike, revoked: npt.ArrayLike, *, machines: int, cap_s: float = math.inf, provenance: Provenance
) -> LifetimeSample:
    """Shares revoked up to the ends of bins; rows beyond the cap, where what is left ends, are not revocations."""
    ends, shares = np.asarray(ends_s, dtype=np.float64), np.asarray(revoked, dtype=np.float64)
    is_before_cap = ends <= cap_s
    ends, shares = ends[is_before_cap], shares[is_before_cap]
    left = 1.0 - np.append(0.0, shares)
    exposure = float(np.sum(0.5 * (left[1:] + left[:-1]) * np.diff(np.append(0.0, ends)))) * machines
    return LifetimeSample(
        ages_s=ends,
        revoked=shares,
        machines=machines,
        cap_s=cap_s,
        events=float(shares[-1]) * machines,
        exposure_s=exposure,
        provenance=replace(provenance, machines=machines),
    )


def single(
    lives_s: npt.ArrayLike, ended: npt.ArrayLike, *, cap_s: float = math.inf, provenance: Provenance
) -> LifetimeSample:
    """Single lifetimes, revoked or still running at the end of observation: S(t) = prod (1 - d_j / n_j)."""
    lives, gone = np.asarray(lives_s, dtype=np.float64), np.asarray(ended, dtype=np.bool_)
    gone = gone & (lives < cap_s)
    ages, deaths = np.unique(lives[gone], return_counts=True)
    if not len(ages):
        raise ValueError("no revocation was observed, so no lifetime law can be fitted: state a law")
    at_risk = len(lives) - np.searchsorted(np.sort(lives), ages, side="left")
    return LifetimeSample(
        ages_s=ages,
        revoked=np.asarray(1.0 - np.cumprod(1.0 - deaths / at_risk), dtype=np.float64),
        machines=len(lives),
        cap_s=cap_s,
        events=float(gone.sum()),
        exposure_s=float(lives.sum()),
        lives_s=lives,
        ended=gone,
        provenance=replace(provenance, machines=len(lives)),
    )


def empirical(sample: LifetimeSample) -> Lifetime:
    """The observations as they are, linear inside bins; survivors end at the cap.

    Without a cap nothing is known of ages beyond the last revocation: lives go on with the mean hazard of all that was
    seen (revocations per machine-second), and the provenance says so.
    """
    provenance = replace(sample.provenance, law="empirical", ks=None)
    if math.isfinite(sample.cap_s) or sample.revoked[-1] >= 1.0:
        return piecewise_linear(sample.ages_s, sample.revoked, cap_s=sample.cap_s, provenance=provenance)
    left = np.geomspace(1.0, 1e-9, 400)[1:]
    tail = sample.ages_s[-1] - np.log(left) * sample.exposure_s / max(sample.events, 1.0)
    note = f"no lifetime beyond {sample.ages_s[-1] / 3600.0:.1f} h was observed: the mean hazard is assumed to go on"
    return piecewise_linear(
        np.append(sample.ages_s, tail),
        np.append(sample.revoked, 1.0 - (1.0 - sample.revoked[-1]) * left),
        provenance=replace(provenance, notes=(*provenance.notes, note)),
    )


def fit(sample: LifetimeSample, family: Family) -> Fit:
    """The most likely law of a family."""
    loss = _loss_of(sample)
    middle = math.log(sample.exposure_s / max(sample.events, 0.5))

    def best_scale(shape: float) -> tuple[float, float]:
        """The likeliest log of the scale of a shape, and its loss: flat laws need scales of very many mean lives."""
        wide = 4.0 / shape
        bounds = (middle - wide, middle + wide)
        result = scipy.optimize.minimize_scalar(lambda x: loss(math.exp(x), shape), bounds=bounds, method="bounded")
        return float(result.x), float(result.fun)

    shape = 1.0
    if family == "weibull":
        bounds = (math.log(LEAST_SHAPE), math.log(MOST_SHAPE))
        result = scipy.optimize.minimize_scalar(lambda x: best_scale(math.exp(x))[1], bounds=bounds, method="bounded")
        shape = math.exp(float(result.x))
    scale = math.exp(best_scale(shape)[0])
    distance = float(np.max(np.abs(-np.expm1(-((sample.ages_s / scale) ** shape)) - sample.revoked)))
    provenance = replace(sample.provenance, law=family, ks=distance)
    return Fit(
        law=weibull(scale, shape, cap_s=sample.cap_s, provenance=provenance),
        scale_s=scale,
        shape=shape,
        ks=distance,
        degenerate=shape <= LEAST_SHAPE * 1.01,
    )


def choose(sample: LifetimeSample) -> Lifetime:
    """The fitted law at the smallest distance, if the observations do not contradict it; else the observations.

    Chosen by distance, below 1.36 / sqrt(n). A degenerate fit is never used.
    """
    families: tuple[Family, ...] = ("exponential", "weibull")
    nearest = min((fit(sample, family) for family in families), key=lambda each: (each.degenerate, each.ks))
    if nearest.degenerate or nearest.ks > KS_CRITICAL / math.sqrt(sample.machines):
        return empirical(sample)
    return nearest.law


def _loss_of(sample: LifetimeSample) -> Callable[[float, float], float]:
    """Minus the mean log likelihood of a Weibull law's scale and shape."""
    if sample.lives_s is not None and sample.ended is not None:
        lives, ended = np.maximum(sample.lives_s, 1e-9), sample.ended
        share = float(ended.mean())
        log_lives = float(np.log(lives[ended]).sum()) / len(lives)

        def single_loss(scale: float, shape: float) -> float:
            density = share * (math.log(shape) - shape * math.log(scale)) + (shape - 1.0) * log_lives
            return float(np.mean((lives / scale) ** shape)) - density

        return single_loss
    gone = np.diff(np.append(0.0, sample.revoked))

    def binned_loss(scale: float, shape: float) -> float:
        hazard = (np.append(0.0, sample.ages_s) / scale) ** shape
        inside = np.exp(-hazard[:-1]) * -np.expm1(-np.diff(hazard))
        likelihood = float(gone @ np.log(np.maximum(inside, 1e-300)))
        return -likelihood + (1.0 - float(sample.revoked[-1])) * float(hazard[-1])

    return binned_loss
