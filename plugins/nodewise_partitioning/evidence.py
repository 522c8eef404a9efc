"""How much longer steps take than the equations say, by what runs share, and how sure that is.

    ln(measured / predicted) = installation + device + model + rest

Installation (cluster and stack), device with its number format, and model have normal priors; the rest has heavy
tails, so that a run that something disturbed pulls little. What runs of a job say therefore reaches other models and
devices of its owner as far as it is shared, and an interval narrows as what it rests on is measured.

Deviations are those between published sources, each left out of what the equations were fitted to, or within them: mean
errors of BigScience, MPT (two boards of A100, H100, H100 in fp8), MLPerf, Megatron-Bridge, SC'21 and InternEvo have a
deviation of 0.08, runs within one of 0.03 to 0.08 (research/partitioning.md).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, catalogue_key
from nodewise_partitioning.calibration import Runs
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.workload import Dimensions

__all__ = ["Levels", "levels_of"]

INSTALLATION: Final = 0.07
UNKNOWN_INSTALLATION: Final = 0.14
"""With a framework that is not known: its switches may be any."""
DEVICE: Final = 0.04
OTHER_DEVICE: Final = 0.25
"""On devices of which no source was seen but V100, whose runs take 1.3 to 2.5 times as long as predicted."""
MODEL: Final = 0.04
WITHIN: Final = 0.075
"""Between runs of one model on one installation."""
WITHIN_RUNS: Final = 8.0
"""Runs that this counts for beside measured ones."""
TAIL: Final = 4.0
"""Degrees of freedom of the rest (Student)."""
ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What runs say of ln(measured / predicted).

    Attributes
    ----------
    places : mapping
        Where each effect that was seen stands in ``means`` and ``covariance``.
    within : float
        Deviation of the rest.
    installation : float
        Prior deviation of the installation.
    """

    places: Mapping[Hashable, int]
    means: Floats
    covariance: Floats
    within: float
    installation: float

    def of(self, device: Device, dimensions: Dimensions) -> tuple[float, float]:
        """Factor on steps of a model on a device, and the deviation of ln(step)."""
        effects = _effects(device, dimensions, self.installation)
        seen = [self.places[effect] for effect in effects if effect in self.places]
        unseen = sum(deviation**2 for effect, deviation in effects.items() if effect not in self.places)
        known = float(self.covariance[np.ix_(seen, seen)].sum())
        return float(np.exp(self.means[seen].sum())), float(np.sqrt(known + unseen + self.within**2))


def levels_of(runs: Sequence[Runs], residuals: Floats, *, known: bool) -> Levels:
    """The most likely effects.

    Parameters
    ----------
    residuals : (rows,) float
        Ln(predicted / measured) of all runs, in order.
    known : bool
        Whether the framework is.
    """
    installation = INSTALLATION if known else UNKNOWN_INSTALLATION
    deviations: dict[Hashable, float] = {}
    for each in runs:
        deviations |= _effects(each.device, each.dimensions, installation)
    places = {effect: place for place, effect in enumerate(deviations)}
    design = np.zeros((len(residuals), len(places)))
    start = 0
    for each in runs:
        rows = slice(start, start + len(each.step_s))
        for effect in _effects(each.device, each.dimensions, installation):
            design[rows, places[effect]] = 1.0
        start = rows.stop
    prior = np.diag([deviation**-2.0 for deviation in deviations.values()])
    weights = np.ones(len(design))
    means: Floats = np.zeros(len(places))
    covariance: Floats = np.zeros((len(places), len(places)))
    rest = -residuals
    for _ in range(ROUNDS if len(design) else 0):
        weighed = design * (weights / WITHIN**2)[:, None]
        covariance = np.asarray(np.linalg.inv(weighed.T @ design + prior))
        means = np.asarray(covariance @ (weighed.T @ -residuals))
        rest = np.asarray(-residuals - design @ means)
        weights = (TAIL + 1.0) / (TAIL + (rest / WITHIN) ** 2)
    squares = WITHIN_RUNS * WITHIN**2 + float(rest @ rest)
    return Levels(places, means, covariance, float(np.sqrt(squares / (WITHIN_RUNS + len(rest)))), installation)


def _effects(device: Device, dimensions: Dimensions, installation: float) -> dict[Hashable, float]:
    """What a run shares with others, with prior deviations."""
    key = catalogue_key(device.name)
    seen = device.after_ampere or key.startswith("a100")
    return {
        "installation": installation,
        (key, device.number_format): DEVICE if seen else OTHER_DEVICE,
        dimensions: MODEL,
    }
