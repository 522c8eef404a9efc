"""How far a recommendation looks, and from which range: each way of asking gives one answer, and says what ended it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from patience import PATIENCE_S
from serving import Stubs
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import (
    BatchJob,
    BatchPredictRequest,
    Client,
    ConfigurationRange,
    ConfigurationSettings,
    HighestThroughput,
    InvalidArgumentError,
    Knee,
    LeastTime,
    Observations,
    Prediction,
    PredictRequest,
    PredictResult,
    ProfileContent,
    RecommendationBound,
    SuggestMeasurementsRequest,
    Work,
    Workload,
    configurations,
    node_range,
    objective,
    observations,
    profile_source,
    worker_range,
)
from nodewise_protos.v1 import objective_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_values.wire import to_message

EXAMPLES = Path(__file__).parents[2] / "examples"
BATCH = 256


def observed(
    nodes: Sequence[int], samples_per_s: Sequence[float], per_node: int = 8, device: str = "A100"
) -> Observations:
    """Runs on some nodes, at one batch per worker."""
    workers = [per_node * count for count in nodes]
    ran = configurations(
        nodes=nodes, workers=workers, devices=device, sync_modes="allreduce", batch_per_worker_samples=BATCH
    )
    rates = [rate / (BATCH * count) for rate, count in zip(samples_per_s, workers, strict=True)]
    return observations(configurations=ran, steps_per_second=rates)


def job(nodes: Sequence[int], samples_per_s: Sequence[float], **how: Any) -> ProfileContent:
    """A job of which no more is known."""
    return ProfileContent(observations=observed(nodes, samples_per_s, **how))


THREE = job([1, 2, 4], [19_800, 38_100, 72_400])
JOBS = {
    "three runs on A100": (THREE, 4, 16),
    "other values, 4 devices in a node": (job([1, 2, 3], [2_050, 3_950, 5_700], per_node=4, device="V100"), 3, 12),
    "no node of its own": (job([2, 5], [9_000, 21_500], per_node=2, device="T4"), 5, 20),
}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0")) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: EmbeddedServer) -> Iterator[Client]:
    with Client(server.target, timeout_s=60) as found:
        yield found


def predicted(client: Client, content: ProfileContent, *ranges: ConfigurationRange, **asked: Any) -> PredictResult:
    return client.predict(PredictRequest(profile=profile_source(content), ranges=ranges, **asked))


def nodes_of(result: Iterable[Prediction]) -> list[int]:
    return [row.nodes or 0 for row in result]


# --- one recommendation, however far one asks


@pytest.mark.parametrize(("content", "reached", "last"), JOBS.values(), ids=JOBS)
def test_one_recommendation_however_far_one_asks(
    client: Client, content: ProfileContent, reached: int, last: int
) -> None:
    ranges = (
        (node_range(1, last),),
        (node_range(1, 64),),
        (node_range(1, last, powers_of_two=True), node_range(last, last)),
        (node_range(1, 1024, powers_of_two=True), node_range(last, last)),
        (),
    )
    found = [predicted(client, content, *asked).recommendation for asked in ranges]
    assert {(each and each.nodes) for each in found} == {last}
    for each in found:
        assert each is not None
        assert each.bounded_by is RecommendationBound.EVIDENCE
        assert f"the evidence reaches {reached} nodes, and 4 times that" in each.why
        assert f"measure {last} nodes to look further" in each.why


def test_rows_beyond_are_predicted_all_the_same(client: Client) -> None:
    found = predicted(client, THREE, node_range(1, 1024, powers_of_two=True))
    assert [row.answered for row in found] == [True] * 11


@pytest.mark.parametrize(("ratio", "nodes"), [(None, 16), (1, 4), (2, 8), (16, 64), (100, 256), (0, 1024)])
def test_the_caller_says_how_far(client: Client, ratio: float | None, nodes: int) -> None:
    wide = node_range(1, 1024, powers_of_two=True)
    for rule in (Knee(), HighestThroughput(), LeastTime()):
        asked = objective(rule, max_extrapolation_ratio=ratio)
        found = predicted(client, THREE, wide, objective=asked).recommendation
        assert found is not None
        assert found.nodes == nodes
        ends = RecommendationBound.EVIDENCE if nodes < 1024 else RecommendationBound.RANGE
        assert found.bounded_by is ends


def test_workers_count_as_nodes_do(client: Client) -> None:
    spread = ProfileContent(
        observations=observations(
            configurations=configurations(
                nodes=[1, 2, 4],
                workers=[1, 2, 4],
                devices="A100",
                sync_modes="allreduce",
                batch_per_worker_samples=BATCH,
            ),
            steps_per_second=[10.0, 9.8, 9.6],
        )
    )
    found = predicted(client, spread, worker_range(1, 64), objective=objective(HighestThroughput())).recommendation
    assert found is not None
    assert (found.workers, found.bounded_by) == (16, RecommendationBound.EVIDENCE)
    dense = predicted(
        client,
        spread,
        ConfigurationRange(nodes=node_range(1, 4).nodes, workers_per_node=8),
        objective=objective(HighestThroughput()),
    ).recommendation
    assert dense is not None
    assert (dense.nodes, dense.workers) == (2, 16)
    assert "the evidence reaches 4 workers" in dense.why


def test_where_every_row_lies_further_none_is_recommended(client: Client) -> None:
    found = predicted(client, THREE, node_range(32, 64))
    assert found.recommendation is None
    (why,) = (each.message for each in found.warnings if each.reason == "OBJECTIVE_UNREACHABLE")
    assert "the evidence reaches 4 nodes, and 4 times that is the furthest that is recommended" in why
    assert "max_extrapolation_ratio" in why


def test_a_range_that_ends_before_the_evidence_does_says_so(client: Client) -> None:
    found = predicted(client, THREE, node_range(1, 8)).recommendation
    assert found is not None
    assert (found.nodes, found.bounded_by) == (8, RecommendationBound.RANGE)
    assert found.why.endswith("; the range asked about ends here")


def test_nothing_is_said_to_end_where_more_would_not_pay(client: Client) -> None:
    content = job([1, 2, 4], [19_800, 24_000, 26_000])
    found = predicted(client, content, node_range(1, 8)).recommendation
    assert found is not None
    assert found.nodes < 8
    assert found.bounded_by is None
    assert "ends here" not in found.why


def test_a_limit_of_the_question_is_no_end_of_the_range(client: Client) -> None:
    found = predicted(client, THREE, node_range(1, 8), objective=objective(LeastTime(max_nodes=8))).recommendation
    assert found is not None
    assert (found.nodes, found.bounded_by) == (8, None)


def test_a_single_row_is_told_in_words(client: Client) -> None:
    for rule in (Knee(), HighestThroughput()):
        found = predicted(client, THREE, node_range(2, 2), objective=objective(rule)).recommendation
        assert found is not None
        assert found.why == "38,100 samples/s on 2 nodes, the only size to choose from"
        assert found.bounded_by is None


def test_without_a_measured_run_nothing_is_held_back_and_it_is_said() -> None:
    asked = ["predict", str(EXAMPLES / "mlp.json"), "--workers", "pow2:1-8", "--sync", "async", "--servers", "2"]
    how = ["--device", "Xeon-E5-2450L", "--batch-per-worker", "64", "--objective", "highest-throughput"]
    found = CliRunner().invoke(app, [*asked, *how, "--json"], catch_exceptions=False)
    recommended = json.loads(found.stdout)["recommended"]
    assert (recommended["workers"], recommended["bounded_by"]) == (8, "range")
    assert recommended["why"].endswith("the range asked about ends here, and no run of the job was measured")


# --- the range that is taken where none is asked about


@pytest.mark.parametrize(
    ("measured", "counts"),
    [
        ([1], [1, 2, 3, 4]),
        ([1, 3], [*range(1, 13)]),
        ([2, 4], [*range(1, 17)]),
        ([1, 10], [*range(1, 17), 32, 40]),
        ([16], [*range(1, 17), 32, 64]),
    ],
)
def test_the_range_follows_from_the_evidence(client: Client, measured: list[int], counts: list[int]) -> None:
    content = job(measured, [1_000.0 * nodes**0.9 for nodes in measured])
    assert nodes_of(predicted(client, content)) == counts
    settings = ConfigurationSettings(global_batch_samples=4096)
    assert nodes_of(predicted(client, content, ConfigurationRange(settings=settings))) == counts
    both = predicted(client, content, node_range(2, 2), ConfigurationRange())
    assert nodes_of(both) == [2, *counts]
    (own, shared) = client.batch_predict(
        BatchPredictRequest(
            jobs=(
                BatchJob(profile=profile_source(content), ranges=(ConfigurationRange(),)),
                BatchJob(profile=profile_source(content)),
            )
        )
    )
    assert nodes_of(own.unwrap()) == nodes_of(shared.unwrap()) == counts


def test_a_split_begins_at_the_smallest_number_of_nodes_that_holds_it(client: Client) -> None:
    ran = configurations(
        nodes=[3, 6],
        workers=[24, 48],
        devices="A100",
        sync_modes="allreduce",
        batch_per_worker_samples=4,
        tensor_parallel_degrees=8,
        pipeline_parallel_degrees=3,
    )
    split = ProfileContent(observations=observations(configurations=ran, steps_per_second=[0.5, 0.49]))
    settings = ConfigurationSettings(tensor_parallel_degree=8, pipeline_parallel_degree=3)
    found = predicted(client, split, ConfigurationRange(settings=settings))
    assert nodes_of(found) == [*range(3, 17), 24]


def test_jobs_of_a_batch_share_a_range_that_each_fills_from_its_own_evidence(client: Client) -> None:
    one, many = job([1], [1_000]), job([1, 3], [1_000, 2_900])
    found = client.batch_predict(
        BatchPredictRequest(
            jobs=tuple(BatchJob(profile=profile_source(content)) for content in (one, many)),
            ranges=(ConfigurationRange(),),
        )
    )
    assert [len(each.unwrap()) for each in found] == [4, 12]


def test_without_a_measured_run_a_range_must_be_given(client: Client) -> None:
    facts = ProfileContent(workload=Workload(parameter_bytes=4e6))
    for ranges, field in (((), "ranges"), ((ConfigurationRange(),), "ranges[0]")):
        with pytest.raises(InvalidArgumentError) as caught:
            client.predict(PredictRequest(profile=profile_source(facts), ranges=ranges))
        (violation,) = caught.value.violations
        assert violation.field == field
        assert "no measured run of this job suggests a range" in violation.description
    (refused,) = client.batch_predict(BatchPredictRequest(jobs=(BatchJob(profile=profile_source(facts)),)))
    assert isinstance(refused.error, InvalidArgumentError)
    assert refused.error.violations[0].field == "jobs[0].ranges"


def test_a_profile_that_learns_more_is_asked_about_further(client: Client) -> None:
    with client.ingest("sizes/grows") as writer:
        writer.observe(observed([1], [1_000]))
        writer.commit()
    stored = PredictRequest(profile=profile_source("sizes/grows"))
    assert len(client.predict(stored)) == len(client.predict(stored)) == 4
    with client.ingest("sizes/grows") as writer:
        writer.observe(observed([2], [1_950]))
        writer.commit()
    assert len(client.predict(stored)) == 8


# --- one default objective


def test_every_interface_means_the_knee_where_nothing_is_said(server: EmbeddedServer, client: Client) -> None:
    content = job([1, 2, 4], [19_800, 24_000, 26_000])
    knee = predicted(client, content, objective=objective(Knee())).recommendation
    best = predicted(client, content, objective=objective(HighestThroughput())).recommendation
    assert knee is not None
    assert best is not None
    assert knee.nodes < best.nodes
    assert predicted(client, content).recommendation == knee
    assert predicted(client, content, objective=objective()).recommendation == knee
    (of_batch,) = client.batch_predict(BatchPredictRequest(jobs=(BatchJob(profile=profile_source(content)),)))
    assert of_batch.recommendation == knee
    source = to_message(profile_source(content))
    with Stubs(server.target) as stubs:
        (reply,) = stubs.prediction.StreamPredict(
            iter([pb.StreamPredictRequest(question_id="1", predict=pb.PredictRequest(profile=source))])
        )
        assert reply.predict.recommendation.rule == objective_pb2.OBJECTIVE_RULE_KNEE
        assert reply.predict.recommendation.nodes == knee.nodes
    connection = http.client.HTTPConnection(server.http_target, timeout=PATIENCE_S)
    body = json.dumps({"profile": {"content": json_format.MessageToDict(to_message(content))}})
    connection.request("POST", "/v1/predictions:predict", body, {"Content-Type": "application/json"})
    told = json.loads(connection.getresponse().read())
    connection.close()
    assert (told["recommendation"]["rule"], told["recommendation"]["nodes"]) == ("OBJECTIVE_RULE_KNEE", knee.nodes)


def test_suggestions_serve_the_same_decision(client: Client) -> None:
    request = SuggestMeasurementsRequest(profile=profile_source(THREE))
    asked = SuggestMeasurementsRequest(profile=profile_source(THREE), objective=objective(Knee()))
    assert client.suggest_measurements(request) == client.suggest_measurements(asked)


def test_work_alone_changes_no_rule(client: Client) -> None:
    found = predicted(client, THREE, work=Work(samples=1e6)).recommendation
    assert found is not None
    assert (str(found.rule), found.nodes) == ("knee", 16)


# --- the command line


def told(*arguments: str) -> Any:
    found = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.fixture
def table(tmp_path: Path) -> str:
    rows = ["job,device,nodes,workers,steps_per_s,batch_per_worker", "j,A100,1,8,9.66796875,256"]
    rows += ["j,A100,2,16,9.3017578125,256", "j,A100,4,32,8.837890625,256"]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_the_command_needs_no_range(table: str) -> None:
    for more in ((), ("--nodes", "1-16"), ("--nodes", "pow2:1-64"), ("--nodes", "pow2:1-1024")):
        found = told("predict", table, *more)
        assert (found["recommended"]["nodes"], found["recommended"]["bounded_by"]) == (16, "evidence")
    assert [row["nodes"] for row in told("predict", table)["predictions"]] == [*range(1, 17)]
    assert told("suggest", table)["suggestions"]


@pytest.mark.parametrize(("ratio", "nodes"), [("2", 8), ("inf", 64), ("0", 64), ("4", 16)])
def test_the_command_says_how_far(table: str, ratio: str, nodes: int) -> None:
    found = told("predict", table, "--nodes", "pow2:1-64", "--within-evidence", ratio)
    assert found["recommended"]["nodes"] == nodes
