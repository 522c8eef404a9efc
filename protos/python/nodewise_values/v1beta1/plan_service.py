"""PlanService: the best way to partition a model over devices, before anything is built.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1.configuration import Configurations, CountRange, Recomputation, SyncMode
from nodewise_values.v1.objective import NamedNumber, Objective, Offer, Recommendation, Work
from nodewise_values.v1.options import ModelOptions
from nodewise_values.v1.prediction import Basis, Predictions
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.value import Value

__all__ = [
    "CountSet",
    "PlanAlternative",
    "PlanConstraints",
    "PlanExplanation",
    "PlanPool",
    "PlanProgress",
    "PlanRejection",
    "PlanRequest",
    "PlanResponse",
    "PlanResult",
    "PlanSensitivity",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountSet(Value):
    """Whole numbers: the values and those of the ranges together. Empty = every valid one, where that is allowed."""

    values: tuple[int, ...] = ()
    """Values."""
    ranges: tuple[CountRange, ...] = ()
    """Ranges of values."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanPool(Value):
    """Nodes of one kind. A configuration uses one pool."""

    device_name: str = ""
    """Accelerator, e.g. "A100-80GB"."""
    nodes: CountSet | None = None
    """Numbers of nodes that may be used; at least one."""
    workers_per_node: int = 0
    """Devices on each node, all of which are used; at least 1."""
    link_bytes_per_second: float | None = None
    """Network of one node, bytes per second and direction. Absent = the job's own, else as the catalog has it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanConstraints(Value):
    """What may be chosen. An empty set or list = every valid value."""

    pools: tuple[PlanPool, ...] = ()
    """Devices, at least one pool; pools of one device differ in their workers per node."""
    global_batch_samples: CountSet | None = None
    """Samples of one step over all replicas (asynchronous: of one mini-batch from each).

    Empty = every replica takes one of micro_batch_samples, which must then hold a value, and an estimator may refuse
    that.
    """
    micro_batch_samples: CountSet | None = None
    """Samples of one replica that go through the model at once."""
    tensor_parallel_degrees: CountSet | None = None
    """Tensor-parallel degrees."""
    pipeline_parallel_degrees: CountSet | None = None
    """Pipeline stages."""
    data_parallel_degrees: CountSet | None = None
    """Data-parallel replicas."""
    context_parallel_degrees: CountSet | None = None
    """Context-parallel degrees."""
    expert_parallel_degrees: CountSet | None = None
    """Expert-parallel degrees."""
    interleave_degrees: CountSet | None = None
    """Model chunks per pipeline stage."""
    recomputations: tuple[Recomputation | None, ...] = ()
    """What is recomputed in the backward pass."""
    zero_stages: tuple[int, ...] = ()
    """ZeRO stages, 0 to 3."""
    sequence_parallel: tuple[bool, ...] = ()
    """Whether norms and dropouts are split along the sequence."""
    precisions: tuple[str, ...] = ()
    """Number formats. Empty = the job's own alone."""
    memory_headroom_bytes: float | None = None
    """Memory of each device that must stay free, bytes; 0 = none.

    Absent = the upper bound of the memory's 90 % interval must fit, where the estimator tells one.
    """
    parameter_servers: CountSet | None = None
    """Parameter servers of synchronous and asynchronous configurations.

    Empty = as many as max_nodes leaves, which must then be given where a configuration has servers.
    """
    sync_modes: tuple[SyncMode | None, ...] = ()
    """How replicas exchange: ASYNC, SYNC, ALLREDUCE."""
    max_nodes: int | None = None
    """At most this many nodes of a configuration, those of parameter servers included. Absent = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanRequest(Value):
    """What to search for."""

    profile: ProfileSource | None = None
    """What is known of the job."""
    constraints: PlanConstraints | None = None
    """What may be chosen."""
    objective: Objective | None = None
    """What is best.

    Absent = highest throughput of the devices given. Its confidence must be absent: a search compares points.
    """
    options: ModelOptions | None = None
    """Who answers; "auto" = an estimator that plans."""
    budget_seconds: float | None = None
    """Seconds for searching; when they are over, the best so far is the result. Absent = as long as the call has."""
    exhaustive: bool = False
    """Evaluate every configuration instead of leaving out what cannot matter: the same answer, more slowly."""
    max_frontier_points: int | None = None
    """Most points of the frontier to answer with, up to 1000. Absent = 100; 0 = no frontier, which searches faster."""
    skip_explanation: bool = False
    """Leave out why the winner wins, what binds and what would change it, which takes several searches more."""
    work: Work | None = None
    """Work left, for objectives of time or cost. Absent = as said of Work."""
    offers: tuple[Offer, ...] = ()
    """What nodes cost, for objectives of cost."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanResponse(Value):
    """Progress, then the result."""

    progress: PlanProgress | None = None
    """How far the search is."""
    result: PlanResult | None = None
    """The answer; the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanProgress(Value):
    """How far a search is."""

    space_count: int = 0
    """Configurations in the space."""
    evaluated_count: int = 0
    """Of these evaluated."""
    pruned_count: int = 0
    """Of these left out for a reason."""
    feasible_count: int = 0
    """Of those evaluated, within memory and limits."""
    best: Configurations | None = None
    """The best so far, one row. Absent = none yet."""
    best_step_seconds: float | None = None
    """Its seconds of a step. Absent = none yet."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanResult(Value):
    """The answer of a plan."""

    space_count: int = 0
    """Configurations in the space."""
    evaluated_count: int = 0
    """Of these evaluated."""
    pruned_count: int = 0
    """Of these left out because they cannot matter."""
    feasible_count: int = 0
    """Of those evaluated, within memory and the objective's limits."""
    search_seconds: float = 0.0
    """Seconds to lay out the space, bound it and search it; without the predictions and the explanation."""
    complete: bool = False
    """False = time was over, and this is the best so far."""
    configurations: Configurations | None = None
    """The best first, if there is one, then the frontier."""
    predictions: Predictions | None = None
    """Their predictions, every column, in the same order."""
    recommendation: Recommendation | None = None
    """The best and why. Absent = nothing is feasible; the rejections say why."""
    frontier_rows: tuple[int, ...] = ()
    """Rows of the frontier.

    Rows of the frontier: what no other configuration beats in time per sample, devices and memory; by devices and time.
    """
    frontier_count: int = 0
    """Points of the frontier; more than rows where they were thinned out."""
    basis: Basis | None = None
    """What the answer rests on. Absent = nothing was found."""
    rejections: tuple[PlanRejection, ...] = ()
    """What the constraints allow and cannot be used."""
    explanation: PlanExplanation | None = None
    """Why the winner wins. Absent = not asked for, nothing feasible, or time was over before."""
    estimator: str = ""
    """The estimator that planned."""
    estimator_version: str = ""
    """Its version."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanRejection(Value):
    """Configurations that violate one constraint."""

    constraint: str = ""
    """The constraint: a dimension, "memory", "max_nodes", "max_cost", "deadline_seconds" or "space"."""
    message: str = ""
    """How it is violated, in one sentence with its numbers."""
    configurations_count: int | None = None
    """How many configurations. Absent = not counted."""
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanExplanation(Value):
    """Why the winner wins."""

    alternatives: tuple[PlanAlternative, ...] = ()
    """For every dimension the best that another value of it alone allows."""
    binding: tuple[PlanRejection, ...] = ()
    """The constraints without which something else would win."""
    sensitivities: tuple[PlanSensitivity, ...] = ()
    """The best under changed circumstances."""
    complete: bool = False
    """False = time was over before all was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanAlternative(Value):
    """What differs from the winner in one dimension; the data-parallel degree follows from the others."""

    dimension: str = ""
    """The dimension, e.g. "tensor_parallel"."""
    chosen_value: str = ""
    """The winner's value."""
    alternative_value: str = ""
    """The other value."""
    fits: bool = False
    """Whether it fits into memory."""
    step_seconds: float = 0.0
    """Its seconds of a step."""
    time_change_ratio: float = 0.0
    """Its time per sample over the winner's, minus 1."""
    term: str = ""
    """The part of the step that makes most of the difference. Empty = not known."""
    term_seconds: float = 0.0
    """By how many seconds of the winner's step."""
    excess_memory_bytes: float = 0.0
    """Memory missing on each device, bytes."""
    why: str = ""
    """All of it in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanSensitivity(Value):
    """The best under one changed circumstance."""

    change: str = ""
    """The change: "link_x2", "memory_x2", "one_more_node" or "nodes_x2"."""
    best: str = ""
    """The best then, in words."""
    speedup_ratio: float | None = None
    """Time per sample of the winner over that of the best then. Absent = nothing is feasible."""
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers."""
    obstacle: str = ""
    """Why no configuration uses the machines that the change adds, e.g. because no batch divides over them.

    Empty = some configuration does, or the change adds none.
    """
