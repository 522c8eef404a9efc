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
from patience import PATIENCE_S, before_its_deadline
from serving import Stubs, failure_of, one_worker_phases, registry_with

from nodewise.plugin import Allocation, Grant, PolicyParameter, PolicyRecord
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    AsyncClient,
    Client,
    Cluster,
    InternalError,
    InvalidArgumentError,
    NodePool,
    ProfileContent,
    QueueQuota,
    RefusedError,
    ScheduleJob,
    ScheduleRequest,
    SimulateRequest,
    SimulationAnswer,
    SimulationCheckpoints,
    SimulationCurve,
    SimulationCurveRows,
    SimulationEarlyStops,
    SimulationFigure,
    SimulationNodeFailures,
    SimulationPredictionError,
    SimulationProfileCurve,
    SimulationProgress,
    SimulationSettings,
    profile_source,
    simulation_jobs,
)
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb
from nodewise_values.wire import from_message, to_message

CLUSTER = [NodePool(name="p", device_name="V100", available_devices=[4, 4])]
CURVE = SimulationCurve(
    rows=SimulationCurveRows(
        pool_indexes=[0] * 8, devices_counts=range(1, 9), samples_per_second=[10, 20, 30, 38, 46, 49, 50, 50]
    )
)
NEVER = SimulationCurve(rows=SimulationCurveRows())
JOBS = simulation_jobs(arrival_seconds=[0, 1, 2.5], work_samples=[100, 200, 50], requested_devices=2)
MANY = simulation_jobs(arrival_seconds=[float(second) for second in range(9_000)], work_samples=5, requested_devices=1)
PHASES = from_message(one_worker_phases(), ProfileContent)
ADVANCED = threading.Event()


def given(**columns: Any) -> SimulationCurve:
    """A curve of rows."""
    return SimulationCurve(rows=SimulationCurveRows(**columns))


def predicted(profile: str | ProfileContent, **more: Any) -> SimulationCurve:
    """A curve that the service predicts."""
    return SimulationCurve(profile=SimulationProfileCurve(profile=profile_source(profile), **more))


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


def simulate(client: Client, **more: Any) -> SimulationAnswer:
    call = {name: more.pop(name) for name in ("on_progress", "timeout_s") if name in more}
    asked: dict[str, Any] = {
        "cluster": Cluster(pools=CLUSTER),
        "jobs": JOBS,
        "curves": [CURVE],
        "policy": "equal-share",
    }
    return client.simulate(SimulateRequest(**{**asked, **more}), **call)


def figure(result: SimulationAnswer) -> SimulationFigure:
    """Mean response times over repetitions."""
    return next(each for each in result.figures if each.measure == "average_jct_seconds")


def figures(result: SimulationAnswer) -> list[object]:
    """All but wall times."""
    still = {"decision_seconds": 0.0, "longest_decision_seconds": 0.0, "wall_seconds": 0.0}
    return [replace(run, **still) for run in result.runs] + [result.figures]


def test_a_simulation_tells_of_runs_jobs_and_who_held_what(client: Client) -> None:
    heard: list[SimulationProgress] = []
    found = simulate(client, include_jobs=True, include_timeline=True, on_progress=heard.append)
    (run,) = found.runs
    assert (run.jobs_count, run.finished_count, run.complete, found.complete) == (3, 3, True, True)
    assert run.average_jct_seconds == pytest.approx(sum(job.response_seconds for job in found.jobs[run.seed]) / 3)
    assert [job.job_id for job in found.jobs[run.seed]] == ["0", "1", "2"]
    assert run.makespan_seconds == max(job.completion_seconds for job in found.jobs[run.seed])
    assert sum(
        held.devices_count * (held.end_seconds - held.begin_seconds) for held in found.timelines[run.seed]
    ) == pytest.approx(run.busy_device_seconds)
    assert {held.pool_index for held in found.timelines[run.seed]} == {0}
    assert heard[-1].finished_count == heard[-1].jobs_count == 3
    assert (heard[-1].repetitions_done_count, heard[-1].repetitions_count) == (1, 1)
    assert figure(found).mean == run.average_jct_seconds
    assert figure(found).lower is None
    assert (found.policy, found.bases) == ("equal-share", ())


def test_the_same_request_is_the_same_answer_with_or_without_columns(client: Client) -> None:
    settings = SimulationSettings(
        clock="fixed_rounds",
        round_seconds=1.0,
        restart_cost_seconds=0.5,
        early_stops=SimulationEarlyStops(probability=0.5, progress_shares=(0.2, 0.9)),
        failures=SimulationNodeFailures(mean_time_between_failures_seconds=10, mean_repair_seconds=2),
        checkpoints=SimulationCheckpoints(interval_seconds=1.0, cost_seconds=0.1),
        prediction_error=SimulationPredictionError(job_sigma=0.2, row_sigma=0.1),
        seed=3,
    )
    asked = {"settings": settings, "repetitions_count": 4, "policy": "efficiency-srpt-fill"}
    found = simulate(client, **asked)
    assert figures(found) == figures(simulate(client, **asked))
    kept = simulate(client, **asked, include_jobs=True, include_timeline=True)
    assert figures(kept) == figures(found)
    assert [run.seed for run in found.runs] == [3, 4, 5, 6]
    mean = figure(found)
    assert mean.lower is not None
    assert mean.upper is not None
    assert mean.lower < mean.mean < mean.upper


@pytest.mark.long
def test_columns_come_in_messages_that_every_client_takes(target: str) -> None:
    request = to_message(
        SimulateRequest(
            cluster=Cluster(pools=CLUSTER),
            jobs=MANY,
            curves=(CURVE,),
            policy="fifo",
            include_jobs=True,
            include_timeline=True,
        )
    )
    with Stubs(target) as stubs:
        messages = list(stubs.simulation.Simulate(request, timeout=PATIENCE_S))
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
    simulate(client, policy="drawn", repetitions_count=2, settings=SimulationSettings(seed=7))
    assert set(DRAWN.seeds) == {7.0, 8.0}
    DRAWN.seeds.clear()
    simulate(client, policy="drawn", policy_parameters={"seed": 5}, repetitions_count=2)
    assert set(DRAWN.seeds) == {5.0}


def test_rates_that_the_policy_sees_may_be_others_than_those_that_are_true(client: Client) -> None:
    flat = given(devices_counts=[1, 2, 4, 8], samples_per_second=[40, 41, 42, 43])
    alone = simulation_jobs(arrival_seconds=[0.0], work_samples=100, curve_indexes=0, predicted_curve_indexes=1)
    seen = simulate(client, jobs=alone, curves=[CURVE, flat], policy="efficiency-srpt", include_jobs=True)
    true = simulate(
        client, jobs=replace(alone, predicted_curve_indexes=()), curves=[CURVE, flat], policy="efficiency-srpt"
    )
    assert seen.runs[0].average_jct_seconds == 10.0  # a flat curve is not worth a second device, a true 10 samples/s
    assert true.runs[0].average_jct_seconds == pytest.approx(100 / 46)


def test_bounds_queues_rigid_jobs_and_jobs_without_a_curve(client: Client) -> None:
    jobs = simulation_jobs(
        arrival_seconds=[0, 0, 0, 0],
        work_samples=1000,
        job_ids=["bounded", "queued", "rigid", "never"],
        max_devices=[2, 0, 0, 0],
        queues=["", "q", "", ""],
        requested_devices=[1, 1, 3, 1],
        rigid=[False, False, True, False],
        curve_indexes=[0, 0, 0, 1],
    )
    found = simulate(
        client,
        jobs=jobs,
        curves=[CURVE, NEVER],
        quotas=[QueueQuota(queue="q", max_devices=1)],
        include_timeline=True,
        policy="equal-share",
    )
    most = {
        name: max(held.devices_count for held in found.timelines[0] if held.job_id == name)
        for name in ("bounded", "queued", "rigid")
    }
    assert most == {"bounded": 2, "queued": 1, "rigid": 3}
    assert (found.runs[0].jobs_count, found.runs[0].finished_count) == (4, 3)


def test_curves_are_predicted_as_schedule_predicts_them(client: Client) -> None:
    curve = predicted(PHASES, allowed_devices=[1, 2, 4])
    alone = simulation_jobs(arrival_seconds=[0.0], work_samples=1000, requested_devices=2)
    found = simulate(client, jobs=alone, curves=[curve], policy="fifo")
    decided = client.schedule(
        ScheduleRequest(
            cluster=Cluster(pools=CLUSTER),
            jobs=[
                ScheduleJob(
                    job_id="a",
                    profile=profile_source(PHASES),
                    remaining_samples=1000,
                    allowed_devices=[1, 2, 4],
                    requested_devices=2,
                )
            ],
            policy="fifo",
        )
    )
    assert found.runs[0].average_jct_seconds == pytest.approx(decided.allocations[0].finish_seconds, rel=1e-12)
    assert [basis.estimator for basis in found.bases] == [decided.bases[0].estimator]


def test_curves_that_cannot_be_predicted_refuse_the_call(client: Client) -> None:
    facts = replace(PHASES, phase_timings=None)
    with pytest.raises(InvalidArgumentError, match=r"curves\[1\]") as wrong:
        simulate(client, curves=[CURVE, predicted("no/such/../..\n")])
    assert wrong.value.violations[0].field.startswith("curves[1].profile.profile")
    with pytest.raises((RefusedError, InvalidArgumentError), match="empty"):
        simulate(client, curves=[CURVE, predicted(facts)])
    with pytest.raises(InvalidArgumentError, match=r"curves\[1\]\.profile\.allowed_devices\[0\]"):
        simulate(client, curves=[CURVE, predicted(PHASES, allowed_devices=[0])])
    with pytest.raises(InvalidArgumentError, match=r"curves\[1\]\.profile\.allowed_pools\[0\]"):
        simulate(client, curves=[CURVE, predicted(PHASES, allowed_pools=["q"])])


BAD: list[tuple[str, dict[str, Any]]] = [
    ("jobs.count", {"jobs": simulation_jobs(arrival_seconds=[], work_samples=1)}),
    ("jobs.arrival_seconds[1]", {"jobs": simulation_jobs(arrival_seconds=[2, 1], work_samples=1)}),
    ("jobs.arrival_seconds[0]", {"jobs": simulation_jobs(arrival_seconds=[float("nan")], work_samples=1)}),
    ("jobs.work_samples[1]", {"jobs": replace(JOBS, work_samples=[1, 0, 1])}),
    ("jobs.work_samples", {"jobs": replace(JOBS, work_samples=())}),
    ("jobs.work_samples", {"jobs": replace(JOBS, work_samples=(1, 2))}),
    ("jobs.curve_indexes[2]", {"jobs": replace(JOBS, curve_indexes=[0, 0, 1])}),
    ("jobs.curve_indexes[2]", {"jobs": replace(JOBS, curve_indexes=[0, 0, -1])}),
    ("jobs.predicted_curve_indexes[0]", {"jobs": replace(JOBS, predicted_curve_indexes=[-1, 0, 0])}),
    ("jobs.job_ids[1]", {"jobs": replace(JOBS, job_ids=["a", "a", "b"])}),
    ("jobs.job_ids[0]", {"jobs": replace(JOBS, job_ids=["", "a", "b"])}),
    ("jobs.job_ids", {"jobs": replace(JOBS, job_ids=["a"])}),
    ("jobs.rigid", {"jobs": replace(JOBS, rigid=[True, False])}),
    ("jobs.min_devices[0]", {"jobs": replace(JOBS, min_devices=[3], max_devices=[2])}),
    ("jobs.weights[0]", {"jobs": replace(JOBS, weights=[-1.0])}),
    ("jobs.deadline_seconds[0]", {"jobs": replace(JOBS, deadline_seconds=[-1.0])}),
    ("jobs.restart_cost_seconds[0]", {"jobs": replace(JOBS, restart_cost_seconds=[-1.0])}),
    ("curves", {"curves": []}),
    ("curves[0]", {"curves": [SimulationCurve()]}),
    ("curves[0].rows.devices_counts", {"curves": [given(devices_counts=[], samples_per_second=[1])]}),
    ("curves[0].rows.devices_counts[1]", {"curves": [given(devices_counts=[2, 2], samples_per_second=[1, 1])]}),
    (
        "curves[0].rows.pool_indexes[0]",
        {"curves": [given(devices_counts=[2], samples_per_second=[1], pool_indexes=[3])]},
    ),
    ("curves[0].rows.samples_per_second[0]", {"curves": [given(devices_counts=[2], samples_per_second=[0])]}),
    ("cluster.pools", {"cluster": Cluster()}),
    (
        "cluster.pools[0].available_devices[0]",
        {"cluster": Cluster(pools=[replace(CLUSTER[0], available_devices=[-1, 9])])},
    ),
    ("quotas[0].max_devices", {"quotas": [QueueQuota(queue="q", max_devices=-1)]}),
    ("policy_parameters['nothing']", {"policy_parameters": {"nothing": 1.0}}),
    ("settings.load_factor", {"settings": SimulationSettings(load_factor=-1.0)}),
    ("settings.load_factor", {"settings": SimulationSettings(load_factor=0.0)}),
    ("settings.round_seconds", {"settings": SimulationSettings(round_seconds=0.0)}),
    ("settings.round_seconds", {"settings": SimulationSettings(round_seconds=float("inf"))}),
    ("settings.restart_cost_seconds", {"settings": SimulationSettings(restart_cost_seconds=-1.0)}),
    ("settings.seed", {"settings": SimulationSettings(seed=-1)}),
    (
        "settings.checkpoints.interval_seconds",
        {"settings": SimulationSettings(checkpoints=SimulationCheckpoints(interval_seconds=0))},
    ),
    (
        "settings.failures.mean_repair_seconds",
        {
            "settings": SimulationSettings(
                failures=SimulationNodeFailures(mean_time_between_failures_seconds=1, mean_repair_seconds=0)
            )
        },
    ),
    (
        "settings.early_stops.probability",
        {"settings": SimulationSettings(early_stops=SimulationEarlyStops(probability=2))},
    ),
    (
        "settings.early_stops.progress_shares",
        {"settings": SimulationSettings(early_stops=SimulationEarlyStops(probability=1, progress_shares=(0.5, 0.1)))},
    ),
    (
        "settings.prediction_error.row_sigma",
        {"settings": SimulationSettings(prediction_error=SimulationPredictionError(row_sigma=9))},
    ),
    ("repetitions_count", {"repetitions_count": 0}),
    ("repetitions_count", {"repetitions_count": 1_000_000}),
    ("repetitions_count", {"jobs": MANY, "repetitions_count": 999, "include_jobs": True}),
]


@pytest.mark.parametrize(("field", "changes"), BAD, ids=[f"{number}-{field}" for number, (field, _) in enumerate(BAD)])
def test_what_is_wrong_is_named(client: Client, field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as wrong:
        simulate(client, **changes)
    assert wrong.value.violations[0].field == field


def test_an_unknown_clock_and_too_many_jobs_are_refused(target: str) -> None:
    request = to_message(
        SimulateRequest(
            cluster=Cluster(pools=CLUSTER),
            jobs=JOBS,
            curves=(CURVE,),
            policy="fifo",
            include_jobs=False,
            include_timeline=False,
        )
    )
    with Stubs(target) as stubs:
        clock = pb.SimulateRequest()
        clock.CopyFrom(request)
        clock.settings.clock = 9  # type: ignore[assignment]
        assert "settings.clock" in failure_of(stubs.simulation.Simulate, clock).message
        many = pb.SimulateRequest(jobs=simulation_pb2.SimulationJobs(count=10_000_000))
        assert failure_of(stubs.simulation.Simulate, many).reason == "LIMIT_EXCEEDED"


def test_a_policy_that_fails_or_cheats_costs_its_call_a_clear_error(client: Client) -> None:
    with pytest.raises(InternalError, match="'raises'") as failed:
        simulate(client, policy="raises")
    assert failed.value.reason == "POLICY_FAILED"
    assert "secret" not in str(failed.value)
    with pytest.raises(InternalError) as invalid:
        simulate(client, policy="greedy")
    assert invalid.value.reason == "POLICY_INVALID_RESULT"


def test_when_the_time_is_over_the_answer_is_what_was_simulated_so_far(client: Client) -> None:
    found = before_its_deadline(
        lambda timeout_s: simulate(client, jobs=MANY, policy="gate", timeout_s=timeout_s, repetitions_count=3), 2.0
    )
    assert not found.complete
    assert len(found.runs) == 1
    assert not found.runs[0].complete
    assert 0 < found.runs[0].finished_count < 9_000


async def test_a_caller_that_goes_ends_the_simulation(target: str) -> None:
    async with AsyncClient(target) as client:
        ADVANCED.clear()
        asked: dict[str, Any] = {"cluster": Cluster(pools=CLUSTER), "curves": [CURVE], "policy": "gate"}
        calls = [asyncio.ensure_future(client.simulate(SimulateRequest(jobs=MANY, **asked))) for _ in range(3)]
        await asyncio.to_thread(ADVANCED.wait, PATIENCE_S)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        # Two simulations run at a time: this one is answered only if those before it have ended.
        found = await client.simulate(SimulateRequest(jobs=JOBS, **{**asked, "policy": "fifo"}), timeout_s=PATIENCE_S)
        assert found.complete
        heard: list[SimulationProgress] = []
        again = await client.simulate(
            SimulateRequest(jobs=JOBS, **{**asked, "policy": "fifo"}), on_progress=heard.append
        )
        assert figures(again) == figures(found)
        assert heard


def test_an_unknown_policy_is_refused(target: str) -> None:
    with Stubs(target) as stubs:
        failure = failure_of(stubs.simulation.Simulate, pb.SimulateRequest(policy="nobody"))
    assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "POLICY_NOT_FOUND")
