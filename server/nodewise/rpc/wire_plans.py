"""Plans on the wire: constraints in, the winners and their reasons out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodewise.domain.configurations import Recomputation, SyncMode
from nodewise.domain.objective import HighestThroughput, Objective
from nodewise.domain.planning import Exclusion, PlanConstraints, PlanPool
from nodewise.planning.results import Explanation, PlanResult
from nodewise.planning.search import Progress
from nodewise.ports.limits import Limits
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_configurations import read_counts, write_configurations
from nodewise.rpc.wire_predictions import read_objective, write_basis, write_predictions, write_recommendation
from nodewise_protos.v1 import objective_pb2
from nodewise_protos.v1 import plan_service_pb2 as pb

__all__ = ["ReadPlan", "read_plan", "write_plan", "write_progress"]

MOST_POOLS: Final = 64
MOST_VALUES: Final = 1 << 12
"""Values of one dimension, and numbers of nodes of all pools together: more is a slip, such as a range of bytes."""
MOST_DEVICES_PER_NODE: Final = 1024
MOST_SAMPLES: Final = 2**31 - 1
MOST_DEGREE: Final = 1 << 20
MOST_POINTS: Final = 1000
USUAL_POINTS: Final = 100
LONGEST_BUDGET_S: Final = 1e7
MOST_BYTES: Final = 1e15
SEARCHED_MODES: Final = (SyncMode.ASYNC, SyncMode.SYNC, SyncMode.ALLREDUCE)
"""A hybrid has a share of each of two modes, which is no choice among a few."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadPlan:
    """What to search for, as read off the wire."""

    constraints: PlanConstraints
    objective: Objective
    budget_s: float
    frontier_points: int


def read_plan(message: pb.PlanRequest, limits: Limits) -> ReadPlan:
    """What to search for.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    constraints = _constraints(message.constraints, "constraints", reader, limits)
    budget_s = reader.number(message.budget_seconds, "budget_seconds", most=LONGEST_BUDGET_S) or math.inf
    points = reader.whole(message.frontier_points_count, "frontier_points_count", least=-(2**31), most=MOST_POINTS)
    reader.finish()
    objective = Objective(rule=HighestThroughput())
    if message.HasField("objective"):
        objective = read_objective(message.objective)
    return ReadPlan(
        constraints=constraints,
        objective=objective,
        budget_s=budget_s,
        frontier_points=max(points or USUAL_POINTS, 0),
    )


def _constraints(message: pb.PlanConstraints, path: str, reader: Reader, limits: Limits) -> PlanConstraints:
    def counts(name: str, most: int = MOST_DEGREE) -> tuple[int, ...] | None:
        return _counts(getattr(message, name), f"{path}.{name}", most, reader)

    batches = counts("global_batch_samples", MOST_SAMPLES)
    micro_batches = counts("micro_batch_samples", MOST_SAMPLES)
    if batches is None and micro_batches is None:
        text = "must hold at least one value, or micro_batch_samples must: then each replica takes one of these"
        reader.wrong(f"{path}.global_batch_samples", text)
    for number, name in enumerate(message.precisions):
        reader.text(name, f"{path}.precisions[{number}]", 16)
    return PlanConstraints(
        pools=_pools(message.pools, f"{path}.pools", reader, limits),
        global_batches=batches or (),
        micro_batches=micro_batches,
        tensor_parallel=counts("tensor_parallel_degrees"),
        pipeline_parallel=counts("pipeline_parallel_degrees"),
        data_parallel=counts("data_parallel_degrees"),
        context_parallel=counts("context_parallel_degrees"),
        expert_parallel=counts("expert_parallel_degrees"),
        interleave=counts("interleave_degrees"),
        recomputations=_listed(message.recomputations, f"{path}.recomputations", 1, int(max(Recomputation)), reader),
        zero_stages=_listed(message.zero_stages, f"{path}.zero_stages", 0, 3, reader),
        sequence_parallel=_listed(map(int, message.sequence_parallel), f"{path}.sequence_parallel", 0, 1, reader),
        precisions=tuple(dict.fromkeys(message.precisions)) or ("",),
        memory_headroom_bytes=reader.number(
            message.memory_headroom_bytes, f"{path}.memory_headroom_bytes", most=MOST_BYTES
        ),
        parameter_servers=counts("parameter_servers"),
        sync_modes=_sync_modes(message.sync_modes, f"{path}.sync_modes", reader),
        max_nodes=reader.whole(message.max_nodes, f"{path}.max_nodes", most=MOST_DEGREE) or None,
    )


def _sync_modes(values: Iterable[int], path: str, reader: Reader) -> tuple[int, ...] | None:
    found = tuple(values)
    for number, value in enumerate(found):
        if value not in SEARCHED_MODES:
            listed = ", ".join(f"SYNC_MODE_{mode.name}" for mode in SEARCHED_MODES)
            reader.wrong(f"{path}[{number}]", f"must be one of {listed}")
    return tuple(sorted(set(found))) or None


def _pools(messages: Iterable[pb.PlanPool], path: str, reader: Reader, limits: Limits) -> tuple[PlanPool, ...]:
    pools: dict[tuple[str, int], PlanPool] = {}
    for number, message in enumerate(messages):
        place = f"{path}[{number}]"
        if number >= MOST_POOLS:
            reader.wrong(path, f"must hold at most {MOST_POOLS} pools")
            break
        if not message.device_name:
            reader.wrong(f"{place}.device_name", "must name an accelerator")
        reader.text(message.device_name, f"{place}.device_name", 64)
        nodes = _counts(message.nodes, f"{place}.nodes", limits.max_nodes, reader)
        if nodes is None:
            reader.wrong(f"{place}.nodes", "must hold at least one number of nodes")
        per_node = reader.whole(
            message.workers_per_node, f"{place}.workers_per_node", least=1, most=MOST_DEVICES_PER_NODE
        )
        if nodes is not None and max(nodes) * per_node > limits.max_workers:
            reader.wrong(f"{place}.nodes", f"must come to at most {limits.max_workers} workers")
        link = reader.number(message.link_bytes_per_second, f"{place}.link_bytes_per_second")
        if 0.0 < link < 1.0:
            reader.wrong(f"{place}.link_bytes_per_second", f"must be 0 or at least 1, found {link}")
        pool = PlanPool(
            device=message.device_name, nodes=nodes or (1,), workers_per_node=per_node, link_bytes_per_s=link
        )
        if pools.setdefault((pool.device, per_node), pool) is not pool:
            reader.contradicts(place, f"a pool of {pool.device} with {per_node} devices a node was given before")
    if not pools:
        reader.wrong(path, "must hold at least one pool")
    counts = sum(len(pool.nodes) for pool in pools.values())
    if counts > MOST_VALUES:
        reader.wrong(path, f"must hold at most {MOST_VALUES} numbers of nodes together, found {counts}")
    return tuple(pools.values())


def _counts(message: pb.CountSet, path: str, most: int, reader: Reader) -> tuple[int, ...] | None:
    """The values in order, each once; None = not stated. 1 stands for values that are wrong, as was said."""
    found: set[int] = set()
    for number, value in enumerate(message.values):
        found.add(reader.whole(value, f"{path}.values[{number}]", least=1, most=most))
    for number, given in enumerate(message.ranges):
        values = read_counts(given, f"{path}.ranges[{number}]", most, reader)
        found.update(values[: MOST_VALUES + 1])
    if len(found) > MOST_VALUES:
        reader.wrong(path, f"must hold at most {MOST_VALUES} values, found {len(found)}")
    if not message.values and not message.ranges:
        return None
    return tuple(sorted(found)) or (1,)


def _listed(values: Iterable[int], path: str, least: int, most: int, reader: Reader) -> tuple[int, ...] | None:
    found = {reader.whole(value, f"{path}[{number}]", least=least, most=most) for number, value in enumerate(values)}
    return tuple(sorted(found)) if found else None


def write_progress(progress: Progress) -> pb.PlanProgress:
    """How far a search is."""
    message = pb.PlanProgress(
        space_count=progress.space,
        evaluated_count=progress.evaluated,
        pruned_count=progress.pruned,
        feasible_count=progress.feasible,
    )
    if len(progress.best):
        message.best.CopyFrom(write_configurations(progress.best))
        message.best_step_seconds = float(progress.best_step_s[0])
    return message


def write_plan(result: PlanResult, columns: frozenset[int]) -> pb.PlanResult:
    """The answer."""
    message = pb.PlanResult(
        space_count=result.space,
        evaluated_count=result.evaluated,
        pruned_count=result.pruned,
        feasible_count=result.feasible,
        search_seconds=result.search_s,
        complete=result.complete,
        frontier_rows=result.frontier_rows,
        frontier_count=result.frontier_count,
        rejections=[_rejection(found) for found in result.rejections],
        estimator=result.estimator,
        estimator_version=result.estimator_version,
    )
    if result.answer is not None:
        message.configurations.CopyFrom(write_configurations(result.answer.configurations))
        message.predictions.CopyFrom(write_predictions([result.answer], columns))
        message.basis.CopyFrom(write_basis(result.answer.basis))
    if result.recommendation is not None:
        message.recommendation.CopyFrom(write_recommendation(result.recommendation))
    if result.explanation is not None:
        message.explanation.CopyFrom(_explanation(result.explanation))
    return message


def _rejection(found: Exclusion) -> pb.PlanRejection:
    return pb.PlanRejection(
        constraint=found.constraint,
        message=found.message,
        configurations_count=found.count,
        numbers=_numbers(found.numbers.items()),
    )


def _explanation(found: Explanation) -> pb.PlanExplanation:
    return pb.PlanExplanation(
        alternatives=[
            pb.PlanAlternative(
                dimension=each.dimension,
                chosen_value=each.chosen,
                alternative_value=each.alternative,
                fits=each.fits,
                step_seconds=each.step_s,
                time_change_ratio=each.change,
                term=each.term,
                term_seconds=each.term_s,
                excess_memory_bytes=each.excess_bytes,
                why=each.why,
            )
            for each in found.alternatives
        ],
        binding=[_rejection(each) for each in found.binding],
        sensitivities=[
            pb.PlanSensitivity(
                change=each.change, best=each.best, speedup_ratio=each.speedup, numbers=_numbers(each.numbers.items())
            )
            for each in found.sensitivities
        ],
        complete=found.complete,
    )


def _numbers(values: Iterable[tuple[str, float]]) -> list[objective_pb2.NamedNumber]:
    return [objective_pb2.NamedNumber(name=name, value=value) for name, value in values if math.isfinite(value)]
