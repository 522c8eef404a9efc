"""Plans: the best way to partition a model over devices, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from nodewise_client._columns import frozen
from nodewise_client._configurations import Configurations, columns_of, configurations_from_wire
from nodewise_client._enums import (
    RECOMPUTATIONS,
    SYNC_MODES,
    Recomputation,
    RecomputationWord,
    SyncMode,
    SyncModeWord,
    to_number,
)
from nodewise_client._evidence import ProfileContent, source_to_wire
from nodewise_client._objectives import Objective, Rule, objective_to_wire
from nodewise_client._predictions import (
    Basis,
    Notice,
    Prediction,
    Recommendation,
    basis_from_wire,
    recommendation_of,
    rows_of,
    warning_of,
)
from nodewise_client._questions import PredictOptions, options_to_wire
from nodewise_protos.v1 import objective_pb2, plan_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPool:
    """Nodes of one kind; a configuration uses one pool."""

    device: str
    """Accelerator, e.g. "A100"."""
    nodes: int | Iterable[int]
    """Numbers of nodes that may be used, e.g. `range(1, 9)`."""
    workers_per_node: int
    """Devices on each node, all of which are used."""
    link_bytes_per_s: float = 0.0
    """Network of one node; 0 = the job's own, else as the catalogue has it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", frozen(self.nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConstraints:
    """What may be chosen. A value, or several; nothing = every valid one."""

    pools: Iterable[PlanPool]
    global_batch: int | Iterable[int] = ()
    """Samples of one step over all replicas (asynchronous: of one mini-batch from each); nothing = every replica takes
    one of `micro_batch`."""
    micro_batch: int | Iterable[int] = ()
    tensor_parallel: int | Iterable[int] = ()
    pipeline_parallel: int | Iterable[int] = ()
    data_parallel: int | Iterable[int] = ()
    context_parallel: int | Iterable[int] = ()
    expert_parallel: int | Iterable[int] = ()
    interleave: int | Iterable[int] = ()
    recompute: Recomputation | RecomputationWord | Iterable[Recomputation | RecomputationWord] = ()
    zero_stage: int | Iterable[int] = ()
    sequence_parallel: bool | Iterable[bool] = ()
    precision: str | Iterable[str] = ()
    """Number formats; nothing = the job's own."""
    memory_headroom_bytes: float = 0.0
    """Memory of each device that must stay free."""
    parameter_servers: int | Iterable[int] = ()
    """Servers of configurations that have some; nothing = as many as `max_nodes` leaves."""
    sync: SyncMode | SyncModeWord | Iterable[SyncMode | SyncModeWord] = ()
    """How replicas exchange: async, sync, allreduce."""
    max_nodes: int = 0
    """Most nodes of a configuration, those of parameter servers included; 0 = no limit."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name not in ("memory_headroom_bytes", "max_nodes"):
                object.__setattr__(self, each.name, frozen(getattr(self, each.name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """How far a search is."""

    space: int
    evaluated: int
    pruned: int
    feasible: int
    best: Configurations | None
    """One row: the best so far."""
    best_step_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRejection:
    """Configurations that violate one constraint."""

    constraint: str
    message: str
    count: int
    """0 = not counted."""
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAlternative:
    """What differs from the winner in one dimension."""

    dimension: str
    chosen: str
    alternative: str
    fits: bool
    step_s: float
    change: float
    """Time per sample over the winner's, minus 1."""
    term: str | None
    """The part of the step that makes most of the difference."""
    term_s: float | None
    excess_memory_bytes: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSensitivity:
    """The best under one changed circumstance, e.g. "link_x2"."""

    change: str
    best: str
    speedup: float
    """Over the winner; 0 = nothing is feasible."""
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExplanation:
    """Why the winner wins."""

    alternatives: tuple[PlanAlternative, ...]
    binding: tuple[PlanRejection, ...]
    sensitivities: tuple[PlanSensitivity, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One configuration of an answer: what it is, and what it takes."""

    configuration: Mapping[str, Any]
    """By the columns of `Configurations`."""
    prediction: Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The answer of a plan."""

    best: Planned | None
    """None = nothing is feasible; `rejections` say why."""
    recommendation: Recommendation | None
    frontier: tuple[Planned, ...]
    """What nothing else beats in time per sample, devices and memory; by devices and time."""
    frontier_count: int
    space: int
    evaluated: int
    pruned: int
    feasible: int
    """Of those evaluated."""
    search_s: float
    complete: bool
    """False = time was over."""
    rejections: tuple[PlanRejection, ...]
    explanation: PlanExplanation | None
    estimator: str
    estimator_version: str
    basis: Basis | None
    warnings: tuple[Notice, ...]
    """What the reader should know; row 0 is the best, if there is one."""
    raw: plan_service_pb2.PlanResult = field(repr=False, compare=False)
    """The message as it came."""


def plan_request(
    profile: str | ProfileContent,
    constraints: PlanConstraints | plan_service_pb2.PlanConstraints,
    *,
    objective: Objective | Rule | None,
    options: PredictOptions | None,
    budget_s: float,
    exhaustive: bool,
    frontier_points: int,
    explain: bool,
    minimum_revision: int,
) -> plan_service_pb2.PlanRequest:
    """What to search for."""
    return plan_service_pb2.PlanRequest(
        profile=source_to_wire(profile, minimum_revision),
        constraints=_constraints(constraints),
        objective=objective_to_wire(objective),
        options=options_to_wire(options),
        budget_seconds=budget_s,
        exhaustive=exhaustive,
        frontier_points_count=frontier_points or -1,
        skip_explanation=not explain,
    )


def plan_progress(response: plan_service_pb2.PlanResponse) -> PlanProgress:
    """How far a search is, from its message."""
    message = response.progress
    return PlanProgress(
        space=message.space_count,
        evaluated=message.evaluated_count,
        pruned=message.pruned_count,
        feasible=message.feasible_count,
        best=configurations_from_wire(message.best) if message.HasField("best") else None,
        best_step_s=message.best_step_seconds or None,
    )


def plan_result(responses: Sequence[plan_service_pb2.PlanResponse]) -> PlanResult:
    """The answer that a last message holds."""
    message = responses[-1].result
    rows = tuple(_planned(message))
    recommended = recommendation_of(message.recommendation) if message.HasField("recommendation") else None
    return PlanResult(
        best=None if recommended is None else rows[recommended.row],
        recommendation=recommended,
        frontier=tuple(rows[row] for row in message.frontier_rows),
        frontier_count=message.frontier_count,
        space=message.space_count,
        evaluated=message.evaluated_count,
        pruned=message.pruned_count,
        feasible=message.feasible_count,
        search_s=message.search_seconds,
        complete=message.complete,
        rejections=tuple(map(_rejection, message.rejections)),
        explanation=_explanation(message.explanation) if message.HasField("explanation") else None,
        estimator=message.estimator,
        estimator_version=message.estimator_version,
        basis=basis_from_wire(message.basis) if message.HasField("basis") else None,
        warnings=tuple(warning_of(found, found.rows) for found in message.predictions.warnings),
        raw=message,
    )


def _planned(message: plan_service_pb2.PlanResult) -> Iterator[Planned]:
    predictions = rows_of(message.predictions)
    columns = columns_of(configurations_from_wire(message.configurations), len(predictions))
    for row, prediction in enumerate(predictions):
        stated = {name: values[row] for name, values in columns.items() if values}
        yield Planned(configuration=stated, prediction=prediction)


COUNTS: Final = {
    "global_batch": "global_batch_samples",
    "micro_batch": "micro_batch_samples",
    "tensor_parallel": "tensor_parallel_degrees",
    "pipeline_parallel": "pipeline_parallel_degrees",
    "data_parallel": "data_parallel_degrees",
    "context_parallel": "context_parallel_degrees",
    "expert_parallel": "expert_parallel_degrees",
    "interleave": "interleave_degrees",
    "parameter_servers": "parameter_servers",
}
"""Sets of counts: attribute here -> field there."""


def _constraints(given: PlanConstraints | plan_service_pb2.PlanConstraints) -> plan_service_pb2.PlanConstraints:
    if isinstance(given, plan_service_pb2.PlanConstraints):
        return given
    message = plan_service_pb2.PlanConstraints(
        pools=[
            plan_service_pb2.PlanPool(
                device_name=pool.device,
                nodes=plan_service_pb2.CountSet(values=frozen(pool.nodes)),
                workers_per_node=pool.workers_per_node,
                link_bytes_per_second=pool.link_bytes_per_s,
            )
            for pool in given.pools
        ],
        recomputations=[to_number(RECOMPUTATIONS, word) for word in given.recompute],
        zero_stages=frozen(given.zero_stage),
        sequence_parallel=frozen(given.sequence_parallel),
        precisions=given.precision,
        memory_headroom_bytes=given.memory_headroom_bytes,
        sync_modes=[to_number(SYNC_MODES, word) for word in given.sync],
        max_nodes=given.max_nodes,
    )
    for name, wire in COUNTS.items():
        getattr(message, wire).values.extend(getattr(given, name))
    return message


def _rejection(message: plan_service_pb2.PlanRejection) -> PlanRejection:
    return PlanRejection(
        constraint=message.constraint,
        message=message.message,
        count=message.configurations_count,
        numbers=_numbers(message.numbers),
    )


def _explanation(message: plan_service_pb2.PlanExplanation) -> PlanExplanation:
    return PlanExplanation(
        alternatives=tuple(
            PlanAlternative(
                dimension=each.dimension,
                chosen=each.chosen_value,
                alternative=each.alternative_value,
                fits=each.fits,
                step_s=each.step_seconds,
                change=each.time_change_ratio,
                term=each.term or None,
                term_s=each.term_seconds if each.term else None,
                excess_memory_bytes=each.excess_memory_bytes,
                why=each.why,
            )
            for each in message.alternatives
        ),
        binding=tuple(map(_rejection, message.binding)),
        sensitivities=tuple(
            PlanSensitivity(
                change=each.change, best=each.best, speedup=each.speedup_ratio, numbers=_numbers(each.numbers)
            )
            for each in message.sensitivities
        ),
        complete=message.complete,
    )


def _numbers(found: Iterable[objective_pb2.NamedNumber]) -> dict[str, float]:
    return {number.name: number.value for number in found}
