"""What to measure next, over a real socket and from the command line, with the estimators that are shipped."""

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
from misbehaving import Constant, answered, record
from patience import PATIENCE_S
from scaling_profiles import USUAL, Scale
from serving import Failure, Stubs, failure_of, inline, one_worker_phases, registry_with, stored, workers
from typer.testing import CliRunner

from nodewise.domain.errors import Reason
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import (
    AppendProfileRequest,
    AsyncClient,
    Client,
    Freshness,
    HighestThroughput,
    Knee,
    ModelOptions,
    PredictRequest,
    ProfileContent,
    SuggestMeasurementsRequest,
    SuggestMeasurementsResponse,
    UnavailableError,
    configurations,
    node_range,
    objective,
    observations,
    profile_source,
    worker_range,
)
from nodewise_protos.v1 import configuration_pb2, options_pb2, profile_pb2
from nodewise_protos.v1 import objective_pb2 as objectives
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_values.wire import from_message

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTBED = str(EXAMPLES / "testbed.csv")
A1 = from_message(one_worker_phases(), ProfileContent)
UP_TO_16 = [worker_range(first=1, last=16)]


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture(scope="module")
def stubs(target: str) -> Iterator[Stubs]:
    with Stubs(target) as found:
        yield found


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=30) as found:
        yield found


def test_suggestions_improve_the_decision_that_is_asked_for(client: Client) -> None:
    found = client.suggest_measurements(
        SuggestMeasurementsRequest(
            profile=profile_source(A1),
            ranges=UP_TO_16,
            objective=objective(Knee()),
            max_suggestions=3,
            start_up_seconds=30,
            run_steps_count=50,
        )
    )
    predicted = client.predict(PredictRequest(profile=profile_source(A1), ranges=UP_TO_16, objective=objective(Knee())))
    assert len({each.row for each in found.suggestions}) == len(found.suggestions) == 3
    assert 0 < found.expected_regret < 1
    assert 0 < found.suggestions[0].expected_regret_fall <= found.expected_regret
    for each in found.suggestions:
        row = predicted[each.row]
        assert (each.nodes, each.workers) == (row.nodes, row.workers)
        assert row.step_seconds is not None
        # The server's node is held as well.
        assert each.cost_node_seconds == pytest.approx((row.nodes + 1) * (30 + 50 * row.step_seconds))
        assert each.expected_width_fall > 0
        assert f"{each.workers} worker" in each.why
    assert found.basis.estimator == predicted.basis.estimator
    assert found.basis.profile_digest == predicted.basis.profile_digest
    assert "EXTRAPOLATES" in {warning.reason for warning in found.warnings}


@pytest.mark.long
def test_the_same_question_has_the_same_answer(client: Client) -> None:
    first, again = (
        client.suggest_measurements(
            SuggestMeasurementsRequest(profile=profile_source(A1), ranges=UP_TO_16, max_suggestions=2)
        ).suggestions
        for _ in range(2)
    )
    assert first == again
    one = client.suggest_measurements(SuggestMeasurementsRequest(profile=profile_source(A1), ranges=UP_TO_16))
    assert len(one.suggestions) == 1


def test_a_stored_profile_is_asked_at_its_revision(client: Client) -> None:
    client.append_profile(AppendProfileRequest(profile_id="to-learn", content=A1))
    found = client.suggest_measurements(
        SuggestMeasurementsRequest(profile=profile_source("to-learn", minimum_revision=1), ranges=UP_TO_16)
    )
    assert found.basis.profile_revision == 1
    not_waiting = ModelOptions(freshness=Freshness.ALLOW_STALE)
    with pytest.raises(UnavailableError) as caught:
        client.suggest_measurements(
            SuggestMeasurementsRequest(
                profile=profile_source("to-learn", minimum_revision=9), ranges=UP_TO_16, options=not_waiting
            )
        )
    assert caught.value.reason == Reason.REVISION_NOT_REACHED


def test_awaited_it_is_the_same(target: str, client: Client) -> None:
    async def ask() -> SuggestMeasurementsResponse:
        async with AsyncClient(target, timeout_s=30) as awaited:
            return await awaited.suggest_measurements(
                SuggestMeasurementsRequest(
                    profile=profile_source(A1), ranges=[node_range(first=1, last=4)], objective=objective(Knee())
                )
            )

    found = asyncio.run(ask())
    again = client.suggest_measurements(
        SuggestMeasurementsRequest(
            profile=profile_source(A1), ranges=[node_range(first=1, last=4)], objective=objective(Knee())
        )
    )
    assert found.suggestions == again.suggestions


def test_measuring_what_is_suggested_ends_with_the_right_decision(client: Client) -> None:
    rows = [(nodes, 4 * nodes, 64 // nodes) for nodes in (1, 2, 4, 8, 16)]  # one global batch
    truth = dict(zip(rows, USUAL.step_s(rows), strict=True))
    start: list[Scale] = [(1, 1, 8), (1, 4, 8)]
    step_of = truth | dict(zip(start, USUAL.step_s(start), strict=True))

    def run(*ran: Scale) -> None:
        nodes, workers, batches = zip(*ran, strict=True)
        where = configurations(
            nodes=nodes, workers=workers, batch_per_worker_samples=batches, devices="T4", sync_modes="allreduce"
        )
        rates = [1.0 / step_of[each] for each in ran]
        client.append_profile(
            AppendProfileRequest(
                profile_id="measured",
                content=ProfileContent(observations=observations(configurations=where, steps_per_second=rates)),
            )
        )

    asked = configurations(nodes=[row[0] for row in rows], batch_per_worker_samples=[row[2] for row in rows])
    run(*start)
    ran: list[Scale] = []
    for _ in rows:
        found = client.suggest_measurements(
            SuggestMeasurementsRequest(
                profile=profile_source("measured"),
                configurations=asked,
                objective=objective(HighestThroughput()),
                start_up_seconds=30,
            )
        )
        if not found.suggestions or "no further run would change the decision" in found.suggestions[0].why:
            break
        ran.append(rows[found.suggestions[0].row])
        run(ran[-1])
    assert 0 < len(ran) <= len(rows)
    assert len(set(ran)) == len(ran)
    decided = client.predict(
        PredictRequest(
            profile=profile_source("measured"), configurations=asked, objective=objective(HighestThroughput())
        )
    ).recommendation
    assert decided is not None
    assert truth[rows[decided.row]] <= min(truth.values()) / 0.97


def test_what_ran_is_not_suggested_and_once_everything_did_nothing_is(client: Client) -> None:
    where = configurations(
        nodes=[1, 2], workers=[4, 8], batch_per_worker_samples=8, devices="T4", sync_modes="allreduce"
    )
    ran = ProfileContent(observations=observations(configurations=where, steps_per_second=[1.4, 0.4]))
    found = client.suggest_measurements(
        SuggestMeasurementsRequest(profile=profile_source(ran), ranges=[node_range(first=1, last=4)], max_suggestions=3)
    )
    assert sorted(each.nodes for each in found.suggestions) == [3, 4]
    found = client.suggest_measurements(
        SuggestMeasurementsRequest(profile=profile_source(ran), ranges=[node_range(first=1, last=2)], max_suggestions=3)
    )
    assert found.suggestions == ()
    assert "NOTHING_TO_MEASURE" in {warning.reason for warning in found.warnings}


def request(**changes: Any) -> pb.SuggestMeasurementsRequest:
    return pb.SuggestMeasurementsRequest(**({"profile": inline(), "configurations": workers(1, 2, 4)} | changes))


def refused(stubs: Stubs, **changes: Any) -> Failure:
    return failure_of(stubs.prediction.SuggestMeasurements, request(**changes))


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("max_suggestions", {"max_suggestions": 4}),
    ("max_suggestions", {"max_suggestions": 0}),
    ("start_up_seconds", {"start_up_seconds": -1.0}),
    ("start_up_seconds", {"start_up_seconds": float("nan")}),
    ("start_up_seconds", {"start_up_seconds": 1e300}),
    ("run_steps_count", {"run_steps_count": 0}),
    ("profile", {"profile": profile_pb2.ProfileSource()}),
    ("configurations", {"configurations": configuration_pb2.Configurations()}),
    ("configurations.workers[1]", {"configurations": workers(1, 0)}),
    ("objective.confidence", {"objective": objectives.Objective(confidence=0.4)}),
    ("offers", {"objective": objectives.Objective(least_cost=objectives.LeastCost())}),
    ("options.interval_coverage", {"options": options_pb2.ModelOptions(interval_coverage=2.0)}),
    ("options.parameters['x']", {"options": options_pb2.ModelOptions(parameters={"x": 1.0})}),
]


@pytest.mark.parametrize(("field", "changes"), WRONG)
def test_what_is_wrong_is_named(stubs: Stubs, field: str, changes: dict[str, Any]) -> None:
    failure = refused(stubs, **changes)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.reason == Reason.INVALID_FIELD
    assert field in failure.fields


def test_what_cannot_be_predicted_is_refused_as_by_predict(stubs: Stubs) -> None:
    allreduce = configuration_pb2.Configurations(workers=[2], sync_modes=[configuration_pb2.SYNC_MODE_ALLREDUCE])
    options = options_pb2.ModelOptions(estimator="queueing")
    for changes in (
        {"profile": stored("nobody")},
        {"profile": inline(profile_pb2.ProfileContent())},
        {"options": options_pb2.ModelOptions(estimator="nobody")},
        {"configurations": allreduce, "options": options},
    ):
        failure = refused(stubs, **changes)
        asked = {name: getattr(request(**changes), name) for name in ("profile", "configurations")}
        asked["options"] = options_pb2.PredictOptions(model=request(**changes).options)
        predicted = failure_of(stubs.prediction.Predict, pb.PredictRequest(**asked))
        assert (failure.code, failure.reason, failure.message) == (
            predicted.code,
            predicted.reason,
            predicted.message,
        )


def test_more_rows_than_can_be_weighed_name_the_cap(stubs: Stubs) -> None:
    everything = configuration_pb2.ConfigurationRange(workers=configuration_pb2.CountRange(first=1, last=1025))
    failure = refused(stubs, configurations=None, ranges=[everything])
    assert failure.reason == Reason.LIMIT_EXCEEDED
    assert failure.metadata == {"limit": "rows_per_suggestion", "value": "1024", "found": "1025"}


def test_a_model_without_a_spread_suggests_nothing_and_says_why() -> None:
    constant = Constant(predict=lambda rows: answered(rows, np.ones(len(rows)), spread=0.0))
    registry = registry_with((record("constant", constant),))
    with EmbeddedServer(registry=registry) as server, Client(server.target) as client:
        found = client.suggest_measurements(
            SuggestMeasurementsRequest(
                profile=profile_source(A1),
                configurations=configurations(workers=[1, 2]),
                options=ModelOptions(estimator="constant"),
            )
        )
    assert found.suggestions == ()
    assert [warning.reason for warning in found.warnings] == ["NO_SPREAD"]


def test_a_deadline_that_passes_keeps_nobody_else_waiting() -> None:
    ended = threading.Event()
    waits = record("waits", Constant(fit=lambda: ended.wait(PATIENCE_S)))
    with (
        EmbeddedServer(Settings(store="memory:"), registry_with((waits,))) as server,
        Stubs(server.target) as stubs,
    ):
        slow = request(options=options_pb2.ModelOptions(estimator="waits"))
        failure = failure_of(stubs.prediction.SuggestMeasurements, slow, timeout=0.2)
        others = request(options=options_pb2.ModelOptions(estimator="queueing"))
        # Inline as the estimator may be, suggestions leave the event loop to the others.
        assert stubs.prediction.SuggestMeasurements(others, timeout=PATIENCE_S).suggestions
        ended.set()
    assert failure.code is grpc.StatusCode.DEADLINE_EXCEEDED


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["suggest", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.long
def test_the_command_prints_json() -> None:
    status, out, errors = run(TESTBED, "--job", "a1", "--nodes", "1-16", "--objective", "knee", "--json")
    assert (status, errors, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert {"suggestions", "expected_regret", "estimator", "estimator_version", "revision", "warnings"} == found.keys()
    assert len(found["suggestions"]) == 3
    for each in found["suggestions"]:
        assert each.keys() == {
            "row", "nodes", "workers", "cost_node_s", "expected_regret_fall", "expected_width_fall", "why",
        }  # fmt: skip
        assert each["nodes"] == each["row"] + 1
    assert found["estimator"] == "queueing"
    # A profile says the same as its table.
    status, out, _ = run(
        str(EXAMPLES / "profile.json"), "--workers", "1-16", "--objective", "knee", "--count", "1", "--json"
    )
    assert status == 0
    assert json.loads(out)["suggestions"] == found["suggestions"][:1]


def test_the_command_tells_people() -> None:
    status, out, _ = run(TESTBED, "--job", "a1", "--nodes", "1-4", "--count", "2", "--start-up-s", "0", "--steps", "10")
    assert status == 0
    assert "runs to measure next, by queueing" in out
    assert "Expected regret of deciding now: " in out
    assert "\n2: after the measurements before it, " in out


def test_the_command_asks_a_server_about_a_profile_it_holds(target: str, client: Client) -> None:
    client.append_profile(AppendProfileRequest(profile_id="held", content=A1))
    status, out, _ = run("--profile", "held", "--server", target, "--workers", "1-4", "--json")
    assert status == 0
    assert json.loads(out)["revision"] == 1


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ((), 2, "TABLE.csv: must be given"),
        ((TESTBED, "--job", "a1", "--nodes", "4", "--workers", "4"), 2, "--workers: must be left out when --nodes"),
        ((TESTBED, "--job", "nobody", "--nodes", "1-4"), 2, "--job: must be a job of"),
        (
            (TESTBED, "--job", "a1", "--nodes", "1-4", "--max-nodes", "2"),
            2,
            "--max-nodes: needs --objective least-time",
        ),
        (
            (TESTBED, "--job", "a1", "--nodes", "1-4", "--coverage", "2"),
            2,
            "--coverage: must be a finite number above 0 and at most 0.9999",
        ),
        ((TESTBED, "--job", "a1", "--nodes", "1-4", "--start-up-s", "inf"), 2, "start_up_seconds"),
        ((TESTBED, "--job", "a1", "--nodes", "1-2000"), 2, "rows_per_suggestion"),
        ((TESTBED, "--job", "a1", "--nodes", "1-4", "--estimator", "nobody"), 2, "ESTIMATOR_NOT_FOUND"),
        ((TESTBED, "--job", "a1", "--nodes", "1-4", "--device", "V100"), 3, "EVIDENCE_MISSING"),
        (("--profile", "p", "--nodes", "1-4", "--server", "127.0.0.1:1"), 1, "UNAVAILABLE"),
    ],
)
def test_what_the_command_refuses(arguments: tuple[str, ...], status: int, complaint: str) -> None:
    ended, out, errors = run(*arguments)
    assert (ended, out) == (status, "")
    assert complaint in errors
