"""Simulate over a real socket: results, columns in chunks, refusals, deadlines and cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from serving import Stubs, failure_of, one_worker_phases, registry_with

from nodewise.plugin import Allocation, Grant, PolicyParameter, PolicyRecord
from nodewise.runtime.embedded import EmbeddedServer
from nodewise_client import (
    AsyncClient,
    Checkpoints,
    Client,
    EarlyStops,
    InternalError,
    InvalidArgumentError,
    NodeFailures,
    NodePool,
    PredictedCurve,
    PredictionError,
    QueueQuota,
    RefusedError,
    ScheduleJob,
    SimulationJobs,
    SimulationProgress,
    SimulationResult,
    SimulationSettings,
    ThroughputCurve,
)
from nodewise_client._evidence import content_from_wire
from nodewise_client._simulation_questions import simulate_request
from nodewise_protos.v1 import schedule_service_pb2 as pb
from nodewise_protos.v1 import simulation_pb2

CLUSTER = [NodePool(name="p", device="V100", available_devices=[4, 4])]
CURVE = ThroughputCurve(devices=range(1, 9), samples_per_s=[10, 20, 30, 38, 46, 49, 50, 50])
JOBS = SimulationJobs(arrival_s=[0, 1, 2.5], work_samples=[100, 200, 50], requested_devices=2)
MANY = SimulationJobs(arrival_s=[float(second) for second in range(9_000)], work_samples=5, requested_devices=1)
PHASES = content_from_wire(one_worker_phases())
ADVANCED = threading.Event()


def first_alone(state: Any) -> Allocation:
    """One device for the first job, nothing for the others."""
    return Allocation(grants=tuple(Grant(0) if place else Grant(1, 0) for place, _ in enumerate(state.jobs)))


class Gate:
    """First come, first served, slowly; says that it was asked."""

    def decide(self, state: Any, curves: Any, budget: Any) -> Allocation:
        ADVANCED.set()
        time.sleep(0.002)
        return first_alone(state)


class Drawn:
    """Keeps the seeds that it was given."""

    def __init__(self) -> None:
        self.seeds: list[float] = []

    def decide(self, state: Any, curves: Any, budget: Any) -> Allocation:
        self.seeds.append(state.parameters["seed"])
        return first_alone(state)


class Wrong:
    """Raises, or grants what it has not."""

    def __init__(self, *, raises: bool) -> None:
        self._raises = raises

    def decide(self, state: Any, curves: Any, budget: Any) -> Allocation:
        if self._raises:
            raise ValueError("a secret")
        return Allocation(grants=tuple(Grant(7, 0) for _ in state.jobs))


DRAWN = Drawn()


def policy(name: str, found: Any, *parameters: PolicyParameter) -> PolicyRecord:
    return PolicyRecord(name=name, version="1", description="for tests", policy=found, parameters=parameters)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    seed = PolicyParameter(name="seed", description="of draws", default=0.0, minimum=0.0, maximum=1e9)
    policies = (
        policy("gate", Gate()),
        policy("drawn", DRAWN, seed),
        policy("raises", Wrong(raises=True)),
        policy("greedy", Wrong(raises=False)),
    )
    with EmbeddedServer(registry=registry_with(policies=policies)) as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout_s=30) as found:
        yield found


def simulate(client: Client, **more: Any) -> SimulationResult:
    asked: dict[str, Any] = {"cluster": CLUSTER, "jobs": JOBS, "curves": [CURVE], "policy": "equal-share"}
    return client.simulate(**{**asked, **more})


def figures(result: SimulationResult) -> list[object]:
    """All but wall times."""
    still = {"decision_s": 0.0, "longest_decision_s": 0.0, "wall_s": 0.0}
    return [replace(run, **still) for run in result.runs] + [result.figures]


def test_a_simulation_tells_of_runs_jobs_and_who_held_what(client: Client) -> None:
    heard: list[SimulationProgress] = []
    found = simulate(client, keep_jobs=True, keep_timeline=True, on_progress=heard.append)
    (run,) = found.runs
    assert (run.jobs, run.finished, run.complete, found.complete) == (3, 3, True, True)
    assert run.average_jct_s == pytest.approx(sum(job.response_s for job in run.jobs_finished) / 3)
    assert [job.job_id for job in run.jobs_finished] == ["0", "1", "2"]
    assert run.makespan_s == max(job.completion_s for job in run.jobs_finished)
    assert sum(held.devices * (held.end_s - held.begin_s) for held in run.timeline) == pytest.approx(run.busy_device_s)
    assert {held.pool for held in run.timeline} == {0}
    assert heard[-1].finished == heard[-1].jobs == 3
    assert (heard[-1].repetitions_done, heard[-1].repetitions) == (1, 1)
    assert found.figures["average_jct_s"].mean == run.average_jct_s
    assert found.figures["average_jct_s"].lower is None
    assert (found.policy, found.bases) == ("equal-share", ())


def test_the_same_request_is_the_same_answer_with_or_without_columns(client: Client) -> None:
    settings = SimulationSettings(
        clock="fixed-rounds",
        round_s=1.0,
        restart_cost_s=0.5,
        early_stops=EarlyStops(probability=0.5, progress=(0.2, 0.9)),
        failures=NodeFailures(mean_time_between_failures_s=10, mean_repair_s=2),
        checkpoints=Checkpoints(interval_s=1.0, cost_s=0.1),
        prediction_error=PredictionError(job_sigma=0.2, row_sigma=0.1),
        seed=3,
    )
    asked = {"settings": settings, "repetitions": 4, "policy": "efficiency-srpt-fill"}
    found = simulate(client, **asked)
    assert figures(found) == figures(simulate(client, **asked))
    kept = simulate(client, **asked, keep_jobs=True, keep_timeline=True)
    bare = [replace(run, jobs_finished=(), timeline=()) for run in kept.runs]
    assert figures(replace(kept, runs=tuple(bare))) == figures(found)
    assert [run.seed for run in found.runs] == [3, 4, 5, 6]
    mean = found.figures["average_jct_s"]
    assert mean.lower is not None
    assert mean.upper is not None
    assert mean.lower < mean.mean < mean.upper


def test_columns_come_in_messages_that_every_client_takes(target: str) -> None:
    request = simulate_request(
        cluster=CLUSTER,
        jobs=MANY,
        curves=[CURVE],
        policy="fifo",
        policy_parameters=None,
        quotas=(),
        settings=None,
        repetitions=1,
        keep_jobs=True,
        keep_timeline=True,
        options=None,
    )
    with Stubs(target) as stubs:
        messages = list(stubs.schedule.Simulate(request, timeout=60))
    events = [message.WhichOneof("event") for message in messages]
    assert events[-1] == "result"
    assert events.count("jobs") == events.count("timeline") == 2
    assert events.index("jobs") > max(place for place, event in enumerate(events) if event == "progress")
    assert sum(len(message.jobs.job_ids) for message in messages) == 9_000
    assert max(message.ByteSize() for message in messages) < 4 * 1024 * 1024
    run = messages[-1].result.runs[0]
    assert (run.finished_count, run.average_jct_seconds) == (9_000, 0.5)


def test_a_policy_that_draws_gets_the_seed_of_each_repetition_unless_it_is_told_one(client: Client) -> None:
    DRAWN.seeds.clear()
    simulate(client, policy="drawn", repetitions=2, settings=SimulationSettings(seed=7))
    assert set(DRAWN.seeds) == {7.0, 8.0}
    DRAWN.seeds.clear()
    simulate(client, policy="drawn", policy_parameters={"seed": 5}, repetitions=2)
    assert set(DRAWN.seeds) == {5.0}


def test_rates_that_the_policy_sees_may_be_others_than_those_that_are_true(client: Client) -> None:
    flat = ThroughputCurve(devices=[1, 2, 4, 8], samples_per_s=[40, 41, 42, 43])
    alone = SimulationJobs(arrival_s=[0.0], work_samples=100, curve=0, predicted_curve=1)
    seen = simulate(client, jobs=alone, curves=[CURVE, flat], policy="efficiency-srpt", keep_jobs=True)
    true = simulate(client, jobs=replace(alone, predicted_curve=-1), curves=[CURVE, flat], policy="efficiency-srpt")
    assert seen.runs[0].average_jct_s == 10.0  # a flat curve is not worth a second device, a true 10 samples/s
    assert true.runs[0].average_jct_s == pytest.approx(100 / 46)


def test_bounds_queues_rigid_jobs_and_jobs_without_a_curve(client: Client) -> None:
    jobs = SimulationJobs(
        arrival_s=[0, 0, 0, 0],
        work_samples=1000,
        job_ids=["bounded", "queued", "rigid", "never"],
        max_devices=[2, 0, 0, 0],
        queue=["", "q", "", ""],
        requested_devices=[1, 1, 3, 1],
        rigid=[False, False, True, False],
        curve=[0, 0, 0, -1],
    )
    found = simulate(
        client, jobs=jobs, quotas=[QueueQuota(queue="q", max_devices=1)], keep_timeline=True, policy="equal-share"
    )
    most = {
        name: max(held.devices for held in found.runs[0].timeline if held.job_id == name)
        for name in ("bounded", "queued", "rigid")
    }
    assert most == {"bounded": 2, "queued": 1, "rigid": 3}
    assert (found.runs[0].jobs, found.runs[0].finished) == (4, 3)


def test_curves_are_predicted_as_schedule_predicts_them(client: Client) -> None:
    curve = PredictedCurve(profile=PHASES, allowed_devices=[1, 2, 4])
    alone = SimulationJobs(arrival_s=[0.0], work_samples=1000, requested_devices=2)
    found = simulate(client, jobs=alone, curves=[curve], policy="fifo")
    decided = client.schedule(
        cluster=CLUSTER,
        jobs=[
            ScheduleJob(
                job_id="a", profile=PHASES, remaining_samples=1000, allowed_devices=[1, 2, 4], requested_devices=2
            )
        ],
        policy="fifo",
    )
    assert found.runs[0].average_jct_s == pytest.approx(decided[0].finish_s, rel=1e-12)
    assert [basis.estimator for basis in found.bases] == [decided.bases[0].estimator]


def test_curves_that_cannot_be_predicted_refuse_the_call(client: Client) -> None:
    facts = replace(PHASES, phase_timings=None)
    with pytest.raises(InvalidArgumentError, match=r"curves\[1\]") as wrong:
        simulate(client, curves=[CURVE, PredictedCurve(profile="no/such/../..\n")])
    assert wrong.value.violations[0].field.startswith("curves[1].profile")
    with pytest.raises((RefusedError, InvalidArgumentError), match="empty"):
        simulate(client, curves=[CURVE, PredictedCurve(profile=facts)])
    with pytest.raises(InvalidArgumentError, match=r"curves\[1\]\.allowed_devices\[0\]"):
        simulate(client, curves=[CURVE, PredictedCurve(profile=PHASES, allowed_devices=[0])])
    with pytest.raises(InvalidArgumentError, match=r"curves\[1\]\.allowed_pools\[0\]"):
        simulate(client, curves=[CURVE, PredictedCurve(profile=PHASES, allowed_pools=["q"])])


BAD: list[tuple[str, dict[str, Any]]] = [
    ("jobs.count", {"jobs": SimulationJobs(arrival_s=[], work_samples=1)}),
    ("jobs.arrival_seconds[1]", {"jobs": SimulationJobs(arrival_s=[2, 1], work_samples=1)}),
    ("jobs.arrival_seconds[0]", {"jobs": SimulationJobs(arrival_s=[float("nan")], work_samples=1)}),
    ("jobs.work_samples[1]", {"jobs": replace(JOBS, work_samples=[1, 0, 1])}),
    ("jobs.work_samples", {"jobs": replace(JOBS, work_samples=())}),
    ("jobs.work_samples", {"jobs": replace(JOBS, work_samples=(1, 2))}),
    ("jobs.curve_indexes[2]", {"jobs": replace(JOBS, curve=[0, 0, 1])}),
    ("jobs.predicted_curve_indexes[0]", {"jobs": replace(JOBS, predicted_curve=[-2, 0, 0])}),
    ("jobs.job_ids[1]", {"jobs": replace(JOBS, job_ids=["a", "a", "b"])}),
    ("jobs.job_ids[0]", {"jobs": replace(JOBS, job_ids=["", "a", "b"])}),
    ("jobs.job_ids", {"jobs": replace(JOBS, job_ids=["a"])}),
    ("jobs.rigid", {"jobs": replace(JOBS, rigid=[True, False])}),
    ("jobs.min_devices[0]", {"jobs": replace(JOBS, min_devices=3, max_devices=2)}),
    ("jobs.weights[0]", {"jobs": replace(JOBS, weight=-1.0)}),
    ("jobs.deadline_seconds[0]", {"jobs": replace(JOBS, deadline_s=-1.0)}),
    ("jobs.restart_cost_seconds[0]", {"jobs": replace(JOBS, restart_cost_s=-2.0)}),
    ("curves", {"curves": []}),
    ("curves[0].devices_counts", {"curves": [ThroughputCurve(devices=[], samples_per_s=[])]}),
    ("curves[0].devices_counts[1]", {"curves": [ThroughputCurve(devices=[2, 2], samples_per_s=[1, 1])]}),
    ("curves[0].pool_indexes[0]", {"curves": [ThroughputCurve(devices=[2], samples_per_s=[1], pool=3)]}),
    ("curves[0].samples_per_second[0]", {"curves": [ThroughputCurve(devices=[2], samples_per_s=[0])]}),
    ("cluster.pools", {"cluster": []}),
    ("cluster.pools[0].available_devices[0]", {"cluster": [replace(CLUSTER[0], available_devices=[-1, 9])]}),
    ("quotas[0].max_devices", {"quotas": [QueueQuota(queue="q", max_devices=-1)]}),
    ("policy_parameters['nothing']", {"policy_parameters": {"nothing": 1.0}}),
    ("settings.load_factor", {"settings": SimulationSettings(load=-1.0)}),
    ("settings.round_seconds", {"settings": SimulationSettings(round_s=float("inf"))}),
    ("settings.restart_cost_seconds", {"settings": SimulationSettings(restart_cost_s=-1.0)}),
    ("settings.seed", {"settings": SimulationSettings(seed=-1)}),
    ("settings.checkpoints.interval_seconds", {"settings": SimulationSettings(checkpoints=Checkpoints(interval_s=0))}),
    (
        "settings.failures.mean_repair_seconds",
        {"settings": SimulationSettings(failures=NodeFailures(mean_time_between_failures_s=1, mean_repair_s=0))},
    ),
    ("settings.early_stops.probability", {"settings": SimulationSettings(early_stops=EarlyStops(probability=2))}),
    (
        "settings.early_stops.progress_shares",
        {"settings": SimulationSettings(early_stops=EarlyStops(probability=1, progress=(0.5, 0.1)))},
    ),
    (
        "settings.prediction_error.row_sigma",
        {"settings": SimulationSettings(prediction_error=PredictionError(row_sigma=9))},
    ),
    ("repetitions_count", {"repetitions": 1_000_000}),
    ("repetitions_count", {"jobs": MANY, "repetitions": 999, "keep_jobs": True}),
]


@pytest.mark.parametrize(("field", "changes"), BAD, ids=[f"{number}-{field}" for number, (field, _) in enumerate(BAD)])
def test_what_is_wrong_is_named(client: Client, field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as wrong:
        simulate(client, **changes)
    assert wrong.value.violations[0].field == field


def test_an_unknown_clock_and_rows_beside_a_profile_are_refused(target: str) -> None:
    request = simulate_request(
        cluster=CLUSTER,
        jobs=JOBS,
        curves=[CURVE],
        policy="fifo",
        policy_parameters=None,
        quotas=(),
        settings=None,
        repetitions=1,
        keep_jobs=False,
        keep_timeline=False,
        options=None,
    )
    with Stubs(target) as stubs:
        clock = pb.SimulateRequest()
        clock.CopyFrom(request)
        clock.settings.clock = 9  # type: ignore[assignment]
        assert "settings.clock" in failure_of(stubs.schedule.Simulate, clock).message
        both = pb.SimulateRequest()
        both.CopyFrom(request)
        both.curves[0].profile.inline.CopyFrom(one_worker_phases())
        assert "curves[0].pool_indexes" in failure_of(stubs.schedule.Simulate, both).message
        many = pb.SimulateRequest(jobs=simulation_pb2.SimulationJobs(count=10_000_000))
        assert failure_of(stubs.schedule.Simulate, many).reason == "LIMIT_EXCEEDED"


def test_a_policy_that_fails_or_cheats_costs_its_call_a_clear_error(client: Client) -> None:
    with pytest.raises(InternalError, match="'raises'") as failed:
        simulate(client, policy="raises")
    assert failed.value.reason == "POLICY_FAILED"
    assert "secret" not in str(failed.value)
    with pytest.raises(InternalError) as invalid:
        simulate(client, policy="greedy")
    assert invalid.value.reason == "POLICY_INVALID_RESULT"


def test_when_the_time_is_over_the_answer_is_what_was_simulated_so_far(client: Client) -> None:
    started = time.monotonic()
    found = simulate(client, jobs=MANY, policy="gate", timeout_s=2.0, repetitions=3)
    assert time.monotonic() - started < 2.0
    assert not found.complete
    assert len(found.runs) == 1
    assert not found.runs[0].complete
    assert 0 < found.runs[0].finished < 9_000


async def test_a_caller_that_goes_ends_the_simulation(target: str) -> None:
    async with AsyncClient(target) as client:
        ADVANCED.clear()
        asked: dict[str, Any] = {"cluster": CLUSTER, "curves": [CURVE], "policy": "gate"}
        calls = [asyncio.ensure_future(client.simulate(jobs=MANY, **asked)) for _ in range(3)]
        await asyncio.to_thread(ADVANCED.wait, 20)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        # Two simulations run at a time: this one is answered only if those before it have ended.
        found = await client.simulate(jobs=JOBS, **{**asked, "policy": "fifo"}, timeout_s=10)
        assert found.complete
        heard: list[SimulationProgress] = []
        again = await client.simulate(jobs=JOBS, **{**asked, "policy": "fifo"}, on_progress=heard.append)
        assert figures(again) == figures(found)
        assert heard


def test_an_unknown_policy_is_refused(target: str) -> None:
    with Stubs(target) as stubs:
        failure = failure_of(stubs.schedule.Simulate, pb.SimulateRequest(policy="nobody"))
    assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "POLICY_NOT_FOUND")
