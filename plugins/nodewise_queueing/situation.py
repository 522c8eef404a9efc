"""Everything that a curve from phases is computed from, and what its uncertain inputs do to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, Notice
from nodewise_queueing.evidence import CAMPAIGN_LOG_SPREAD, Facts, Phases
from nodewise_queueing.load import Load

__all__ = ["DEFAULT_COMPUTE_CV", "Situation", "combined_spread", "extrapolation_of", "swing"]

DEFAULT_COMPUTE_CV: Final = 0.3
"""Coefficient of variation of compute where it was not measured: the middle of 0.1 to 0.5, between which the jobs lie
that the project's testbed ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One worker's phases in the setting that is asked about, with what is known of load and doubt.

    Attributes
    ----------
    phases : Phases
        Carried to the setting.
    facts : Facts
    floor_s : float
        Least seconds of one transfer under load; 0 = not known.
    load : Load
        How much dearer transfers are under load than by phases and floor.
    demand_log_spread, compute_log_spread : float
        Doubt from carrying the phases to the setting.
    largest_workers : int
        Largest number of workers measured in this mode, at least 1.
    notices : tuple of Notice
    """

    phases: Phases
    facts: Facts
    floor_s: float
    load: Load
    demand_log_spread: float
    compute_log_spread: float
    largest_workers: int
    notices: tuple[Notice, ...]

    @property
    def compute_cv(self) -> float:
        """Coefficient of variation of compute, measured or assumed."""
        return DEFAULT_COMPUTE_CV if self.phases.compute_cv is None else self.phases.compute_cv

    @property
    def measured_variance(self) -> float:
        """Variance of ln(step time) from the phases themselves: another campaign, and a mean over few steps."""
        phases = self.phases
        sampling = 0.0
        if phases.steps > 0:
            sampling = self.compute_cv * phases.compute_s / (phases.cycle_s * math.sqrt(phases.steps))
        return CAMPAIGN_LOG_SPREAD**2 + sampling**2

    def under_load_s(self, log_load: float) -> tuple[float, float]:
        """Seconds of service that one download and one upload cost when others use the link."""
        factor = math.exp(log_load)
        return max(self.phases.download_s, self.floor_s) * factor, max(self.phases.upload_s, self.floor_s) * factor


def swing(log_step: Callable[[float], Floats], spread: float) -> Floats | float:
    """Standard deviation of ln(step time) from one input: half the difference between one deviation up and one down."""
    if spread == 0.0:
        return 0.0
    return np.asarray(0.5 * np.abs(log_step(spread) - log_step(-spread)))


def combined_spread(variance: float, *parts: Floats | float) -> Floats:
    """Standard deviation from independent causes."""
    return np.asarray(np.sqrt(sum((np.square(part) for part in parts), start=variance)))


def extrapolation_of(workers: Ints, knee: float, largest_workers: int) -> Floats:
    """Workers over what the evidence covers: the largest number measured, or the knee if that is more.

    Phases of one worker fix both asymptotes of the curve, so up to the knee, where they cross, an answer lies between
    measured ends. Beyond, it rests on how a saturated station behaves, which one worker cannot show.
    """
    return np.asarray(np.maximum(1.0, workers / max(knee, float(largest_workers))))
