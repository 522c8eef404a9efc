"""Corrects a software stack's numbers by measured runs.

    minimise  sum of rho( (ln predicted - ln measured) / noise ) + sum of ( ln(x / default) / deviation )^2

over the numbers x of :data:`FIELDS` within their bounds; rho(z) is the soft absolute value 2 (sqrt(1 + z^2) - 1), so
that a disturbed run has bounded influence. A number that the runs do not identify stays at its prior, and is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import FIELDS, Software
from nodewise_partitioning.step import step_parts_s
from nodewise_partitioning.workload import Dimensions

__all__ = ["NOISE", "Calibration", "Job", "Runs", "calibrate", "log_residuals"]

NOISE: Final = 0.08
"""Deviation of ln(step) that these equations leave at best: between repeated runs, kernels and shapes."""

IDENTIFIED_SHARE: Final = 0.9
"""A number is not identified by runs if they leave its deviation above this share of its prior's."""

LARGEST_CORRECTION: Final = 4.0
"""Most prior deviations that a number moves: beyond, the runs contradict the equations, not a number."""


@dataclass(frozen=True, slots=True)
class Job:
    """Key of a set of runs: the job's unique name, and the features of the software that it declares."""

    name: str = ""
    software: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Measured steps of one model on one device; ``weight`` is the weight of each."""

    dimensions: Dimensions
    layout: Layout
    device: Device
    step_s: Floats
    weight: float = 1.0
    job: Job = field(default_factory=Job)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Numbers that agree with measured runs.

    Attributes
    ----------
    software : Software
        The corrected stack.
    runs : int
        Number of runs; 0 = none, the defaults hold.
    unidentified : tuple of str
        Numbers that no run identified: they are unchanged.
    log_residuals : float
        ln(predicted / measured) of every run under the corrected stack.
    """

    software: Software
    runs: int = 0
    unidentified: tuple[str, ...] = tuple(FIELDS)
    log_residuals: Floats = field(default_factory=lambda: np.zeros(0))


def calibrate(software: Software, runs: Sequence[Runs], *, widened: float = 1.0, noise: float = NOISE) -> Calibration:
    """Correct a stack's numbers by runs.

    Parameters
    ----------
    widened : float
        Factor on the deviations of all priors.
    noise : float
        Deviation of ln(step) of one run.
    """
    if not runs:
        return Calibration(software)
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import, and only measured runs need it

    start = np.log(software.vector())
    deviation = widened * np.array([each.log_deviation for each in FIELDS.values()])
    lower = np.maximum((np.log([each.lower for each in FIELDS.values()]) - start) / deviation, -LARGEST_CORRECTION)
    upper = np.minimum((np.log([each.upper for each in FIELDS.values()]) - start) / deviation, LARGEST_CORRECTION)

    weights = np.sqrt(np.concatenate([np.full(len(each.step_s), each.weight) for each in runs]))

    def stack(moved: Floats) -> Software:
        return software.with_numbers(tuple(np.exp(start + deviation * moved).tolist()))

    def residuals(moved: Floats) -> Floats:
        misfit = log_residuals(stack(moved), runs) / noise
        return np.concatenate((weights * _soften(misfit), moved))

    # A default on its bound would give the optimizer no range to start in.
    begin = np.clip(np.zeros(len(FIELDS)), lower + 1e-6, np.maximum(upper - 1e-6, lower + 2e-6))
    fit = least_squares(residuals, begin, bounds=(lower, np.maximum(upper, lower + 1e-5)), method="trf")
    rows = sum(len(each.step_s) for each in runs)
    slopes = np.asarray(fit.jac)
    remaining = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    unidentified = tuple(name for name, left in zip(FIELDS, remaining, strict=True) if left > IDENTIFIED_SHARE)
    best = stack(fit.x)
    return Calibration(best, rows, unidentified, log_residuals(best, runs))


def _soften(misfit: Floats) -> Floats:
    """Residuals whose squares are the soft absolute value: only residuals are to be robust, priors are not."""
    square = 2.0 * (np.sqrt(1.0 + misfit**2) - 1.0)
    return np.asarray(np.sign(misfit) * np.sqrt(square))


def log_residuals(software: Software, runs: Sequence[Runs]) -> Floats:
    """Ln(predicted / measured) of all runs, in order."""
    if not runs:
        return np.zeros(0)
    parts = [step_parts_s(each.dimensions, each.layout, each.device, software).sum(axis=0) for each in runs]
    return np.asarray(np.log(np.concatenate(parts) / np.concatenate([each.step_s for each in runs])))
