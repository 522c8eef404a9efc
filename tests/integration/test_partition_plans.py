"""Plans of transformers with the estimator that is shipped: the example, and why its winner wins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.domain.errors import Reason
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import (
    Client,
    FewestDevices,
    Knee,
    ModelOptions,
    PlanAnswer,
    PlanConstraints,
    PlanPool,
    PlanRequest,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    Transformer,
    Work,
    Workload,
    configurations,
    counts,
    numbers_by_name,
    objective,
    profile_source,
)

SPEC = Path(__file__).parents[2] / "examples" / "plan_22b_64_devices.json"
MODEL = Transformer(
    layers_count=24, hidden_size=2304, attention_heads_count=24, sequence_length_tokens=2048, vocabulary_size=51_200
)
PROFILE = ProfileContent(workload=Workload(transformer=MODEL, precision="fp16"))
EIGHT = PlanPool(device_name="A100-40GB", nodes=counts([1, 2]), workers_per_node=8)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=60) as found:
        yield found


def plan(
    client: Client, *pools: PlanPool, objective: Any = None, work: Work | None = None, **constraints: Any
) -> PlanAnswer:
    within = PlanConstraints(pools=pools or [EIGHT], **{"global_batch_samples": counts(64), **constraints})
    return client.plan(
        PlanRequest(profile=profile_source(PROFILE), constraints=within, objective=objective, work=work), timeout_s=60
    )


@pytest.mark.wheel
def test_the_example_is_searched_and_explained(target: str) -> None:
    asked = ["plan", str(SPEC), "--json", "--server", target]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["space"] == 2_414_205
    assert found["evaluated"] + found["pruned"] == found["space"]
    assert found["evaluated"] < 0.1 * found["space"]
    assert found["best"]["finish_s"] <= 5_184_000
    assert len(found["explanation"]["sensitivities"]) == 4
    exhaustive = CliRunner().invoke(app, [*asked, "--exhaustive", "--no-explain"])
    everything = json.loads(exhaustive.stdout)
    assert everything["evaluated"] == everything["space"]
    assert everything["best"] == found["best"]
    assert everything["frontier"] == found["frontier"]


def test_memory_over_a_step_is_told_and_drawn(target: str) -> None:
    asked = ["plan", str(SPEC), "--no-explain", "--memory-timeline", "--server", target]
    best = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)["best"]
    most = max(point["total_bytes"] for point in best["memory_timeline"])
    assert most == pytest.approx(best["memory_bytes"], rel=1e-9)
    drawn = CliRunner().invoke(app, asked)
    assert "GiB at the peak" in drawn.stdout
    assert best["memory_peak"] in " ".join(drawn.stdout.split())


def test_auto_finds_the_estimator_that_plans(client: Client) -> None:
    found = plan(client)
    assert found.estimator == "partitioning"
    assert found.best is not None
    assert found.basis is not None
    assert found.basis.estimator == "partitioning"


def test_what_is_planned_is_what_is_predicted(client: Client) -> None:
    found = plan(client).best
    assert found is not None
    again = client.predict(
        PredictRequest(
            profile=profile_source(PROFILE),
            configurations=configurations(**found.configuration),
            options=PredictOptions(model=ModelOptions(estimator="partitioning")),
        )
    )[0]
    assert (again.step_seconds, again.memory_bytes) == (found.prediction.step_seconds, found.prediction.memory_bytes)
    assert again.breakdown_seconds == found.prediction.breakdown_seconds


def test_reasons_name_what_binds(client: Client) -> None:
    listed = plan(
        client,
        tensor_parallel_degrees=counts(4),
        pipeline_parallel_degrees=counts([1, 2]),
        micro_batch_samples=counts(1),
    )
    assert listed.explanation is not None
    bound = {each.constraint: each for each in listed.explanation.binding}
    assert "tensor parallel (4) binds" in bound["tensor_parallel"].message
    assert numbers_by_name(bound["tensor_parallel"].numbers)["speedup"] > 1.0
    assert "all 2 nodes of A100-40GB" in bound["nodes"].message
    changed = {each.dimension: each for each in listed.explanation.alternatives}
    # The other degree of pipeline parallelism, the replicas following.
    assert {changed["pipeline_parallel"].chosen_value, changed["pipeline_parallel"].alternative_value} == {"1", "2"}
    assert "tensor_parallel" not in changed
    fits = [each for each in listed.explanation.alternatives if each.fits]
    assert fits
    assert all(each.term or each.time_change_ratio == 0.0 for each in fits)
    gains = {each.change: each.speedup_ratio for each in listed.explanation.sensitivities}
    assert gains["nodes_x2"] > 1.2
    assert gains["link_x2"] >= 1.0
    assert gains["memory_x2"] >= 1.0


def test_memory_binds_where_it_does(client: Client) -> None:
    alone = PlanPool(device_name="A100-40GB", nodes=counts(1), workers_per_node=1)
    found = plan(client, alone, global_batch_samples=counts(16), memory_headroom_bytes=20e9)
    assert found.best is None
    reason = next(each for each in found.rejections if each.constraint == "memory")
    assert "on each device" in reason.message
    assert numbers_by_name(reason.numbers)["excess_memory_bytes"] > 0
    tight = plan(client, alone, global_batch_samples=counts(16))
    assert tight.best is not None
    assert tight.explanation is not None
    bound = {each.constraint: each for each in tight.explanation.binding}
    assert "memory binds" in bound["memory"].message
    gains = {each.change: each.speedup_ratio for each in tight.explanation.sensitivities}
    assert gains["memory_x2"] > 1.0


def test_the_knee_compares_the_best_of_each_scale(client: Client) -> None:
    pool = PlanPool(device_name="A100-80GB", nodes=counts([1, 2, 4, 8]), workers_per_node=8)
    flat = plan(client, pool, objective=objective(Knee(share=0.99)), global_batch_samples=counts(32))
    steep = plan(client, pool, objective=objective(Knee(share=0.1)), global_batch_samples=counts(32))
    assert flat.best is not None
    assert steep.best is not None
    assert flat.best.prediction.nodes <= steep.best.prediction.nodes
    assert flat.recommendation is not None
    assert flat.recommendation.rule == "knee"
    assert flat.explanation is not None


def test_more_link_helps_where_nodes_talk(client: Client) -> None:
    slow = PlanPool(device_name="A100-80GB", nodes=counts(8), workers_per_node=8, link_bytes_per_second=5e9)
    found = plan(client, slow, global_batch_samples=counts(64))
    assert found.explanation is not None
    assert {each.change: each.speedup_ratio for each in found.explanation.sensitivities}["link_x2"] > 1.05


def test_what_cannot_be_is_said(client: Client) -> None:
    odd = plan(client, tensor_parallel_degrees=counts([5, 7]))
    assert (odd.best, odd.space_count) == (None, 0)
    assert any("24 attention heads" in each.message for each in odd.rejections)
    with pytest.raises(RefusedError) as caught:
        plan(client, PlanPool(device_name="Abacus", nodes=counts(1), workers_per_node=1))
    assert caught.value.reason == Reason.EVIDENCE_MISSING
    with pytest.raises(RefusedError) as caught:
        client.plan(
            PlanRequest(
                profile=profile_source(ProfileContent(workload=Workload(parameter_bytes=10**8))),
                constraints=PlanConstraints(pools=[EIGHT], global_batch_samples=counts(64)),
            )
        )
    assert "transformer" in caught.value.missing_fields


def test_a_deadline_that_nothing_keeps_names_the_fastest(client: Client) -> None:
    found = plan(client, objective=objective(FewestDevices(deadline_seconds=10.0)), work=Work(samples=1e6))
    assert found.best is None
    reason = next(each for each in found.rejections if each.constraint == "deadline_seconds")
    assert "the fastest" in reason.message
    assert found.frontier


def test_machines_that_nothing_can_use_are_named_with_the_reason(client: Client) -> None:
    found = plan(client, tensor_parallel_degrees=counts(1), pipeline_parallel_degrees=counts(1))
    assert found.explanation is not None
    by_change = {each.change: each for each in found.explanation.sensitivities}
    # 24 replicas do not divide 64 samples, 32 do.
    assert by_change["one_more_node"].obstacle == (
        "no product of allowed degrees is a number of devices whose batch it divides"
    )
    assert by_change["one_more_node"].speedup_ratio == 1.0
    assert by_change["nodes_x2"].obstacle == ""
