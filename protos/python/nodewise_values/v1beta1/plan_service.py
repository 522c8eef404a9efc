"""PlanService: finds the best way to partition a model over devices before the job is built.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
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
    """A set of whole numbers: all values, and all numbers in the ranges.

    Empty = every valid number, where that is allowed.
    """

    values: tuple[int, ...] = ()
    """Values."""
    ranges: tuple[CountRange, ...] = ()
    """Ranges of values."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanPool(Value):
    """Identical nodes. A configuration uses one pool."""

    device_name: str = ""
    """Accelerator, e.g. "A100-80GB"."""
    nodes: CountSet | None = None
    """Numbers of nodes that may be used; at least one number."""
    workers_per_node: int = 0
    """Devices on each node, at least 1. A configuration uses all of them."""
    link_bytes_per_second: float | None = None
    """Network of one node, bytes per second in each direction. Absent = the job's own, else that of the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanConstraints(Value):
    """What the search may choose from. An empty set or list = every valid value."""

    pools: tuple[PlanPool, ...] = ()
    """Pools of devices, at least one. Pools of the same device must differ in their workers per node."""
    global_batch_samples: CountSet | None = None
    """Samples of one step over all replicas (asynchronous: of one mini-batch from each).

    Empty = every replica takes one micro-batch. micro_batch_samples must then hold a value; some estimators refuse
    this.
    """
    micro_batch_samples: CountSet | None = None
    """Samples that one replica processes at once."""
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
    """Which activations the backward pass recomputes."""
    zero_stages: tuple[int, ...] = ()
    """ZeRO stages, 0 to 3."""
    sequence_parallel: tuple[bool, ...] = ()
    """Whether norms and dropouts are split along the sequence."""
    precisions: tuple[str, ...] = ()
    """Number formats. Empty = only the job's own."""
    memory_headroom_bytes: float | None = None
    """Memory of each device that must stay free, bytes; 0 = none.

    Absent = the upper bound of the 90 % interval of the memory must fit, if the estimator states one.
    """
    parameter_servers: CountSet | None = None
    """Numbers of parameter servers in synchronous and asynchronous configurations.

    Empty = as many as max_nodes allows; max_nodes must then be given if a configuration has servers.
    """
    sync_modes: tuple[SyncMode | None, ...] = ()
    """How replicas exchange gradients: ASYNC, SYNC or ALLREDUCE."""
    max_nodes: int | None = None
    """Most nodes of a configuration, including those of parameter servers. Absent = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanRequest(Value):
    """Requests a plan."""

    profile: ProfileSource | None = None
    """What is known of the job."""
    constraints: PlanConstraints | None = None
    """What the search may choose from."""
    objective: Objective | None = None
    """What the caller wants.

    Absent = highest throughput of the given devices. Its confidence must be absent, because the search compares
    predicted values without intervals.
    """
    options: ModelOptions | None = None
    """Which estimator answers, and how; "auto" = an estimator that can plan."""
    budget_seconds: float | None = None
    """Seconds for the search. When they end, the result holds the best so far. Absent = the call's time."""
    exhaustive: bool = False
    """Whether to evaluate every configuration, instead of skipping those that cannot affect the result.

    The answer is the same, but takes longer.
    """
    max_frontier_points: int | None = None
    """Most points of the frontier in the result, up to 1000.

    Absent = 100; 0 = no frontier, which makes the search faster.
    """
    skip_explanation: bool = False
    """Whether to omit the explanation: alternatives, binding constraints and sensitivities.

    It takes several more searches.
    """
    work: Work | None = None
    """Work left, for objectives of time or cost. Absent = the default of Work."""
    offers: tuple[Offer, ...] = ()
    """Nodes that are available, and what they cost, for objectives of cost."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanResponse(Value):
    """A message of the stream: progress, then the result."""

    progress: PlanProgress | None = None
    """Progress of the search."""
    result: PlanResult | None = None
    """The result, in the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanProgress(Value):
    """Progress of a search."""

    space_count: int = 0
    """Configurations in the space."""
    evaluated_count: int = 0
    """Number of these that were evaluated."""
    pruned_count: int = 0
    """Number of these that were skipped for a reason."""
    feasible_count: int = 0
    """Number of evaluated configurations within memory and limits."""
    best: Configurations | None = None
    """The best configuration so far, one row. Absent = none yet."""
    best_step_seconds: float | None = None
    """Its seconds per step. Absent = none yet."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanResult(Value):
    """The result of a plan."""

    space_count: int = 0
    """Configurations in the space."""
    evaluated_count: int = 0
    """Number of these that were evaluated."""
    pruned_count: int = 0
    """Number of these that were skipped because they cannot affect the result."""
    feasible_count: int = 0
    """Number of evaluated configurations within memory and the objective's limits."""
    search_seconds: float = 0.0
    """Seconds to generate the space, compute bounds and search, without the final predictions and the explanation."""
    complete: bool = False
    """Whether the search is complete. False = its time ended first, and this is the best so far."""
    configurations: Configurations | None = None
    """The best configuration first, if there is one, then the frontier."""
    predictions: Predictions | None = None
    """Predictions of these configurations, with all columns, in the same order."""
    recommendation: Recommendation | None = None
    """The best configuration, and why. Absent = nothing is feasible; the rejections say why."""
    frontier_rows: tuple[int, ...] = ()
    """Rows of the frontier: configurations that no other beats in time per sample, devices and memory.

    Ordered by devices, then time.
    """
    frontier_count: int = 0
    """Number of points on the frontier. It exceeds the number of rows if some points were left out."""
    basis: Basis | None = None
    """What the answer is based on. Absent = there is no feasible configuration."""
    rejections: tuple[PlanRejection, ...] = ()
    """What the constraints allow but the plan cannot use."""
    explanation: PlanExplanation | None = None
    """Why the recommended configuration is best.

    Absent = not requested, nothing is feasible, or the time ended before.
    """
    estimator: str = ""
    """Name of the estimator."""
    estimator_version: str = ""
    """Version of the estimator."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanRejection(Value):
    """Configurations that violate one constraint."""

    constraint: str = ""
    """Name of the constraint: a dimension, "memory", "max_nodes", "max_cost", "deadline_seconds" or "space"."""
    message: str = ""
    """How it is violated, in one sentence with its numbers."""
    configurations_count: int | None = None
    """Number of configurations that violate it. Absent = not counted."""
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers in that sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanExplanation(Value):
    """Why the recommended configuration is best."""

    alternatives: tuple[PlanAlternative, ...] = ()
    """For each dimension, the best configuration with another value of that dimension alone."""
    binding: tuple[PlanRejection, ...] = ()
    """Constraints without which another configuration would be best."""
    sensitivities: tuple[PlanSensitivity, ...] = ()
    """The best configuration under changed conditions."""
    complete: bool = False
    """Whether the explanation is complete. False = the time ended first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanAlternative(Value):
    """A configuration that differs from the recommended one in a single dimension.

    The data-parallel degree follows from the other dimensions.
    """

    dimension: str = ""
    """Name of the dimension, e.g. "tensor_parallel"."""
    chosen_value: str = ""
    """Value in the recommended configuration."""
    alternative_value: str = ""
    """Value in this configuration."""
    fits: bool = False
    """Whether it fits into memory."""
    step_seconds: float = 0.0
    """Its seconds per step."""
    time_change_ratio: float = 0.0
    """Its time per sample divided by that of the recommended configuration, minus 1."""
    term: str = ""
    """Part of the step that contributes most to the difference. Empty = not known."""
    term_seconds: float = 0.0
    """Contribution of that part, in seconds of the recommended configuration's step."""
    excess_memory_bytes: float = 0.0
    """Memory missing on each device, bytes."""
    why: str = ""
    """The comparison in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanSensitivity(Value):
    """The best configuration under one changed condition."""

    change: str = ""
    """The changed condition: "link_x2", "memory_x2", "one_more_node" or "nodes_x2"."""
    best: str = ""
    """Description of the best configuration under this condition."""
    speedup_ratio: float | None = None
    """Time per sample of the recommended configuration divided by that of the best one under this condition.

    Absent = nothing is feasible.
    """
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers of the comparison."""
    obstacle: str = ""
    """Why no configuration uses the machines that the change adds, e.g. because no batch can be divided over them.

    Empty = some configuration does, or the change adds no machines.
    """
