"""Plans off the wire, with the path of whatever is wrong; what a search found onto it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.objective import HighestThroughput, LeastCost
from nodewise.domain.planning import Exclusion, PlanPool
from nodewise.planning.results import PlanResult, named_numbers, rejection
from nodewise.planning.search import Progress
from nodewise.ports.limits import Limits
from nodewise.rpc.options import ReadOptions, read_model_options
from nodewise.rpc.plans import read_plan, write_plan, write_progress
from nodewise_protos.v1 import configuration_pb2, options_pb2
from nodewise_protos.v1beta1 import plan_service_pb2 as pb
from nodewise_values import PlanAlternative, PlanExplanation, PlanSensitivity

LIMITS = Limits()


def counts(*values: int) -> pb.CountSet:
    return pb.CountSet(values=values)


def valid() -> pb.PlanRequest:
    return pb.PlanRequest(
        constraints=pb.PlanConstraints(
            pools=[pb.PlanPool(device_name="A100", nodes=counts(4, 2, 2), workers_per_node=8)],
            global_batch_samples=counts(64),
        )
    )


def violations(message: pb.PlanRequest, options: ReadOptions | None = None) -> dict[str, str]:
    with pytest.raises(NodewiseError) as caught:
        read_plan(message, options or ReadOptions(), LIMITS)
    return {violation.field: violation.description for violation in caught.value.violations}


def test_what_is_absent_is_as_the_contract_says() -> None:
    question, budget_s = read_plan(valid(), ReadOptions(), LIMITS)
    assert budget_s == math.inf
    assert question.frontier_points == 100
    assert question.explain
    assert not question.exhaustive
    assert question.objective.rule == HighestThroughput()
    within = question.constraints
    assert within.pools == (PlanPool(device="A100", nodes=(2, 4), workers_per_node=8),)
    assert within.global_batches == (64,)
    assert (within.max_nodes, within.micro_batches, within.zero_stages, within.sync_modes) == (None, None, None, None)
    assert within.precisions == ("",)


def test_what_is_stated_is_read() -> None:
    message = valid()
    within = message.constraints
    within.tensor_parallel_degrees.ranges.add(first=1, last=8, powers_of_two=True)
    within.micro_batch_samples.values.extend([4, 1])
    within.interleave_degrees.values.append(2)
    within.parameter_servers.values.append(3)
    within.recomputations.append(configuration_pb2.RECOMPUTATION_FULL)
    within.zero_stages.extend([3, 0])
    within.sequence_parallel.extend([True, False])
    within.sync_modes.append(configuration_pb2.SYNC_MODE_ASYNC)
    within.precisions.extend(["bf16", "bf16"])
    within.max_nodes = 6
    within.pools[0].link_bytes_per_second = 1.25e9
    message.max_frontier_points = 0
    message.budget_seconds = 2.5
    message.skip_explanation = message.exhaustive = True
    message.objective.least_cost.deadline_seconds = 60.0
    message.work.samples = 1e6
    message.offers.add(device_name="A100", price_per_node_hour=30.0, start_up_seconds=120.0)
    question, budget_s = read_plan(message, ReadOptions(), LIMITS)
    assert (question.frontier_points, budget_s) == (0, 2.5)
    assert question.exhaustive
    assert not question.explain
    objective, found = question.objective, question.constraints
    assert objective.rule == LeastCost(deadline_s=60.0)
    assert objective.remaining_samples == 1e6
    assert [(offer.device, offer.start_up_s) for offer in objective.offers] == [("A100", 120.0)]
    assert (found.tensor_parallel, found.micro_batches, found.interleave) == ((1, 2, 4, 8), (1, 4), (2,))
    assert (found.parameter_servers, found.max_nodes, found.zero_stages) == ((3,), 6, (0, 3))
    assert (found.sequence_parallel, found.sync_modes, found.precisions) == ((0, 1), (SyncMode.ASYNC,), ("bf16",))
    assert found.recomputations == (configuration_pb2.RECOMPUTATION_FULL,)
    assert found.pools[0].link_bytes_per_s == 1.25e9


Change = Callable[[pb.PlanRequest], object]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda m: m.ClearField("constraints"), "constraints.pools"),
        (lambda m: m.constraints.ClearField("global_batch_samples"), "constraints.global_batch_samples"),
        (lambda m: setattr(m, "budget_seconds", 0.0), "budget_seconds"),
        (lambda m: setattr(m, "budget_seconds", math.nan), "budget_seconds"),
        (lambda m: setattr(m, "max_frontier_points", -1), "max_frontier_points"),
        (lambda m: setattr(m, "max_frontier_points", 1001), "max_frontier_points"),
        (lambda m: setattr(m.constraints, "max_nodes", 0), "constraints.max_nodes"),
        (lambda m: setattr(m.constraints, "memory_headroom_bytes", -1.0), "constraints.memory_headroom_bytes"),
        (
            lambda m: setattr(m.constraints.pools[0], "link_bytes_per_second", 0.0),
            "constraints.pools[0].link_bytes_per_second",
        ),
        (lambda m: setattr(m.constraints.pools[0], "workers_per_node", 0), "constraints.pools[0].workers_per_node"),
        (lambda m: m.constraints.pools[0].ClearField("nodes"), "constraints.pools[0].nodes"),
        (lambda m: setattr(m.constraints.pools[0], "device_name", ""), "constraints.pools[0].device_name"),
        (lambda m: m.constraints.zero_stages.append(4), "constraints.zero_stages[0]"),
        (lambda m: m.constraints.recomputations.append(0), "constraints.recomputations[0]"),
        (
            lambda m: m.constraints.sync_modes.append(configuration_pb2.SYNC_MODE_HYBRID),
            "constraints.sync_modes[0]",
        ),
        (
            lambda m: m.constraints.tensor_parallel_degrees.values.append(0),
            "constraints.tensor_parallel_degrees.values[0]",
        ),
        (
            lambda m: m.constraints.data_parallel_degrees.ranges.add(first=1, last=4, step=0),
            "constraints.data_parallel_degrees.ranges[0].step",
        ),
        (lambda m: setattr(m.objective.least_time, "max_nodes", 0), "objective.least_time.max_nodes"),
        (lambda m: m.offers.add(start_up_seconds=-1.0), "offers[0].start_up_seconds"),
    ],
)
def test_what_is_wrong_is_named(change: Change, field: str) -> None:
    message = valid()
    change(message)
    assert field in violations(message)


def test_a_search_has_no_fallback() -> None:
    options = read_model_options(options_pb2.ModelOptions(allow_fallback=True))
    assert list(violations(valid(), options)) == ["options.allow_fallback"]


def test_pools_of_one_kind_contradict_each_other() -> None:
    message = valid()
    message.constraints.pools.append(message.constraints.pools[0])
    with pytest.raises(NodewiseError) as caught:
        read_plan(message, ReadOptions(), LIMITS)
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS


def progress(best: Configurations) -> Progress:
    step_s = np.full(len(best), 0.25)
    return Progress(space=9, evaluated=5, pruned=3, feasible=2, best=best, best_step_s=step_s)


def test_progress_tells_the_best_so_far_if_there_is_one() -> None:
    found = write_progress(progress(Configurations.of(1, nodes=2, workers=16)))
    assert (found.space_count, found.evaluated_count, found.pruned_count, found.feasible_count) == (9, 5, 3, 2)
    assert (list(found.best.workers), found.best_step_seconds) == ([16], 0.25)
    none = write_progress(progress(Configurations.of(0)))
    assert not none.HasField("best")
    assert not none.HasField("best_step_seconds")


def test_nothing_feasible_is_an_answer_with_its_reasons() -> None:
    unfit = Exclusion(constraint="memory", message="too large", count=7, numbers={"missing_bytes": 3.0, "of": math.inf})
    result = PlanResult(
        answer=None,
        recommendation=None,
        frontier_rows=(),
        frontier_count=0,
        space=9,
        evaluated=7,
        pruned=2,
        feasible=0,
        search_s=0.5,
        complete=True,
        estimator="table",
        estimator_version="1.0",
        rejections=(rejection(unfit), rejection(Exclusion(constraint="space", message="none"))),
    )
    found = write_plan(result)
    absent = ("configurations", "predictions", "basis", "recommendation", "explanation")
    assert [name for name in absent if found.HasField(name)] == []
    assert (found.search_seconds, found.complete, found.estimator) == (0.5, True, "table")
    memory, space = found.rejections
    assert (memory.constraint, memory.configurations_count) == ("memory", 7)
    assert [(number.name, number.value) for number in memory.numbers] == [("missing_bytes", 3.0)]
    assert not space.HasField("configurations_count")


def test_an_explanation_is_written_as_it_was_made() -> None:
    explanation = PlanExplanation(
        alternatives=(PlanAlternative(dimension="nodes", chosen_value="4", alternative_value="2", fits=True),),
        sensitivities=(
            PlanSensitivity(
                change="link_x2", best="the same", speedup_ratio=1.5, numbers=named_numbers({"step_s": 2.0})
            ),
            PlanSensitivity(change="memory_x2", best="nothing is feasible"),
        ),
        complete=True,
    )
    result = PlanResult(
        answer=None,
        recommendation=None,
        frontier_rows=(1, 2),
        frontier_count=5,
        space=1,
        evaluated=1,
        pruned=0,
        feasible=1,
        search_s=0.1,
        complete=True,
        estimator="table",
        estimator_version="1.0",
        explanation=explanation,
    )
    found = write_plan(result)
    assert (list(found.frontier_rows), found.frontier_count) == ([1, 2], 5)
    assert found.explanation.alternatives[0].alternative_value == "2"
    faster, none = found.explanation.sensitivities
    assert (faster.speedup_ratio, faster.numbers[0].name) == (1.5, "step_s")
    assert not none.HasField("speedup_ratio")
