"""Plan, Replay, Diagnose and Backtest of the shipped plugins over a socket, as the contract words them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from serving import Stubs, failure_of, inline, stored

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2, objective_pb2, profile_pb2, workload_pb2
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as diagnoses
from nodewise_protos.v1beta1 import evaluation_service_pb2 as evaluations
from nodewise_protos.v1beta1 import plan_service_pb2 as plans

TRACES = Path(__file__).parents[1] / "fixtures" / "traces" / "ddp_2_ranks_straggler"
SHAPE = workload_pb2.Transformer(
    layers_count=24,
    hidden_size=2048,
    attention_heads_count=16,
    sequence_length_tokens=2048,
    vocabulary_size=51200,
)
PROFILE = inline(profile_pb2.ProfileContent(workload=workload_pb2.Workload(transformer=SHAPE)))


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    settings = Settings(store="memory:", traces=str(tmp_path_factory.mktemp("traces")))
    with EmbeddedServer(settings) as server, Stubs(server.target) as found:
        ingest(found, sorted(TRACES.glob("*.json.gz")))
        yield found


def ingest(stubs: Stubs, files: list[Path]) -> None:
    request = profiles.IngestProfileRequest
    sent = [request(open=profiles.OpenSession(profile_id="job", session_id="one"))]
    for number, file in enumerate(files, start=1):
        chunk = profile_pb2.TraceChunk(trace_id=str(number), format="auto", data=file.read_bytes(), last=True)
        last = number == len(files)
        sent.append(request(batch=profiles.ProfileBatch(sequence_number=number, trace_chunks=[chunk], commit=last)))
    list(stubs.profile.IngestProfile(iter(sent)))


def result_of(messages: Any) -> Any:
    """The result, after progress and pieces."""
    *before, last = messages
    assert before
    assert before[0].WhichOneof("event") == "progress"
    assert last.WhichOneof("event") == "result"
    return last.result


def plan(**stated: Any) -> plans.PlanRequest:
    pool = plans.PlanPool(device_name="A100", nodes=plans.CountSet(values=[1, 2, 4]), workers_per_node=8)
    within = plans.PlanConstraints(pools=[pool], global_batch_samples=plans.CountSet(values=[256]))
    return plans.PlanRequest(profile=PROFILE, constraints=within, **stated)


def test_a_plan_says_the_best_and_why(stubs: Stubs) -> None:
    found = result_of(stubs.plan.Plan(plan(max_frontier_points=5), timeout=PATIENCE_S))
    assert found.complete
    assert found.space_count == found.evaluated_count + found.pruned_count
    assert found.recommendation.rule == objective_pb2.OBJECTIVE_RULE_HIGHEST_THROUGHPUT
    assert (found.recommendation.row, found.recommendation.device_name) == (0, "A100")
    assert not found.recommendation.HasField("cost")
    assert list(found.frontier_rows) == [1, 2, 3, 4, 5]
    assert found.frontier_count > 5
    assert len(found.predictions.global_batch_samples) == found.predictions.rows_count == 6
    assert not found.basis.HasField("profile_revision")
    assert {each.change for each in found.explanation.sensitivities} >= {"link_x2", "memory_x2"}
    assert found.explanation.complete


def test_a_plan_counts_the_start_of_nodes_in_time_and_cost(stubs: Stubs) -> None:
    asked = plan(max_frontier_points=0, skip_explanation=True)
    asked.objective.least_cost.SetInParent()
    asked.work.samples = 1e6
    asked.offers.add(price_per_node_hour=36.0, currency="USD")
    at_once = result_of(stubs.plan.Plan(asked, timeout=PATIENCE_S)).recommendation
    asked.offers[0].start_up_seconds = 600.0
    later = result_of(stubs.plan.Plan(asked, timeout=PATIENCE_S)).recommendation
    assert later.rule == objective_pb2.OBJECTIVE_RULE_LEAST_COST
    assert later.finish_seconds == pytest.approx(1e6 / later.samples_per_second + 600.0)
    assert later.cost == pytest.approx(later.finish_seconds * later.nodes * 0.01)
    assert later.cost > at_once.cost
    asked.objective.least_cost.deadline_seconds = 700.0
    nothing = result_of(stubs.plan.Plan(asked, timeout=PATIENCE_S))
    assert not nothing.HasField("recommendation")
    assert "deadline_seconds" in {each.constraint for each in nothing.rejections}


def test_a_plan_is_over_when_its_budget_is(stubs: Stubs) -> None:
    found = result_of(stubs.plan.Plan(plan(budget_seconds=1e-6), timeout=PATIENCE_S))
    assert not found.complete
    assert not found.HasField("explanation")


def test_a_replay_says_what_it_rests_on(stubs: Stubs) -> None:
    found = result_of(stubs.diagnosis.Replay(diagnoses.ReplayRequest(profile=stored("job")), timeout=PATIENCE_S))
    assert found.host_error_ratio < 0.05
    assert (found.basis.profile_id, found.basis.profile_revision, found.basis.world_size) == ("job", 1, 2)
    assert list(found.clock_tied) == []
    assert len(found.clock_uncertainty_seconds) == 2


def test_a_diagnosis_is_as_long_as_asked_for(stubs: Stubs) -> None:
    ask = stubs.diagnosis.Diagnose
    found = result_of(ask(diagnoses.DiagnoseRequest(profile=stored("job"), max_bottlenecks=3), timeout=PATIENCE_S))
    assert found.bound_by == diagnoses.STEP_BOUND_SKEW
    assert (len(found.bottlenecks), found.bottlenecks[0].rank) == (3, 1)
    assert not found.bottlenecks[1].HasField("rank")
    assert found.strategies
    brief = diagnoses.DiagnoseRequest(profile=stored("job"), max_bottlenecks=0, max_strategies=0)
    none = result_of(ask(brief, timeout=PATIENCE_S))
    assert (len(none.bottlenecks), len(none.strategies)) == (0, 0)


def test_a_backtest_reads_what_is_known_and_numbers_refusals(stubs: Stubs) -> None:
    counts = [1, 2, 4, 8, 3, 6]
    rows = configuration_pb2.Configurations(
        nodes=counts,
        workers=counts,
        sync_modes=[configuration_pb2.SYNC_MODE_ASYNC],
        parameter_servers=[1],
        batch_per_worker_samples=[32],
    )
    table = evaluations.MeasurementTable(
        job_names=["a"],
        job_indexes=[0] * 6,
        configurations=rows,
        steps_per_second=[3.0, 5.6, 9.8, 14.0, 7.9, 0.0],
        train=[True] * 4 + [False] * 2,
        step_variation=[0.1, 0.0, 0.1, 0.1, 0.0, 0.0],
        step_variation_known=[True, False, True, True, False, False],
    )
    request = evaluations.BacktestRequest(table=table, estimators=["queueing", "scaling"])
    queueing, scaling = result_of(stubs.evaluation.Backtest(request, timeout=PATIENCE_S)).evaluations
    assert (queueing.overall.rows_count, queueing.overall.refused_count) == (1, 0)
    assert (list(queueing.predictions.refusal_reasons), list(queueing.predictions.refusal_indexes)) == ([], [])
    assert not scaling.overall.HasField("mape")
    assert scaling.predictions.refusal_reasons[0] == ""
    assert list(scaling.predictions.refusal_indexes) == [1, 1]
    request.table.step_variation[1] = -1.0
    failure = failure_of(stubs.evaluation.Backtest, request)
    assert list(failure.fields) == ["table.step_variation[1]"]


@pytest.mark.parametrize(
    ("method", "request_", "field"),
    [
        ("plan.Plan", plan(budget_seconds=0.0), "budget_seconds"),
        ("plan.Plan", plan(max_frontier_points=-1), "max_frontier_points"),
        ("diagnosis.Diagnose", diagnoses.DiagnoseRequest(largest_batch_ratio=0.0), "largest_batch_ratio"),
        ("diagnosis.Replay", diagnoses.ReplayRequest(budget_seconds=-1.0), "budget_seconds"),
        ("diagnosis.Replay", diagnoses.ReplayRequest(), "profile"),
    ],
)
def test_a_stated_number_that_is_none_is_refused_by_its_path(
    stubs: Stubs, method: str, request_: Any, field: str
) -> None:
    service, name = method.split(".")
    failure = failure_of(getattr(getattr(stubs, service), name), request_)
    assert failure.reason == "INVALID_FIELD"
    assert list(failure.fields) == [field]
