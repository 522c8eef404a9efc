"""Parameter-server training over a real socket, answered by the queueing estimator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    DeadlineExceededError,
    IntervalBasis,
    InvalidArgumentError,
    LeastTime,
    ModelOptions,
    Network,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    RowStatus,
    Work,
    WorkerGroup,
    Workload,
    configurations,
    objective,
    observations,
    phase_timings,
    profile_source,
)

pytestmark = pytest.mark.wheel

QUEUEING = PredictOptions(model=ModelOptions(estimator="queueing"))
ONE_WORKER = configurations(nodes=1, workers=1, parameter_servers=1, sync_modes="async")
JOB = ProfileContent(
    workload=Workload(parameter_bytes=4_000_000),
    network=Network(link_bytes_per_second=25e6),
    phase_timings=phase_timings(
        compute_seconds=0.29659,
        download_seconds=0.15876,
        upload_seconds=0.16033,
        update_seconds=0.005,
        compute_variation=0.2,
        configurations=ONE_WORKER,
    ),
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def test_an_answer_says_what_it_lies_between(client: Client) -> None:
    found = client.predict(
        PredictRequest(profile=profile_source(JOB), configurations=configurations(workers=[1, 2, 4, 8]))
    )
    assert found.basis.estimator == "queueing"
    assert found[0].step_seconds == pytest.approx(0.62068)
    for row in found:
        assert row.steps_per_second is not None
        low, high = row.extra["in_step_steps_per_s"], row.extra["first_come_first_served_steps_per_s"]
        assert low * (1 - 1e-9) <= row.steps_per_second <= high * (1 + 1e-9)
        assert low * (1 - 1e-9) <= row.extra["processor_sharing_steps_per_s"] <= high * (1 + 1e-9)
        assert sum(row.breakdown_seconds.values()) == pytest.approx(row.step_seconds)
        assert row.staleness_mean_steps == row.workers - 1


def test_a_hybrids_switch_is_in_the_time_to_finish_and_not_in_the_step(client: Client) -> None:
    rows = configurations(
        workers=8,
        sync_modes="hybrid",
        batch_per_worker_samples=32,
        hybrid_sync_fractions=[0.1, 0.1, 1.0],
        hybrid_switch_seconds=[0.0, 90.0, 90.0],
    )
    steps = 1000
    plain, switching, synchronous = client.predict(
        PredictRequest(
            profile=profile_source(JOB),
            configurations=rows,
            objective=objective(LeastTime()),
            work=Work(samples=8 * 32 * steps),
            options=QUEUEING,
        )
    )
    assert plain.step_seconds == switching.step_seconds
    assert plain.step_seconds == pytest.approx(0.1 * plain.extra["sync_step_s"] + 0.9 * plain.extra["async_step_s"])
    assert (plain.once_seconds, switching.once_seconds, synchronous.once_seconds) == (None, 90.0, None)
    assert plain.finish_seconds == pytest.approx(steps * plain.step_seconds)
    assert switching.finish_seconds == pytest.approx(steps * plain.step_seconds + 90.0)
    assert synchronous.step_seconds == pytest.approx(plain.extra["sync_step_s"])


def test_workers_of_two_devices_share_the_servers(client: Client) -> None:
    job = ProfileContent(
        phase_timings=phase_timings(
            compute_seconds=[0.2, 0.08],
            download_seconds=0.02,
            upload_seconds=0.0,
            update_seconds=0.0,
            compute_variation=0.3,
            configurations=configurations(
                nodes=1, workers=1, parameter_servers=1, sync_modes="async", devices=["K80", "P100"]
            ),
        )
    )
    groups = [
        [WorkerGroup(workers=3, device_name="K80"), WorkerGroup(workers=3, device_name="P100")],
        [WorkerGroup(workers=3, device_name="K80"), WorkerGroup(workers=3, device_name="V100")],
    ]
    rows = configurations(sync_modes="async", devices="K80", groups=groups)
    found = client.predict(PredictRequest(profile=profile_source(job), configurations=rows, options=QUEUEING))
    mixed, unknown = found
    assert mixed.steps_per_second == pytest.approx(12.2225 + 24.8333, abs=1e-3)
    assert "MIXED_WORKERS" in {warning.reason for warning in found.warnings}
    assert unknown.status is RowStatus.REFUSED
    assert unknown.refusal is not None
    assert unknown.refusal.problem is not None
    assert unknown.refusal.problem.reason == "EVIDENCE_MISSING"
    assert "V100" in unknown.refusal.problem.message


def test_backup_workers_shorten_rounds_and_lose_samples(client: Client) -> None:
    rows = configurations(workers=8, sync_modes="sync", batch_per_worker_samples=32, backup_workers=[0, 2])
    everyone, fastest = client.predict(
        PredictRequest(profile=profile_source(JOB), configurations=rows, options=QUEUEING)
    )
    assert fastest.step_seconds is not None
    assert everyone.step_seconds is not None
    assert fastest.step_seconds < everyone.step_seconds
    assert fastest.samples_per_second == pytest.approx(6 * 32 / fastest.step_seconds)
    with pytest.raises(InvalidArgumentError, match="backup_workers"):
        client.predict(
            PredictRequest(
                profile=profile_source(JOB), configurations=replace(rows, backup_workers=[2, 8]), options=QUEUEING
            )
        )


def test_a_simulation_says_so_and_is_repeated_by_its_seed(client: Client) -> None:
    rows = configurations(workers=[1, 4], sync_modes="async")
    phases = ProfileContent(phase_timings=JOB.phase_timings)

    def simulate(seed: int, **more: Any) -> PredictOptions:
        return PredictOptions(model=ModelOptions(estimator="queueing", seed=seed), fidelity="simulate", **more)

    first, again, other, longer = (
        client.predict(
            PredictRequest(profile=profile_source(phases), configurations=rows, options=options), timeout_s=60.0
        )  # the first may have to compile
        for options in (simulate(3), simulate(3), simulate(4), simulate(3, simulated_steps_count=200_000))
    )
    expected = client.predict(PredictRequest(profile=profile_source(phases), configurations=rows, options=QUEUEING))
    assert {row.interval_basis for row in first} == {IntervalBasis.SIMULATION}
    assert {row.interval_basis for row in expected} == {IntervalBasis.MODEL_SPREAD}
    assert [row.steps_per_second for row in first] == [row.steps_per_second for row in again]
    assert [row.steps_per_second for row in first] != [row.steps_per_second for row in other]
    for simulated, by_law in zip(first, expected, strict=True):
        assert simulated.steps_per_second == pytest.approx(by_law.steps_per_second, rel=0.03)

    def width(row) -> float:
        return math.log(row.upper_steps_per_second / row.lower_steps_per_second)

    # Ten times the steps: about a third of the width.
    assert 0.15 < width(longer[1]) / width(first[1]) < 0.6
    assert {warning.reason for warning in first.warnings} >= {"SIMULATED"}


def test_a_simulation_that_has_no_time_ends_with_the_call(client: Client) -> None:
    rows = configurations(workers=list(range(1, 200)), sync_modes="async")
    simulate = replace(QUEUEING, fidelity="simulate", simulated_steps_count=40_000)
    with pytest.raises(DeadlineExceededError):
        client.predict(
            PredictRequest(profile=profile_source(JOB), configurations=rows, options=simulate), timeout_s=0.3
        )
    assert client.predict(
        PredictRequest(profile=profile_source(JOB), configurations=configurations(workers=2), options=QUEUEING)
    )[0].answered


def test_throughputs_of_one_number_of_workers_answer_for_it_alone(client: Client) -> None:
    runs = observations(
        configurations=configurations(nodes=8, workers=8, parameter_servers=1, sync_modes=["sync", "async"]),
        steps_per_second=[8000 / 10532, 64000 / 1598],
    )
    rows = configurations(workers=8, sync_modes="hybrid", hybrid_sync_fractions=0.1)
    (answer,) = client.predict(
        PredictRequest(profile=profile_source(ProfileContent(observations=runs)), configurations=rows, options=QUEUEING)
    )
    assert answer.steps_per_second is not None
    assert 64000 / answer.steps_per_second == pytest.approx(0.1 * 10532 + 0.9 * 1598)
    other = configurations(workers=4, sync_modes="hybrid", hybrid_sync_fractions=0.1)
    with pytest.raises(RefusedError, match="8 workers only"):
        client.predict(
            PredictRequest(
                profile=profile_source(ProfileContent(observations=runs)), configurations=other, options=QUEUEING
            )
        )
