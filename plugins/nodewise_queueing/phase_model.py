"""The model of a job whose phases were timed with one worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue, Floats, Ints, SyncMode
from nodewise_laws import expected_maximum_gamma
from nodewise_queueing.asynchronous import asynchronous_table, network_of, rates_of
from nodewise_queueing.evidence import Facts, Phases, Runs
from nodewise_queueing.exchange import PULLS, Exchange, exchange_of, pulls_taken
from nodewise_queueing.load import LOG_LOSS_SPREAD, Load, fitted_load
from nodewise_queueing.regularity import ORDER_NOISE, order_swing
from nodewise_queueing.rows import CurveKey, Setting
from nodewise_queueing.scaling import factors_between, link_floor_s, repeat_pulls, scaled_phases
from nodewise_queueing.situation import Situation
from nodewise_queueing.synchronous import rounds_of, seconds_of, synchronous_table, variation_doubt
from nodewise_queueing.tables import Columns
from nodewise_queueing.unsaid import EVEN, LEAST_WEIGHT, unsaid_of
from nodewise_queueing.variation import Variation, likely_variation, measured_variation

__all__ = ["PhaseModel"]


@dataclass(frozen=True, slots=True, eq=False)
class PhaseModel:
    """Demands of one worker, and corrections under load by runs of several.

    Attributes
    ----------
    phases, facts
        What was measured, and facts of the job.
    runs : mapping of mode to Runs
        Measured throughputs.
    loads : mapping of mode to Load
        Factor on transfers under load; modes without a run of several workers are absent.
    device : str
    catalogue : Catalogue
    variation : Variation or None
        Of compute, as measured or estimated from runs; None = the likely value of the device.
    pulls_each : float
        Probability that every device of a worker pulls for itself.
    """

    phases: Phases
    facts: Facts
    runs: Mapping[int, Runs] = field(default_factory=dict)
    loads: Mapping[int, Load] = field(default_factory=dict)
    device: str = ""
    catalogue: Catalogue = field(default_factory=Catalogue)
    variation: Variation | None = None
    pulls_each: float = 1.0

    @staticmethod
    def fit(
        phases: Phases, facts: Facts, runs: Mapping[int, Runs], device: str = "", catalogue: Catalogue | None = None
    ) -> PhaseModel:
        """Fit the load of each mode that was run with several workers, and estimate unstated facts.

        Runs of one worker are not used: a counted rate is coarser than the sum of the phases.
        """
        model = PhaseModel(
            phases,
            facts,
            runs,
            device=device,
            catalogue=catalogue or Catalogue(),
            variation=measured_variation(phases.compute_cv, phases.setting.devices),
            pulls_each=facts.pulls_each,
        )
        model = model.with_pulls_weighed().with_variation_weighed()
        loads = {}
        for mode, measured in runs.items():
            if measured.worker_counts[-1] >= 2:
                pooled = model.pooled_runs(SyncMode(mode))
                rates = _rates_by_load(SyncMode(mode), pooled, model.groups(SyncMode(mode), pooled))
                loads[mode] = fitted_load(pooled, rates, ordered=mode == SyncMode.ASYNC)
        return replace(model, loads=loads)

    def on(self, device: str) -> PhaseModel:
        """The same model for a row's device, where the evidence does not state its own."""
        return self if self.device or not device else replace(self, device=device)

    def pooled_runs(self, mode: SyncMode) -> Runs:
        """Runs of a mode, with noise that includes the errors of predictions of them."""
        runs = self.runs[mode]
        noise = np.hypot(runs.log_noise, _doubt(mode, runs, self.groups(mode, runs)))
        return replace(runs, log_noise=noise).pool()

    def with_variation_weighed(self) -> PhaseModel:
        """Likely variations of compute weighed by synchronous runs, where it was not measured.

        The median of these is assumed then. A slow round may also be caused by load.
        """
        runs = self.runs.get(SyncMode.SYNC)
        if self.variation is not None or runs is None or runs.worker_counts[-1] < 2:
            return self
        prior = self._likely(runs.settings[-1])
        weights = []
        for cv, weight in prior.values_and_weights:
            with_cv = replace(self, variation=replace(prior, value=cv, others=()))
            weights.append(weight * _evidence(with_cv, SyncMode.SYNC))
        if not sum(weights) > 0.0:
            return self
        posterior = sorted(
            zip((cv for cv, _ in prior.values_and_weights), (weight / sum(weights) for weight in weights))
        )
        below = np.cumsum([weight for _, weight in posterior])
        value = posterior[int(np.searchsorted(below, EVEN))][0]
        others = tuple((cv, weight) for cv, weight in posterior if cv != value and weight >= LEAST_WEIGHT)
        return replace(
            self, variation=Variation(value=value, others=others, of=(f"{prior.of} and of the job's synchronous runs"))
        )

    def with_pulls_weighed(self) -> PhaseModel:
        """The model with the probability that each device pulls parameters, by runs of workers of several devices."""
        modes = [mode for mode, runs in self.runs.items() if any(each.devices > 1 for each in runs.settings)]
        if not modes or self.pulls_each in (0.0, 1.0):
            return self
        each, once = (
            weight * math.prod(_evidence(replace(self, pulls_each=share), SyncMode(mode)) for mode in modes)
            for share, weight in ((1.0, self.pulls_each), (0.0, 1.0 - self.pulls_each))
        )
        return self if not each + once > 0.0 else replace(self, pulls_each=each / (each + once))

    def _likely(self, setting: Setting) -> Variation:
        if self.variation is not None:
            return self.variation
        return likely_variation(self.device, self.catalogue, node_shared=setting.node_shared)

    @property
    def by_placement(self) -> bool:
        """Whether answers depend on how many workers share a node."""
        return self.variation is None and likely_variation(self.device, self.catalogue, node_shared=False).by_placement

    def _exchange(self, devices: int) -> Exchange:
        return exchange_of(
            devices,
            pulls_each=self.pulls_each > EVEN,
            parameter_bytes=self.facts.parameter_bytes,
            device=self.device,
            catalogue=self.catalogue,
        )

    def groups(self, mode: SyncMode, runs: Runs) -> _Groups:
        """Runs with the situations of their curves."""
        return [(self.situation(mode, setting), rows) for setting, rows in runs.by_setting()]

    def situation(self, mode: SyncMode, setting: Setting) -> Situation:
        """The situation of a curve of one setting."""
        factors = factors_between(self.phases.setting, setting, self.facts, phases_known=True)
        phases = scaled_phases(self.phases, setting, self.facts, factors)
        runs, exchange = self.runs.get(mode), self._exchange(setting.devices)
        variation = self._likely(setting)
        device_phases = self._of_one_device(phases, variation)
        return Situation(
            phases=repeat_pulls(device_phases, self.facts, exchange.pulls),
            facts=self.facts,
            variation=variation,
            exchange=exchange,
            floor_s=link_floor_s(device_phases, self.facts, both_ways=mode == SyncMode.ASYNC),
            load=self.loads.get(mode, Load.without_runs()),
            demand_log_spread=factors.demand_log_spread,
            compute_log_spread=factors.compute_log_spread,
            largest_workers=runs.worker_counts[-1] if runs is not None else 1,
            notices=(*factors.notices, *exchange.notices()),
        )

    def _of_one_device(self, phases: Phases, variation: Variation) -> Phases:
        """Phases of a single device, where a worker of several was timed."""
        timed = self._exchange(self.phases.setting.devices)
        if timed.devices == 1:
            return phases
        compute_s = max(phases.compute_s - timed.adding_s, 0.0)
        return replace(
            repeat_pulls(phases, self.facts, 1.0 / timed.pulls),
            compute_s=compute_s / float(expected_maximum_gamma(1.0, variation.value, timed.devices)),
        )

    def knee(self, mode: SyncMode, setting: Setting) -> float:
        """Workers at which the busiest station would be full if no worker waited."""
        return network_of(self.situation(mode, setting), 0.0).knee

    def table(self, key: CurveKey, population: int) -> Columns:
        """The curve of one mode and setting."""
        table = self.columns(key, population)
        each = self.pulls_each > EVEN
        other, weight = replace(self, pulls_each=float(not each)), min(self.pulls_each, 1.0 - self.pulls_each)
        if key.setting.devices == 1 or weight < LEAST_WEIGHT:
            return table
        effect = np.log(other.columns(key, population).step_s[1:] / table.step_s[1:])
        return table.with_unsaid(
            unsaid_of(PULLS, pulls_taken(each=each), [(effect, weight)], table.basic["log_spread"][1:])
        )

    def columns(self, key: CurveKey, population: int) -> Columns:
        """The same model without the uncertainty about which devices pull parameters."""
        situation = self.situation(key.mode, key.setting)
        if key.mode == SyncMode.SYNC:
            return synchronous_table(situation, population, key.backup_workers)
        table = asynchronous_table(situation, population)
        if key.setting.servers <= self.phases.setting.servers:
            return table
        # More servers may also end the regular schedule that workers had with fewer: it cannot be relied on.
        fewer = replace(key.setting, servers=self.phases.setting.servers)
        shares = self.facts.byte_share(fewer.servers) / self.facts.byte_share(key.setting.servers)
        return table.lengthen(asynchronous_table(self.situation(key.mode, fewer), population).step_s / shares)


_Groups = list[tuple[Situation, Ints]]
"""Runs that share a curve: its situation, and their places."""


def _doubt(mode: SyncMode, runs: Runs, groups: _Groups) -> Floats:
    """Deviation of each predicted ln(rate) from everything but load, order and campaign."""
    doubt = np.empty(len(runs))
    for situation, rows in groups:
        workers = runs.workers[rows]
        if mode == SyncMode.SYNC:
            own = variation_doubt(situation, 0.0, workers)
        else:
            network, population = network_of(situation, 0.0), int(workers.max())
            orderly = network.orderly_rate(population)
            own = order_swing(np.log(network.in_step_rate(orderly)), np.log(orderly), ORDER_NOISE)[workers - 1]
        doubt[rows] = np.sqrt(np.square(own) + situation.demand_log_spread**2 + situation.compute_log_spread**2)
    return doubt


_EVIDENCE_LOADS: Final = (0.0, 0.05, 0.1, 0.2, 0.4)
"""ln of loads over which evidence is added up: the prior of the load falls to 0.04 at the last but one."""


def _evidence(model: PhaseModel, mode: SyncMode) -> float:
    """Likelihood of the runs of a mode, over loads."""
    pooled = model.pooled_runs(mode)
    rates = _rates_by_load(mode, pooled, model.groups(mode, pooled))
    several = pooled.workers >= 2
    log_evidence = 0.0
    for load in _EVIDENCE_LOADS:
        misfit = ((rates(load, np.zeros(1))[0] - pooled.log_rate) / pooled.log_noise)[several]
        log_evidence += math.exp(-0.5 * (float(misfit @ misfit) + (load / LOG_LOSS_SPREAD) ** 2))
    return log_evidence / float(np.prod(pooled.log_noise[several]))


def _rates_by_load(mode: SyncMode, runs: Runs, groups: _Groups) -> Callable[[float, Floats], Floats]:
    """Logarithm of the rate that each run should have had, by ln(load) and the shift of the order."""

    def log_rates(log_load: float, shifts: Floats) -> Floats:
        expected = np.empty((len(shifts), len(runs)))
        for situation, rows in groups:
            workers = runs.workers[rows]
            if mode == SyncMode.SYNC:
                expected[:, rows] = -np.log(seconds_of(rounds_of(situation, log_load, workers)))
                continue
            rates = rates_of(situation, network_of(situation, log_load), int(workers.max()))
            expected[:, rows] = rates.shift(shifts[:, np.newaxis], workers - 1)
        return expected

    return log_rates
