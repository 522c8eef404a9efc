"""Plans' constraints and objectives as messages, there and back."""

from __future__ import annotations

import pytest

from nodewise_client import (
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    Objective,
    PlanConstraints,
    PlanPool,
    Price,
    Work,
    constraints_from_wire,
    objective_from_wire,
)
from nodewise_client._objectives import objective_to_wire
from nodewise_client._plans import plan_request
from nodewise_protos.v1 import plan_service_pb2

CONSTRAINTS = PlanConstraints(
    pools=(PlanPool(device=name, nodes=range(1, 3), workers_per_node=8, link_bytes_per_s=1e9) for name in "AB"),
    global_batch=64,
    tensor_parallel=[1, 2],
    recompute="full",
    zero_stage=0,
    sequence_parallel=False,
    precision="bf16",
    memory_headroom_bytes=1e9,
)


def request(objective: Objective | None = None, **more: object) -> plan_service_pb2.PlanRequest:
    options = {
        "options": None,
        "budget_s": 1.5,
        "exhaustive": True,
        "frontier_points": 7,
        "explain": False,
        "minimum_revision": 3,
    }
    return plan_request("job", CONSTRAINTS, objective=objective, **(options | more))  # type: ignore[arg-type]


def test_constraints_come_back_as_they_went() -> None:
    message = request()
    assert constraints_from_wire(message.constraints) == CONSTRAINTS
    assert message.constraints.zero_stages == [0]
    assert message.constraints.sequence_parallel == [False]
    assert not message.constraints.pipeline_parallel_degrees.values
    assert (message.profile.profile_id, message.profile.minimum_revision) == ("job", 3)
    assert (message.budget_seconds, message.exhaustive, message.skip_explanation) == (1.5, True, True)
    assert message.frontier_points_count == 7
    assert request(frontier_points=0).frontier_points_count == -1


def test_ranges_are_spelled_out() -> None:
    message = plan_service_pb2.PlanConstraints()
    message.global_batch_samples.ranges.add(first=3, last=20, powers_of_two=True)
    message.micro_batch_samples.ranges.add(first=1, last=7, step=3)
    message.micro_batch_samples.values.append(9)
    found = constraints_from_wire(message)
    assert found.global_batch == (4, 8, 16)
    assert found.micro_batch == (9, 1, 4, 7)


@pytest.mark.parametrize(
    "objective",
    [
        Objective(rule=HighestThroughput()),
        Objective(rule=Knee(share=0.3), confidence=0.9),
        Objective(rule=LeastTime(max_nodes=3, max_cost=2.0), work=Work(epochs=2.0), prices=[Price(per_node_hour=1.0)]),
        Objective(rule=LeastCost(deadline_s=5.0), work=Work(samples=2.0)),
        Objective(rule=FewestDevices(deadline_s=5.0), work=Work(samples=2.0)),
        Objective(work=Work(samples=2.0)),
    ],
)
def test_objectives_come_back_as_they_went(objective: Objective) -> None:
    message = objective_to_wire(objective)
    assert message is not None
    assert objective_from_wire(message) == objective
