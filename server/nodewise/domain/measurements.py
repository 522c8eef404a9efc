"""Tables of measurements: rows of many jobs, some to learn from, others to predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.facts import OBSERVATION_DEFAULTS
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
    measured_at_s, exposed_sync_s, steps, step_variation : float, float, int, float
        As in Observations.
    measured_memory_bytes, fitted : float, int
        Peak memory of the fullest device, 0 = not measured; whether the run fitted, 0 = it ran out of memory.
    phase_rows, phase_timings : int, PhaseTimings
        Rows with phase timings (each once), and their timings.
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
    steps: Ints
    step_variation: Floats
    measured_memory_bytes: Floats
    fitted: Ints
    phase_rows: Ints
    phase_timings: PhaseTimings
    workloads: tuple[Workload, ...]
    networks: tuple[Network, ...]

    def __len__(self) -> int:
        return len(self.job_index)

    def rows_of(self, job: int) -> Ints:
        """Rows of one job, in the table's order."""
        return as_ints(np.flatnonzero(self.job_index == job))

    def take(self, rows: Ints) -> MeasurementTable:
        """The table with these rows alone, each at most once; jobs keep their numbers."""
        number = np.full(len(self), -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        phase_rows = as_ints(np.flatnonzero(number[self.phase_rows] >= 0))
        columns = {"job_index", "train", "fitted", *OBSERVATION_DEFAULTS}
        return replace(
            self,
            **{name: freeze(getattr(self, name)[rows]) for name in columns},
            configurations=self.configurations.take(rows),
            phase_rows=freeze(number[self.phase_rows[phase_rows]]),
            phase_timings=self.phase_timings.take(phase_rows),
        )

    def mask_test_measurements(self) -> MeasurementTable:
        """The table without measurements of the rows to predict: no rate, time or phase of theirs."""
        phase_rows = as_ints(np.flatnonzero(self.train[self.phase_rows]))
        columns: dict[str, Any] = {
            name: freeze(np.where(self.train, getattr(self, name), unknown))
            for name, unknown in {**OBSERVATION_DEFAULTS, "fitted": 1}.items()
        }
        return replace(
            self,
            **columns,
            phase_rows=freeze(self.phase_rows[phase_rows]),
            phase_timings=self.phase_timings.take(phase_rows),
        )

    def visible_profile(self, job: int, rows: Ints | None = None) -> Profile:
        """The profile that an estimator may see of a job: its facts and its train rows.

        Parameters
        ----------
        rows : int
            The job's rows in the order of the profile; None = the table's order.
        """
        own = self.rows_of(job) if rows is None else rows
        visible = own[self.train[own]]
        rates = self.steps_per_s[visible] > 0
        has_memory = (self.measured_memory_bytes[visible] > 0) | (self.fitted[visible] == 0)
        timing = np.full(len(self), -1, dtype=np.int64)
        timing[self.phase_rows] = np.arange(len(self.phase_rows))
        phase_rows = timing[visible]
        return Profile(
            profile_id=self.jobs[job],
            workload=self.workloads[job],
            network=self.networks[job],
            phase_timings=self.phase_timings.take(as_ints(phase_rows[phase_rows >= 0])),
            observations=self._observations(as_ints(visible[rates])),
            memory_runs=self._observations(as_ints(visible[has_memory & ~rates])),
        )

    def _observations(self, rows: Ints) -> Observations:
        return Observations(
            configurations=self.configurations.take(rows),
            **{name: freeze(getattr(self, name)[rows]) for name in OBSERVATION_DEFAULTS},
            number=as_ints(np.arange(1, len(rows) + 1)),
        )
