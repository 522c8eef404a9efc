"""The model of a job whose phases were timed with one worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nodewise.plugin import Floats, Ints, SyncMode
from nodewise_queueing.asynchronous import asynchronous_table, network_of, rates_of
from nodewise_queueing.evidence import Facts, Phases, Runs
from nodewise_queueing.load import Load, fitted_load
from nodewise_queueing.regularity import ORDER_NOISE, order_swing
from nodewise_queueing.rows import CurveKey, Setting
from nodewise_queueing.scaling import factors_between, link_floor_s, scaled_phases
from nodewise_queueing.situation import Situation
from nodewise_queueing.synchronous import barrier_doubt, rounds_of, seconds_of, synchronous_table
from nodewise_queueing.tables import Columns

__all__ = ["PhaseModel"]


@dataclass(frozen=True, slots=True, eq=False)
class PhaseModel:
    """Demands of one worker, and what runs of several said about them under load.

    Attributes
    ----------
    phases, facts
        What was measured, and facts of the job.
    runs : mapping of mode to Runs
        Measured throughputs.
    loads : mapping of mode to Load
        Factor on transfers under load; modes without a run of several workers are absent.
    """

    phases: Phases
    facts: Facts
    runs: Mapping[int, Runs] = field(default_factory=dict)
    loads: Mapping[int, Load] = field(default_factory=dict)

    @staticmethod
    def fitted(phases: Phases, facts: Facts, runs: Mapping[int, Runs]) -> PhaseModel:
        """Fit the load of each mode that was run with several workers.

        Runs of one worker are not used: a counted rate is coarser than the sum of the phases.
        """
        model = PhaseModel(phases, facts, runs)
        loads = {}
        for mode, measured in runs.items():
            if measured.worker_counts[-1] >= 2:
                groups = model._groups(SyncMode(mode), measured)
                noise = np.hypot(measured.log_noise, _doubt(SyncMode(mode), measured, groups))
                pooled = replace(measured, log_noise=noise).pooled()
                rates = _rates_by_load(SyncMode(mode), pooled, model._groups(SyncMode(mode), pooled))
                loads[mode] = fitted_load(pooled, rates, ordered=mode == SyncMode.ASYNC)
        return replace(model, loads=loads)

    def _groups(self, mode: SyncMode, runs: Runs) -> _Groups:
        return [(self.situation(mode, setting), rows) for setting, rows in runs.by_setting()]

    def situation(self, mode: SyncMode, setting: Setting) -> Situation:
        """What a curve of one setting is computed from."""
        factors = factors_between(self.phases.setting, setting, self.facts, phases_known=True)
        phases = scaled_phases(self.phases, setting, self.facts, factors)
        runs = self.runs.get(mode)
        return Situation(
            phases=phases,
            facts=self.facts,
            floor_s=link_floor_s(phases, self.facts, both_ways=mode == SyncMode.ASYNC),
            load=self.loads.get(mode, Load.unmeasured()),
            demand_log_spread=factors.demand_log_spread,
            compute_log_spread=factors.compute_log_spread,
            largest_workers=runs.worker_counts[-1] if runs is not None else 1,
            notices=factors.notices,
        )

    def knee(self, mode: SyncMode, setting: Setting) -> float:
        """Workers at which the busiest station would be full if nobody waited."""
        return network_of(self.situation(mode, setting), 0.0).knee

    def table(self, key: CurveKey, population: int) -> Columns:
        """The curve of one mode and setting."""
        situation = self.situation(key.mode, key.setting)
        if key.mode == SyncMode.SYNC:
            return synchronous_table(situation, population, key.backup_workers)
        table = asynchronous_table(situation, population)
        if key.setting.servers <= self.phases.setting.servers:
            return table
        # More servers may also undo the step that workers fell in with fewer: no ground to promise it.
        fewer = replace(key.setting, servers=self.phases.setting.servers)
        shares = self.facts.byte_share(fewer.servers) / self.facts.byte_share(key.setting.servers)
        return table.lengthened(asynchronous_table(self.situation(key.mode, fewer), population).step_s / shares)


_Groups = list[tuple[Situation, Ints]]
"""Runs that share a curve: what it is computed from, and their places."""


def _doubt(mode: SyncMode, runs: Runs, groups: _Groups) -> Floats:
    """Deviation of each predicted ln(rate) from everything but load, order and campaign."""
    doubt = np.empty(len(runs))
    for situation, rows in groups:
        workers = runs.workers[rows]
        if mode == SyncMode.SYNC:
            own = barrier_doubt(situation, 0.0, workers)
        else:
            network, population = network_of(situation, 0.0), int(workers.max())
            orderly = network.orderly_rate(population)
            own = order_swing(np.log(network.in_step_rate(orderly)), np.log(orderly), ORDER_NOISE)[workers - 1]
        doubt[rows] = np.sqrt(np.square(own) + situation.demand_log_spread**2 + situation.compute_log_spread**2)
    return doubt


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
            expected[:, rows] = rates.shifted(shifts[:, np.newaxis], workers - 1)
        return expected

    return log_rates
