"""Long calls in the processes of a served pool, over real sockets: ended, lost, late, and too many."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import busy_plugin
import grpc
import pytest
from patience import PATIENCE_S, before_its_deadline
from serving import ServerProcess, Stubs, failure_of, inline, stored, workers

from nodewise_cli.inputs.documents import read_value
from nodewise_client import Client
from nodewise_protos.v1 import configuration_pb2, options_pb2, prediction_service_pb2
from nodewise_protos.v1beta1 import (
    diagnosis_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    simulation_pb2,
    simulation_service_pb2,
)
from nodewise_values import PlanRequest
from nodewise_values.wire import to_message

"""With what takes a second on an idle machine."""
SPEC = Path(__file__).parents[2] / "examples" / "plan_22b_64_devices.json"
BUSY = options_pb2.ModelOptions(estimator="busy")


def constraints() -> plan_service_pb2.PlanConstraints:
    counts = plan_service_pb2.CountSet
    pool = plan_service_pb2.PlanPool(device_name="V100", workers_per_node=8, nodes=counts(values=[1]))
    return plan_service_pb2.PlanConstraints(pools=[pool], global_batch_samples=counts(values=[32]))


def simulation(jobs: int, policy: str, repetitions: int = 1) -> simulation_service_pb2.SimulateRequest:
    request = simulation_service_pb2.SimulateRequest(policy=policy, repetitions_count=repetitions)
    request.cluster.pools.add(name="p", device_name="V100", available_devices=[8])
    rows = simulation_pb2.SimulationCurveRows(
        pool_indexes=[0] * 3, devices_counts=[1, 2, 4], samples_per_second=[10, 19, 35]
    )
    request.curves.add(rows=rows)
    request.jobs.CopyFrom(
        simulation_pb2.SimulationJobs(
            count=jobs, arrival_seconds=range(jobs), work_samples=[50], requested_devices=[1], curve_indexes=[0]
        )
    )
    return request


def table() -> evaluation_service_pb2.MeasurementTable:
    configurations = configuration_pb2.Configurations(
        nodes=[1, 2], workers=[1, 2], parameter_servers=[1], sync_modes=[1], batch_per_worker_samples=[32]
    )
    return evaluation_service_pb2.MeasurementTable(
        job_names=["a"],
        job_indexes=[0, 0],
        configurations=configurations,
        steps_per_second=[1, 2],
        train=[True, False],
    )


CALLS: dict[str, Callable[[Stubs], Any]] = {
    "Plan": lambda stubs: stubs.plan.Plan(
        plan_service_pb2.PlanRequest(profile=inline(), options=BUSY, constraints=constraints())
    ),
    "Simulate": lambda stubs: stubs.simulation.Simulate(simulation(2, "busy")),
    "Backtest": lambda stubs: stubs.evaluation.Backtest(
        evaluation_service_pb2.BacktestRequest(table=table(), estimators=["busy"])
    ),
    "Suggest": lambda stubs: stubs.prediction.SuggestMeasurements.future(
        prediction_service_pb2.SuggestMeasurementsRequest(
            profile=inline(), configurations=workers(1, 2, 3), options=BUSY
        )
    ),
    "Predict, simulated": lambda stubs: stubs.prediction.Predict.future(
        prediction_service_pb2.PredictRequest(
            profile=inline(),
            configurations=workers(1, 2),
            options=options_pb2.PredictOptions(model=BUSY, fidelity=options_pb2.FIDELITY_SIMULATE),
        )
    ),
    "Replay": lambda stubs: stubs.diagnosis.Replay(diagnosis_service_pb2.ReplayRequest(profile=stored("traced"))),
    "Diagnose": lambda stubs: stubs.diagnosis.Diagnose(diagnosis_service_pb2.DiagnoseRequest(profile=stored("traced"))),
}


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, marks: Path) -> Iterator[ServerProcess]:
    environment = busy_plugin.installed(tmp_path_factory.mktemp("site"), marks)
    # Trusted, so that its process is one of the pool.
    environment |= {"NODEWISE_TRUSTED_PLUGINS": "busy"}
    environment |= {"NODEWISE_COMPUTE_PROCESSES": "1", "NODEWISE_GRACE_S": "1", "NODEWISE_LOG_LEVEL": "error"}
    with ServerProcess("--store", "memory:", environment=environment) as found:
        with Client(found.target, timeout_s=PATIENCE_S) as client, client.ingest("traced") as writer:
            writer.trace(io.BytesIO(busy_plugin.MAGIC), trace_id="t", trace_format="auto", rank=0, world_size=1)
        yield found


@pytest.fixture
def stubs(server: ServerProcess, marks: Path) -> Iterator[Stubs]:
    for mark in marks.iterdir():
        mark.unlink()
    with Stubs(server.target) as found:
        yield found


def until(found: Callable[[], Any]) -> Any:
    """What is found, as soon as it is."""
    end_s = time.monotonic() + PATIENCE_S
    while not (it := found()):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    return it


def busy_process(marks: Path) -> int:
    """The process that works on and on, as soon as one does."""
    (mark,) = until(lambda: list(marks.iterdir()))
    return int(mark.name)


def cpu_ticks(pid: int) -> int | None:
    """User and system time of a process; None = it is gone."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(fields[10]) + int(fields[11])


def answers(stubs: Stubs) -> bool:
    """Whether the pool suggests what to measure."""
    request = prediction_service_pb2.SuggestMeasurementsRequest(profile=inline(), configurations=workers(1, 2, 4))
    return bool(stubs.prediction.SuggestMeasurements(request, timeout=PATIENCE_S).suggestions)


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_a_caller_that_goes_ends_the_work_whatever_it_does(
    name: str, stubs: Stubs, marks: Path, server: ServerProcess
) -> None:
    call = CALLS[name](stubs)
    pid = busy_process(marks)
    assert pid != server.pid
    assert cpu_ticks(pid) is not None
    call.cancel()
    until(lambda: cpu_ticks(pid) is None)
    assert answers(stubs)


@pytest.mark.long
def test_a_caller_whose_time_is_over_ends_the_work(stubs: Stubs, marks: Path) -> None:
    request = plan_service_pb2.PlanRequest(profile=inline(), options=BUSY, constraints=constraints())
    assert answers(stubs)  # started, and what follows has time
    assert failure_of(stubs.plan.Plan, request, timeout=1.0).code is grpc.StatusCode.DEADLINE_EXCEEDED
    if left := list(marks.iterdir()):
        until(lambda: cpu_ticks(int(left[0].name)) is None)
    assert answers(stubs)


@pytest.mark.long
def test_work_that_looks_up_ends_without_its_process(stubs: Stubs) -> None:
    assert answers(stubs)
    call = stubs.simulation.Simulate(simulation(20_000, "fifo", 500))
    assert next(call).HasField("progress")
    call.cancel()
    assert answers(stubs)


@pytest.mark.long
def test_a_process_that_dies_costs_its_call_an_error_that_can_be_retried(stubs: Stubs, marks: Path) -> None:
    with ThreadPoolExecutor(1) as callers:
        calling = callers.submit(failure_of, CALLS["Plan"], stubs)
        os.kill(busy_process(marks), signal.SIGKILL)
        failure = calling.result(PATIENCE_S)
    assert failure.code is grpc.StatusCode.UNAVAILABLE
    assert failure.reason == "COMPUTE_LOST"
    assert answers(stubs)


def test_a_budget_brings_the_best_plan_so_far(stubs: Stubs) -> None:
    request = to_message(read_value(SPEC, PlanRequest))
    request.budget_seconds, request.options.estimator = 1e-9, "partitioning"
    *progress, last = stubs.plan.Plan(request, timeout=PATIENCE_S)
    assert not last.result.complete
    assert last.result.evaluated_count < last.result.space_count
    assert len(last.result.predictions.step_seconds)
    assert progress
    assert all(message.HasField("progress") for message in progress)


def test_when_the_time_is_over_the_simulation_so_far_is_the_answer(stubs: Stubs) -> None:
    assert answers(stubs)
    asked = simulation(20_000, "fifo", 500)
    messages = before_its_deadline(lambda timeout_s: list(stubs.simulation.Simulate(asked, timeout=timeout_s)), 3.0)
    assert messages[0].HasField("progress")
    assert not messages[-1].result.complete


@pytest.mark.long
def test_calls_wait_their_turn_and_too_many_are_told_to_come_again(stubs: Stubs, marks: Path) -> None:
    first = CALLS["Plan"](stubs)
    pid = busy_process(marks)
    waiting: list[Any] = []
    asked = prediction_service_pb2.SuggestMeasurementsRequest(profile=inline(), configurations=workers(1, 2))

    def refused() -> Any:
        # Of many at once a busy machine lets some not even in: others take their places.
        waiting[:] = [each for each in waiting if not each.done()]
        waiting.extend(CALLS["Suggest"](stubs) for _ in range(64 - len(waiting)))
        failure = failure_of(stubs.prediction.SuggestMeasurements, asked, timeout=0.5)
        return failure if failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED else None

    failure = until(refused)
    assert failure.reason == "OVERLOADED"
    for call in (*waiting, first):
        call.cancel()
    until(lambda: cpu_ticks(pid) is None)
    assert answers(stubs)


@pytest.mark.long
def test_the_pool_answers_what_the_serving_process_would(stubs: Stubs) -> None:
    """The same messages, but for the time of the fit, how long it took, and whose plugins they are."""
    from nodewise.runtime.embedded_server import EmbeddedServer

    request = to_message(read_value(SPEC, PlanRequest))
    request.options.estimator = "partitioning"
    with EmbeddedServer() as embedded, Stubs(embedded.target) as others:
        found = [list(each.plan.Plan(request, timeout=PATIENCE_S))[-1].result for each in (stubs, others)]
        simulated = prediction_service_pb2.PredictRequest(profile=inline(), configurations=workers(1, 2, 4))
        simulated.options.model.estimator = "queueing"
        simulated.options.fidelity = options_pb2.FIDELITY_SIMULATE
        replies = [each.prediction.Predict(simulated, timeout=PATIENCE_S) for each in (stubs, others)]
        assert stubs.prediction.Predict(simulated, timeout=PATIENCE_S) == replies[0]
        runs = [list(each.simulation.Simulate(simulation(50, "fifo", 3)))[-1].result for each in (stubs, others)]
    for plan in found:
        plan.ClearField("search_seconds")
        for name in ("fit_time", "generation"):
            plan.basis.ClearField(name)
    assert found[0] == found[1]
    for reply in replies:
        for name in ("fit_time", "generation"):
            reply.basis.ClearField(name)
    assert replies[0] == replies[1]
    for found_runs in runs:
        for run in found_runs.runs:
            for name in ("decision_seconds", "longest_decision_seconds", "wall_seconds"):
                run.ClearField(name)
    assert runs[0].runs == runs[1].runs
