"""The model of a job of which only throughputs at several numbers of workers are known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue, Floats, Ints, Notice, SyncMode
from nodewise_laws import expected_maximum_gamma
from nodewise_queueing.evidence import Facts, Runs, run_log_spread
from nodewise_queueing.exchange import PULLS, Exchange, exchange_of, pulls_taken
from nodewise_queueing.hypotheses import Hypotheses, Shape, hypotheses_of, shape_of
from nodewise_queueing.regularity import ORDER_NOISE, order_swing
from nodewise_queueing.rows import CurveKey, Setting
from nodewise_queueing.scaling import Factors, factors_between
from nodewise_queueing.servers_share import ShareDistribution
from nodewise_queueing.situation import staleness_of
from nodewise_queueing.tables import Columns, tabulate
from nodewise_queueing.unsaid import EVEN, LEAST_WEIGHT, unsaid_of
from nodewise_queueing.variation import likely_variation

__all__ = ["WELL_CONDITIONED_WORKERS", "CurveModel", "shows_saturation"]

SMALLEST_WEIGHT: Final = 1e-6
"""Hypotheses of less than this share of the best one's weight are dropped: together they change no printed digit."""

WELL_CONDITIONED_WORKERS: Final = 4
"""Least largest number of workers that a curve should be fitted on: contention at 2 is smaller than the noise of a run
(mean error 22.5 % from 1 and 2 workers on CM-DARE's curves, 9.7 % from 1 and 4)."""

POOR_CONDITION_FACTOR: Final = 2.0
"""Factor on noise below that: contention then has to show at two deviations, else the fit tends to none."""

LARGEST_LOG_ODDS: Final = 500.0
"""As many as an exponential takes."""

_EVERY_POPULATION: Final = 256
_NODES_PER_DOUBLING: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class CurveModel:
    """Hypotheses of one mode, weighted by how well they fit the measured throughputs.

    Attributes
    ----------
    hypotheses : Hypotheses
    weight : (h,) float
        Adds up to 1.
    log_cycle : (h,) float
        ln of one worker's cycle in seconds that fits best under each.
    setting : Setting
        Of the runs; other settings are scaled from it.
    facts : Facts
        The shards of the servers.
    largest_workers : int
        Largest number of workers measured.
    saturated : bool
        Whether the runs show contention beyond noise.
    device : str
    catalogue : Catalogue
    pulls_each : bool
        Whether every device of a worker is assumed to pull parameters itself.
    log_evidence : float
        ln of the likelihood of the runs under this model, up to a constant.
    other : tuple of (CurveModel, float) or None
        The model with the other way to pull, and its weight; None = the way is known, or no worker has several devices.
    """

    hypotheses: Hypotheses
    weight: Floats
    log_cycle: Floats
    setting: Setting
    facts: Facts
    largest_workers: int
    is_saturated: bool
    device: str = ""
    catalogue: Catalogue = field(default_factory=Catalogue)
    pulls_each: bool = True
    log_evidence: float = 0.0
    other: tuple[CurveModel, float] | None = None

    @staticmethod
    def fit(
        mode: SyncMode,
        runs: Runs,
        facts: Facts,
        expected: ShareDistribution,
        device: str = "",
        catalogue: Catalogue | None = None,
    ) -> CurveModel:
        """Weigh every hypothesis: its prior, normal noise of ln(rate), the cycle's scale fitted for each.

        Whether devices or workers pull the parameters is weighed by how well each fits.
        """
        catalogue = catalogue or Catalogue()
        each = CurveModel._of(mode, runs, facts, expected, device, catalogue, pulls_each=True)
        if facts.pulls_each == 1.0:
            return each
        once = replace(each, pulls_each=False)
        if any(setting.devices > 1 for setting in runs.settings):
            once = CurveModel._of(mode, runs, facts, expected, device, catalogue, pulls_each=False)
        odds = facts.pulls_each * math.exp(min(each.log_evidence - once.log_evidence, LARGEST_LOG_ODDS))
        share = odds / (odds + 1.0 - facts.pulls_each)
        first, second, weight = (each, once, 1.0 - share) if share > EVEN else (once, each, share)
        return replace(first, other=(second, weight)) if weight >= LEAST_WEIGHT else first

    @staticmethod
    def _of(
        mode: SyncMode,
        runs: Runs,
        facts: Facts,
        expected: ShareDistribution,
        device: str,
        catalogue: Catalogue,
        *,
        pulls_each: bool,
    ) -> CurveModel:
        setting = runs.usual_setting
        hypotheses = hypotheses_of(mode, expected)
        residual = np.empty((len(hypotheses), len(runs)))
        noise = runs.log_noise.copy()
        for other, rows in runs.by_setting():
            factors = factors_between(setting, other, facts, phases_known=False)
            exchange = _exchange(other, facts, device, catalogue, pulls_each=pulls_each)
            shape = _shape(hypotheses, runs.workers[rows], factors, exchange, device, catalogue)
            measured = -runs.log_rate[rows]
            if mode == SyncMode.ASYNC:
                measured = measured + np.log(runs.workers[rows])
            if exchange.adding_s > 0.0:
                taken_s = np.exp(measured)
                measured = np.log(np.maximum(taken_s - exchange.adding_s, 0.5 * taken_s))
            residual[:, rows] = measured - np.log(shape.step)
            demand_log_spread = _demand_log_spread(factors, exchange, facts)
            noise[rows] = np.sqrt(noise[rows] ** 2 + demand_log_spread**2 + factors.compute_log_spread**2)
        if runs.worker_counts[-1] < WELL_CONDITIONED_WORKERS:
            noise *= POOR_CONDITION_FACTOR
        precision = 1.0 / noise**2
        log_cycle = (residual * precision).sum(axis=1) / precision.sum()
        misfit = ((residual - log_cycle[:, np.newaxis]) ** 2 * precision).sum(axis=1)
        log_weight = hypotheses.log_prior - 0.5 * misfit
        weight = np.exp(log_weight - log_weight.max())
        heavy_rows = np.flatnonzero(weight >= SMALLEST_WEIGHT)
        log_evidence = float(log_weight.max() + np.log(weight.sum()))
        return CurveModel(
            hypotheses=hypotheses.take(heavy_rows),
            weight=weight[heavy_rows] / weight[heavy_rows].sum(),
            log_cycle=log_cycle[heavy_rows],
            setting=setting,
            facts=facts,
            largest_workers=runs.worker_counts[-1],
            is_saturated=shows_saturation(mode, runs),
            device=device,
            catalogue=catalogue,
            pulls_each=pulls_each,
            log_evidence=log_evidence,
        )

    def table(self, key: CurveKey, population: int) -> Columns:
        """The curve of one setting: median of the step over the weighted hypotheses, which errs least on average.

        The deviation of ln(step) is about the median, with the deviation of another run of that many machines.
        """
        table = self.columns(key, population)
        if key.setting.devices == 1 or self.other is None:
            return table
        other, weight = self.other
        effect = np.log(other.columns(key, population).step_s[1:] / table.step_s[1:])
        assumption = pulls_taken(each=self.pulls_each)
        return table.with_unsaid(unsaid_of(PULLS, assumption, [(effect, weight)], table.basic["log_spread"][1:]))

    def columns(self, key: CurveKey, population: int) -> Columns:
        """The same model without the uncertainty about which devices pull parameters."""
        mode = key.mode
        factors = factors_between(self.setting, key.setting, self.facts, phases_known=False)
        nodes = _nodes(population)
        worker = _exchange(key.setting, self.facts, self.device, self.catalogue, pulls_each=self.pulls_each)
        shape = _shape(self.hypotheses, nodes, factors, worker, self.device, self.catalogue)
        log_step = np.log(shape.step) + self.log_cycle[:, np.newaxis]
        # No hypothesis has a shorter step with more workers; a median between two of them may.
        median = np.maximum.accumulate(_median(self.weight, log_step))
        variance = _sum(self.weight, (log_step - median) ** 2)
        step = np.exp(median)
        weighted = self.weight * np.exp(self.log_cycle)
        compute, barrier, total = (_sum(weighted, part) for part in (shape.compute, shape.barrier, shape.step))
        compute, barrier = step * compute / total, step * barrier / total
        exchange = np.maximum(step - compute - barrier, 0.0)
        compute, step = compute + worker.adding_s, step + worker.adding_s
        demand_s = _demand_factor(factors, worker) * float(weighted @ self.hypotheses.share)
        spread = np.sqrt(
            variance
            + _order_doubt(mode, nodes, step, demand_s) ** 2
            + run_log_spread(mode, nodes) ** 2
            + (exchange / step * _demand_log_spread(factors, worker, self.facts)) ** 2
            + ((compute + barrier) / step * factors.compute_log_spread) ** 2
        )
        parts = {"compute": compute, "exchange": exchange}
        if mode == SyncMode.SYNC:
            parts = {"compute": compute, "barrier": barrier, "exchange": exchange}
        variation = likely_variation(self.device, self.catalogue, node_shared=key.setting.node_shared)
        workers = np.arange(1, population + 1)
        filled = {name: np.interp(workers, nodes, part) for name, part in parts.items()}
        step_s = np.asarray(np.sum(list(filled.values()), axis=0))
        return tabulate(
            step_s=step_s,
            log_spread=np.interp(workers, nodes, spread),
            extrapolation=np.maximum(1.0, workers / self.largest_workers),
            staleness=(
                staleness_of(workers, step_s, filled["compute"], variation.value)
                if mode == SyncMode.ASYNC
                else (np.zeros(population), np.zeros(population))
            ),
            parts=filled,
            utilisation={"server": np.minimum(workers * demand_s / step_s, 1.0)},
            extra={},
            bottleneck=np.argmax(list(filled.values()), axis=0),
            notices=(*factors.notices, *worker.notices(), *self._notices()),
        )

    def _notices(self) -> tuple[Notice, ...]:
        if self.largest_workers < WELL_CONDITIONED_WORKERS:
            message = (
                f"the runs have at most {self.largest_workers} workers, where server contention is smaller than "
                f"measurement noise: give phase timings of one worker, or measure {WELL_CONDITIONED_WORKERS} or more "
                "workers"
            )
            return (Notice("ILL_CONDITIONED", message),)
        if not self.is_saturated:
            message = (
                f"no run, of up to {self.largest_workers} workers, is slower per worker than noise explains, so the "
                "number of workers from which the servers limit throughput is not known: give phase timings of one "
                "worker, or measure more workers"
            )
            return (Notice("UNSATURATED", message),)
        return ()


def shows_saturation(mode: SyncMode, runs: Runs) -> bool:
    """Whether the largest run is slower per worker (SYNC: per round) than the smallest by more than noise explains."""
    per_step = -runs.log_rate + (np.log(runs.workers) if mode == SyncMode.ASYNC else 0.0)
    smallest, largest = runs.workers == runs.worker_counts[0], runs.workers == runs.worker_counts[-1]
    drop = float(per_step[largest].mean() - per_step[smallest].mean())
    noise = np.hypot(runs.log_noise[largest].max(), runs.log_noise[smallest].max())
    return bool(drop > 2.0 * noise)


def _exchange(setting: Setting, facts: Facts, device: str, catalogue: Catalogue, *, pulls_each: bool) -> Exchange:
    return exchange_of(
        setting.devices,
        pulls_each=pulls_each,
        parameter_bytes=facts.parameter_bytes,
        device=device,
        catalogue=catalogue,
    )


def _demand_factor(factors: Factors, exchange: Exchange) -> float:
    """Factor on the demand of one device: half of it are pulls, as the two directions cannot be separated."""
    return factors.link * factors.servers * 0.5 * (exchange.pulls + 1.0)


def _demand_log_spread(factors: Factors, exchange: Exchange, facts: Facts) -> float:
    """Uncertainty of the demand: pulls and pushes add up where they use one station, else each counts separately."""
    apart = 0.0 if facts.half_duplex else math.log(2.0 * exchange.pulls / (exchange.pulls + 1.0))
    return math.hypot(factors.demand_log_spread, apart / math.sqrt(12.0))


def _shape(
    hypotheses: Hypotheses, workers: Ints, factors: Factors, exchange: Exchange, device: str, catalogue: Catalogue
) -> Shape:
    compute = factors.compute
    if hypotheses.mode == SyncMode.ASYNC and exchange.devices > 1:
        variation = likely_variation(device, catalogue, node_shared=False)
        compute *= float(expected_maximum_gamma(1.0, variation.value, exchange.devices))
    return shape_of(
        hypotheses,
        workers,
        demand_factor=_demand_factor(factors, exchange),
        compute_factor=compute,
        devices=exchange.devices,
    )


def _order_doubt(mode: SyncMode, workers: Ints, step_s: Floats, demand_s: float) -> Floats:
    """Deviation of ln(rate) from the position of asynchronous workers between the bounds; 0 with a barrier."""
    if mode != SyncMode.ASYNC:
        return np.zeros(len(workers))
    in_step_s, orderly_s = step_s[0] + (workers - 1) * demand_s, np.maximum(step_s[0], workers * demand_s)
    return order_swing(-np.log(in_step_s), -np.log(orderly_s), ORDER_NOISE)


def _sum(weight: Floats, rows: Floats) -> Floats:
    """Weighted sum of rows. Not a matrix product: that rounds a column differently when there are more columns."""
    return np.asarray((weight[:, np.newaxis] * rows).sum(axis=0))


def _median(weight: Floats, rows: Floats) -> Floats:
    """Weighted median of each column, read between the middles of the sorted weights."""
    order = np.argsort(rows, axis=0, kind="stable")
    values, weights = np.take_along_axis(rows, order, axis=0), weight[order]
    below = np.cumsum(weights, axis=0) - 0.5 * weights
    at = np.clip((below < 0.5).sum(axis=0), 1, len(weight) - 1) if len(weight) > 1 else np.zeros(rows.shape[1], int)
    if len(weight) == 1:
        return np.asarray(values[0])
    columns = np.arange(rows.shape[1])
    low, high = below[at - 1, columns], below[at, columns]
    part = np.clip((0.5 - low) / (high - low), 0.0, 1.0)
    return np.asarray(values[at - 1, columns] * (1.0 - part) + values[at, columns] * part)


def _nodes(population: int) -> Ints:
    """Every number of workers up to 256, then eight per doubling: the curve is smooth enough to be read off between."""
    if population <= _EVERY_POPULATION:
        return np.arange(1, population + 1)
    doublings = np.log2(population / _EVERY_POPULATION)
    far = np.geomspace(_EVERY_POPULATION, population, int(np.ceil(doublings * _NODES_PER_DOUBLING)) + 1)
    return np.unique(np.concatenate((np.arange(1, _EVERY_POPULATION + 1), far.round().astype(np.int64))))
