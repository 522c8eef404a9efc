"""Plans of layered networks over a real socket and from the command line: machines, parts, replicas and servers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.domain.errors import Reason
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import (
    Client,
    FewestDevices,
    InvalidArgumentError,
    LeastCost,
    LeastTime,
    ModelOptions,
    Network,
    Offer,
    PlanAnswer,
    PlanConstraints,
    PlanPool,
    PlanRequest,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    Work,
    Workload,
    configurations,
    counts,
    layers_from_csv,
    objective,
    profile_source,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
MLP = ProfileContent(
    workload=Workload(layers=layers_from_csv(EXAMPLES / "layers" / "mlp.csv"), precision="fp32"),
    network=Network(link_bytes_per_second=1.25e9, round_trip_seconds=1e-4),
)
XEONS = PlanPool(device_name="Xeon-E5-2450L", nodes=counts(range(1, 12)), workers_per_node=1)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=60) as found:
        yield found


def plan(client: Client, *, asked: Mapping[str, Any] = MappingProxyType({}), **constraints: Any) -> PlanAnswer:
    within = PlanConstraints(
        **{
            "pools": [XEONS],
            "micro_batch_samples": counts(64),
            "sync_modes": ["async"],
            "max_nodes": 12,
            **constraints,
        }
    )
    return client.plan(PlanRequest(profile=profile_source(MLP), constraints=within, **asked), timeout_s=60)


def test_the_best_division_is_that_of_asking_about_every_one(client: Client) -> None:
    found = plan(client)
    ways = [
        (parts, stages, replicas, servers)
        for parts, stages, servers in itertools.product(range(1, 12), range(1, 7), range(1, 12))
        for replicas in range(1, (12 - servers) // (parts * stages) + 1)
    ]
    workers = [parts * stages * replicas for parts, stages, replicas, _ in ways]
    every = client.predict(
        PredictRequest(
            profile=profile_source(MLP),
            configurations=configurations(
                nodes=workers,
                workers=workers,
                parameter_servers=[way[3] for way in ways],
                tensor_parallel_degrees=[way[0] for way in ways],
                pipeline_parallel_degrees=[way[1] for way in ways],
                devices="Xeon-E5-2450L",
                sync_modes="async",
                batch_per_worker_samples=64,
            ),
            options=PredictOptions(model=ModelOptions(estimator="partitioning")),
        )
    )
    assert found.best is not None
    assert found.space_count == len(ways)
    assert found.best.prediction.samples_per_second == max(row.samples_per_second or 0.0 for row in every)


@pytest.mark.wheel
@pytest.mark.parametrize("name", ["mlp", "vgg16"])
def test_the_examples_are_searched_and_explained(target: str, name: str) -> None:
    asked = ["plan", str(EXAMPLES / f"plan_{name}_32_machines.json"), "--json", "--server", target]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"space", "evaluated", "feasible", "search_s", "best", "frontier"} <= set(found)
    best = found["best"]
    # The figures of research/partitioning_layered.md.
    figures = {"mlp": (11_184, 2, 2, 6, 7), "vgg16": (26.99, 7, 2, 2, 4)}[name]
    assert best["samples_per_s"] == pytest.approx(figures[0], rel=1e-3)
    names = ("tensor_parallel", "pipeline_parallel", "data_parallel", "parameter_servers")
    assert tuple(best[each] for each in names) == figures[1:]
    assert best["nodes"] + best["parameter_servers"] <= 32
    assert best["sync"] == {"mlp": "async", "vgg16": "sync"}[name]
    exhaustive = json.loads(CliRunner().invoke(app, [*asked, "--exhaustive", "--no-explain"]).stdout)
    assert exhaustive["evaluated"] == exhaustive["space"]
    assert (exhaustive["best"], exhaustive["frontier"]) == (best, found["frontier"])


def test_objectives_of_time_cost_and_devices(client: Client) -> None:
    work = Work(samples=1e6)
    fastest = plan(client, asked={"objective": objective(LeastTime()), "work": work}).best
    assert fastest is not None
    assert fastest.prediction.finish_seconds is not None
    deadline = 4 * fastest.prediction.finish_seconds
    few = plan(client, asked={"objective": objective(FewestDevices(deadline_seconds=deadline)), "work": work})
    assert few.best is not None
    assert few.best.prediction.finish_seconds is not None
    assert few.best.prediction.finish_seconds <= deadline
    assert few.recommendation is not None
    assert "parameter server" in few.recommendation.why
    held = few.best.prediction.workers + few.best.configuration["parameter_servers"]
    assert held < fastest.prediction.workers + fastest.configuration["parameter_servers"]
    cheap = plan(
        client, asked={"objective": objective(LeastCost()), "work": work, "offers": [Offer(price_per_node_hour=1.0)]}
    )
    assert cheap.best is not None
    assert cheap.best.prediction.cost is not None
    nodes = cheap.best.prediction.nodes + cheap.best.configuration["parameter_servers"]
    assert cheap.best.prediction.cost == pytest.approx(nodes * (cheap.best.prediction.finish_seconds or 0.0) / 3600)


def test_modes_are_compared_and_told_apart(client: Client) -> None:
    found = plan(client, sync_modes=["async", "sync", "allreduce"])
    assert found.best is not None
    assert found.explanation is not None
    changed = {each.dimension: each for each in found.explanation.alternatives}
    assert changed["sync_mode"].chosen_value == found.best.configuration["sync_modes"]
    reduced = plan(
        client,
        sync_modes=["allreduce"],
        max_nodes=None,
        pools=[PlanPool(device_name="A100-80GB", nodes=counts([1, 2]), workers_per_node=1)],
    )
    assert reduced.best is not None
    assert reduced.best.configuration["sync_modes"] == "allreduce"


def test_a_step_of_a_fixed_batch(client: Client) -> None:
    found = plan(
        client,
        micro_batch_samples=None,
        global_batch_samples=counts(96),
        parameter_servers=counts([1, 2]),
        sync_modes=["sync"],
    )
    assert found.best is not None
    stated = found.best.configuration
    accumulation = stated.get("accumulation_steps", 1)
    assert stated["data_parallel_degrees"] * stated["batch_per_worker_samples"] * accumulation == 96
    assert found.best.prediction.step_seconds is not None
    assert found.best.prediction.samples_per_second == pytest.approx(96 / found.best.prediction.step_seconds)


def test_what_binds_is_said(client: Client) -> None:
    found = plan(client, parameter_servers=counts(1), pipeline_parallel_degrees=counts(1))
    assert found.explanation is not None
    bound = {each.constraint: each.message for each in found.explanation.binding}
    assert "parameter servers (1) binds" in bound["parameter_servers"]
    used = plan(client, max_nodes=3)
    assert used.explanation is not None
    bound = {each.constraint: each.message for each in used.explanation.binding}
    assert "max_nodes binds" in bound["max_nodes"]


def test_what_is_missing_is_named(client: Client) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        plan(client, max_nodes=None)
    assert caught.value.violations[0].field == "constraints.parameter_servers"
    with pytest.raises(InvalidArgumentError) as caught:
        plan(client, micro_batch_samples=None)
    assert caught.value.violations[0].field == "constraints.global_batch_samples"
    with pytest.raises(InvalidArgumentError) as caught:
        plan(client, sync_modes=["hybrid"])
    assert "SYNC_MODE_ALLREDUCE" in caught.value.violations[0].description
    with pytest.raises(RefusedError) as refused:
        client.plan(
            PlanRequest(
                profile=profile_source(ProfileContent(workload=MLP.workload)),
                constraints=PlanConstraints(pools=[XEONS], micro_batch_samples=counts(64), max_nodes=12),
            )
        )
    assert refused.value.reason == Reason.EVIDENCE_MISSING
    assert "network.link_bytes_per_second" in refused.value.missing_fields
