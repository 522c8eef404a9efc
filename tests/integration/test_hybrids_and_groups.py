"""Mixed workers, hybrids and simulations over a real socket, with an estimator that knows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from misbehaving import Constant, record
from parameter_servers import SLOW_STEPS, Telling, telling_record
from patience import PATIENCE_S
from serving import Stubs, failure_of, inline, one_worker_phases, registry_with

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    AppendProfileRequest,
    Client,
    IntervalBasis,
    Knee,
    LeastTime,
    ModelOptions,
    Offer,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    Work,
    WorkerGroup,
    Workload,
    configuration_rows,
    configurations,
    objective,
    observations,
    profile_source,
)
from nodewise_protos.v1 import configuration_pb2, options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_values.wire import from_message

HYBRID = configuration_pb2.SYNC_MODE_HYBRID


@pytest.fixture(scope="module")
def telling() -> Telling:
    return Telling()


@pytest.fixture(scope="module")
def target(telling: Telling) -> Iterator[str]:
    registry = registry_with((telling_record(telling), record("plain", Constant())))
    with EmbeddedServer(registry=registry) as server:
        yield server.target


@pytest.fixture(scope="module")
def stubs(target: str) -> Iterator[Stubs]:
    with Stubs(target) as found:
        yield found


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target) as found:
        yield found


def question(options: dict[str, Any] | None = None, seed: int = 0, **columns: Any) -> pb.PredictRequest:
    return pb.PredictRequest(
        profile=inline(),
        configurations=configuration_pb2.Configurations(**columns),
        options=options_pb2.PredictOptions(
            model=options_pb2.ModelOptions(estimator="telling", seed=seed), **(options or {})
        ),
    )


TELLING = PredictOptions(model=ModelOptions(estimator="telling"))
PHASES = from_message(one_worker_phases(), ProfileContent)


def test_groups_reach_the_estimator_and_say_how_many_workers_there_are(client: Client) -> None:
    slow = WorkerGroup(workers=1, device_name="V100", compute_factor=3.0)
    rows = configurations(
        devices=["V100", "V100", "V100"],
        workers=[4, 6, 4],
        groups=[
            [],
            [WorkerGroup(workers=5, device_name="V100"), slow],
            [WorkerGroup(workers=2, device_name="V100"), WorkerGroup(workers=2, device_name="K80")],
        ],
    )
    found = client.predict(PredictRequest(profile=profile_source(PHASES), configurations=rows, options=TELLING))
    assert [row.workers for row in found] == [4, 6, 4]
    assert [row.step_seconds for row in found] == [1.0, 3.0, 10.0]
    assert [row.extra["groups_count"] for row in found] == [1.0, 2.0, 2.0]


def test_an_estimator_that_takes_workers_for_alike_refuses_them(stubs: Stubs) -> None:
    columns = configuration_pb2.Configurations(
        group_offsets=[0, 1, 3], group_workers=[4, 2, 2], group_compute_factors=[1.0, 1.0, 2.0]
    )
    request = pb.PredictRequest(profile=inline(), configurations=columns, options={"model": {"estimator": "plain"}})
    found = stubs.prediction.Predict(request).predictions
    assert (found.statuses, found.workers) == ([1, 2], [4, 4])
    assert found.refusals[0].problem.reason == "UNSUPPORTED_CONFIGURATION"
    assert "groups" in found.refusals[0].problem.message


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"group_workers": [1]}, "configurations.group_offsets"),
        ({"workers": [4], "group_offsets": [0, 2], "group_workers": [1, 2]}, "configurations.group_workers"),
        ({"group_offsets": [0, 2], "group_workers": [1, 0]}, "configurations.group_workers[1]"),
        ({"group_offsets": [0, 65], "group_workers": [1] * 65}, "configurations.group_offsets"),
        ({"group_offsets": [0, 1], "group_workers": [4], "nodes": [5]}, "configurations.workers[0]"),
        ({"workers": [1], "group_compute_factors": [2.0]}, "configurations.group_compute_factors"),
        (
            {"group_offsets": [0, 1], "group_workers": [4], "group_compute_factors": [0.0]},
            "configurations.group_compute_factors[0]",
        ),
        (
            {"group_offsets": [0, 1], "group_workers": [4], "group_device_indexes": [0]},
            "configurations.group_device_indexes",
        ),
        (
            {"group_offsets": [0, 1], "group_workers": [4], "device_names": ["a"], "group_device_indexes": [1]},
            "configurations.group_device_indexes[0]",
        ),
        (
            {
                "group_offsets": [0, 1, 1],
                "group_workers": [4],
                "workers": [4],
                "device_names": ["a", "b"],
                "group_device_indexes": [1],
            },
            "configurations.device_indexes",
        ),
        (
            {"group_offsets": [0, 1], "group_workers": [4], "placement_offsets": [0, 2], "placement_workers": [1, 2]},
            "configurations.placement_workers",
        ),
        (
            {"workers": [2], "hybrid_switch_seconds": [-1.0], "sync_modes": [HYBRID]},
            "configurations.hybrid_switch_seconds[0]",
        ),
        ({"workers": [2], "hybrid_switch_seconds": [1.0]}, "configurations.hybrid_switch_seconds[0]"),
        ({"workers": [2], "hybrid_sync_fractions": [0.5]}, "configurations.hybrid_sync_fractions[0]"),
    ],
)
def test_what_is_wrong_with_groups_and_hybrids_is_named(stubs: Stubs, columns: dict[str, Any], field: str) -> None:
    failure = failure_of(stubs.prediction.Predict, question(**columns))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert list(failure.fields) == [field], failure.fields


def test_a_mixed_row_is_charged_by_its_workers(client: Client) -> None:
    rows = configurations(
        nodes=2,
        parameter_servers=1,
        batch_per_worker_samples=1,
        sync_modes="sync",
        devices="V100",
        groups=[[WorkerGroup(workers=3, device_name="V100"), WorkerGroup(workers=1, device_name="K80")]],
    )
    offers = [Offer(price_per_node_hour=4.0, device_name="V100"), Offer(price_per_node_hour=2.0, device_name="K80")]
    (found,) = client.predict(
        PredictRequest(
            profile=profile_source(PHASES),
            configurations=rows,
            objective=objective(Knee()),
            work=Work(samples=4 * 360),
            offers=offers,
            options=TELLING,
        )
    )
    assert found.finish_seconds == pytest.approx(3600)
    # Two nodes at the mean price of their workers, and the server's node.
    assert found.cost == pytest.approx(2 * 3.5 + 4.0)


def test_a_hybrids_step_is_a_mini_batch_and_its_switch_is_paid_once(client: Client) -> None:
    rows = configurations(
        workers=[2, 8, 8],
        sync_modes="hybrid",
        batch_per_worker_samples=16,
        accumulation_steps=2,
        hybrid_sync_fractions=0.25,
        hybrid_switch_seconds=[0.0, 0.0, 100.0],
    )
    work = Work(samples=8 * 32 * 50.0)
    found = client.predict(
        PredictRequest(
            profile=profile_source(PHASES),
            configurations=rows,
            objective=objective(LeastTime()),
            work=work,
            options=TELLING,
        )
    )
    assert [row.steps_per_second for row in found] == [2.0, 8.0, 8.0]
    assert [row.samples_per_second for row in found] == [64.0, 256.0, 256.0]
    assert [row.finish_seconds for row in found] == [200.0, 50.0, 150.0]
    assert [row.once_seconds for row in found] == [None, None, 100.0]
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert [row.extra["change_steps"] for row in found] == [-1.0] * 3


def test_all_epochs_are_the_work_of_a_question_that_names_none(client: Client) -> None:
    workload = Workload(epochs_count=3.0, samples_per_epoch=1000)
    content = ProfileContent(workload=workload, phase_timings=PHASES.phase_timings)
    stated = configurations(workers=[1, 10], batch_per_worker_samples=10)
    found = client.predict(PredictRequest(profile=profile_source(content), configurations=stated, options=TELLING))
    assert [row.finish_seconds for row in found] == [300.0, 30.0]
    judged = client.predict(
        PredictRequest(
            profile=profile_source(content), configurations=stated, objective=objective(Knee()), options=TELLING
        )
    )
    assert [row.finish_seconds for row in judged] == [300.0, 30.0]
    without_batch = client.predict(
        PredictRequest(
            profile=profile_source(content),
            configurations=configurations(workers=2),
            objective=objective(Knee()),
            options=TELLING,
        )
    )
    assert without_batch[0].finish_seconds is None


def test_a_simulation_runs_in_a_thread_and_says_what_its_interval_is(client: Client, telling: Telling) -> None:
    rows = configurations(workers=[1, 2])
    model = ModelOptions(estimator="telling", seed=7)
    asked = PredictOptions(model=model, fidelity="simulate", simulated_steps_count=1000)
    for _ in range(2):
        found = client.predict(PredictRequest(profile=profile_source(PHASES), configurations=rows, options=asked))
        assert found[0].interval_basis is IntervalBasis.SIMULATION
        assert not [warning for warning in found.warnings if warning.reason == "NOT_SIMULATED"]
    (given,) = [options for options in telling.options if options.simulated_steps == 1000]
    assert (given.seed, given.budget is not None) == (7, True)
    assert telling.threads[telling.options.index(given)] == "nodewise-answer"
    plain = client.predict(PredictRequest(profile=profile_source(PHASES), configurations=rows, options=TELLING))
    assert plain[0].interval_basis is IntervalBasis.MODEL_SPREAD
    by_model = client.predict(
        PredictRequest(
            profile=profile_source(PHASES),
            configurations=rows,
            options=PredictOptions(model=ModelOptions(estimator="plain"), fidelity="simulate"),
        )
    )
    assert [warning.reason for warning in by_model.warnings] == ["NOT_SIMULATED"]


@pytest.mark.parametrize(
    ("workers", "sync_mode", "steps", "found"),
    [
        (131_072, configuration_pb2.SYNC_MODE_SYNC, 50, 13_107_200),
        (131_072, configuration_pb2.SYNC_MODE_SYNC, None, 13_107_200),
        (4, configuration_pb2.SYNC_MODE_SYNC, 2_500_000, 10_000_000),
        (4, configuration_pb2.SYNC_MODE_ASYNC, 9_000_000, 9_000_000),
    ],
)
def test_steps_to_simulate_are_capped_by_the_workers_that_make_them(
    stubs: Stubs, workers: int, sync_mode: Any, steps: int | None, found: int
) -> None:
    simulate = {"fidelity": options_pb2.FIDELITY_SIMULATE, "simulated_steps_count": steps}
    request = question(simulate, workers=[workers], sync_modes=[sync_mode])
    failure = failure_of(stubs.prediction.Predict, request)
    assert (failure.reason, failure.metadata["limit"]) == ("LIMIT_EXCEEDED", "simulated_cycles_per_question")
    assert failure.metadata["found"] == str(found)
    assert "options.simulated_steps_count" in failure.message


def test_steps_to_simulate_are_capped_over_all_rows(stubs: Stubs) -> None:
    simulate = {"fidelity": options_pb2.FIDELITY_SIMULATE, "simulated_steps_count": 5_000_001}
    failure = failure_of(stubs.prediction.Predict, question(simulate, workers=[1, 2]))
    assert (failure.reason, failure.metadata["limit"]) == ("LIMIT_EXCEEDED", "simulated_steps_per_call")
    assert failure.metadata["found"] == "10000002"
    batch = pb.BatchPredictRequest(
        jobs=[pb.BatchJob(profile=inline())] * 2,
        configurations=configuration_pb2.Configurations(workers=[1]),
        options=options_pb2.PredictOptions(**simulate),
    )
    assert failure_of(stubs.prediction.BatchPredict, batch).reason == "LIMIT_EXCEEDED"
    failure = failure_of(stubs.prediction.Predict, question({"simulated_steps_count": 5}, workers=[1]))
    assert list(failure.fields) == ["options.simulated_steps_count"]


def test_a_simulation_ends_with_the_call_that_asked(stubs: Stubs, telling: Telling) -> None:
    simulate = {"fidelity": options_pb2.FIDELITY_SIMULATE, "simulated_steps_count": SLOW_STEPS}
    telling.options.clear()
    telling.ended.clear()
    deadline_s = 0.3
    while not telling.options:  # A busy machine may not have begun when the time is over.
        deadline_s *= 2.0
        failure = failure_of(stubs.prediction.Predict, question(simulate, workers=[1]), timeout=deadline_s)
        assert failure.code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert telling.ended.wait(PATIENCE_S)
    telling.ended.clear()
    started = time.monotonic()
    call = stubs.prediction.Predict.future(question(simulate, seed=1, workers=[1]), timeout=PATIENCE_S)
    while not any(options.seed == 1 for options in telling.options):
        time.sleep(0.005)
    call.cancel()
    assert telling.ended.wait(PATIENCE_S)
    assert time.monotonic() - started < PATIENCE_S / 2, "not at its deadline"
    # Meanwhile and afterwards others are answered.
    assert stubs.prediction.Predict(question(workers=[1])).predictions.steps_per_second == [1.0]


def test_columns_may_be_left_out(stubs: Stubs) -> None:
    found = stubs.prediction.Predict(question({"columns": ["PREDICTION_COLUMN_THROUGHPUT"]}, workers=[1])).predictions
    assert not found.extra
    found = stubs.prediction.Predict(question({"columns": ["PREDICTION_COLUMN_EXTRA"]}, workers=[1])).predictions
    assert [column.name for column in found.extra] == ["async_step_s", "change_steps", "groups_count"]
    assert not found.breakdown_seconds


def test_evidence_with_groups_is_kept(client: Client) -> None:
    ran = configurations(
        nodes=4,
        parameter_servers=1,
        sync_modes="hybrid",
        devices="V100",
        hybrid_sync_fractions=0.5,
        hybrid_switch_seconds=2.0,
        groups=[
            [WorkerGroup(workers=3, device_name="V100"), WorkerGroup(workers=1, device_name="K80", compute_factor=1.5)]
        ],
    )
    client.append_profile(
        AppendProfileRequest(
            profile_id="mixed",
            content=ProfileContent(observations=observations(configurations=ran, steps_per_second=2.0)),
        )
    )
    kept = client.get_profile("mixed").content.observations.configurations
    (row,) = configuration_rows(kept)
    assert (row["workers"], row["hybrid_switch_seconds"]) == (4, 2.0)
    assert row["groups"] == configuration_rows(ran)[0]["groups"]
