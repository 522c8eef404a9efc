"""SimulationService: what a policy would have made of jobs that arrive over time.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise_values.v1.options import ModelOptions
from nodewise_values.v1.schedule import Cluster, QueueQuota
from nodewise_values.v1beta1.simulation import (
    SimulationCurve,
    SimulationJobRows,
    SimulationJobs,
    SimulationProgress,
    SimulationResult,
    SimulationSettings,
    SimulationSharedPairs,
    SimulationTimelineRows,
)
from nodewise_values.value import Value

__all__ = [
    "SimulateRequest",
    "SimulateResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulateRequest(Value):
    """A cluster, jobs over time, and the rule to share it by."""

    cluster: Cluster | None = None
    """What there is. Times of the simulation are seconds; a pool's price is not looked at."""
    jobs: SimulationJobs | None = None
    """Who comes when, and wants it."""
    curves: tuple[SimulationCurve, ...] = ()
    """Throughput curves that the jobs name."""
    policy: str = ""
    """Policy's name. Empty = the server's default (its setting default_policy)."""
    policy_parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the policy, by name."""
    quotas: tuple[QueueQuota, ...] = ()
    """Quotas of queues."""
    settings: SimulationSettings | None = None
    """Time, costs and chance. Absent = events, and none of the others."""
    repetitions_count: int | None = None
    """Repetitions, with the seeds seed, seed + 1 and so on. Absent = 1."""
    include_jobs: bool = False
    """Whether to answer with what became of each job."""
    include_timeline: bool = False
    """Whether to answer with who held what when."""
    options: ModelOptions | None = None
    """How to predict curves that come from profiles."""
    shared_pairs: SimulationSharedPairs | None = None
    """Jobs that may share a device, by their curves.

    Absent = every job has its own. With it, settings may hold neither failures nor checkpoints, and rounds are not
    drained: what these do to a run whose speed changes is not modelled.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulateResponse(Value):
    """Progress, then columns, then the result."""

    progress: SimulationProgress | None = None
    """How far it is."""
    jobs: SimulationJobRows | None = None
    """Some of the finished jobs."""
    timeline: SimulationTimelineRows | None = None
    """A part of the timeline."""
    result: SimulationResult | None = None
    """The answer; the last message."""
