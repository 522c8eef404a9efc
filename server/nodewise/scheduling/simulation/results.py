"""Results of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from nodewise.domain.columns import Floats, Ints

__all__ = ["JOB_NUMBERS", "TIMELINE_NUMBERS", "JobColumns", "SimulationResult", "Timeline"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobColumns:
    """Finished jobs by arrival, then by id; times in simulated seconds.

    Attributes
    ----------
    start_s : float
        When the job first got devices.
    slowdown : float
        Response time over the time that the job takes alone on its fastest row.
    finish_time_fairness : float
        Response time over the time that the job takes on an exclusive equal share: the cluster divided by the mean
        number of jobs in the system during its stay. Above 1 = an equal share would have been faster.
    samples : float
        Work done.
    """

    job_id: tuple[str, ...]
    arrival_s: Floats
    start_s: Floats
    completion_s: Floats
    slowdown: Floats
    finish_time_fairness: Floats
    samples: Floats
    restarts: Ints

    @property
    def response_s(self) -> Floats:
        """Completion minus arrival: JCT."""
        return self.completion_s - self.arrival_s

    @property
    def waiting_s(self) -> Floats:
        """First start minus arrival."""
        return self.start_s - self.arrival_s


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Timeline:
    """Intervals in which a job held devices (servers included) of a pool, sorted by end."""

    job_id: tuple[str, ...]
    pool: Ints
    devices: Ints
    begin_s: Floats
    end_s: Floats


JOB_NUMBERS, TIMELINE_NUMBERS = (
    tuple(each.name for each in fields(columns) if each.name != "job_id") for columns in (JobColumns, Timeline)
)
"""Numeric columns of finished jobs and of the timeline."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulationResult:
    """The result of a simulation.

    Attributes
    ----------
    jobs, finished : int
        Jobs that arrived, and those that completed. The others have no curve, got no devices, or did not complete
        before the budget was over.
    available_device_s, busy_device_s : float
        Devices on nodes that were up, from the first arrival to the last completion; device-seconds of runs, restarts
        and checkpoints included, without the time between a run and the end of its round.
    restart_device_s, lost_device_s : float
        Device-seconds of restarts after changes, and of work that failures undid.
    job_seconds : float
        Integral of the number of jobs in the system.
    decision_s, longest_decision_s, wall_s : float
        Wall time of all decisions, of the longest one, and of the simulation.
    complete : bool
        False = the budget was over first.
    """

    jobs: int
    finished: int
    per_job: JobColumns
    first_arrival_s: float
    last_completion_s: float
    busy_device_s: float
    available_device_s: float
    restart_device_s: float
    lost_device_s: float
    job_seconds: float
    deadlines: int
    deadlines_missed: int
    decisions: int
    decision_s: float
    longest_decision_s: float
    wall_s: float
    complete: bool
    timeline: Timeline | None

    @property
    def makespan_s(self) -> float:
        """First arrival to last completion."""
        return self.last_completion_s - self.first_arrival_s

    @property
    def utilisation(self) -> float | None:
        """Share of the available device-seconds that were busy; None when nothing finished."""
        return self.busy_device_s / self.available_device_s if self.available_device_s > 0 else None

    @property
    def restarts(self) -> int:
        """Restarts of all finished jobs."""
        return int(self.per_job.restarts.sum())

    def summary(self) -> dict[str, float | int | None]:
        """The figures that describe a run; None where nothing finished.

        Wall times are omitted, so the same simulation always has the same summary.
        """
        times = self.per_job.response_s
        some = len(times) > 0

        def percentile(values: Floats, share: float) -> float | None:
            return float(np.percentile(values, share)) if some else None

        def mean(values: Floats | Ints) -> float | None:
            return float(values.mean()) if some else None

        return {
            "jobs": self.jobs,
            "finished": self.finished,
            "average_jct_s": mean(times),
            "p50_jct_s": percentile(times, 50),
            "p99_jct_s": percentile(times, 99),
            "average_waiting_s": mean(self.per_job.waiting_s),
            "average_slowdown": mean(self.per_job.slowdown),
            "p99_slowdown": percentile(self.per_job.slowdown, 99),
            "average_finish_time_fairness": mean(self.per_job.finish_time_fairness),
            "worst_finish_time_fairness": percentile(self.per_job.finish_time_fairness, 100),
            "makespan_s": self.makespan_s if some else None,
            "utilisation": self.utilisation,
            "restarts_per_job": mean(self.per_job.restarts),
            "restart_device_s": self.restart_device_s,
            "lost_device_s": self.lost_device_s,
            "deadlines_missed": self.deadlines_missed,
            "decisions": self.decisions,
        }
