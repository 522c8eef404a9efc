"""Ten thousand architectures in one call, over a real socket, from the client and from the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from misbehaving import Constant, record
from patience import PATIENCE_S
from scipy.stats import kendalltau
from serving import Stubs, failure_of, registry_with
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_client import (
    BatchPredictRequest,
    Client,
    ModelOptions,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RowStatus,
    Workload,
    architectures,
    configurations,
    profile_source,
)
from nodewise_protos.v1 import configuration_pb2, options_pb2, profile_pb2, profile_service_pb2, workload_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "architectures.csv")
ONE_K80 = configuration_pb2.Configurations(nodes=[1], workers=[1], device_names=["K80"], batch_per_worker_samples=[128])
UNSEEN = ModelOptions(estimator="unseen")


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture(scope="module")
def stubs(target: str) -> Iterator[Stubs]:
    with Stubs(target) as found:
        yield found


def asked(flops: Any, **more: Any) -> pb.BatchPredictRequest:
    facts = workload_pb2.Architectures(flops_per_sample=flops, family_names=["ResNet"])
    return pb.BatchPredictRequest(**{"architectures": facts, "configurations": ONE_K80} | more)


def store(stubs: Stubs, profile_id: str, content: profile_pb2.ProfileContent) -> None:
    stubs.profile.AppendProfile(
        profile_service_pb2.AppendProfileRequest(profile_id=profile_id, request_id="once", content=content)
    )


def test_ten_thousand_are_one_call_of_less_than_a_message(stubs: Stubs) -> None:
    flops = np.exp(np.random.default_rng(0).uniform(np.log(7e8), np.log(5e9), 10_000))
    request = asked(flops)
    reply = stubs.prediction.BatchPredict(request)
    assert request.ByteSize() < 4 << 20
    assert reply.ByteSize() < 4 << 20
    (ranking,) = reply.rankings
    assert sorted(ranking.architecture_indexes) == list(range(10_000))
    steps = np.array(reply.predictions.step_seconds)
    assert np.all(np.diff(steps[list(ranking.architecture_indexes)]) >= 0.0)
    assert kendalltau(steps, flops)[0] == pytest.approx(1.0)  # one family: the law rises
    assert 0.8 < ranking.expected_kendall_tau < 1.0
    assert [basis.estimator for basis in reply.bases] == ["unseen"]
    assert (len(reply.outcomes), len(reply.row_offsets)) == (0, 0)


def test_a_row_that_cannot_be_costs_the_others_nothing(stubs: Stubs) -> None:
    right = stubs.prediction.BatchPredict(asked([1e9, 2e9, 3e9])).predictions
    facts = workload_pb2.Architectures(
        flops_per_sample=[1e9, -1.0, float("nan"), 2e9, 0.0, 1e15, 3e9, 3e9],
        family_names=["ResNet"],
        tensors_counts=[0, 0, 0, 0, 0, 0, 0, -3],
    )
    found = stubs.prediction.BatchPredict(asked((), architectures=facts))
    rows = found.predictions
    assert [rows.step_seconds[row] for row in (0, 3, 6)] == pytest.approx(list(right.step_seconds))
    refused = {tuple(each.rows): each.problem for each in rows.refusals}
    assert refused[1, 2].reason == "INVALID_FIELD"
    assert refused[1, 2].message.startswith("architectures.flops_per_sample: must be a finite number above 0")
    assert refused[7,].message.startswith("architectures.tensors_counts: must be a whole number of at least 1")
    assert list(refused[4,].missing_fields) == ["flops_per_sample"]
    assert list(refused[5,].missing_fields) == ["observations"]
    assert list(found.rankings[0].architecture_indexes) == [0, 3, 6]
    assert found.rankings[0].refused_share == pytest.approx(5 / 8)


def test_where_no_row_can_be_answered_the_call_still_is(stubs: Stubs) -> None:
    found = stubs.prediction.BatchPredict(asked([0.0, 0.0]))
    assert list(found.predictions.statuses) == [2, 2]
    assert not found.bases
    assert not found.rankings[0].HasField("expected_kendall_tau")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (asked([1.0], jobs=[pb.BatchJob()]), "jobs"),
        (asked([]), "architectures"),
        (asked([1.0], configurations=configuration_pb2.Configurations()), "configurations"),
        (asked((), architectures=workload_pb2.Architectures(flops_per_sample=[1, 2, 3], tensors_counts=[1, 2])),
         "architectures.tensors_counts"),
        (asked((), architectures=workload_pb2.Architectures(flops_per_sample=[1], family_names=["a", "b"])),
         "architectures.family_indexes"),
        (asked((), architectures=workload_pb2.Architectures(flops_per_sample=[1], family_indexes=[0])),
         "architectures.family_indexes"),
        (asked((), architectures=workload_pb2.Architectures(flops_per_sample=[1], family_names=["a" * 65])),
         "architectures.family_names[0]"),
        (pb.BatchPredictRequest(jobs=[pb.BatchJob()], profile=profile_pb2.ProfileSource(profile_id="x")), "profile"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_names_its_field(stubs: Stubs, request_: Any, field: str) -> None:
    failure = failure_of(stubs.prediction.BatchPredict, request_)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert field in failure.fields


def test_more_rows_than_a_call_takes_are_refused_with_the_way_round(stubs: Stubs) -> None:
    two = configuration_pb2.Configurations(nodes=[1, 1], workers=[1, 1])
    failure = failure_of(stubs.prediction.BatchPredict, asked([1e9] * 40_000, configurations=two))
    assert failure.reason == "LIMIT_EXCEEDED"
    assert failure.metadata["alternative"] == "StreamPredict"


def test_a_stream_takes_them_as_well(stubs: Stubs) -> None:
    question = pb.StreamPredictRequest(question_id="7", batch=asked([1e9, 2e9]))
    (reply,) = stubs.prediction.StreamPredict(iter([question]))
    assert reply.question_id == "7"
    assert list(reply.batch.rankings[0].architecture_indexes) == [0, 1]


def test_each_row_is_what_predict_says_of_a_profile_of_those_facts(target: str) -> None:
    models = [
        Workload(family=family, flops_per_sample=flops, parameter_bytes=4e6)
        for family in ("ResNet", "Shake-Shake", "new")
        for flops in (8e8, 3e9, 2e10)
    ]
    rows = configurations(nodes=1, workers=1, devices=["K80", "P100"], batch_per_worker_samples=[128, 64])
    options = PredictOptions(model=UNSEEN)
    with Client(target) as client:
        batch = client.batch_predict(
            BatchPredictRequest(architectures=architectures(models), configurations=rows, options=options)
        )
        assert len(batch) == 0
        assert "step_seconds" in repr(batch)
        for place, model in enumerate(models):
            source = profile_source(ProfileContent(workload=model))
            alone = client.predict(PredictRequest(profile=source, configurations=rows, options=options))
            part = batch.rows[2 * place : 2 * place + 2]
            for one, other in zip(part, alone, strict=True):
                assert one.status is other.status is RowStatus.ANSWERED
                assert one.step_seconds == pytest.approx(other.step_seconds, rel=1e-9)
                assert one.lower_steps_per_second == pytest.approx(other.lower_steps_per_second, rel=1e-9)
        assert [len(ranking.architecture_indexes) for ranking in batch.rankings] == [9, 9]


def test_the_store_teaches_and_a_stored_profile_says_what_is_shared() -> None:
    """Runs of one worker that were ingested move what is said of others on that device."""
    settings = Settings(learn_interval_s=0.05)
    flops = (1e9, 2e9, 4e9, 8e9)
    with EmbeddedServer(settings=settings) as server, Stubs(server.target) as found:
        ask = asked([3e9], profile=profile_pb2.ProfileSource(profile_id="search/of-2e9"))
        ask.configurations.CopyFrom(configuration_pb2.Configurations(nodes=[1], workers=[1]))
        for each in flops:
            content = profile_pb2.ProfileContent(
                workload=workload_pb2.Workload(flops_per_sample=each, family="Wide"),
                observations=profile_pb2.Observations(
                    configurations=configuration_pb2.Configurations(
                        nodes=[1], workers=[1], device_names=["T4"], sync_modes=[3], batch_per_worker_samples=[64]
                    ),
                    steps_per_second=[2e10 / each],
                ),
            )
            store(found, f"search/of-{each / 1e9:.0f}e9", content)
        ask.architectures.family_names[:] = ["Wide"]
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            reply = found.prediction.BatchPredict(ask)
            if reply.predictions.step_seconds[0] == pytest.approx(3e9 / 2e10, rel=0.1):
                break
        else:
            raise AssertionError(reply)
        assert list(reply.predictions.statuses) == []


def test_an_estimator_that_takes_one_at_a_time_answers_them_too() -> None:
    other = record("constant", Constant())
    with EmbeddedServer(registry=registry_with((other,))) as server, Stubs(server.target) as found:
        options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="constant"))
        reply = found.prediction.BatchPredict(asked([1e9, -1.0, 2e9], options=options))
        steps = list(reply.predictions.step_seconds)
        assert steps[0] == steps[2] > 0.0 == steps[1]
        assert list(reply.rankings[0].architecture_indexes) == [0, 2]


# --- the command


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["rank", *arguments])


@pytest.fixture
def some(tmp_path: Path) -> str:
    """A table with a family that never ran, and a model whose FLOPs nobody counted."""
    table = tmp_path / "some.csv"
    table.write_text(
        "architecture,family,flops_per_sample,tensors\n"
        "slow,ResNet,3e9,\nfast,ResNet,1e9,60\nuncounted,ResNet,,60\n,MobileNet,2e9,\n"
    )
    return str(table)


def test_rank_as_json(some: str) -> None:
    ran = run(some, "--device", "K80", "--batch", "128", "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    found = json.loads(ran.stdout)
    rows = found["architectures"]
    assert [(row["architecture"], row["row"], row["rank"]) for row in rows] == [
        ("fast", 1, 1),
        ("line 5", 3, 2),
        ("slow", 0, 3),
        ("uncounted", 2, None),
    ]
    steps = [row["step_s"] for row in rows[:3]]
    assert steps == sorted(steps)
    assert all(row["lower_step_s"] < row["step_s"] < row["upper_step_s"] for row in rows[:3])
    assert rows[3]["status"] == "refused"
    assert rows[3]["refusal"]["missing_fields"] == ["flops_per_sample"]
    assert found["estimator"] == "unseen"
    assert 0.3 < found["expected_kendall_tau"] < 1.0
    assert found["refused_share"] == 0.25
    assert found["call_s"] > 0.0
    assert [warning["reason"] for warning in found["warnings"]] == ["FAMILY_UNSEEN"]


def test_the_example_is_ranked_whole() -> None:
    ran = run(EXAMPLE, "--device", "P100", "--batch", "128", "--json")
    found = json.loads(ran.stdout)
    assert (ran.exit_code, found["refused_share"], len(found["architectures"])) == (0, 0.0, 16)
    assert found["expected_kendall_tau"] > 0.9


def test_rank_for_people(some: str) -> None:
    ran = run(some, "--device", "P100", "--batch", "128", "--top", "2")
    assert ran.exit_code == 0
    assert "1 more rows are ranked" in ran.stdout
    assert "3 of 4 ranked" in ran.stdout
    assert "Refused: uncounted: FLOPs per sample" in ran.stdout


def test_rank_of_a_profile_that_the_server_holds(stubs: Stubs, target: str) -> None:
    content = profile_pb2.ProfileContent(
        workload=workload_pb2.Workload(family="ResNet"),
        observations=profile_pb2.Observations(
            configurations=configuration_pb2.Configurations(
                nodes=[1], workers=[1], device_names=["K80"], sync_modes=[3], batch_per_worker_samples=[128]
            ),
            steps_per_second=[3.0],
        ),
    )
    store(stubs, "rank/shared", content)
    ran = run(EXAMPLE, "--profile", "rank/shared", "--server", target, "--json", "--top", "1")
    assert ran.exit_code == 0
    assert [row["architecture"] for row in json.loads(ran.stdout)["architectures"]] == ["resnet-14-w16"]


def test_rank_of_nothing_is_refused() -> None:
    ran = run(EXAMPLE, "--device", "K80", "--batch", "128", "--workers", "4")
    assert ran.exit_code == 3
    assert "measure this model on one worker" in ran.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty; the first line must name the columns"),
        ("architecture,flops\na,1\n", "unknown column 'flops'; columns are: architecture, flops_per_sample"),
        ("architecture;flops_per_sample\na;1\n", ":1: the columns must be separated by commas, found 'architecture;"),
        ("architecture\na\n", "must have at least one of the columns"),
        ("flops_per_sample,flops_per_sample\n1,1\n", "is there 2 times"),
        ("flops_per_sample\n", "has no rows below the header"),
        ("flops_per_sample,family\n1\n", ":2: has 1 cells, but the header has 2"),
        ("flops_per_sample\n1e9\nmany\n", ":3: column flops_per_sample: must be a number, or empty"),
        ("flops_per_sample,tensors\n1e9,2.5\n", ":2: column tensors: must be a whole number"),
        (f"flops_per_sample,family\n1e9,{'x' * 65}\n", ":2: column family: must be at most 64 characters"),
    ],
)
def test_a_wrong_table_names_the_place(tmp_path: Path, text: str, told: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    ran = run(str(table), "--device", "K80", "--batch", "128")
    assert ran.exit_code == 2
    assert told in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [(["--batch", "1"], "--device"), (["--device", "K80"], "--batch"), (["--profile", "x"], "--server")],
)
def test_what_must_be_said_is_asked_for(arguments: list[str], option: str) -> None:
    ran = run(EXAMPLE, *arguments)
    assert ran.exit_code == 2
    assert f"{option}: must" in ran.stderr
