"""Everything that a curve from phases is computed from, and what its uncertain inputs do to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nodewise.plugin import Floats, Ints, Notice, as_floats
from nodewise_laws import (
    MAX_COEFFICIENT_OF_VARIATION,
    expected_maximum_gamma,
    maximum_cv_gamma,
    private_cycle_cv,
    staleness_p95,
)
from nodewise_queueing.evidence import CAMPAIGN_LOG_SPREAD, Facts, Phases
from nodewise_queueing.exchange import Exchange
from nodewise_queueing.load import Load
from nodewise_queueing.variation import Variation

__all__ = [
    "Situation",
    "Transfer",
    "extrapolation_of",
    "staleness_of",
    "swing",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One transfer of a cycle.

    Attributes
    ----------
    alone_s : float
        Seconds of it when no other worker uses the link.
    demand_s : float
        Seconds of service that it asks of a link that others use too.
    flows : float
        Transfers that the link takes at once before they slow each other down, at least 1.
    """

    alone_s: float
    demand_s: float
    flows: float

    @property
    def saved_s(self) -> float:
        """Seconds by which a lone transfer is shorter than its demand on the link; below 0 = it waits in addition."""
        return self.demand_s * self.flows - self.alone_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One worker's phases in the asked setting, with load and uncertainty.

    Attributes
    ----------
    phases : Phases
        Carried to the setting; compute is that of one device.
    facts : Facts
    variation : Variation
        Of the compute of one device.
    exchange : Exchange
        How the devices of a worker exchange with the servers.
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
    variation: Variation
    exchange: Exchange
    floor_s: float
    load: Load
    demand_log_spread: float
    compute_log_spread: float
    largest_workers: int
    notices: tuple[Notice, ...]

    @property
    def link_known(self) -> bool:
        """Whether bytes and link are known, and the phases agree with them: stations are then links and a lock."""
        return self.floor_s > 0.0

    @property
    def compute_s(self) -> float:
        """Mean compute of one worker: that of its slowest device, and adding up."""
        return self._slowest_s + self.exchange.adding_s

    @property
    def compute_cv(self) -> float:
        """Coefficient of variation of it; at most what the laws take."""
        cv = min(self.variation.value, MAX_COEFFICIENT_OF_VARIATION)
        if self.exchange.devices == 1:
            return cv
        own_s = self._slowest_s
        return maximum_cv_gamma(cv, self.exchange.devices) * own_s / self.compute_s if own_s > 0.0 else 0.0

    @property
    def _slowest_s(self) -> float:
        if self.exchange.devices == 1:
            return self.phases.compute_s
        cv = min(self.variation.value, MAX_COEFFICIENT_OF_VARIATION)
        return float(expected_maximum_gamma(self.phases.compute_s, cv, self.exchange.devices))

    @property
    def cycle_s(self) -> float:
        """Seconds of one worker's step when it is alone."""
        return self.phases.cycle_s - self.phases.compute_s + self.compute_s

    def with_variation(self, cv: float) -> Situation:
        """The same with another variation of compute."""
        return replace(self, variation=replace(self.variation, value=cv))

    def slow_compute(self, factor: float) -> Situation:
        """The situation of workers that compute slower by a factor."""
        return replace(self, phases=self.phases.slow_compute(factor))

    @property
    def measured_variance(self) -> float:
        """Variance of ln(step time) from the phases themselves: another campaign, and a mean over few steps."""
        phases = self.phases
        sampling = 0.0
        if phases.steps > 0:
            sampling = self.compute_cv * self.compute_s / (self.cycle_s * math.sqrt(phases.steps))
        return CAMPAIGN_LOG_SPREAD**2 + sampling**2

    def transfers(self, log_load: float) -> tuple[Transfer, Transfer]:
        """Download and upload, with transfers dearer under load by a factor."""
        pulls = self.exchange.pulls
        return self._transfer(self.phases.download_s, log_load, pulls), self._transfer(self.phases.upload_s, log_load)

    def _transfer(self, alone_s: float, log_load: float, times: float = 1.0) -> Transfer:
        """A transfer: what of it occupies the server's link, and what only takes time.

        A round trip loads no link. A worker's link that is slower than the server's makes a lone transfer longer than
        what it asks of the server's. The rest of a lone transfer is the server's, and at least what its bytes need.
        """
        setting, facts, floor_s = self.phases.setting, self.facts, self.floor_s * times
        waiting_s = min(alone_s, facts.round_trip_s)
        flows = 1.0
        if facts.worker_link_bytes_per_s > 0.0 and setting.link_bytes_per_s > 0.0:
            servers = setting.link_bytes_per_s / facts.byte_share(setting.servers)
            flows = max(servers / facts.worker_link_bytes_per_s, 1.0)
        if self.link_known:
            # A lone transfer that was quicker than the worker's link allows contradicts that fact.
            flows = min(flows, max((alone_s - waiting_s) / floor_s, 1.0))
        demand_s = max((alone_s - waiting_s) / flows, floor_s) * math.exp(log_load)
        return Transfer(alone_s=alone_s, demand_s=demand_s, flows=flows)


def staleness_of(workers: Ints, step_s: Floats, compute_s: Floats | float, compute_cv: float) -> tuple[Floats, Floats]:
    """Mean and 95th percentile of the updates by others between an asynchronous worker's download and its upload."""
    return as_floats(workers - 1), staleness_p95(workers, private_cycle_cv(step_s, compute_s, compute_cv))


def swing(log_step: Callable[[float], Floats], spread: float) -> Floats | float:
    """Standard deviation of ln(step time) from one input: half the difference between one deviation up and one down."""
    if spread == 0.0:
        return 0.0
    return np.asarray(0.5 * np.abs(log_step(spread) - log_step(-spread)))


def extrapolation_of(workers: Ints, knee: float, largest_workers: int) -> Floats:
    """Workers over what the evidence covers: the largest number measured, or the knee if that is more.

    Phases of one worker fix both asymptotes of the curve, so up to the knee, where they cross, an answer lies between
    measured ends. Beyond, it rests on how a saturated station behaves, which one worker cannot show.
    """
    return np.asarray(np.maximum(1.0, workers / max(knee, float(largest_workers))))
