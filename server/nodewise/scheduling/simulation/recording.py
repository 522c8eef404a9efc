"""Records the figures of a simulation's result."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.scheduling.findings import LARGEST_NUMBER
from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.results import JOB_NUMBERS, TIMELINE_NUMBERS, JobColumns, SimulationResult, Timeline

__all__ = ["Recorder"]

Columns = dict[str, "array[Any]"]


class Recorder:
    """Sums, with the names of the result's fields, and a few numbers per finished job."""

    def __init__(self, start_s: float, nodes: Sequence[PoolNodes], *, keep_timeline: bool) -> None:
        self._nodes = nodes
        self._area_s = self._capacity_s = start_s
        self._capacity_device_s = 0.0
        self.active = self.finished = 0
        self.first_arrival_s = self.last_completion_s = start_s
        self.job_seconds = self.available_device_s = 0.0
        self.busy_device_s = self.restart_device_s = self.lost_device_s = 0.0
        self.deadlines = self.deadlines_missed = 0
        self.decisions = 0
        self.decision_s = self.longest_decision_s = 0.0
        self._ids: list[str] = []
        self._jobs: Columns = {name: array("l" if name == "restarts" else "d") for name in JOB_NUMBERS}
        self._keep_timeline = keep_timeline
        self._holders: list[str] = []
        self._tenures: Columns = {name: array("d" if name.endswith("_s") else "l") for name in TIMELINE_NUMBERS}

    def record_arrival(self, job: ActiveJob, at_s: float) -> None:
        """Record that a job arrives."""
        self._area(at_s)
        job.area_at_arrival = self.job_seconds
        self.active += 1

    def completed(self, job: ActiveJob, at_s: float) -> None:
        """Record that a job completes."""
        self._area(at_s)
        self.active -= 1
        self.finished += 1
        self.capacity_changed(at_s)
        self.available_device_s = self._capacity_device_s
        self.last_completion_s = at_s
        arrival_s = job.state.submit_time_s
        response_s = at_s - arrival_s
        alone_s = job.true_samples / job.spec.curve.best
        jobs = (self.job_seconds - job.area_at_arrival) / response_s if response_s > 0 else 1.0
        rate = job.spec.curve.share_rate([nodes.total / jobs for nodes in self._nodes])
        isolated_s = job.true_samples / rate if rate > 0 else 0.0
        self._ids.append(job.spec.job_id)
        values = (
            arrival_s,
            job.first_start_s,
            at_s,
            _times(response_s, alone_s),
            _times(response_s, isolated_s),
            job.true_samples,
            job.restarts,
        )
        for column, value in zip(self._jobs.values(), values):
            column.append(value)
        if job.state.deadline_s is not None:
            self.deadlines += 1
            self.deadlines_missed += at_s > job.state.deadline_s

    def capacity_changed(self, at_s: float) -> None:
        """Add the device-seconds available until now; call it before nodes change."""
        up = sum(nodes.up_devices for nodes in self._nodes)
        self._capacity_device_s += up * (at_s - self._capacity_s)
        self._capacity_s = at_s

    def record_run(self, job: ActiveJob, busy_s: float, pause_s: float) -> None:
        """Record a run of ``busy_s``, which includes a restart of ``pause_s``."""
        devices = job.occupied_devices
        self.busy_device_s += devices * busy_s
        self.restart_device_s += devices * pause_s

    def record_tenure(self, job: ActiveJob, until_s: float) -> None:
        """Record the devices that a job held without a change, for the timeline."""
        if self._keep_timeline:
            self._holders.append(job.spec.job_id)
            values = (job.pool, job.devices + job.spec.server_devices, job.held_since_s, until_s)
            for column, value in zip(self._tenures.values(), values):
                column.append(value)

    def record_decision(self, lasted_s: float) -> None:
        """Record a decision of the policy and its wall time."""
        self.decisions += 1
        self.decision_s += lasted_s
        self.longest_decision_s = max(self.longest_decision_s, lasted_s)

    def record_loss(self, job: ActiveJob, samples: float) -> None:
        """Record work that a failure undid."""
        self.lost_device_s += samples / job.rate * (job.devices + job.spec.server_devices)

    def _area(self, at_s: float) -> None:
        self.job_seconds += self.active * (at_s - self._area_s)
        self._area_s = at_s

    def result(self, **facts: Any) -> SimulationResult:
        """The result; ``facts`` are its fields that the simulation knows."""
        arrivals, ids = self._jobs["arrival_s"], self._ids
        order = np.array(sorted(range(len(ids)), key=lambda job: (arrivals[job], ids[job])), dtype=np.int64)
        jobs: dict[str, Any] = {name: _column(values)[order] for name, values in self._jobs.items()}
        tenures: dict[str, Any] = {name: _column(values) for name, values in self._tenures.items()}
        return SimulationResult(
            per_job=JobColumns(job_id=tuple(ids[index] for index in order), **jobs),
            timeline=Timeline(job_id=tuple(self._holders), **tenures) if self._keep_timeline else None,
            **{each.name: getattr(self, each.name) for each in fields(SimulationResult) if hasattr(self, each.name)},
            **facts,
        )


def _times(response_s: float, wanted_s: float) -> float:
    """Response time divided by the least possible time; capped, since almost no work gives an almost infinite ratio."""
    return min(response_s / wanted_s, LARGEST_NUMBER) if wanted_s > 0 else 1.0


def _column(values: array[Any]) -> NDArray[Any]:
    return np.array(values, dtype=np.int64 if values.typecode == "l" else np.float64)
