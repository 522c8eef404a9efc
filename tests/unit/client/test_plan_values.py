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
    objective_from_wire,
)
from nodewise_client._objectives import objective_to_wire
from nodewise_client._plans import plan_request
from nodewise_protos.v1 import configuration_pb2, plan_service_pb2

CONSTRAINTS = PlanConstraints(
    pools=(PlanPool(device=name, nodes=range(1, 3), workers_per_node=8, link_bytes_per_s=1e9) for name in "AB"),
    global_batch=64,
    tensor_parallel=[1, 2],
    recompute="full",
    zero_stage=0,
    sequence_parallel=False,
    precision="bf16",
    memory_headroom_bytes=1e9,
    parameter_servers=[1, 3],
    sync="async",
    max_nodes=9,
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


def test_constraints_as_a_message() -> None:
    message = request()
    assert [pool.device_name for pool in message.constraints.pools] == ["A", "B"]
    assert message.constraints.pools[0].nodes.values == [1, 2]
    assert message.constraints.global_batch_samples.values == [64]
    assert message.constraints.tensor_parallel_degrees.values == [1, 2]
    assert message.constraints.parameter_servers.values == [1, 3]
    assert (message.constraints.sync_modes, message.constraints.max_nodes) == (
        [configuration_pb2.SYNC_MODE_ASYNC],
        9,
    )
    assert message.constraints.zero_stages == [0]
    assert message.constraints.sequence_parallel == [False]
    assert not message.constraints.pipeline_parallel_degrees.values
    assert (message.profile.profile_id, message.profile.minimum_revision) == ("job", 3)
    assert (message.budget_seconds, message.exhaustive, message.skip_explanation) == (1.5, True, True)
    assert message.frontier_points_count == 7
    assert request(frontier_points=0).frontier_points_count == -1


def test_a_message_goes_as_it_is() -> None:
    message = plan_service_pb2.PlanConstraints()
    message.global_batch_samples.ranges.add(first=3, last=2_000_000_000)
    sent = plan_request(
        "job", message, objective=None, options=None, budget_s=0.0, exhaustive=False, frontier_points=1, explain=True,
        minimum_revision=0,
    )  # fmt: skip
    assert sent.constraints == message


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
