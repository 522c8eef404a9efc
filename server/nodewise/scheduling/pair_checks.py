"""Checks of a schedule question's pairs of jobs that share a device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, as_ints, freeze
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.schedule import JobState
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.scheduling.findings import Findings
from nodewise.scheduling.request import PairQuestion, ScheduleQuestion

__all__ = ["pairs_table", "read_running_pairs"]

MOST_SHARE: Final = 10.0
"""The largest share of solo speed: a job that runs ten times as fast beside another as alone is an error."""


def read_running_pairs(jobs: Sequence[JobState], findings: Findings) -> list[JobState]:
    """The jobs, where each of two that share a device names the other; errors are collected."""
    places = {job.job_id: index for index, job in enumerate(jobs)}
    result = list(jobs)
    for index, job in enumerate(jobs):
        current = job.current
        if current is None or not current.shares_with:
            continue
        path = f"jobs[{index}].current_allocation.shares_with_job_id"
        place = places.get(current.shares_with)
        if place is None or place == index:
            findings.wrong(path, f"must name another job of the request, found {current.shares_with!r}")
            continue
        other = jobs[place].current
        if other is None or (other.pool, other.placement) != (current.pool, current.placement):
            findings.contradicts(path, f"must name a job on the same devices, found {current.shares_with!r}")
        elif other.shares_with not in {"", job.job_id}:
            findings.contradicts(path, f"must name a job that names this one, found {current.shares_with!r}")
        elif (current.devices, job.server_devices, jobs[place].server_devices) != (1, 0, 0):
            findings.contradicts(path, f"must share one device, without servers, found {current.devices} devices")
        else:
            result[place] = replace(jobs[place], current=replace(other, shares_with=job.job_id))
    return result


def pairs_table(question: ScheduleQuestion, findings: Findings, most_jobs: int) -> SharedPairs | None:
    """Shares of the pairs, by jobs in the question's order; None = no job may share. Errors are collected.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    pairs = question.shared_pairs
    if not pairs:
        return None
    places = {job.job_id: index for index, job in enumerate(question.jobs)}
    pools = {pool.name: index for index, pool in enumerate(question.pools)}
    names = dict.fromkeys(name for pair in pairs for name in (pair.first_job_id, pair.second_job_id))
    if len(names) > most_jobs:
        text = f"must name at most {most_jobs:,} jobs per call, found {len(names):,}: omit pairs that gain little"
        raise NodewiseError.invalid([Violation("shared_pairs", text)], Reason.LIMIT_EXCEEDED)
    kind_of = {name: kind for kind, name in enumerate(names)}
    tables: list[Floats] = [np.zeros((len(names), len(names))) for _ in question.pools]
    for number, pair in enumerate(pairs):
        path = f"shared_pairs[{number}]"
        _check_pair(pair, path, places, pools, findings)
        if not findings.clean:
            continue
        one, other = kind_of[pair.first_job_id], kind_of[pair.second_job_id]
        for pool in [pools[pair.pool]] if pair.pool else pools.values():
            if tables[pool][one, other] and tables[pool][one, other] != pair.first_share:
                text = f"must agree with an earlier pair of {pair.first_job_id!r} and {pair.second_job_id!r}"
                findings.contradicts(path, text)
            tables[pool][one, other], tables[pool][other, one] = pair.first_share, pair.second_share
    kinds = as_ints([kind_of.get(job.job_id, -1) for job in question.jobs])
    return SharedPairs(kinds=kinds, shares=tuple(freeze(table) for table in tables))


def _check_pair(
    pair: PairQuestion, path: str, jobs: Collection[str], pools: Collection[str], findings: Findings
) -> None:
    for field in ("first_job_id", "second_job_id"):
        if getattr(pair, field) not in jobs:
            findings.wrong(f"{path}.{field}", f"must name a job of the request, found {getattr(pair, field)!r}")
    if pair.first_job_id == pair.second_job_id:
        findings.wrong(f"{path}.second_job_id", "must name another job than first_job_id")
    if pair.pool and pair.pool not in pools:
        findings.wrong(f"{path}.pool", f"must name a pool of the cluster, found {pair.pool!r}")
    for field in ("first_share", "second_share"):
        if not 0.0 < getattr(pair, field) <= MOST_SHARE:
            text = f"must be above 0 and at most {MOST_SHARE:g}, found {getattr(pair, field):g}"
            findings.wrong(f"{path}.{field}", text)
