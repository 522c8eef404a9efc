"""Predictions from the phases of one worker."""

from __future__ import annotations

import numpy as np
import pytest
from queueing_profiles import observations, predicted, profile, rows, timings

from nodewise.plugin import SyncMode
from nodewise_laws import asymptotic_bounds, exact_mva

DOWNLOAD, COMPUTE, UPLOAD, UPDATE = 0.1, 0.5, 0.15, 0.01
PHASES = (DOWNLOAD, COMPUTE, UPLOAD, UPDATE)
WORKERS = list(range(1, 41))
BOTH_MODES = pytest.mark.parametrize("mode", [SyncMode.ASYNC, SyncMode.SYNC])


@BOTH_MODES
def test_one_worker_returns_the_profile(mode: SyncMode) -> None:
    answer = predicted(profile(timings(PHASES), parameter_bytes=4_000_000, link_bytes_per_s=25e6), rows([1], mode))
    assert answer.step_s[0] == pytest.approx(sum(PHASES), rel=1e-12)
    for name, seconds in zip(("download", "compute", "upload", "update"), PHASES, strict=True):
        assert answer.breakdown_s[name][0] == pytest.approx(seconds, rel=1e-12)


@BOTH_MODES
def test_one_worker_returns_the_profile_with_hidden_transfers(mode: SyncMode) -> None:
    answer = predicted(profile(timings(PHASES, hidden_s=0.2)), rows([1], mode))
    assert answer.step_s[0] == pytest.approx(sum(PHASES) - 0.2, rel=1e-12)


def test_async_is_exact_mean_value_analysis() -> None:
    answer = predicted(profile(timings(PHASES)), rows(WORKERS))
    curve = exact_mva([DOWNLOAD, UPLOAD, UPDATE], COMPUTE, 40)
    np.testing.assert_allclose(answer.step_s, curve.cycle_s, rtol=1e-12)
    np.testing.assert_allclose(answer.breakdown_s["upload"], curve.residence_s[:, 1], rtol=1e-12)
    np.testing.assert_allclose(answer.utilisation["uplink"], curve.utilisation[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(answer.staleness_mean, np.arange(40))


def test_the_field_notes_network() -> None:
    answer = predicted(profile(timings((0.1, 0.5, 0.15, 0.0))), rows([6]))
    assert 6 / answer.step_s[0] == pytest.approx(5.5588, abs=1e-4)


def test_a_half_duplex_link_is_one_station() -> None:
    answer = predicted(profile(timings(PHASES), half_duplex=True), rows(WORKERS))
    np.testing.assert_allclose(answer.step_s, exact_mva([DOWNLOAD + UPLOAD, UPDATE], COMPUTE, 40).cycle_s, rtol=1e-12)
    assert set(answer.utilisation) == {"link", "update"}


def test_hidden_transfers_shorten_the_cycle_but_not_the_capacity() -> None:
    shown = predicted(profile(timings(PHASES)), rows([1, 2, 400]))
    hidden = predicted(profile(timings(PHASES, hidden_s=0.2)), rows([1, 2, 400]))
    assert np.all(hidden.step_s[:2] < shown.step_s[:2])
    assert 400 / hidden.step_s[2] == pytest.approx(1 / UPLOAD, rel=0.01)
    assert 400 / hidden.step_s[2] <= (1 / UPLOAD) * (1 + 1e-9)


def test_hidden_time_is_at_most_what_could_hide() -> None:
    answer = predicted(profile(timings((0.1, 0.05, 0.1, 0.0), hidden_s=9.0)), rows([1]))
    assert answer.step_s[0] == pytest.approx(0.2)


def test_a_loaded_link_carries_no_more_than_its_rate() -> None:
    # Phases of 0.10 s for what needs 0.16 s on the link: the burst of an idle link, which several workers do not get.
    answer = predicted(
        profile(timings((0.1, 0.5, 0.1, 0.0)), parameter_bytes=4_000_000, link_bytes_per_s=25e6), rows([1, 400])
    )
    assert answer.step_s[0] == pytest.approx(0.7)
    assert 400 / answer.step_s[1] <= 25e6 / 4_000_000


def test_facts_that_the_phases_contradict_are_not_used() -> None:
    phases = timings((0.01, 0.5, 0.01, 0.0))
    plain = predicted(profile(phases), rows(WORKERS))
    with_facts = predicted(profile(phases, parameter_bytes=4_000_000, link_bytes_per_s=25e6), rows(WORKERS))
    np.testing.assert_array_equal(plain.step_s, with_facts.step_s)


def test_a_round_is_its_parts_and_waits_for_the_slowest() -> None:
    answer = predicted(profile(timings(PHASES, cv=0.4)), rows(WORKERS, SyncMode.SYNC))
    assert set(answer.breakdown_s) == {"download", "compute", "barrier", "upload", "update"}
    assert answer.breakdown_s["barrier"][0] == 0.0
    assert np.all(np.diff(answer.breakdown_s["barrier"]) > 0.0)
    np.testing.assert_allclose(answer.breakdown_s["download"], DOWNLOAD * np.arange(1, 41))
    assert not answer.staleness_mean.any()
    assert not answer.notices
    # Regular workers finish at once: the link takes one upload after the other, the lock an update beside the next.
    steady = predicted(profile(timings(PHASES, cv=0.0)), rows([8], SyncMode.SYNC))
    assert steady.step_s[0] == pytest.approx(8 * DOWNLOAD + COMPUTE + 8 * UPLOAD + UPDATE)
    locked = predicted(profile(timings((0.1, 0.5, 0.15, 0.2), cv=0.0)), rows([8], SyncMode.SYNC))
    assert locked.step_s[0] == pytest.approx(8 * 0.1 + 0.5 + 0.15 + 8 * 0.2)


def test_several_timed_runs_count_by_their_steps() -> None:
    few, many = timings((0.1, 0.5, 0.1, 0.0), steps=10), timings((0.1, 0.8, 0.1, 0.0), steps=30)
    both = type(few).concatenated([few, many])
    assert predicted(profile(both), rows([1])).step_s[0] == pytest.approx(0.2 + 0.725)


def test_phases_overrule_a_counted_rate_of_one_worker() -> None:
    alone = predicted(profile(timings(PHASES)), rows(WORKERS))
    counted = predicted(profile(timings(PHASES), observations({1: 1.0})), rows(WORKERS))
    np.testing.assert_array_equal(alone.step_s, counted.step_s)


@BOTH_MODES
def test_a_slow_saturated_run_makes_transfers_dearer_but_not_one_worker(mode: SyncMode) -> None:
    before = predicted(profile(timings(PHASES)), rows([1, 12], mode))
    cycles = 12 if mode == SyncMode.ASYNC else 1
    measured = observations({12: 0.7 * cycles / before.step_s[1]}, mode)
    after = predicted(profile(timings(PHASES), measured), rows([1, 12, 16], mode))
    assert after.step_s[0] == pytest.approx(before.step_s[0])
    assert before.step_s[1] * 1.1 < after.step_s[1] < before.step_s[1] / 0.7
    assert after.log_spread[1] < before.log_spread[1]


def test_a_fast_run_changes_nothing_but_the_doubt() -> None:
    before = predicted(profile(timings(PHASES)), rows(WORKERS))
    after = predicted(profile(timings(PHASES), observations({8: 8 / before.step_s[7] * 1.1})), rows(WORKERS))
    np.testing.assert_array_equal(before.step_s, after.step_s)


def test_the_spread_grows_towards_the_knee_and_never_vanishes() -> None:
    answer = predicted(profile(timings(PHASES, cv=0.1)), rows(WORKERS))
    assert np.all(answer.log_spread >= 0.04)
    assert np.all(np.diff(answer.log_spread[:5]) > 0)
    # One deviation is less than the way between the two asymptotic bounds, and grows with it.
    bracket = np.log(answer.extra["first_come_first_served_steps_per_s"] / answer.extra["in_step_steps_per_s"])
    assert np.all(answer.log_spread[1:] < bracket[1:])
    lone = predicted(profile(timings((0.0, 1.0, 0.0, 0.0))), rows(WORKERS))
    assert np.all(lone.log_spread < answer.log_spread[4:].min())


def test_the_asymptotic_bounds_and_mean_value_analysis_stand_beside_the_answer() -> None:
    answer = predicted(profile(timings(PHASES)), rows(WORKERS))
    bounds = asymptotic_bounds([DOWNLOAD, UPLOAD, UPDATE], COMPUTE, np.arange(1, 41))
    np.testing.assert_allclose(answer.extra["first_come_first_served_steps_per_s"], bounds.upper_per_s)
    np.testing.assert_allclose(answer.extra["in_step_steps_per_s"], bounds.lower_per_s)
    np.testing.assert_allclose(answer.extra["processor_sharing_steps_per_s"], np.arange(1, 41) / answer.step_s)
    np.testing.assert_allclose(answer.extra["knee_workers"], sum(PHASES) / UPLOAD)


def test_regular_workers_on_a_known_link_order_themselves() -> None:
    def rates(cv: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        known = {"parameter_bytes": 4_000_000, "link_bytes_per_s": 25e6}
        answer = predicted(profile(timings((0.16, 0.5, 0.16, 0.02), cv=cv), **known), rows(WORKERS))
        return np.array(WORKERS) / answer.step_s, dict(answer.extra)

    regular, bracket = rates(0.05)
    irregular, _ = rates(2.0)
    shared = bracket["processor_sharing_steps_per_s"]
    knee = 0.84 / 0.17
    assert 4 < knee < 5
    # Nobody waits before the knee; beyond it all are in step, and throughput falls; of many only the link is left.
    np.testing.assert_allclose(regular[:4], bracket["first_come_first_served_steps_per_s"][:4], rtol=0.06)
    assert regular[4] > shared[4]
    assert np.all(regular[6:16] < shared[6:16])
    assert regular[7] < 0.85 * regular.max()
    np.testing.assert_allclose(regular[30:], irregular[30:], rtol=0.01)
    np.testing.assert_allclose(irregular, shared, rtol=0.03)
    for found in (regular, irregular):
        assert np.all(found >= bracket["in_step_steps_per_s"] * (1 - 1e-9))
        assert np.all(found <= bracket["first_come_first_served_steps_per_s"] * (1 + 1e-9))


def test_utilisation_is_throughput_times_demand() -> None:
    answer = predicted(profile(timings(PHASES)), rows(WORKERS))
    rate = np.array(WORKERS) / answer.step_s
    for name, demand in (("downlink", DOWNLOAD), ("uplink", UPLOAD), ("update", UPDATE)):
        np.testing.assert_allclose(answer.utilisation[name], rate * demand, rtol=1e-12)


@BOTH_MODES
def test_the_parts_of_a_step_add_up(mode: SyncMode) -> None:
    job = profile(
        timings(PHASES, hidden_s=0.1), parameter_bytes=4_000_000, link_bytes_per_s=25e6, worker_link_bytes_per_s=20e6
    )
    answer = predicted(job, rows(WORKERS, mode))
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-12)
    assert all(np.all(part >= 0.0) for part in answer.breakdown_s.values())


def test_staleness_is_that_of_all_other_workers() -> None:
    answer = predicted(profile(timings(PHASES, cv=0.3)), rows(WORKERS))
    np.testing.assert_array_equal(answer.staleness_mean, np.arange(40))
    assert answer.staleness_p95[0] == 0.0
    assert np.all(answer.staleness_p95[1:] > answer.staleness_mean[1:])
    steady = predicted(profile(timings(PHASES, cv=0.0)), rows(WORKERS))
    np.testing.assert_allclose(steady.staleness_p95, np.arange(40))
    rounds = predicted(profile(timings(PHASES, cv=0.3)), rows(WORKERS, SyncMode.SYNC))
    assert not rounds.staleness_p95.any()


def test_extrapolation_begins_at_the_knee_or_the_largest_run() -> None:
    knee = sum(PHASES) / UPLOAD
    answer = predicted(profile(timings(PHASES)), rows([1, 5, 20]))
    np.testing.assert_allclose(answer.extrapolation, [1.0, 1.0, 20 / knee])
    measured = predicted(profile(timings(PHASES), observations({10: 5.0})), rows([10, 20]))
    np.testing.assert_allclose(measured.extrapolation, [1.0, 2.0])


def test_bottlenecks_are_named() -> None:
    answer = predicted(profile(timings(PHASES)), rows([1, 20]))
    assert [answer.bottlenecks[index] for index in answer.bottleneck_index] == ["compute", "upload"]
    locked = predicted(profile(timings((0.1, 0.1, 0.1, 0.3))), rows([8]))
    assert locked.bottlenecks[locked.bottleneck_index[0]] == "update"
