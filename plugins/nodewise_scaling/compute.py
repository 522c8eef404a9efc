"""Compute of a job on a device that it was not timed on, from donors and facts; and what is not known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_scaling.fitting import JobFit
from nodewise_scaling.parameters import BATCH_SHARE, LEVEL
from nodewise_scaling.points import Points
from nodewise_scaling.speed import Ratio

__all__ = ["MOST_COMPUTE_LOG_SD", "Compute", "ComputeDoubt", "compute_by_facts"]

HOST_S: Final = 0.1
"""Seconds that a cluster's host may add to a step. Of the same job at the same batch, published clusters differ by 0.05
to 0.17 s: V100 nodes take 0.097 to 0.192 s for a step of ncf where T4 nodes take 0.007 to 0.021
(research/transfer.md)."""

FIXED_LOG_SD: Final = 1.0
"""Standard deviation of ln of what does not grow with the batch in a step on another device: launches, data loading and
too small kernels, of which peaks say nothing."""

MOST_COMPUTE_LOG_SD: Final = 1.0
"""More doubt of compute than this, a factor of 5 either way in a 90 % interval, is no answer."""


LARGEST_LOG_SD: Final = 5.0
"""A factor of 150: a larger deviation would add no information."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute at some batch: ln of the seconds that do not grow with it and of those that do, and their deviations.

    ``facts_sd`` is that of the surest ratio of ``facts`` alone, ``donors_s`` the seconds that donors took.
    """

    fixed: float
    growing: float
    fixed_sd: float
    growing_sd: float
    facts_sd: float
    donors_s: float
    facts: tuple[str, ...]

    @property
    def total(self) -> float:
        """Ln of all seconds."""
        return float(np.logaddexp(self.fixed, self.growing))

    @property
    def share(self) -> float:
        """What grows with the batch, of all."""
        return float(np.exp(self.growing - self.total))


@dataclass(frozen=True, slots=True)
class ComputeDoubt:
    """What is not known of compute that facts predict, by the batch over the smallest.

    Attributes
    ----------
    unit_s, donors_unit_s : float
        Compute at the smallest batch, and as the donors had it.
    batch_share : float
        Share of it that grows with the batch.
    facts_log_sd : float
        Standard deviation of the ratio by facts.
    """

    unit_s: float
    donors_unit_s: float
    batch_share: float
    facts_log_sd: float

    def host_log_sd(self, batch: Floats) -> Floats:
        """Of what a host may add, or the donors' hosts have added: one standard deviation of ln compute."""
        growth = self._growth(batch)
        added = np.log1p(HOST_S / (self.unit_s * growth))
        left = 1.0 - HOST_S / (self.donors_unit_s * growth)
        return np.asarray(np.maximum(added, -np.log(np.maximum(left, np.exp(-LARGEST_LOG_SD)))))

    def log_sd(self, batch: Floats) -> Floats:
        """Of everything."""
        fixed = (1.0 - self.batch_share) / self._growth(batch)
        return np.asarray(np.sqrt(self.facts_log_sd**2 + (FIXED_LOG_SD * fixed) ** 2 + self.host_log_sd(batch) ** 2))

    def _growth(self, batch: Floats) -> Floats:
        return np.asarray(1.0 - self.batch_share + self.batch_share * batch)


def compute_by_facts(donors: Iterable[tuple[JobFit, Points, Ratio | None]], batch: float) -> Compute | None:
    """Compute at a batch, by donors and how much faster the device is than each; None where no ratio is known."""
    logs, variances, sds, ratios = [], [], [], []
    facts: list[str] = []
    for fit, points, ratio in donors:
        if ratio is None:
            continue
        share = 1.0 / (1.0 + float(np.exp(-fit.theta[BATCH_SHARE])))
        log_unit = float(np.log(points.unit_s)) + float(fit.theta[LEVEL]) - ratio.log
        unsure = float(fit.theta_covariance[BATCH_SHARE, BATCH_SHARE])
        logs.append((log_unit + np.log1p(-share), log_unit + np.log(share * batch / points.smallest_batch)))
        variances.append(
            (ratio.log_sd**2 + FIXED_LOG_SD**2 + share**2 * unsure, ratio.log_sd**2 + (1.0 - share) ** 2 * unsure)
        )
        sds.append(ratio.log_sd)
        ratios.append(ratio.log)
        facts += ratio.facts
    if not logs:
        return None
    weights = 1.0 / np.array(variances)
    fixed, growing = (np.array(logs) * weights).sum(axis=0) / weights.sum(axis=0)
    # Half of the uncertainty is about the asked device, and a second donor does not reduce it.
    fixed_sd, growing_sd = np.sqrt(0.5 * (1.0 / weights.max(axis=0) + 1.0 / weights.sum(axis=0)))
    used = tuple(dict.fromkeys(facts))
    return Compute(
        fixed=float(fixed),
        growing=float(growing),
        fixed_sd=float(fixed_sd),
        growing_sd=float(growing_sd),
        facts_sd=min(sds),
        donors_s=float(np.exp(np.logaddexp(fixed, growing) + np.average(ratios, weights=weights[:, 1]))),
        facts=used,
    )
