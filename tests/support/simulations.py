"""Small clusters, jobs and runs for tests of the simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import Allocation, ClusterState, Curves, Grant, NodePool
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, Policy, PolicyRecord
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings
from nodewise_job_traces import Curve, Job
from nodewise_policies.plugin import nodewise_policies

POLICIES: dict[str, LoadedPlugin[PolicyRecord]] = {
    record.name: LoadedPlugin(record, "tests 1.0", "inline") for record in nodewise_policies()
}


def pools(*sizes: int | Sequence[int], **named: Sequence[int]) -> list[NodePool]:
    """One pool per entry: devices of its nodes (a number = one node); those with a name are of the device so named."""
    entries = [(f"p{index}", f"D{index}", size) for index, size in enumerate(sizes)]
    entries += [(name, name, size) for name, size in named.items()]
    return [
        NodePool(name=name, device=device, available_devices=as_ints([size] if isinstance(size, int) else size))
        for name, device, size in entries
    ]


def straight(most: int, pool: int = 0) -> JobCurve:
    """One sample per second and device."""
    return JobCurve.of({(pool, count): float(count) for count in range(1, most + 1)})


ONE = straight(1)


def job(name: str, arrival_s: float, samples: float, curve: JobCurve = ONE, **changes: object) -> SimulatedJob:
    return SimulatedJob(job_id=name, arrival_s=arrival_s, samples=samples, curve=curve, **changes)  # type: ignore[arg-type]


class Watching:
    """First come, one device each; keeps the curves and the work left that it was shown."""

    def __init__(self) -> None:
        self.rates: dict[str, list[float]] = {}
        self.left: dict[str, float] = {}

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        grants = []
        free = state.pools[0].total_devices
        for index, each in enumerate(state.jobs):
            self.rates[each.job_id] = curves.samples_per_s[curves.rows(index)].tolist()
            self.left.setdefault(each.job_id, each.remaining_samples)
            grants.append(Grant(1, 0) if free > 0 else Grant(0))
            free -= 1
        return Allocation(grants=tuple(grants))


def record(policy: Policy) -> LoadedPlugin[PolicyRecord]:
    return LoadedPlugin(
        PolicyRecord(name="under-test", version="1", description="", policy=policy), "tests 1.0", "inline"
    )


def run(
    jobs: Iterable[SimulatedJob],
    sizes: Sequence[int | Sequence[int]] = (1,),
    policy: str | Policy = "fifo",
    **settings: object,
) -> SimulationResult:
    found = POLICIES[policy] if isinstance(policy, str) else record(policy)
    return simulate(jobs, pools(*sizes), found, SimulationSettings(**settings))  # type: ignore[arg-type]


def as_simulated(jobs: Iterable[Job], devices_per_node: Sequence[int] = ()) -> Iterator[SimulatedJob]:
    """Jobs of a file or a law as the simulation has them; ``devices_per_node`` by pool says how curves are packed."""
    curves: dict[Curve, JobCurve] = {}

    def of(curve: Curve | None) -> JobCurve | None:
        if curve is not None and curve not in curves:
            curves[curve] = JobCurve.of(curve.rates, devices_per_node)
        return None if curve is None else curves[curve]

    for each in jobs:
        stated: dict[str, Any] = {field.name: getattr(each, field.name) for field in fields(each)}
        yield SimulatedJob(**{**stated, "curve": of(each.curve), "predicted": of(each.predicted)})


def settings_of(usual: Mapping[str, Any], **changes: Any) -> SimulationSettings:
    """A published simulator's settings."""
    return SimulationSettings(**{**usual, "clock": Clock(usual["clock"]), **changes})


def completions(result: SimulationResult) -> Mapping[str, float]:
    return dict(zip(result.per_job.job_id, result.per_job.completion_s.tolist()))
