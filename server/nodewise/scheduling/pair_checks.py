"""Checks of what a schedule question says of jobs that share a device."""

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
from nodewise.scheduling.request import AskedPair, ScheduleQuestion

__all__ = ["held_pairs", "pairs_table"]

MOST_SHARE: Final = 10.0
"""A job that runs ten times as fast beside another than alone was never measured alone."""


def held_pairs(jobs: Sequence[JobState], found: Findings) -> list[JobState]:
    """The jobs, of which two that share a device both say so; what is wrong is collected."""
    places = {job.job_id: index for index, job in enumerate(jobs)}
    result = list(jobs)
    for index, job in enumerate(jobs):
        held = job.current
        if held is None or not held.shares_with:
            continue
        path = f"jobs[{index}].current_allocation.shares_with_job_id"
        place = places.get(held.shares_with)
        if place is None or place == index:
            found.wrong(path, f"must name another job of the request, found {held.shares_with!r}")
            continue
        other = jobs[place].current
        if other is None or (other.pool, other.placement) != (held.pool, held.placement):
            found.contradicts(path, f"names {held.shares_with!r}, which does not hold the same devices")
        elif other.shares_with not in {"", job.job_id}:
            found.contradicts(path, f"names {held.shares_with!r}, which shares with {other.shares_with!r}")
        elif (held.devices, job.server_devices, jobs[place].server_devices) != (1, 0, 0):
            found.contradicts(path, f"shares {held.devices} devices; jobs share one device, without servers")
        else:
            result[place] = replace(jobs[place], current=replace(other, shares_with=job.job_id))
    return result


def pairs_table(question: ScheduleQuestion, found: Findings, most_jobs: int) -> SharedPairs | None:
    """Shares of the pairs, by jobs in the question's order; None = none may share. What is wrong is collected.

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
        text = f"may name at most {most_jobs:,} jobs per call, found {len(names):,}: leave out those that cannot gain"
        raise NodewiseError.invalid([Violation("shared_pairs", text)], Reason.LIMIT_EXCEEDED)
    kind_of = {name: kind for kind, name in enumerate(names)}
    tables: list[Floats] = [np.zeros((len(names), len(names))) for _ in question.pools]
    for number, pair in enumerate(pairs):
        path = f"shared_pairs[{number}]"
        _check_pair(pair, path, places, pools, found)
        if not found.clean:
            continue
        one, other = kind_of[pair.first_job_id], kind_of[pair.second_job_id]
        for pool in [pools[pair.pool]] if pair.pool else pools.values():
            if tables[pool][one, other] and tables[pool][one, other] != pair.first_share:
                text = f"gives {pair.first_job_id!r} and {pair.second_job_id!r} other shares than before"
                found.contradicts(path, text)
            tables[pool][one, other], tables[pool][other, one] = pair.first_share, pair.second_share
    kinds = as_ints([kind_of.get(job.job_id, -1) for job in question.jobs])
    return SharedPairs(kinds=kinds, shares=tuple(freeze(table) for table in tables))


def _check_pair(pair: AskedPair, path: str, jobs: Collection[str], pools: Collection[str], found: Findings) -> None:
    for field in ("first_job_id", "second_job_id"):
        if getattr(pair, field) not in jobs:
            found.wrong(f"{path}.{field}", f"must name a job of the request, found {getattr(pair, field)!r}")
    if pair.first_job_id == pair.second_job_id:
        found.wrong(f"{path}.second_job_id", "must name another job than first_job_id")
    if pair.pool and pair.pool not in pools:
        found.wrong(f"{path}.pool", f"must name a pool of the cluster, found {pair.pool!r}")
    for field in ("first_share", "second_share"):
        if not 0.0 < getattr(pair, field) <= MOST_SHARE:
            text = f"must be above 0 and at most {MOST_SHARE:g}, found {getattr(pair, field):g}"
            found.wrong(f"{path}.{field}", text)
