"""Rounds that do not wait for everybody, and rounds of workers of several kinds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from nodewise_laws import (
    MAX_MIXED_WORKERS,
    barrier_round_backup,
    barrier_round_mixed,
    barrier_round_queued,
    expected_order_statistic_gamma,
)


def simulated(compute_s: npt.NDArray[np.float64], cv: float, exchange_s: float, rounds: int = 20_000) -> list[float]:
    """Mean end of the 1st, 2nd, ... exchange by following each one; one mean compute time per worker."""
    generator = np.random.default_rng(11)
    times = compute_s * generator.gamma(1 / cv**2, cv**2, size=(rounds, compute_s.size))
    free, ends = np.zeros(rounds), []
    for column in np.sort(times, axis=1).T:
        free = np.maximum(free, column) + exchange_s
        ends.append(float(free.mean()))
    return ends


@pytest.mark.parametrize("workers", [2, 5, 16, 60])
@pytest.mark.parametrize("exchange_s", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("cv", [0.1, 0.4, 1.0])
def test_a_simulation_of_the_queue_agrees(workers: int, exchange_s: float, cv: float) -> None:
    ends = simulated(np.ones(workers), cv, exchange_s)
    backups = np.unique([1, workers // 4, workers // 2, workers - 1])
    backups = backups[(backups > 0) & (backups < workers)]
    law = barrier_round_backup(
        np.full(backups.size, workers), download_s=0.0, exchange_s=exchange_s, compute_s=1.0, compute_cv=cv,
        backup_workers=backups,
    )  # fmt: skip
    # Both are samples: a fast exponential time varies as much as it is long.
    expected = [ends[workers - 1 - spare] for spare in backups]
    np.testing.assert_allclose(law.round_s, expected, rtol=0.015, atol=0.015 * cv)


@pytest.mark.parametrize("workers", [129, 400, 1_000])
@pytest.mark.parametrize("exchange_s", [0.0005, 0.003])
@pytest.mark.parametrize("cv", [0.1, 0.4, 1.0])
def test_many_workers_are_near_a_simulation(workers: int, exchange_s: float, cv: float) -> None:
    ends = simulated(np.ones(workers), cv, exchange_s, rounds=1_000)
    backups = np.array([1, 5, workers // 20, workers // 5])
    law = barrier_round_backup(
        workers, download_s=0.0, exchange_s=exchange_s, compute_s=1.0, compute_cv=cv, backup_workers=backups
    )
    error = law.round_s / [ends[workers - 1 - spare] for spare in backups] - 1.0
    assert np.all((error > -0.05) & (error < 0.015))


def test_without_backups_it_is_the_queued_round_bit_by_bit() -> None:
    workers = np.arange(1, 300)
    arguments = {"download_s": 0.01, "exchange_s": 0.02, "compute_s": 1.3, "compute_cv": 0.3}
    law = barrier_round_backup(workers, **arguments, backup_workers=0)
    plain = barrier_round_queued(workers, **arguments)
    np.testing.assert_array_equal(law.round_s, plain.round_s)
    np.testing.assert_array_equal(law.slowest_compute_s, plain.slowest_compute_s)


def test_without_exchange_it_is_the_order_statistic() -> None:
    workers = np.array([2, 7, 40, 128, 500])
    law = barrier_round_backup(workers, download_s=0.0, exchange_s=0.0, compute_s=2.0, compute_cv=0.3, backup_workers=1)
    np.testing.assert_allclose(law.round_s, expected_order_statistic_gamma(2.0, 0.3, workers, workers - 1), rtol=0.006)
    np.testing.assert_array_equal(law.round_s, law.slowest_compute_s)


def test_constant_times_save_the_exchanges_alone() -> None:
    law = barrier_round_backup(
        [8, 8, 200], download_s=0.1, exchange_s=0.2, compute_s=0.5, compute_cv=0.0, backup_workers=[1, 3, 10]
    )
    np.testing.assert_allclose(law.round_s, (0.8 + 0.5 + 1.4, 0.8 + 0.5 + 1.0, 20.0 + 0.5 + 38.0), rtol=1e-12)


@pytest.mark.parametrize("workers", [12, 100, 128, 129, 600])
@pytest.mark.parametrize("cv", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("exchange_s", [0.0, 0.003, 0.1])
def test_more_backups_never_lengthen_a_round(workers: int, cv: float, exchange_s: float) -> None:
    backups = np.arange(min(workers, 40))
    law = barrier_round_backup(
        workers, download_s=0.01, exchange_s=exchange_s, compute_s=1.0, compute_cv=cv, backup_workers=backups
    )
    assert np.all(np.diff(law.round_s) <= 1e-12)
    assert np.all(np.diff(law.slowest_compute_s) <= 1e-12)


MIXED = {"compute_cv": 0.3, "download_s": 0.01, "exchange_s": 0.02}


@pytest.mark.parametrize("workers", [1, 6, 40, 200])
@pytest.mark.parametrize("backups", [0, 2])
def test_one_class_is_the_homogeneous_round(workers: int, backups: int) -> None:
    backups = min(backups, workers - 1)
    alike = barrier_round_backup([workers], **MIXED, compute_s=1.5, backup_workers=backups)
    for counts, compute_s in (([workers], [1.5]), ([workers - 1, 0, 1], [1.5, 9.0, 1.5])):
        mixed = barrier_round_mixed(counts, compute_s=compute_s, **MIXED, backup_workers=backups)
        assert mixed.round_s == alike.round_s[0]
        assert mixed.slowest_compute_s == alike.slowest_compute_s[0]


def test_two_kinds_agree_with_a_simulation() -> None:
    compute_s = np.repeat((1.0, 1.4, 3.0), (10, 5, 1))
    ends = simulated(compute_s, 0.3, 0.05)
    for spare in (0, 1, 4):
        law = barrier_round_mixed(
            [10, 5, 1], compute_s=[1.0, 1.4, 3.0], compute_cv=0.3, download_s=0.0, exchange_s=0.05, backup_workers=spare
        )
        assert law.round_s == pytest.approx(ends[15 - spare], rel=0.015)


def test_more_workers_than_the_kept_sample_agree_with_a_simulation() -> None:
    compute_s = np.repeat((1.0, 2.0), (300, 20))
    ends = simulated(compute_s, 0.3, 0.002, rounds=3_000)
    for spare in (0, 20, 40):
        law = barrier_round_mixed(
            [300, 20], compute_s=[1.0, 2.0], compute_cv=0.3, download_s=0.0, exchange_s=0.002, backup_workers=spare
        )
        assert law.round_s == pytest.approx(ends[319 - spare], rel=0.015)


def test_a_straggler_is_waited_for_unless_there_is_a_backup() -> None:
    slow = barrier_round_mixed([7, 1], compute_s=[1.0, 4.0], **MIXED)
    spared = barrier_round_mixed([7, 1], compute_s=[1.0, 4.0], **MIXED, backup_workers=1)
    alike = barrier_round_backup([7], **MIXED, compute_s=1.0, backup_workers=0)
    assert slow.slowest_compute_s == pytest.approx(4.0, rel=0.01)
    assert slow.round_s >= 8 * 0.01 + 4.0 + 0.02
    # Eight download, seven are waited for.
    assert spared.round_s == pytest.approx(alike.round_s[0] + 0.01, rel=0.01)


def test_the_order_of_classes_changes_nothing() -> None:
    here = barrier_round_mixed([3, 4, 2], compute_s=[1.0, 2.0, 1.5], **{**MIXED, "compute_cv": [0.1, 0.2, 0.3]})
    there = barrier_round_mixed([2, 3, 4], compute_s=[1.5, 1.0, 2.0], **{**MIXED, "compute_cv": [0.3, 0.1, 0.2]})
    assert here == there


@pytest.mark.parametrize(
    "wrong",
    [
        {"workers": [0]},
        {"backup_workers": 2},
        {"backup_workers": -1},
        {"backup_workers": 0.5},
        {"exchange_s": -1.0},
        {"compute_cv": 11.0},
    ],
)
def test_impossible_backups_are_named(wrong: dict[str, object]) -> None:
    arguments = {
        "workers": [2], "download_s": 0.1, "exchange_s": 0.1, "compute_s": 0.1, "compute_cv": 0.1,
        "backup_workers": 1, **wrong,
    }  # fmt: skip
    with pytest.raises(ValueError, match=next(iter(wrong))):
        barrier_round_backup(**arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        {"counts": [[1, 1]]},
        {"counts": [0, 0]},
        {"counts": [MAX_MIXED_WORKERS, 1]},
        {"backup_workers": 3},
        {"backup_workers": -1},
        {"compute_s": [1.0]},
        {"compute_cv": [0.1, 0.1, 0.1]},
        {"compute_cv": 11.0},
        {"download_s": -1.0},
        {"exchange_s": float("nan")},
    ],
)
def test_impossible_mixtures_are_named(wrong: dict[str, object]) -> None:
    arguments = {"counts": [2, 1], "compute_s": [1.0, 2.0], **MIXED, "backup_workers": 1, **wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        barrier_round_mixed(**arguments)
