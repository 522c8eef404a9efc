"""Small clusters, jobs and runs for tests of the simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import NodePool
from nodewise.hosting.registry import Loaded
from nodewise.plugin import Policy, PolicyRecord
from nodewise.scheduling.simulation.core import simulated
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import SimulationSettings
from nodewise_policies.plugin import nodewise_policies

POLICIES: dict[str, Loaded[PolicyRecord]] = {
    record.name: Loaded(record, "tests 1.0", "inline") for record in nodewise_policies()
}


def pools(*sizes: int | Sequence[int]) -> list[NodePool]:
    """One pool per entry: devices of its nodes (a number = one node)."""
    return [
        NodePool(
            name=f"p{index}", device=f"D{index}", available_devices=as_ints([size] if isinstance(size, int) else size)
        )
        for index, size in enumerate(sizes)
    ]


def straight(most: int, pool: int = 0) -> JobCurve:
    """One sample per second and device."""
    return JobCurve.of({(pool, count): float(count) for count in range(1, most + 1)})


ONE = straight(1)


def job(name: str, arrival_s: float, samples: float, curve: JobCurve = ONE, **changes: object) -> SimulatedJob:
    return SimulatedJob(job_id=name, arrival_s=arrival_s, samples=samples, curve=curve, **changes)  # type: ignore[arg-type]


def record(policy: Policy) -> Loaded[PolicyRecord]:
    return Loaded(PolicyRecord(name="under-test", version="1", description="", policy=policy), "tests 1.0", "inline")


def run(
    jobs: Iterable[SimulatedJob],
    sizes: Sequence[int | Sequence[int]] = (1,),
    policy: str | Policy = "fifo",
    **settings: object,
) -> SimulationResult:
    found = POLICIES[policy] if isinstance(policy, str) else record(policy)
    return simulated(jobs, pools(*sizes), found, SimulationSettings(**settings))  # type: ignore[arg-type]


def completions(result: SimulationResult) -> Mapping[str, float]:
    return dict(zip(result.per_job.job_id, result.per_job.completion_s.tolist()))
