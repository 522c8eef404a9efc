"""ScheduleService: who should get what. Absence, as on the whole wire: see configuration.proto."""

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
    options: ModelOptions | None = None
    """How to predict."""
    shared_pairs: tuple[SharedPair, ...] = ()
    """Jobs that may share a device, for policies that pack; others leave every job its own.

    Pairs that are not listed do not share.
    """


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
    pool_demands: tuple[PoolDemand, ...] = ()
    """How many nodes each pool should have, in the request's order."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPoliciesRequest(Value):
    """Which policies to list."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPoliciesResponse(Value):
    """Policies."""

    policies: tuple[Plugin, ...] = ()
    """The policies, by name, with their parameters."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
