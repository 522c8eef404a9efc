"""What chance brings to a simulation: early stops, wrong predictions, failing nodes. Each has a stream of the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import EarlyStops, NodeFailures, PredictionError

__all__ = ["Failures", "Predictions", "Stops"]

_STOPS, _PREDICTIONS, _FAILURES = range(3)
"""Streams of the seed: one does not move when another is drawn from."""
MOST_SHARED: Final = 1024
"""Curves that are kept to be shared: jobs with curves of their own must not pile them up."""


class Stops:
    """Draws where jobs end, by order of arrival."""

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
    """What the policy sees of the curves, by order of arrival."""

    def __init__(self, law: PredictionError | None, seed: int, pools: Sequence[int], quotas: Mapping[str, int]) -> None:
        self._law = law
        self._random = np.random.default_rng((seed, _PREDICTIONS))
        self._pools = np.array(pools, dtype=np.int64)
        self._quotas = quotas
        self._shared: dict[tuple[object, ...], JobCurve] = {}

    def curve(self, job: SimulatedJob) -> JobCurve:
        """The predicted curve, with the law's errors."""
        queue = job.queue if job.queue in self._quotas else None
        key = (job.curve, job.predicted, job.requested_devices if job.rigid else 0, job.server_devices, queue)
        seen = self._shared.get(key)
        if seen is None:
            if len(self._shared) >= MOST_SHARED:
                self._shared.clear()
            seen = self._shared[key] = self._possible(job)
        law = self._law
        if law is None or not len(seen):
            return seen
        whole = law.job_sigma * self._random.standard_normal()
        return seen.scale(np.exp(whole + law.row_sigma * self._random.standard_normal(len(seen))))

    def _possible(self, job: SimulatedJob) -> JobCurve:
        """Rows that have a true rate and fit the empty cluster and the queue's quota; a rigid job's request only."""
        seen = job.curve if job.predicted is None else job.predicted
        room = self._pools[seen.pool] - job.server_devices
        if job.queue in self._quotas:
            room = np.minimum(room, self._quotas[job.queue] - job.server_devices)
        keep = seen.devices <= room
        if job.rigid:
            keep &= seen.devices == job.requested_devices
        if job.predicted is not None:
            true = job.curve.rates
            keep &= [row in true for row in zip(seen.pool.tolist(), seen.devices.tolist())]
        return seen if keep.all() else JobCurve.of_rows(seen, keep)


class Failures:
    """When which node fails and comes back, by time; whatever the policy does, it is the same."""

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
        """When the next node fails or comes back; infinite without failures."""
        return self._events[0][0] if self._events else float("inf")

    def next(self) -> tuple[int, int, bool]:
        """(pool, node, fails) of the next event; draws the one after it."""
        assert self._law is not None
        at_s, pool, node, fails = heappop(self._events)
        law = self._law
        mean_s = law.mean_repair_s if fails else law.mean_time_between_failures_s
        heappush(self._events, (at_s + self._random.exponential(mean_s), pool, node, not fails))
        return pool, node, fails
