"""SimulationService: simulates a policy on jobs that arrive over time.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
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
    """A cluster, jobs over time, and the policy that allocates devices."""

    cluster: Cluster | None = None
    """The devices to allocate.

    The prices of pools are ignored. Failures that pools state are what the policy knows; those that happen are in
    settings.
    """
    jobs: SimulationJobs | None = None
    """The jobs, with their arrival times."""
    curves: tuple[SimulationCurve, ...] = ()
    """Throughput curves that the jobs refer to."""
    policy: str = ""
    """Name of the policy. Empty = the server's default (its setting default_policy)."""
    policy_parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the policy, by name."""
    quotas: tuple[QueueQuota, ...] = ()
    """Quotas of queues."""
    settings: SimulationSettings | None = None
    """Clock, costs of changes, and random events. Absent = the clock EVENTS, no costs and no random events."""
    repetitions_count: int | None = None
    """Number of repetitions, with the seeds seed, seed + 1 and so on. Absent = 1."""
    include_jobs: bool = False
    """Whether to send the results of each job."""
    include_timeline: bool = False
    """Whether to send the timeline: which job held which devices."""
    options: ModelOptions | None = None
    """Which estimator predicts the curves that come from profiles, and how."""
    shared_pairs: SimulationSharedPairs | None = None
    """Jobs that may share a device, by their curves.

    Absent = every job has its own devices. With it, settings must not hold failures, checkpoints or drained rounds,
    because their effect on a run whose speed changes is not modelled.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulateResponse(Value):
    """A message of the stream: progress, then columns, then the result."""

    progress: SimulationProgress | None = None
    """Progress of the simulation."""
    jobs: SimulationJobRows | None = None
    """Some of the finished jobs."""
    timeline: SimulationTimelineRows | None = None
    """A part of the timeline."""
    result: SimulationResult | None = None
    """The result, in the last message."""
