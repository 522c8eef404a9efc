"""Keeps what a simulation's result is made of."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.results import JobColumns, SimulationResult, Timeline

__all__ = ["Recorder"]


class Recorder:
    """Sums, and a few numbers per finished job."""

    def __init__(self, start_s: float, nodes: Sequence[PoolNodes], *, keep_timeline: bool) -> None:
        self._nodes = nodes
        self._start_s = self._area_s = self._capacity_s = start_s
        self._job_seconds = 0.0
        self._capacity_device_s = 0.0
        self._completed_capacity_device_s = 0.0
        self._keep_timeline = keep_timeline
        self.active = 0
        self.finished = 0
        self._ids: list[str] = []
        self._floats = {name: array("d") for name in ("arrival", "start", "completion", "slowdown", "fairness", "work")}
        self._restarts = array("l")
        self._deadlines = self._missed = 0
        self._busy_device_s = self._pause_device_s = self._lost_device_s = 0.0
        self._last_s = start_s
        self._timeline_ids: list[str] = []
        self._timeline_ints = {name: array("l") for name in ("pool", "devices")}
        self._timeline_floats = {name: array("d") for name in ("begin", "end")}

    def arrived(self, job: ActiveJob, at_s: float) -> None:
        """A job comes into the system."""
        self._area(at_s)
        job.area_at_arrival = self._job_seconds
        self.active += 1

    def completed(self, job: ActiveJob, at_s: float) -> None:
        """A job is done."""
        self._area(at_s)
        self.active -= 1
        self.finished += 1
        self.capacity_changed(at_s)
        self._completed_capacity_device_s = self._capacity_device_s
        self._last_s = at_s
        arrival_s = job.state.submit_time_s
        response_s = at_s - arrival_s
        alone_s = job.true_samples / job.spec.curve.best
        jobs = (self._job_seconds - job.area_at_arrival) / response_s if response_s > 0 else 1.0
        rate = job.spec.curve.share_rate([nodes.total / jobs for nodes in self._nodes])
        isolated_s = job.true_samples / rate if rate > 0 else 0.0
        self._ids.append(job.spec.job_id)
        values = (
            arrival_s,
            job.first_start_s,
            at_s,
            response_s / alone_s if alone_s > 0 else 1.0,
            response_s / isolated_s if isolated_s > 0 else 1.0,
            job.true_samples,
        )
        for column, value in zip(self._floats.values(), values):
            column.append(value)
        self._restarts.append(job.restarts)
        if job.state.deadline_s is not None:
            self._deadlines += 1
            self._missed += at_s > job.state.deadline_s

    def capacity_changed(self, at_s: float) -> None:
        """Book the devices that were there until now; call it before they change."""
        up = sum(nodes.up_devices for nodes in self._nodes)
        self._capacity_device_s += up * (at_s - self._capacity_s)
        self._capacity_s = at_s

    def run_ended(self, job: ActiveJob, busy_s: float, pause_s: float) -> None:
        """A run was closed after ``busy_s``, of which ``pause_s`` went into the restart."""
        devices = job.devices + job.spec.server_devices
        self._busy_device_s += devices * busy_s
        self._pause_device_s += devices * pause_s

    def held(self, job: ActiveJob, until_s: float) -> None:
        """Devices that were held on end are given up."""
        if self._keep_timeline:
            self._timeline_ids.append(job.spec.job_id)
            for name, whole in (("pool", job.pool), ("devices", job.devices + job.spec.server_devices)):
                self._timeline_ints[name].append(whole)
            for name, second in (("begin", job.held_since_s), ("end", until_s)):
                self._timeline_floats[name].append(second)

    def lost(self, job: ActiveJob, samples: float) -> None:
        """Work that must be done again."""
        self._lost_device_s += samples / job.rate * (job.devices + job.spec.server_devices)

    def _area(self, at_s: float) -> None:
        self._job_seconds += self.active * (at_s - self._area_s)
        self._area_s = at_s

    def result(
        self,
        *,
        jobs: int,
        decisions: int,
        decision_s: float,
        longest_decision_s: float,
        wall_s: float,
        complete: bool,
    ) -> SimulationResult:
        """All of it."""
        floats = {name: np.frombuffer(column, dtype=np.float64) for name, column in self._floats.items()}
        ids = self._ids
        order = np.array(sorted(range(len(ids)), key=lambda job: (floats["arrival"][job], ids[job])), dtype=np.int64)
        columns = JobColumns(
            job_id=tuple(ids[index] for index in order),
            arrival_s=floats["arrival"][order],
            start_s=floats["start"][order],
            completion_s=floats["completion"][order],
            slowdown=floats["slowdown"][order],
            finish_time_fairness=floats["fairness"][order],
            samples=floats["work"][order],
            restarts=np.array(self._restarts, dtype=np.int64)[order],
        )
        timeline = None
        if self._keep_timeline:
            timeline = Timeline(
                job_id=tuple(self._timeline_ids),
                pool=np.array(self._timeline_ints["pool"], dtype=np.int64),
                devices=np.array(self._timeline_ints["devices"], dtype=np.int64),
                begin_s=np.array(self._timeline_floats["begin"]),
                end_s=np.array(self._timeline_floats["end"]),
            )
        return SimulationResult(
            jobs=jobs,
            finished=self.finished,
            per_job=columns,
            first_arrival_s=self._start_s,
            last_completion_s=self._last_s,
            busy_device_s=self._busy_device_s,
            available_device_s=self._completed_capacity_device_s,
            restart_device_s=self._pause_device_s,
            lost_device_s=self._lost_device_s,
            job_seconds=self._job_seconds,
            deadlines=self._deadlines,
            deadlines_missed=self._missed,
            decisions=decisions,
            decision_s=decision_s,
            longest_decision_s=longest_decision_s,
            wall_s=wall_s,
            complete=complete,
            timeline=timeline,
        )
