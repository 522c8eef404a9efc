"""Short forms for parts of requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import nodewise_values as values
from nodewise_client._columns import as_tuple, broadcast, write_columns
from nodewise_values.facts import MEASUREMENT_TABLE

Rule: TypeAlias = values.HighestThroughput | values.Knee | values.LeastTime | values.LeastCost | values.FewestDevices

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def profile_source(
    profile: str | values.ProfileContent, *, minimum_revision: int | None = None, revision: int | None = None
) -> values.ProfileSource:
    """A stored profile by its name, at least at or exactly at a revision; or the profile itself."""
    revisions: dict[str, Any] = {"minimum_revision": minimum_revision, "revision": revision}
    if isinstance(profile, str):
        return values.ProfileSource(profile_id=profile, **revisions)
    return values.ProfileSource(content=profile, **revisions)


def node_range(
    first: int, last: int, *, step: int | None = None, powers_of_two: bool = False, **common: Any
) -> values.ConfigurationRange:
    """One configuration per number of nodes: `node_range(1, 16)` is sixteen rows.

    `common` is what `ConfigurationRange` says besides: workers_per_node, placement_rule, settings.
    """
    return values.ConfigurationRange(nodes=_count_range(first, last, step, powers_of_two=powers_of_two), **common)


def worker_range(
    first: int, last: int, *, step: int | None = None, powers_of_two: bool = False, **common: Any
) -> values.ConfigurationRange:
    """One configuration per number of workers; nodes follow from the placement rule."""
    return values.ConfigurationRange(workers=_count_range(first, last, step, powers_of_two=powers_of_two), **common)


def _count_range(first: int, last: int, step: int | None, *, powers_of_two: bool) -> values.CountRange:
    return values.CountRange(first=first, last=last, step=step, powers_of_two=powers_of_two)


def objective(
    rule: Rule | None = None, *, confidence: float | None = None, max_extrapolation_ratio: float | None = None
) -> values.Objective:
    """A rule: `objective(LeastTime(max_nodes=8))`; none = the knee.

    Args:
        rule: what best means.
        confidence: judge by a bound that holds with this probability.
        max_extrapolation_ratio: recommend at most so many times the measured scale; None = 4, 0 = no limit.
    """
    rules: dict[str, Any] = {} if rule is None else {_CAPITAL.sub("_", type(rule).__name__).lower(): rule}
    return values.Objective(confidence=confidence, max_extrapolation_ratio=max_extrapolation_ratio, **rules)


def node_pool(name: str, device_name: str, *, nodes: int, devices_per_node: int, **rest: Any) -> values.NodePool:
    """Alike nodes of a cluster with all their devices free; `rest` is what `NodePool` says besides."""
    return values.NodePool(name=name, device_name=device_name, available_devices=(devices_per_node,) * nodes, **rest)


def counts(*numbers: int | Iterable[int]) -> values.CountSet:
    """Whole numbers that may be chosen: `counts(1, 2, 4)`, `counts(range(1, 9))`."""
    return values.CountSet(values=tuple(number for each in numbers for number in as_tuple(each)))


def measurement_table(
    *,
    jobs: str | Iterable[str],
    workloads: Mapping[str, values.Workload] | None = None,
    networks: Mapping[str, values.Network] | None = None,
    **columns: Any,
) -> values.MeasurementTable:
    """A table of measurements.

    Args:
        jobs: name of each row's job.
        workloads: what each job trains, by its name.
        networks: each job's network, by its name.
        columns: every other column of `MeasurementTable`, by its name; a value for all rows or one per row. None =
            not measured, not known.

    Raises
    ------
        ValueError: if facts are given for a job without a row.
    """
    names_of_rows = as_tuple(jobs)
    by_row = {name: as_tuple(columns.get(name)) for name in _COLUMNS}
    rows = max(len(names_of_rows), *map(len, by_row.values()), 1)
    names = {name: index for index, name in enumerate(dict.fromkeys(names_of_rows))}
    for job in (*(workloads or {}), *(networks or {})):
        if job not in names:
            raise ValueError(f"facts are given for {job!r}, which is not a job of the table")
    all_columns = {**columns, **{name: broadcast(column, rows, name) for name, column in by_row.items()}}
    return values.MeasurementTable(
        job_names=tuple(names),
        job_indexes=tuple(names[name] for name in broadcast(names_of_rows, rows, "jobs")),
        workloads=tuple(workloads.get(name, values.Workload()) for name in names) if workloads else (),
        networks=tuple(networks.get(name, values.Network()) for name in names) if networks else (),
        **write_columns(values.MeasurementTable, MEASUREMENT_TABLE, all_columns),
    )


_COLUMNS: Final = (*MEASUREMENT_TABLE, "train")
"""Columns of a table with an entry per row."""


def simulation_jobs(
    *, arrival_seconds: Iterable[float], queues: str | Iterable[str | None] = (), **columns: Any
) -> values.SimulationJobs:
    """Jobs of a simulation by arrival, as columns of `SimulationJobs`: a value for all jobs or one per job.

    `queues` names each job's queue; empty or None = none.
    """
    arrivals, of_jobs = as_tuple(arrival_seconds), tuple(name or "" for name in as_tuple(queues))
    names = {name: index for index, name in enumerate(dict.fromkeys(of_jobs))} if any(of_jobs) else {}
    curves: dict[str, Any] = {"curve_indexes": (0,)}
    return values.SimulationJobs(
        count=len(arrivals),
        arrival_seconds=arrivals,
        queue_names=tuple(names),
        queue_indexes=tuple(names[name] for name in of_jobs) if names else (),
        **(curves | {name: as_tuple(column) for name, column in columns.items()}),
    )
