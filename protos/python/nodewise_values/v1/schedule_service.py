"""ScheduleService: allocates devices to jobs. For what an absent or empty value means, see configuration.proto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nodewise_values.v1.options import ModelOptions
from nodewise_values.v1.plugin import Plugin
from nodewise_values.v1.prediction import Basis
from nodewise_values.v1.schedule import Cluster, JobAllocation, PoolDemand, QueueQuota, ScheduleJob, SharedPair
from nodewise_values.value import Value

__all__ = [
    "ListPoliciesRequest",
    "ListPoliciesResponse",
    "ScheduleRequest",
    "ScheduleResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleRequest(Value):
    """A cluster, its jobs, and the policy that allocates devices."""

    now: datetime | None = None
    """Current time."""
    cluster: Cluster | None = None
    """The devices to allocate."""
    jobs: tuple[ScheduleJob, ...] = ()
    """The jobs that request devices."""
    policy: str = ""
    """Name of the policy. Empty = the server's default (its setting default_policy)."""
    policy_parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the policy, by name."""
    policy_state: bytes = b""
    """Memory of the policy: policy_state of the last response, unchanged.

    Empty = no memory. Policies without memory ignore it.
    """
    quotas: tuple[QueueQuota, ...] = ()
    """Quotas of queues."""
    options: ModelOptions | None = None
    """Which estimator answers, and how."""
    shared_pairs: tuple[SharedPair, ...] = ()
    """Jobs that may share a device, for policies that pack jobs.

    Other policies give every job its own devices. Pairs that are not listed do not share.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleResponse(Value):
    """The allocations."""

    allocations: tuple[JobAllocation, ...] = ()
    """One allocation per job, in the order of the request."""
    policy: str = ""
    """The policy that decided."""
    policy_version: str = ""
    """Version of the policy."""
    decision_seconds: float = 0.0
    """Seconds that the decision took, including predictions."""
    complete: bool = False
    """Whether the policy finished. If not, the deadline ended it, and this is the best feasible allocation so far."""
    policy_state: bytes = b""
    """Memory of the policy, to send with the next request."""
    bases: tuple[Basis, ...] = ()
    """What the predictions are based on, each basis once."""
    pool_demands: tuple[PoolDemand, ...] = ()
    """Number of nodes that each pool needs, in the order of the request."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPoliciesRequest(Value):
    """Lists policies."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPoliciesResponse(Value):
    """A page of policies."""

    policies: tuple[Plugin, ...] = ()
    """The policies, by name, with their parameters."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""
