"""Workers of several devices, which add up their gradients before they push them once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from queueing_profiles import answered, assessed, mixed, predicted, profile, refused, rows, timings

from nodewise.plugin import (
    Configurations,
    Fidelity,
    Observations,
    Placement,
    Predictions,
    Profile,
    Reason,
    SyncMode,
    WorkerGroup,
    as_floats,
)
from nodewise_laws import expected_maximum_gamma
from nodewise_queueing.rows import clients_of

DOWNLOAD, COMPUTE, UPLOAD, UPDATE = 0.05, 0.5, 0.06, 0.004
CV = 0.1
MODES = pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.SYNC])


def of(job: Profile, devices: int | None, framework: str | None = "mxnet") -> Profile:
    """The job with workers of so many devices; MXNet's pull the parameters once."""
    return replace(job, workload=replace(job.workload, devices_per_worker=devices, framework=framework))


JOB = profile(timings((DOWNLOAD, COMPUTE, UPLOAD, UPDATE), cv=CV, device="V100"))


def asked(
    nodes: Sequence[int], workers: Sequence[int], mode: SyncMode = SyncMode.ASYNC, **columns: int | float
) -> Configurations:
    return rows(workers, mode, device="V100", nodes=nodes, **columns)


def detector(devices: int | None, framework: str | None = None, *more: tuple[int, int, float]) -> Profile:
    """Steps/s of an object detector on V100, 8 images a device: nodes, devices, and steps of all devices per second.

    tensorflow/tensorflow issue 37913, from which the times of 100 and of 800 iterations are.
    """
    runs = [(1, 1, 1.887), (8, 8, 11.85), *more]
    configurations = asked([run[0] for run in runs], [run[1] for run in runs])
    measured = Observations.of(configurations, as_floats([run[2] for run in runs]))
    return of(profile(measured=measured), devices, framework)


def images_per_s(answer: Predictions, workers: int) -> tuple[float, float, float]:
    """Lower bound, answer and upper bound."""
    rate, spread = 8 * workers / answer.step_s[0], np.exp(1.645 * answer.log_spread[0])
    return float(rate / spread), float(rate), float(rate * spread)


def test_eight_workers_of_eight_devices_each() -> None:
    question = asked([8], [64])
    low, rate, high = images_per_s(answered(detector(8), question), 64)
    assert rate == pytest.approx(197, rel=0.12)
    assert low < 197 < high
    # 64 workers that each push are at half of it.
    assert images_per_s(answered(detector(None), question), 64)[2] < 197


def test_the_framework_tells_who_pulls() -> None:
    question = asked([8], [64])
    unsaid = answered(detector(8), question)
    message = next(each.message for each in unsaid.notices if each.reason == "UNSAID")
    assert "framework (every device is assumed to pull parameters itself" in message
    each, once = (answered(detector(8, framework), question) for framework in ("tensorflow", "byteps"))
    assert each.step_s[0] == unsaid.step_s[0] > once.step_s[0]
    assert each.log_spread[0] < 0.5 * unsaid.log_spread[0]
    low, _, high = images_per_s(unsaid, 64)
    assert low < images_per_s(once, 64)[1] < high
    assert all(notice.reason != "UNSAID" for answer in (each, once) for notice in answer.notices)


@pytest.mark.parametrize(("rate", "framework"), [(24.6, "tensorflow"), (90.0, "mxnet")])
def test_a_run_of_such_workers_tells_who_pulls(rate: float, framework: str) -> None:
    question = asked([12], [96])
    shown = answered(detector(8, None, (8, 64, rate)), question)
    settled = answered(detector(8, framework, (8, 64, rate)), question)
    assert shown.step_s[0] == pytest.approx(settled.step_s[0], rel=0.02)
    assert shown.log_spread[0] < 0.3


def test_clients_are_counted_within_nodes() -> None:
    found = clients_of(asked([1, 8, 8, 2, 3, 2, 1], [1, 8, 64, 12, 4, 5, 4]), 4)
    assert found.clients.tolist() == [1, 8, 16, 4, 3, 2, 1]
    assert found.devices.tolist() == [1, 1, 4, 4, 2, 3, 4]
    assert found.node_shared.tolist() == [False, False, True, True, False, False, False]
    placed = asked([2, 2], [9, 9]).replaced(placement=Placement.of([(8, 1), ()]))
    assert clients_of(placed, 8).clients.tolist() == [2, 2]
    assert clients_of(placed, 8).devices.tolist() == [8, 5]


@MODES
def test_one_worker_computes_as_long_as_its_slowest_device(mode: SyncMode) -> None:
    answer = answered(of(JOB, 8), asked([1], [8], mode))
    slowest_s = float(expected_maximum_gamma(COMPUTE, CV, 8))
    assert answer.step_s[0] == pytest.approx(DOWNLOAD + slowest_s + UPLOAD + UPDATE)
    pulling = answered(of(JOB, 8, "tensorflow"), asked([1], [8], mode))
    assert pulling.step_s[0] - answer.step_s[0] == pytest.approx(7 * DOWNLOAD)


@MODES
def test_workers_exchange_like_as_many_of_one_device_that_compute_so_long(mode: SyncMode) -> None:
    slowest = (DOWNLOAD, float(expected_maximum_gamma(COMPUTE, CV, 8)), UPLOAD, UPDATE)
    alike = profile(timings(slowest, cv=0.055, device="V100"))
    one = answered(alike, asked([8], [8], mode))
    eight = answered(of(JOB, 8), asked([8], [64], mode))
    np.testing.assert_allclose(eight.step_s, one.step_s, rtol=0.005)
    np.testing.assert_array_equal(eight.staleness_mean, one.staleness_mean)


@MODES
@pytest.mark.parametrize("framework", ["mxnet", "tensorflow"])
def test_a_simulation_agrees(mode: SyncMode, framework: str) -> None:
    job, question = of(JOB, 4, framework), asked([2, 8], [8, 32], mode)
    simulated = answered(job, question, fidelity=Fidelity.SIMULATE, simulated_steps=4000)
    np.testing.assert_allclose(answered(job, question).step_s, simulated.step_s, rtol=0.06)


def test_a_hybrid_is_the_sum_of_both_modes() -> None:
    parts = [answered(of(JOB, 8), asked([4], [32], mode)).step_s[0] for mode in (SyncMode.SYNC, SyncMode.ASYNC)]
    both = answered(of(JOB, 8), asked([4], [32], SyncMode.HYBRID, hybrid_sync_fraction=0.25))
    assert both.step_s[0] == pytest.approx(0.25 * parts[0] + 0.75 * parts[1])


def test_adding_up_takes_what_the_link_in_the_node_needs() -> None:
    bytes_known = profile(JOB.phase_timings, parameter_bytes=400_000_000)
    free, paid = (answered(of(job, 8), asked([1], [8])) for job in (JOB, bytes_known))
    # NVLink2, 150 GB/s in one direction: 2 x 7 / 8 for adding up, and 1 for handing on what was pulled.
    assert paid.step_s[0] - free.step_s[0] == pytest.approx(2.75 * 4e8 / 150e9)
    words = [
        next(each.message for each in answer.notices if each.reason == "DEVICES_ADD_UP") for answer in (free, paid)
    ]
    assert "which is assumed to take no time" in words[0]
    assert "which takes 0.00733 s" in words[1]


@MODES
def test_phases_of_a_worker_of_several_devices_are_one_worker_s(mode: SyncMode) -> None:
    timed = timings((0.1, 0.6, 0.05, 0.004), workers=8, nodes=1, cv=0.0, device="V100")
    answer = answered(of(profile(timed), 8), asked([1, 4], [8, 32], mode))
    assert answer.step_s[0] == pytest.approx(0.754)
    assert answer.step_s[1] > 0.754
    assert "TIMINGS_NOT_USED" not in {notice.reason for notice in answer.notices}
    # With a device alone what eight pulled is an eighth.
    alone = answered(of(profile(timed), 8, "tensorflow"), asked([1], [1], mode))
    assert alone.step_s[0] == pytest.approx(0.754 - 0.1 * 7 / 8)


def test_a_variation_measured_on_such_a_worker_is_that_of_its_slowest_device() -> None:
    timed = timings((0.01, 0.6, 0.01, 0.0), workers=8, nodes=1, cv=0.05, device="V100")
    alike = profile(timings((0.01, 0.6, 0.01, 0.0), cv=0.05, device="V100"))
    several = answered(of(profile(timed), 8), asked([8], [64], SyncMode.SYNC))
    assert several.step_s[0] == pytest.approx(answered(alike, asked([8], [8], SyncMode.SYNC)).step_s[0], rel=0.002)


def test_backup_workers_are_whole_workers() -> None:
    found = refused(predicted(of(JOB, 8), asked([8, 8], [64, 64], SyncMode.SYNC, backup_workers=[8, 3])))
    assert {row: reason for row, (reason, _) in found.items()} == {1: Reason.UNSUPPORTED_CONFIGURATION}
    assert "multiple of devices_per_worker" in found[1][1]
    waited = answered(of(JOB, 8), asked([8, 8], [64, 64], SyncMode.SYNC, backup_workers=[0, 8]))
    assert waited.step_s[1] < waited.step_s[0]


def test_devices_that_are_not_alike_are_refused() -> None:
    groups = [WorkerGroup("V100", 8), WorkerGroup("V100", 8, 2.0)]
    question = mixed(groups, device="V100", nodes=2)
    ((reason, message),) = refused(predicted(of(JOB, 8), question)).values()
    assert reason == Reason.UNSUPPORTED_CONFIGURATION
    assert "devices_per_worker must be 1" in message
    assert assessed(of(JOB, 8), question).refusal is not None
