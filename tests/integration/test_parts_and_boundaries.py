"""Parts of a step that a reader can act on, and boundaries that no run has crossed, through the service."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import json_format
from patience import PATIENCE_S

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_client import (
    BatchJob,
    BatchPredictRequest,
    Client,
    Knee,
    ModelOptions,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    SuggestMeasurementsRequest,
    configurations,
    node_range,
    objective,
    observations,
    profile_source,
    worker_range,
)
from nodewise_values.wire import to_message


def ran(nodes: list[int], workers: list[int], steps_per_s: list[float], **more: Any) -> ProfileContent:
    where = {"devices": "V100", "sync_modes": "allreduce", "batch_per_worker_samples": 64, **more}
    return ProfileContent(
        observations=observations(
            configurations=configurations(nodes=nodes, workers=workers, **where), steps_per_second=steps_per_s
        )
    )


ONE_NODE = ran([1, 1, 1], [1, 2, 4], [3.2, 3.1, 3.0])
ONE_DEVICE = ran([1], [1], [3.2])
SEVERAL = ran([1, 2, 4], [8, 16, 32], [9.67, 9.30, 8.84])
ASYNC = ran([1], [1], [3.2], sync_modes="async", parameter_servers=1)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, http="127.0.0.1:0")) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: EmbeddedServer) -> Iterator[Client]:
    with Client(server.target, timeout_s=60) as found:
        yield found


def by(estimator: str) -> PredictOptions:
    return PredictOptions(model=ModelOptions(estimator=estimator))


# --- parts of a step


@pytest.mark.parametrize("estimator", ["last-known", "batch-line", "power-law", "scaling", "auto"])
@pytest.mark.parametrize("content", [ONE_NODE, SEVERAL], ids=["inside one node", "on several"])
def test_no_part_is_the_step_itself(client: Client, content: ProfileContent, estimator: str) -> None:
    found = client.predict(
        PredictRequest(profile=profile_source(content), ranges=(node_range(1, 4),), options=by(estimator))
    )
    assert any(row.answered for row in found)
    for row in found:
        if row.answered:
            assert "step" not in row.breakdown_seconds
            assert sum(row.breakdown_seconds.values()) == pytest.approx(row.step_seconds)
            assert row.bottleneck not in ("step", "unattributed", "")
            named = {name: part for name, part in row.breakdown_seconds.items() if name != "unattributed"}
            if row.bottleneck is None:
                assert row.breakdown_seconds["unattributed"] > sum(named.values())
            else:
                assert named[row.bottleneck] == max(named.values())


def test_an_estimator_without_a_breakdown_has_no_bottleneck_beside_one_that_has(client: Client) -> None:
    asked = [PredictRequest(profile=profile_source(SEVERAL), ranges=(node_range(1, 4),), options=by("last-known"))]
    (alone,) = (client.predict(each) for each in asked)
    assert {row.bottleneck for row in alone} == {None}
    assert [set(row.breakdown_seconds) for row in alone] == [{"unattributed"}] * 4
    queueing = ran([1, 2], [1, 2], [1.6, 3.1], sync_modes="async", parameter_servers=1)
    both = client.batch_predict(
        BatchPredictRequest(
            jobs=(
                BatchJob(profile=profile_source(ONE_DEVICE), ranges=(worker_range(1, 1),)),
                BatchJob(profile=profile_source(SEVERAL), ranges=(node_range(1, 4),)),
                BatchJob(profile=profile_source(queueing), ranges=(worker_range(1, 2),)),
            )
        )
    )
    rows = [row for each in both for row in each.unwrap()]
    assert "compute" in {row.bottleneck for row in rows}
    assert not {"step", "unattributed"} & {row.bottleneck for row in rows}
    for row in rows:
        assert sum(row.breakdown_seconds.values()) == pytest.approx(row.step_seconds)


def test_the_same_over_http(server: EmbeddedServer) -> None:
    asked = PredictRequest(profile=profile_source(SEVERAL), ranges=(node_range(1, 4),), options=by("last-known"))
    connection = http.client.HTTPConnection(server.http_target, timeout=PATIENCE_S)
    body = json.dumps(json_format.MessageToDict(to_message(asked)))
    connection.request("POST", "/v1/predictions:predict", body, {"Content-Type": "application/json"})
    told = json.loads(connection.getresponse().read())["predictions"]
    connection.close()
    assert [part["name"] for part in told["breakdownSeconds"]] == ["unattributed"]
    assert told["breakdownSeconds"][0]["values"] == told["stepSeconds"]
    assert not told.get("bottleneckNames")


# --- boundaries


def suggested(client: Client, content: ProfileContent, *ranges: Any) -> Any:
    return client.suggest_measurements(
        SuggestMeasurementsRequest(
            profile=profile_source(content), ranges=ranges, objective=objective(Knee()), max_suggestions=2
        )
    )


def test_two_nodes_come_first_where_every_run_was_inside_one(client: Client) -> None:
    found = suggested(client, ONE_NODE, node_range(1, 4))
    first, second = found.suggestions
    assert (first.nodes, first.workers) == (2, 8)
    assert "every run was inside one node: what the exchange between nodes costs is not known" in first.why
    assert first.row != second.row
    assert "BOUNDARY_UNMEASURED" in {each.reason for each in found.warnings}


def test_the_smallest_number_of_nodes_that_may_run_stands_for_two(client: Client) -> None:
    assert suggested(client, ONE_NODE, node_range(4, 8)).suggestions[0].nodes == 4


def test_two_devices_come_first_where_every_run_was_on_one(client: Client) -> None:
    alone = ran([1, 1], [1, 1], [3.2, 1.7], batch_per_worker_samples=[64, 128])
    found = client.suggest_measurements(
        SuggestMeasurementsRequest(
            profile=profile_source(alone),
            configurations=configurations(nodes=1, workers=[1, 2, 4], batch_per_worker_samples=64),
        )
    )
    assert found.suggestions[0].workers == 2
    assert "every run was on one device" in found.suggestions[0].why


@pytest.mark.parametrize(
    ("content", "asked"),
    [(SEVERAL, node_range(1, 16)), (ASYNC, worker_range(1, 4)), (ONE_NODE, worker_range(1, 4, workers_per_node=4))],
    ids=["several nodes ran", "a server is another node", "no row leaves the node"],
)
def test_nothing_is_said_of_a_boundary_that_runs_crossed_or_no_row_does(
    client: Client, content: ProfileContent, asked: Any
) -> None:
    found = suggested(client, content, asked)
    assert "BOUNDARY_UNMEASURED" not in {each.reason for each in found.warnings}


def test_a_domain_of_fast_links_is_a_boundary(client: Client) -> None:
    inside = ran([1, 2, 4], [4, 8, 16], [9.7, 9.6, 9.5], devices="GB200")
    found = suggested(client, inside, node_range(1, 64, powers_of_two=True))
    assert found.suggestions[0].nodes == 32
    assert "inside one domain of fast links" in found.suggestions[0].why


def test_a_decision_beyond_the_evidence_counts_its_doubt(client: Client) -> None:
    three = ran([1, 2, 4], [8, 16, 32], [9.66796875, 9.3017578125, 8.837890625], devices="A100")
    far = suggested(client, three, node_range(1, 16))
    assert far.expected_regret > 0.002
    assert "no further run would change the decision" not in far.suggestions[0].why
    near = suggested(client, three, node_range(1, 4))
    assert near.expected_regret < far.expected_regret
