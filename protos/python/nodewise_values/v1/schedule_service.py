"""ScheduleService: who should get what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nodewise_values.v1.prediction import Basis
from nodewise_values.v1.prediction_service import PluginProblem, PredictOptions
from nodewise_values.v1.schedule import Cluster, JobAllocation, QueueQuota, ScheduleJob
from nodewise_values.v1.simulation import (
    SimulationCurve,
    SimulationJobRows,
    SimulationJobs,
    SimulationProgress,
    SimulationResult,
    SimulationSettings,
    SimulationTimelineRows,
)
from nodewise_values.value import Value

__all__ = [
    "ListPoliciesRequest",
    "ListPoliciesResponse",
    "Policy",
    "PolicyParameter",
    "ScheduleRequest",
    "ScheduleResponse",
    "SimulateRequest",
    "SimulateResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleRequest(Value):
    """A cluster, its jobs, and the rule to share it by."""

    now: datetime | None = None
    """Now."""
    cluster: Cluster | None = None
    """What there is."""
    jobs: tuple[ScheduleJob, ...] = ()
    """Who wants it."""
    policy: str = ""
    """Policy's name. Empty = the server's default (its setting default_policy)."""
    policy_parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the policy, by name."""
    policy_state: bytes = b""
    """What the policy remembered, as it stood in the last response.

    Empty = nothing. Policies without memory ignore it.
    """
    quotas: tuple[QueueQuota, ...] = ()
    """Quotas of queues."""
    options: PredictOptions | None = None
    """How to predict."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleResponse(Value):
    """The allocations."""

    allocations: tuple[JobAllocation, ...] = ()
    """One per job, in the request's order."""
    policy: str = ""
    """The policy that decided."""
    policy_version: str = ""
    """Its version."""
    decision_seconds: float = 0.0
    """Seconds that the decision took, predictions included."""
    complete: bool = False
    """Whether the policy finished; otherwise the deadline cut it and this is the best feasible allocation so far."""
    policy_state: bytes = b""
    """What the policy remembers, for the next request."""
    bases: tuple[Basis, ...] = ()
    """What the predictions rest on, without repetition."""


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
    repetitions_count: int = 0
    """Repetitions, with the seeds seed, seed + 1 and so on. 0 = 1."""
    include_jobs: bool = False
    """Whether to answer with what became of each job."""
    include_timeline: bool = False
    """Whether to answer with who held what when."""
    options: PredictOptions | None = None
    """How to predict curves that come from profiles."""


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPoliciesRequest(Value):
    """Which policies to list."""

    page_size: int = 0
    """At most this many. 0 = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPoliciesResponse(Value):
    """Policies."""

    policies: tuple[Policy, ...] = ()
    """The policies, by name."""
    problems: tuple[PluginProblem, ...] = ()
    """Plugins that were left out."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Policy(Value):
    """A policy."""

    name: str = ""
    """Name to ask for."""
    version: str = ""
    """Version."""
    description: str = ""
    """What it does, for people."""
    distribution: str = ""
    """Distribution that brought it, with its version."""
    mode: str = ""
    """Where it runs: "inline" or "thread"."""
    parameters: tuple[PolicyParameter, ...] = ()
    """Its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PolicyParameter(Value):
    """A parameter of a policy."""

    name: str = ""
    """Name."""
    description: str = ""
    """Meaning, with unit."""
    default_value: float = 0.0
    """Value when not given."""
    minimum: float = 0.0
    """Least value allowed."""
    maximum: float = 0.0
    """Greatest value allowed."""
