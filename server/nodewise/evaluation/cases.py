"""Cases for estimators from a table: per job a profile and rows to predict, without the measurements of these rows.

Estimators get only the profiles and configurations of cases. These hold no rate of a row to predict, no
name of a job and no order of the table, so no prediction can depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from nodewise.domain.columns import Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.profile import Profile
from nodewise.evaluation.ordering import canonical_order, compact
from nodewise.profiles.digest import content_digest

__all__ = ["Case", "cases_of", "evidence_of"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Case:
    """One job of a table.

    Attributes
    ----------
    profile : Profile
        Facts and train rows, in an order that follows from their content; nameless.
    configurations : Configurations
        The rows to predict, in an order that follows from their content.
    job, rows : int
        Index of the job and rows in the table; not for estimators.
    """

    profile: Profile
    configurations: Configurations
    job: int
    rows: Ints


def cases_of(table: MeasurementTable, look: Callable[[], None] = lambda: None) -> tuple[Case, ...]:
    """A case for each job with rows, in the order of the table's dictionary; ``look`` is called before each."""
    blind = table.mask_test_measurements()
    order = canonical_order(blind)
    jobs = blind.job_index[order]
    starts = np.flatnonzero(np.concatenate(([True], jobs[1:] != jobs[:-1]))) if len(jobs) else np.zeros(0, np.int64)
    cases = []
    for rows in np.split(order, starts[1:]) if len(starts) else ():
        look()
        job = int(blind.job_index[rows[0]])
        nameless = _nameless(blind.visible_profile(job, as_ints(rows)))
        test = freeze(rows[~blind.train[rows]])
        cases.append(
            Case(
                profile=replace(nameless, digest=content_digest(nameless)),
                configurations=compact(blind.configurations.take(test)),
                job=job,
                rows=test,
            )
        )
    return tuple(cases)


def _nameless(profile: Profile) -> Profile:
    """The same profile without its name and without other jobs' names of devices."""
    phases, observations, memory_runs = profile.phase_timings, profile.observations, profile.memory_runs
    return replace(
        profile,
        profile_id="",
        phase_timings=replace(phases, configurations=compact(phases.configurations)),
        observations=replace(observations, configurations=compact(observations.configurations)),
        memory_runs=replace(memory_runs, configurations=compact(memory_runs.configurations)),
    )


def evidence_of(cases: Iterable[Case]) -> tuple[Profile, ...]:
    """Profiles to learn from: those of all jobs that are not empty, ordered by content."""
    profiles = [case.profile for case in cases if not case.profile.is_empty]
    return tuple(sorted(profiles, key=lambda profile: profile.digest))
