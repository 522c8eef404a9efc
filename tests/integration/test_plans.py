"""Plans over a real socket and from the command line, with a model of tables and with models that misbehave."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from misbehaving import Constant, record
from patience import PATIENCE_S
from planning import TableModel, planner, random_table
from serving import Stubs, failure_of, registry_with
from typer.testing import CliRunner

from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.plugin import Assessment
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import (
    AsyncClient,
    Client,
    FewestDevices,
    HighestThroughput,
    InternalError,
    InvalidArgumentError,
    Knee,
    LeastCost,
    ModelOptions,
    Offer,
    PlanAnswer,
    PlanConstraints,
    PlanPool,
    PlanProgress,
    PlanRequest,
    PlanResult,
    ProfileContent,
    RefusedError,
    RowStatus,
    Transformer,
    Work,
    Workload,
    counts,
    numbers_by_name,
    objective,
    profile_source,
)
from nodewise_protos.v1 import configuration_pb2
from nodewise_protos.v1beta1 import plan_service_pb2 as pb
from nodewise_values.wire import to_message

TABLE = random_table(7, 300, 12, 30)
PROFILE = ProfileContent(
    workload=Workload(
        transformer=Transformer(
            layers_count=4, hidden_size=64, attention_heads_count=4, sequence_length_tokens=128, vocabulary_size=1024
        )
    )
)
CONSTRAINTS = PlanConstraints(
    pools=[PlanPool(device_name=name, nodes=counts(range(1, 4)), workers_per_node=2) for name in "AB"],
    global_batch_samples=counts([32, 64]),
)
WRONG: dict[str, dict[str, Any]] = {
    "wrong-shape": {"evaluate": {"step_s": np.ones(3)}},
    "wrong-nan": {"evaluate": {"memory_bytes": np.full(len(TABLE.origin), np.nan)}},
    "wrong-kind": {"evaluate": [1.0]},
    "wrong-bound": {"lower_bound": {"step_s": np.full(300, 1e3)}},
    "wrong-bound-nan": {"lower_bound": {"step_s": np.full(300, np.nan)}},
    "wrong-sizes": {"sizes": np.zeros(3, dtype=np.int64)},
    "wrong-prefixes": {"prefixes": [1, 2, 3]},
    "wrong-final": {"final": frozenset({"nodes"})},
    "wrong-completed": {"completed": "nothing"},
}


class Differing(TableModel):
    """Predicts otherwise than it evaluates."""

    def predict(self, configurations: Any, options: Any) -> Any:
        return Constant().predict(configurations, options)


class Slow(TableModel):
    """Waits at every chunk until it may go on, and says when it has ended."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self.go, self.began = threading.Event(), threading.Event()

    def evaluate(self, chunk: Any, columns: Any) -> Any:
        self.began.set()
        self.go.wait(PATIENCE_S)
        return super().evaluate(chunk, columns)


class Refusing:
    """An estimator that plans, but not this."""

    def assess(self, profile: Any, query: Any) -> Assessment:
        return Assessment(refusal=Refusal(Reason.EVIDENCE_MISSING, "needs facts", ("workload.transformer",)))

    def fit(self, profile: Any, context: Any) -> Any:
        raise AssertionError


SLOW = Slow()


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    models: dict[str, Any] = {name: TableModel(TABLE, wrong) for name, wrong in WRONG.items()}
    models["table"] = TableModel(TABLE)
    models["large"] = TableModel(random_table(3, 4000, 8))
    models["slow"] = SLOW
    models["differing"] = Differing(TABLE)
    models["raises"] = TableModel(TABLE, {"evaluate": SystemExit("inside")})
    models["says"] = TableModel(TABLE, {"evaluate": NodewiseError(Reason.EVIDENCE_MISSING, "no such device")})
    models["not-a-planner"] = Constant()
    refusing = planner(None, "refusing")
    object.__setattr__(refusing, "estimator", Refusing())
    records = (*(planner(model, name) for name, model in models.items()), record("constant", Constant()), refusing)
    with EmbeddedServer(registry=registry_with(records)) as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=PATIENCE_S) as found:
        yield found


def plan(client: Client, estimator: str = "table", on_progress: Any = None, **more: Any) -> PlanAnswer:
    return client.plan(
        PlanRequest(
            profile=profile_source(PROFILE),
            constraints=CONSTRAINTS,
            options=ModelOptions(estimator=estimator),
            **more,
        ),
        on_progress=on_progress,
        timeout_s=60,
    )


def test_the_best_is_answered_densely_with_its_reasons(client: Client) -> None:
    heard: list[PlanProgress] = []
    found = plan(client, on_progress=heard.append)
    fits = np.flatnonzero(TABLE.memory <= TABLE.capacity[TABLE.origin])
    per_sample = TABLE.step_s[fits] / TABLE.rows.global_batch[fits]
    assert found.best is not None
    assert found.best.prediction.step_seconds is not None
    assert found.best.prediction.step_seconds / found.best.configuration["global_batch_samples"] == per_sample.min()
    assert found.best.prediction.breakdown_seconds == pytest.approx(
        {
            "compute": 0.75 * found.best.prediction.step_seconds,
            "exposed_tensor": 0.25 * found.best.prediction.step_seconds,
        }
    )
    assert found.best.prediction.upper_samples_per_second is not None
    assert found.space_count == len(TABLE.origin)
    assert found.evaluated_count + found.pruned_count == found.space_count
    assert 0 < found.feasible_count <= found.evaluated_count
    assert found.complete
    assert found.estimator == "table"
    assert found.recommendation is not None
    assert found.recommendation.rule == "highest_throughput"
    assert found.explanation is not None
    assert {each.change for each in found.explanation.sensitivities} == {
        "link_x2",
        "memory_x2",
        "one_more_node",
        "nodes_x2",
    }
    assert heard
    assert heard[-1].best is not None
    assert heard[-1].space_count == found.space_count
    assert heard[-1].evaluated_count == found.evaluated_count


def test_the_frontier_is_sorted_and_holds_the_fastest(client: Client) -> None:
    found = plan(client, skip_explanation=True)
    points = [
        (each.prediction.workers, each.prediction.step_seconds / each.configuration["global_batch_samples"])
        for each in found.frontier
        if each.prediction.step_seconds is not None
    ]
    assert points == sorted(points)
    assert len(points) == found.frontier_count
    assert found.best is not None
    assert found.best.prediction.step_seconds is not None
    assert (
        min(time for _, time in points)
        == found.best.prediction.step_seconds / found.best.configuration["global_batch_samples"]
    )
    few = plan(client, skip_explanation=True, max_frontier_points=2)
    assert (len(few.frontier), few.frontier_count) == (2, found.frontier_count)
    none = plan(client, skip_explanation=True, max_frontier_points=0)
    assert (none.frontier, none.frontier_count) == ((), 0)
    assert none.best == found.best


def test_exhaustive_is_the_same_answer(client: Client) -> None:
    pruned, exhaustive = plan(client), plan(client, exhaustive=True)
    assert exhaustive.evaluated_count == exhaustive.space_count
    assert pruned.best == exhaustive.best
    assert pruned.frontier == exhaustive.frontier
    assert pruned.explanation == exhaustive.explanation


@pytest.mark.parametrize(
    "asked",
    [
        {"objective": objective(HighestThroughput())},
        {"objective": objective(Knee())},
        {
            "objective": objective(LeastCost()),
            "work": Work(samples=1e4),
            "offers": [Offer(price_per_node_hour=2.0)],
        },
        {"objective": objective(FewestDevices(deadline_seconds=1e4)), "work": Work(samples=1e4)},
    ],
)
def test_objectives_are_those_of_predict(client: Client, asked: dict[str, Any]) -> None:
    found = plan(client, **asked)
    assert found.best is not None
    assert found.recommendation is not None
    assert found.recommendation.row == 0
    assert found.explanation is not None


def test_nothing_feasible_is_an_answer_with_reasons(client: Client) -> None:
    found = plan(client, objective=objective(FewestDevices(deadline_seconds=1.0)), work=Work(samples=1e6))
    assert found.best is None
    assert found.explanation is None
    assert found.frontier
    reason = next(each for each in found.rejections if each.constraint == "deadline_seconds")
    assert "the fastest" in reason.message
    assert numbers_by_name(reason.numbers)["finish_seconds"] > 1.0
    small = client.plan(
        PlanRequest(
            profile=profile_source(PROFILE),
            constraints=PlanConstraints(
                pools=CONSTRAINTS.pools, global_batch_samples=counts([32, 64]), memory_headroom_bytes=1e9
            ),
            options=ModelOptions(estimator="table"),
        )
    )
    assert small.best is None
    assert small.frontier == ()
    reason = next(each for each in small.rejections if each.constraint == "memory")
    assert (
        numbers_by_name(reason.numbers)["excess_memory_bytes"] == numbers_by_name(reason.numbers)["memory_bytes"] > 0.0
    )
    assert "activations" in reason.message


@pytest.mark.parametrize("name", [*WRONG, "differing"])
def test_a_model_that_answers_nonsense_is_told_so(client: Client, name: str) -> None:
    with pytest.raises(InternalError) as caught:
        plan(client, name)
    assert caught.value.reason == Reason.ESTIMATOR_INVALID_RESULT
    assert name in str(caught.value)


def test_a_model_that_fails_costs_its_own_call(client: Client) -> None:
    with pytest.raises(InternalError) as caught:
        plan(client, "raises")
    assert caught.value.reason == Reason.ESTIMATOR_FAILED
    assert "inside" not in str(caught.value)
    with pytest.raises(RefusedError) as refused:
        plan(client, "says")
    assert "no such device" in str(refused.value)
    assert plan(client, skip_explanation=True).best is not None


@pytest.mark.parametrize("name", ["constant", "not-a-planner"])
def test_an_estimator_that_does_not_plan_is_named(client: Client, name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        plan(client, name)
    assert caught.value.violations[0].field == "options.estimator"
    assert "table" in caught.value.violations[0].description


def test_what_is_missing_is_said(client: Client) -> None:
    with pytest.raises(RefusedError) as caught:
        plan(client, "refusing")
    assert caught.value.missing_fields == ("workload.transformer",)


def request(**changes: Any) -> pb.PlanRequest:
    message = pb.PlanRequest()
    message.profile.content.CopyFrom(to_message(PROFILE))
    message.options.estimator = "table"
    pool = message.constraints.pools.add(device_name="A", workers_per_node=2)
    pool.nodes.values.append(1)
    message.constraints.global_batch_samples.values.append(32)
    for name, value in changes.items():
        owner = message
        *path, last = name.split("__")
        for part in path:
            owner = getattr(owner, part)
        if isinstance(value, list):
            del getattr(owner, last)[:]
            getattr(owner, last).extend(value)
        else:
            setattr(owner, last, value)
    return message


BAD: list[tuple[str, dict[str, Any]]] = [
    ("constraints.pools", {"constraints__pools": []}),
    ("constraints.pools[0].device_name", {"constraints__pools": [pb.PlanPool(workers_per_node=1)]}),
    ("constraints.pools[0].nodes", {"constraints__pools": [pb.PlanPool(device_name="A", workers_per_node=1)]}),
    (
        "constraints.pools[0].workers_per_node",
        {"constraints__pools": [pb.PlanPool(device_name="A", nodes=pb.CountSet(values=[1]))]},
    ),
    ("constraints.global_batch_samples", {"constraints__global_batch_samples__values": []}),
    ("constraints.tensor_parallel_degrees.values[1]", {"constraints__tensor_parallel_degrees__values": [1, 0]}),
    ("constraints.zero_stages[0]", {"constraints__zero_stages": [4]}),
    ("constraints.recomputations[0]", {"constraints__recomputations": [0]}),
    ("constraints.memory_headroom_bytes", {"constraints__memory_headroom_bytes": -1.0}),
    ("budget_seconds", {"budget_seconds": float("nan")}),
    ("max_frontier_points", {"max_frontier_points": 1001}),
    ("budget_seconds", {"budget_seconds": 0.0}),
    ("constraints.max_nodes", {"constraints__max_nodes": 0}),
    (
        "constraints.micro_batch_samples",
        {"constraints__micro_batch_samples__ranges": [configuration_pb2.CountRange(first=1, last=5000)]},
    ),
    ("objective.confidence", {"objective__confidence": 0.9}),
    ("options.allow_fallback", {"options__allow_fallback": True}),
]


@pytest.mark.parametrize(("field", "changes"), BAD)
def test_a_wrong_field_is_named(target: str, field: str, changes: dict[str, Any]) -> None:
    asked = request(**changes)
    if field == "objective.confidence":
        asked.objective.highest_throughput.SetInParent()
    with Stubs(target) as stubs:
        failure = failure_of(stubs.plan.Plan, asked)
    assert failure.reason in {Reason.INVALID_FIELD, Reason.CONTRADICTORY_FACTS}
    assert field in failure.fields


def test_two_pools_of_one_kind_contradict_each_other(target: str) -> None:
    asked = request()
    asked.constraints.pools.append(asked.constraints.pools[0])
    with Stubs(target) as stubs:
        assert failure_of(stubs.plan.Plan, asked).reason == Reason.CONTRADICTORY_FACTS


def test_after_its_budget_the_best_so_far_is_the_answer(client: Client) -> None:
    found = plan(client, "large", budget_seconds=1e-9, exhaustive=True)
    assert not found.complete
    assert 0 < found.evaluated_count < found.space_count
    assert found.pruned_count == 0
    assert found.best is not None
    assert found.explanation is None


def test_a_caller_that_goes_ends_the_search(target: str) -> None:
    SLOW.go.clear()
    SLOW.began.clear()
    with Stubs(target) as stubs:
        asked = request()
        asked.options.estimator = "slow"
        call = stubs.plan.Plan(asked)
        assert SLOW.began.wait(PATIENCE_S)
        call.cancel()
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
        assert isinstance(caught.value, grpc.Call)
        assert caught.value.code() == grpc.StatusCode.CANCELLED
        SLOW.go.set()
        # Others are served meanwhile and afterwards.
        assert list(stubs.plan.Plan(request()))[-1].result.complete


def test_a_deadline_brings_the_best_so_far(target: str, client: Client) -> None:
    SLOW.go.set()
    found = client.plan(
        PlanRequest(profile=profile_source(PROFILE), constraints=CONSTRAINTS, options=ModelOptions(estimator="slow")),
        timeout_s=PATIENCE_S,
    )
    assert found.complete
    with Stubs(target) as stubs:
        SLOW.go.clear()
        SLOW.began.clear()
        asked = request()
        asked.options.estimator = "slow"
        failure = failure_of(stubs.plan.Plan, asked, timeout=0.3)
        SLOW.go.set()
    assert failure.code == grpc.StatusCode.DEADLINE_EXCEEDED


def test_awaited_it_is_the_same(target: str, client: Client) -> None:
    async def ask() -> PlanResult:
        async with AsyncClient(target, timeout_s=PATIENCE_S) as awaited:
            return await awaited.plan(
                PlanRequest(
                    profile=profile_source(PROFILE), constraints=CONSTRAINTS, options=ModelOptions(estimator="table")
                )
            )

    found, again = asyncio.run(ask()), plan(client)
    assert (found.best, found.frontier, found.explanation) == (again.best, again.frontier, again.explanation)


def test_health_knows_the_service(client: Client) -> None:
    assert client.health("nodewise.v1beta1.PlanService") == "serving"


SPEC: dict[str, Any] = {
    "profile": {
        "content": {
            "workload": {
                "transformer": {
                    "layers_count": 4,
                    "hidden_size": 64,
                    "attention_heads_count": 4,
                    "sequence_length_tokens": 128,
                    "vocabulary_size": 1024,
                }
            }
        }
    },
    "constraints": {
        "pools": [{"device_name": "A", "nodes": {"ranges": [{"first": 1, "last": 3}]}, "workers_per_node": 2}],
        "global_batch_samples": {"values": [32], "ranges": [{"first": 64, "last": 64, "powers_of_two": True}]},
        "recomputations": ["RECOMPUTATION_FULL"],
    },
    "options": {"estimator": "table"},
}


def run(path: Path, spec: dict[str, Any], *arguments: str) -> Any:
    file = path / "spec.json"
    file.write_text(json.dumps(spec))
    return CliRunner().invoke(app, ["plan", str(file), *arguments])


def test_the_command_prints_the_keys_of_the_contract(target: str, tmp_path: Path) -> None:
    result = run(tmp_path, SPEC, "--server", target, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {"space", "evaluated", "feasible", "search_s", "best", "frontier"} <= set(found)
    assert found["space"] == len(TABLE.origin)
    assert found["best"]["step_s"] > 0
    assert found["best"]["tensor_parallel"] in {1, 2}
    assert found["frontier"]
    exhaustive = json.loads(run(tmp_path, SPEC, "--server", target, "--json", "--exhaustive").stdout)
    assert exhaustive["evaluated"] == exhaustive["space"]
    assert exhaustive["best"] == found["best"]


def test_the_command_shows_the_reasons(target: str, tmp_path: Path) -> None:
    result = run(tmp_path, SPEC, "--server", target)
    assert result.exit_code == 0, result.stderr
    for text in (
        "Best (highest_throughput)",
        "Frontier",
        "Alternatives that differ in one dimension",
        "With links twice as fast",
        "compute",
    ):
        assert text in result.stdout
    assert "Alternatives that differ" not in run(tmp_path, SPEC, "--server", target, "--no-explain").stdout


def test_the_command_refuses_where_nothing_is_feasible(target: str, tmp_path: Path) -> None:
    tight = SPEC | {"constraints": SPEC["constraints"] | {"memory_headroom_bytes": 1e9}}
    result = run(tmp_path, tight, "--server", target, "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["best"] is None
    assert "nothing fits into memory" in result.stderr


def test_the_command_names_a_wrong_field(target: str, tmp_path: Path) -> None:
    assert run(tmp_path, {"constraint": {}}, "--server", target).exit_code == 2
    result = run(tmp_path, SPEC | {"constraints": {}}, "--server", target)
    assert result.exit_code == 2
    assert "constraints." in result.stderr
    missing = run(tmp_path, SPEC | {"profile": {"table": "none.csv", "job": "a"}}, "--server", target)
    assert missing.exit_code == 2


def test_feasible_rows_are_answered_rows(client: Client) -> None:
    found = plan(client, skip_explanation=True)
    assert {each.prediction.status for each in found.frontier} == {RowStatus.ANSWERED}
