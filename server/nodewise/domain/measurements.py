"""Tables of measurements: rows of many jobs, some to learn from, some to be predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Observations, PhaseTimings, Profile
from nodewise.domain.workload import Network, Workload

__all__ = ["MeasurementTable"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeasurementTable:
    """Measured (or to be predicted) configurations.

    Attributes
    ----------
    jobs, job_index : tuple of str, int
        Dictionary of jobs and the entry of each row.
    configurations : Configurations
        What ran.
    steps_per_s : float
        Measured; 0 = not measured.
    train : bool
        Whether an estimator may see the row.
    measured_at_s, exposed_sync_s : float
        As in Observations.
    phase_rows, phase_timings : int, PhaseTimings
        Rows that carry phase timings, and these.
    workloads, networks : tuple
        Facts, one per job.
    """

    jobs: tuple[str, ...]
    job_index: Ints
    configurations: Configurations
    steps_per_s: Floats
    train: NDArray[np.bool_]
    measured_at_s: Floats
    exposed_sync_s: Floats
    phase_rows: Ints
    phase_timings: PhaseTimings
    workloads: tuple[Workload, ...]
    networks: tuple[Network, ...]

    def __len__(self) -> int:
        return len(self.job_index)

    def rows_of(self, job: int) -> Ints:
        """Rows of one job, in the table's order."""
        return as_ints(np.flatnonzero(self.job_index == job))

    def visible_profile(self, job: int) -> Profile:
        """What an estimator may know of a job: its facts and its train rows."""
        of_job = self.job_index == job
        measured = as_ints(np.flatnonzero(of_job & self.train & (self.steps_per_s > 0)))
        timed = as_ints(np.flatnonzero((of_job & self.train)[self.phase_rows]))
        rows = len(measured)
        observations = Observations.of(self.configurations.take(measured), freeze(self.steps_per_s[measured]))
        if rows:
            observations = Observations(
                configurations=observations.configurations,
                steps_per_s=observations.steps_per_s,
                measured_at_s=freeze(self.measured_at_s[measured]),
                steps=observations.steps,
                step_variation=observations.step_variation,
                exposed_sync_s=freeze(self.exposed_sync_s[measured]),
                number=as_ints(np.arange(1, rows + 1)),
            )
        return Profile(
            profile_id=self.jobs[job],
            workload=self.workloads[job],
            network=self.networks[job],
            phase_timings=self.phase_timings.take(timed),
            observations=observations,
        )
