"""Every kind of plugin, every method, every way to misbehave in a process: one clear error, and nobody else pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from misbehaving import SECRET, Constant, answered, misbehaving, nothing, policy, record, ways
from patience import PATIENCE_S
from planning import TableModel, planner, random_table
from serving import Failure, ServerProcess, Stubs, failure_of, inline, registry_with, stored, workers
from tiny_traces import TinyDiagnoser, TinyReader, diagnoser, reader, tiny

from nodewise.plugin import Allocation, Configurations, Grant, Shares
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import options_pb2, profile_pb2, schedule_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1 import schedule_service_pb2 as schedules
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as diagnoses
from nodewise_protos.v1beta1 import plan_service_pb2, simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as simulations

pytestmark = pytest.mark.wheel

TABLE = random_table(7, 30, 4)
NAN = np.full((2, 2), np.nan)


class Covariant(Constant):
    """A constant that says how its errors hang together."""

    measurement_log_spread = 0.04

    def log_covariance(self, configurations: Configurations, options: object) -> Any:
        return np.eye(len(configurations)) * 0.01


# --- how each method is reached over the wire, by the plugin's name


def predict(stubs: Stubs, name: str) -> Failure:
    options = options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=name))
    request = predictions.PredictRequest(profile=inline(), configurations=workers(1, 2), options=options)
    return failure_of(stubs.prediction.Predict, request, timeout=PATIENCE_S)


def suggest(stubs: Stubs, name: str) -> Failure:
    options = options_pb2.ModelOptions(estimator=name)
    request = predictions.SuggestMeasurementsRequest(profile=inline(), configurations=workers(1, 2), options=options)
    return failure_of(stubs.prediction.SuggestMeasurements, request, timeout=PATIENCE_S)


def plan(stubs: Stubs, name: str) -> Failure:
    pool = plan_service_pb2.PlanPool(
        device_name="A", nodes=plan_service_pb2.CountSet(values=[1, 2]), workers_per_node=2
    )
    request = plan_service_pb2.PlanRequest(
        profile=inline(),
        constraints=plan_service_pb2.PlanConstraints(
            pools=[pool], global_batch_samples=plan_service_pb2.CountSet(values=[32, 64])
        ),
        options=options_pb2.ModelOptions(estimator=name),
    )
    return failure_of(stubs.plan.Plan, request, timeout=PATIENCE_S)


def schedule_request(name: str) -> schedules.ScheduleRequest:
    pool = schedule_pb2.NodePool(name="all", available_devices=[2, 2])
    jobs = [
        schedule_pb2.ScheduleJob(job_id=job_id, profile=inline(), remaining_samples=10, max_devices=2)
        for job_id in ("a", "b")
    ]
    cluster = schedule_pb2.Cluster(pools=[pool])
    options = options_pb2.ModelOptions(estimator="well")
    return schedules.ScheduleRequest(now=Timestamp(seconds=1), cluster=cluster, jobs=jobs, policy=name, options=options)


def schedule(stubs: Stubs, name: str) -> Failure:
    return failure_of(stubs.schedule.Schedule, schedule_request(name), timeout=PATIENCE_S)


def simulate(stubs: Stubs, name: str) -> Failure:
    request = simulations.SimulateRequest(
        jobs=simulation_pb2.SimulationJobs(
            count=2, arrival_seconds=[0, 0], work_samples=[10, 10], curve_indexes=[0], requested_devices=[1]
        ),
        curves=[
            simulation_pb2.SimulationCurve(
                rows=simulation_pb2.SimulationCurveRows(
                    pool_indexes=[0, 0], devices_counts=[1, 2], samples_per_second=[1.0, 2.0]
                )
            )
        ],
        cluster=schedule_pb2.Cluster(pools=[schedule_pb2.NodePool(name="all", available_devices=[2, 2])]),
        policy=name,
    )
    return failure_of(stubs.simulation.Simulate, request, timeout=PATIENCE_S)


def read_as(stubs: Stubs, name: str) -> Failure:
    return diagnosed(stubs, stubs.diagnosis.Replay, diagnoses.ReplayRequest, "well", name)


def replay(stubs: Stubs, name: str) -> Failure:
    return diagnosed(stubs, stubs.diagnosis.Replay, diagnoses.ReplayRequest, name, "tiny")


def diagnose(stubs: Stubs, name: str) -> Failure:
    return diagnosed(stubs, stubs.diagnosis.Diagnose, diagnoses.DiagnoseRequest, name, "tiny")


def diagnosed(stubs: Stubs, ask: Any, request: Callable[..., Any], by: str, trace_format: str) -> Failure:
    profile_id = f"traces-{trace_format}"
    chunk = profile_pb2.TraceChunk(trace_id="t", format=trace_format, data=tiny(), last=True)
    batch = profiles.ProfileBatch(sequence_number=1, trace_chunks=[chunk], commit=True)
    opened = profiles.OpenSession(profile_id=profile_id, session_id="s")
    messages = [profiles.IngestProfileRequest(open=opened), profiles.IngestProfileRequest(batch=batch)]
    list(stubs.profile.IngestProfile(iter(messages), timeout=PATIENCE_S))
    return failure_of(ask, request(profile=stored(profile_id), diagnoser=by), timeout=PATIENCE_S)


# --- plugins of which one method misbehaves


def estimator(name: str, method: str, behave: Any) -> Any:
    return record(name, misbehaving(Covariant(), method, behave))


def planning(name: str, method: str, behave: Any) -> Any:
    return planner(misbehaving(TableModel(TABLE), method, behave), name)


def deciding(name: str, method: str, behave: Any) -> Any:
    decides = policy(name, nothing)
    object.__setattr__(decides, "policy", misbehaving(decides.policy, method, behave))
    return decides


def reading(name: str, method: str, behave: Any) -> Any:
    return reader(misbehaving(TinyReader(), method, behave), name)


def diagnosing(name: str, method: str, behave: Any) -> Any:
    return diagnoser(misbehaving(TinyDiagnoser(), method, behave), name)


ROWS = Configurations.of(2, nodes=1, workers=1)
PREDICTIONS = {
    "nan": answered(ROWS, np.full(2, np.nan)),
    "wrong-shape": answered(Configurations.of(3, nodes=1, workers=1), np.ones(3)),
    "negative": answered(ROWS, np.full(2, -1.0)),
}
DECISIONS = {
    "too-few": Allocation(grants=()),
    "no-grants": Allocation(grants=(None, "b")),  # type: ignore[arg-type]
    "half-devices": Allocation(grants=(Grant(0.5), Grant(0))),  # type: ignore[arg-type]
    "too-many": Allocation(grants=(Grant(4, 0), Grant(4, 0))),
    "negative": Allocation(grants=(Grant(-1, 0), Grant(0))),
    "no-memory": Allocation(grants=(Grant(0), Grant(0)), memory="words"),  # type: ignore[arg-type]
    "nan-shares": Shares(shares=NAN[:, :1]),
    "wrong-shares": Shares(shares=np.zeros((3, 3))),
    "no-shares": Shares(shares=None),  # type: ignore[arg-type]
    "no-round": Shares(shares=np.zeros((2, 1)), round_s="words"),  # type: ignore[arg-type]
}
COLUMNS = {"too-short": {"step_s": np.ones(1)}, "no-columns": {}}
CALLED: dict[str, tuple[str, Callable[..., Any], str, Callable[[Stubs, str], Failure], dict[str, Any]]] = {
    "assess": ("ESTIMATOR", estimator, "assess", predict, {}),
    "fit": ("ESTIMATOR", estimator, "fit", predict, {}),
    "predict": ("ESTIMATOR", estimator, "predict", predict, PREDICTIONS),
    "log-covariance": ("ESTIMATOR", estimator, "log_covariance", suggest, {"nan": NAN, "ones": np.ones(2)}),
    "space": ("ESTIMATOR", planning, "space", plan, {}),
    "lower-bound": ("ESTIMATOR", planning, "lower_bound", plan, COLUMNS),
    "completed": ("ESTIMATOR", planning, "completed", plan, {"too-few": ROWS.take(np.zeros(0, dtype=np.int64))}),
    "evaluate": ("ESTIMATOR", planning, "evaluate", plan, COLUMNS),
    "decide": ("POLICY", deciding, "decide", schedule, DECISIONS),
    "simulated-decide": ("POLICY", deciding, "decide", simulate, DECISIONS),
    "read": ("READER", reading, "read", read_as, {"no-traces": [], "words-in-a-list": ["words"]}),
    "replay": ("DIAGNOSER", diagnosing, "replay", replay, {}),
    "diagnose": ("DIAGNOSER", diagnosing, "diagnose", diagnose, {}),
}
READ: dict[str, tuple[str, Callable[..., Any], str, Callable[[Stubs, str], Failure], dict[str, Any]]] = {
    "measurement-log-spread": ("ESTIMATOR", estimator, "measurement_log_spread", suggest, {"negative": -1.0}),
    "prefixes": ("ESTIMATOR", planning, "prefixes", plan, {"numbers": [1, 2, 3]}),
    "sizes": ("ESTIMATOR", planning, "sizes", plan, {"too-short": np.ones(1, dtype=np.int64)}),
    "final": ("ESTIMATOR", planning, "final", plan, {"too-few": frozenset({"nodes"})}),
    "exclusions": ("ESTIMATOR", planning, "exclusions", plan, {"numbers": (1, 2)}),
}


ELSEWHERE = {
    "space-mined": "FAILED",  # its parts are asked for one by one
    "predict-property": "INVALID_RESULT",  # the fit answered with a model that cannot be looked at
}
"""Ways that come out at another call."""


def cases() -> Iterator[tuple[str, str, Any, Callable[[Stubs, str], Failure]]]:
    """Name, reason of the error, plugin, and how to ask for it."""
    for asked, attribute in ((CALLED, False), (READ, True)):
        for what, (kind, made, method, ask, answers) in asked.items():
            for way, (behave, end) in ways(answers, attribute=attribute).items():
                name = f"{what}-{way}"
                yield name, f"{kind}_{ELSEWHERE.get(name, end)}", made(name, method, behave), ask


CASES = {name: (reason, plugin, ask) for name, reason, plugin, ask in cases()}


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    def of(made: Any) -> tuple[Any, ...]:
        return tuple(plugin for _, plugin, _ in CASES.values() if type(plugin) is type(made))

    well = (
        record("well", Constant()),
        policy("well", nothing),
        reader(TinyReader()),
        diagnoser(TinyDiagnoser(), "well"),
    )
    estimators, policies, readers, diagnosers = ((each, *of(each)) for each in well)
    registry = registry_with(estimators, policies, readers=readers, diagnosers=diagnosers)
    settings = Settings(store="memory:", traces=str(tmp_path_factory.mktemp("traces")), grace_s=1.0, scoring=False)
    with EmbeddedServer(settings, registry) as server, Stubs(server.target) as found:
        yield found


@pytest.mark.parametrize("name", CASES)
def test_it_costs_its_own_call_one_clear_error(stubs: Stubs, name: str) -> None:
    reason, _, ask = CASES[name]
    failure = ask(stubs, name)
    assert (failure.reason, failure.code) == (reason, grpc.StatusCode.INTERNAL)
    assert name in failure.message
    assert failure.metadata["distribution"] == "tests 1.0"
    assert failure.metadata["method"]
    assert SECRET[:8] not in str(failure.status)
    reply = stubs.schedule.Schedule(schedule_request("well"), timeout=PATIENCE_S)
    assert [allocation.job_id for allocation in reply.allocations] == ["a", "b"]


LEAVING = """
from nodewise.plugin import *

class Leaving:
    def __init__(self, error):
        self.error = error
    def decide(self, state, curves, budget):
        raise self.error
    def assess(self, profile, query):
        raise self.error
    def fit(self, profile, context):
        raise self.error

ERRORS = {"exits": SystemExit(3), "interrupts": KeyboardInterrupt(), "ends": GeneratorExit()}

@hookimpl
def nodewise_policies():
    return [PolicyRecord(name=name, version="1", description="", policy=Leaving(ERRORS[name])) for name in ERRORS]

@hookimpl
def nodewise_estimators():
    return [EstimatorRecord(name=name, version="1", description="", estimator=Leaving(ERRORS[name])) for name in ERRORS]
"""


@pytest.mark.long
def test_a_server_outlives_what_would_end_its_event_loop(tmp_path: Path) -> None:
    """In a process of its own the event loop runs in the main thread, where an interrupt may be the operator's."""
    (tmp_path / "plugin_leaving.py").write_text(LEAVING, encoding="utf-8")
    info = tmp_path / "leaving-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaving\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[nodewise.plugins]\nleaving = plugin_leaving\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with ServerProcess("--store", "memory:", environment={"PYTHONPATH": path}) as server, Stubs(server.target) as stubs:
        for name in ("exits", "interrupts", "ends"):
            assert predict(stubs, name).reason == "ESTIMATOR_FAILED"
            request = schedule_request(name)
            request.options.estimator = "queueing"
            failure = failure_of(stubs.schedule.Schedule, request, timeout=PATIENCE_S)
            assert (failure.reason, failure.metadata["policy"]) == ("POLICY_FAILED", name)
        listed = stubs.schedule.ListPolicies(schedules.ListPoliciesRequest(), timeout=PATIENCE_S)
        assert "exits" in {found.name for found in listed.policies}
        status, _ = server.terminate()
        assert status == 0
