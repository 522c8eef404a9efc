"""Shorter ways to say what requests hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from nodewise_client._columns import NOT_KNOWN, broadcast, frozen
from nodewise_values import (
    ConfigurationRange,
    CountRange,
    CountSet,
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    MeasurementTable,
    Network,
    NodePool,
    Objective,
    ProfileContent,
    ProfileSource,
    SimulationJobs,
    Workload,
)

Rule: TypeAlias = HighestThroughput | Knee | LeastTime | LeastCost | FewestDevices

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def profile_source(profile: str | ProfileContent, *, minimum_revision: int = 0) -> ProfileSource:
    """A stored profile by its name, or the profile itself."""
    if isinstance(profile, str):
        return ProfileSource(profile_id=profile, minimum_revision=minimum_revision)
    return ProfileSource(inline=profile, minimum_revision=minimum_revision)


def node_range(
    first: int, last: int, *, step: int = 1, powers_of_two: bool = False, **common: Any
) -> ConfigurationRange:
    """One configuration per number of nodes: `node_range(1, 16)` is sixteen rows.

    `common` is what `ConfigurationRange` says besides: workers_per_node, placement_rule, template.
    """
    return ConfigurationRange(nodes=_count_range(first, last, step, powers_of_two=powers_of_two), **common)


def worker_range(
    first: int, last: int, *, step: int = 1, powers_of_two: bool = False, **common: Any
) -> ConfigurationRange:
    """One configuration per number of workers; nodes follow from the placement rule."""
    return ConfigurationRange(workers=_count_range(first, last, step, powers_of_two=powers_of_two), **common)


def _count_range(first: int, last: int, step: int, *, powers_of_two: bool) -> CountRange:
    # Steps of 1 need no saying, and powers of two take none.
    return CountRange(first=first, last=last, step=0 if step == 1 else step, powers_of_two=powers_of_two)


def objective(rule: Rule | None = None, **needs: Any) -> Objective:
    """A rule and what it needs: `objective(LeastTime(max_nodes=8), work=Work(samples=1e6))`.

    `needs` is what `Objective` says besides the rule: confidence, work, prices. Without a rule there is no
    recommendation; time and cost to finish are still answered.
    """
    if rule is None:
        return Objective(**needs)
    needs[_CAPITAL.sub("_", type(rule).__name__).lower()] = rule
    return Objective(**needs)


def node_pool(name: str, device_name: str, *, nodes: int, devices_per_node: int, **rest: Any) -> NodePool:
    """Alike nodes of a cluster with all their devices free; `rest` is what `NodePool` says besides."""
    return NodePool(name=name, device_name=device_name, available_devices=(devices_per_node,) * nodes, **rest)


def counts(*values: int | Iterable[int]) -> CountSet:
    """Whole numbers that may be chosen: `counts(1, 2, 4)`, `counts(range(1, 9))`."""
    return CountSet(values=tuple(number for given in values for number in frozen(given)))


def measurement_table(
    *,
    jobs: str | Iterable[str],
    workloads: Mapping[str, Workload] | None = None,
    networks: Mapping[str, Network] | None = None,
    **columns: Any,
) -> MeasurementTable:
    """A table of measurements.

    Args:
        jobs: name of each row's job.
        workloads: what each job trains, by its name.
        networks: each job's network, by its name.
        columns: every other column of `MeasurementTable`, by its name; a value for all rows or one per row. None =
            not measured, not known.

    Raises
    ------
        ValueError: where facts are given of a job that has no row.
    """
    given: dict[str, Any] = {name: frozen(column) if name in _COLUMNS else column for name, column in columns.items()}
    names_of_rows = frozen(jobs)
    rows = max(len(names_of_rows), *(len(given[name]) for name in _COLUMNS if name in given), 1)
    names = {name: index for index, name in enumerate(dict.fromkeys(names_of_rows))}
    for named in (*(workloads or {}), *(networks or {})):
        if named not in names:
            raise ValueError(f"facts are given for {named!r}, which is no job of the table")
    for name, missing in _COLUMNS.items():
        column = broadcast(given.get(name, ()), rows, name)
        stated = name == "steps_per_second" or any(value is not None for value in column)
        given[name] = tuple(missing if value is None else value for value in column) if stated else ()
    return MeasurementTable(
        job_names=tuple(names),
        job_indexes=tuple(names[name] for name in broadcast(names_of_rows, rows, "jobs")),
        workloads=tuple(workloads.get(name, Workload()) for name in names) if workloads else (),
        networks=tuple(networks.get(name, Network()) for name in names) if networks else (),
        **given,
    )


_COLUMNS: Final[Mapping[str, Any]] = {
    "steps_per_second": 0.0,
    "train": False,
    "measured_at_unix_seconds": 0.0,
    "exposed_sync_seconds": NOT_KNOWN,
    "steps_counts": 0,
    "step_variation": NOT_KNOWN,
}
"""Columns of a table with an entry per row, and what stands for "not known" in each."""


def simulation_jobs(
    *, arrival_seconds: Iterable[float], queues: str | Iterable[str] = (), **columns: Any
) -> SimulationJobs:
    """Jobs of a simulation by arrival, as columns of `SimulationJobs`: a value for all jobs or one per job.

    `queues` names each job's queue; empty = none.
    """
    arrivals, of_jobs = frozen(arrival_seconds), frozen(queues)
    names = {name: index for index, name in enumerate(dict.fromkeys(name for name in of_jobs if name))}
    curves: dict[str, Any] = {"curve_indexes": (0,)}
    return SimulationJobs(
        count=len(arrivals),
        arrival_seconds=arrivals,
        queue_names=tuple(names),
        queue_indexes=tuple(names.get(name, -1) for name in of_jobs),
        **(curves | {name: frozen(column) for name, column in columns.items()}),
    )
