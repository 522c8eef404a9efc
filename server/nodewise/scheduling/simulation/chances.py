"""What a policy does not see as it is: early stops, curves, failures of nodes; each chance has a stream of the seed."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from nodewise.domain.failures import useful_ratio
from nodewise.domain.schedule import NodePool
from nodewise.scheduling.goodput import failure_columns
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import EarlyStops, NodeFailures, SimulationSettings

__all__ = ["Failures", "Predictions", "Stops"]

_STOPS, _PREDICTIONS, _FAILURES = range(3)
"""Streams of the seed; draws from one do not change another."""
MOST_SHARED: Final = 1024
"""Most curves that are cached for other jobs; the limit bounds memory where every job has a curve of its own."""


class Stops:
    """Draws where jobs stop early, in the order of arrival."""

    def __init__(self, law: EarlyStops | None, seed: int) -> None:
        self._law = law
        self._random = np.random.default_rng((seed, _STOPS))

    def true_samples(self, job: SimulatedJob) -> float:
        """Work at which the job ends: its own stop, or the law's, whichever comes first."""
        whole = job.samples if job.stop_samples is None else min(job.stop_samples, job.samples)
        law = self._law
        if law is None:
            return whole
        stops, progress = self._random.random(2)
        if stops >= law.probability:
            return whole
        at = float(np.interp(progress, np.linspace(0.0, 1.0, len(law.progress)), law.progress))
        return min(whole, at * job.samples)


class Predictions:
    """Curves as the policy sees them, in the order of arrival."""

    def __init__(self, settings: SimulationSettings, pools: Sequence[NodePool]) -> None:
        self._law = settings.prediction_error
        self._random = np.random.default_rng((settings.seed, _PREDICTIONS))
        self._pools = np.array([pool.total_devices for pool in pools], dtype=np.int64)
        self._quotas = settings.quotas
        self._checkpoints = settings.checkpoints
        self._fails = any(pool.device_hours is not None for pool in pools)
        self._failures = failure_columns(pools)
        self._curves: dict[tuple[object, ...], JobCurve] = {}

    def curve(self, job: SimulatedJob) -> JobCurve:
        """The predicted curve as goodput where pools state failures, with the law's errors."""
        queue = job.queue if job.queue in self._quotas else None
        key = (job.curve, job.predicted, job.requested_devices if job.rigid else 0, job.server_devices, queue)
        curve = self._curves.get(key)
        if curve is None:
            if len(self._curves) >= MOST_SHARED:
                self._curves.clear()
            curve = self._curves[key] = self._possible(job)
        if self._fails:
            curve = self._goodput(curve, job)
        law = self._law
        if law is None or not len(curve):
            return curve
        whole = law.job_sigma * self._random.standard_normal()
        return curve.scale(np.exp(whole + law.row_sigma * self._random.standard_normal(len(curve))))

    def _possible(self, job: SimulatedJob) -> JobCurve:
        """Rows that have a true rate and fit the empty cluster and the queue's quota; a rigid job's request only."""
        curve = job.curve if job.predicted is None else job.predicted
        most = self._pools[curve.pool] - job.server_devices
        if job.queue in self._quotas:
            most = np.minimum(most, self._quotas[job.queue] - job.server_devices)
        keep = curve.devices <= most
        if job.rigid:
            keep &= curve.devices == job.requested_devices
        if job.predicted is not None:
            true = job.curve.rates
            keep &= [row in true for row in zip(curve.pool.tolist(), curve.devices.tolist())]
        return curve if keep.all() else JobCurve.of_rows(curve, keep)

    def _goodput(self, curve: JobCurve, job: SimulatedJob) -> JobCurve:
        """Rates times the share of time that is progress; without checkpoints a failure undoes the whole run."""
        device_s, restart_s = (column[curve.pool] for column in self._failures)
        save_s, interval_s = 0.0, job.samples / curve.samples_per_s
        if self._checkpoints is not None:
            save_s, interval_s = self._checkpoints.cost_s, np.full(len(curve), self._checkpoints.interval_s)
        useful = useful_ratio(device_s / (curve.devices + job.server_devices), save_s, restart_s, interval_s)
        return curve.scale(np.where(np.isnan(device_s), 1.0, useful))


class Failures:
    """Failures and repairs of nodes, by time; they do not depend on the policy."""

    def __init__(self, law: NodeFailures | None, nodes: Sequence[int], seed: int, start_s: float) -> None:
        self._law = law
        self._random = np.random.default_rng((seed, _FAILURES))
        self._events: list[tuple[float, int, int, bool]] = []
        if law is not None:
            self._events = [
                (start_s + self._random.exponential(law.mean_time_between_failures_s), pool, node, True)
                for pool, count in enumerate(nodes)
                for node in range(count)
            ]
            heapify(self._events)

    @property
    def next_s(self) -> float:
        """When the next node fails or is repaired; infinite without failures."""
        return self._events[0][0] if self._events else float("inf")

    def next(self) -> tuple[int, int, bool]:
        """(pool, node, fails) of the next event; draws the one after it."""
        assert self._law is not None
        at_s, pool, node, fails = heappop(self._events)
        law = self._law
        mean_s = law.mean_repair_s if fails else law.mean_time_between_failures_s
        heappush(self._events, (at_s + self._random.exponential(mean_s), pool, node, not fails))
        return pool, node, fails
