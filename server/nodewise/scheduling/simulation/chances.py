"""What chance brings to a simulation: early stops, wrong predictions, failing nodes. Each has a stream of the seed."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import EarlyStops, NodeFailures, PredictionError

__all__ = ["Failures", "Predictions", "Stops"]

_STOPS, _PREDICTIONS, _FAILURES = range(3)
"""Streams of the seed: one does not move when another is drawn from."""
MOST_SHARED: Final = 1024
"""Curves of rigid jobs that are kept to be shared: jobs with curves of their own must not pile them up."""


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

    def __init__(self, law: PredictionError | None, seed: int) -> None:
        self._law = law
        self._random = np.random.default_rng((seed, _PREDICTIONS))
        self._rigid: dict[tuple[JobCurve, int], JobCurve] = {}

    def curve(self, job: SimulatedJob) -> JobCurve:
        """The predicted curve with the law's errors: rows with a true rate; for a rigid job its requested count."""
        seen = job.curve if job.predicted is None else job.predicted
        if job.predicted is not None:
            true = job.curve.rates
            keys = list(zip(seen.pool.tolist(), seen.devices.tolist()))
            if not all(key in true for key in keys):
                seen = seen.where(key in true for key in keys)
        if job.rigid:
            key = (seen, job.requested_devices)
            if len(self._rigid) >= MOST_SHARED:
                self._rigid.clear()
            if key not in self._rigid:
                self._rigid[key] = seen.where((seen.devices == job.requested_devices).tolist())
            seen = self._rigid[key]
        law = self._law
        if law is None or not len(seen):
            return seen
        whole = law.job_sigma * self._random.standard_normal()
        return seen.scaled(np.exp(whole + law.row_sigma * self._random.standard_normal(len(seen))))


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
