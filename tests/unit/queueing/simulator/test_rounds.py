"""Synchronous rounds: the barrier, and workers that it does not wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from queueing_truths import throughput_interval_per_s

from nodewise_laws import barrier_round_queued
from nodewise_queueing.simulator import Discipline, Law, Link, SimulationSpec, simulate

ROUNDS = SimulationSpec(
    compute_s=0.5,
    download_s=(0.1,),
    upload_s=(0.2,),
    update_s=(0.0,),
    compute_law=Law.gamma(0.3),
    transfer_law=Law.constant(0.0),
    barrier=True,
)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("discipline", list(Discipline))
def test_rounds_are_those_of_the_law(workers: int, discipline: Discipline) -> None:
    """All download at once; then a server that is busy while a gradient waits ends at the same time in any order.

    In order of arrival downloads end one by one, so that only shared links are those of the law.
    """
    spec = replace(ROUNDS, link=Link(discipline=discipline))
    law = barrier_round_queued(workers, download_s=0.1, exchange_s=0.2, compute_s=0.5, compute_cv=0.3)
    result = simulate(spec, workers, seed=4, cycles=20_000)
    low, high = throughput_interval_per_s(result, 0.99)
    if discipline is Discipline.PROCESSOR_SHARING:
        # The law is a mean over a sample of its own, good to a few thousandths.
        assert low * 0.998 <= 1.0 / float(law.round_s) <= high * 1.002
    else:
        assert high >= 1.0 / float(law.round_s)
    assert result.staleness_mean == 0.0
    assert result.cycle_s == pytest.approx(1.0 / result.throughput_per_s, rel=1e-9)


def test_an_update_under_a_lock_is_part_of_the_exchange() -> None:
    spec = replace(ROUNDS, upload_s=(0.0,), update_s=(0.2,), update_law=Law.constant(0.0))
    law = barrier_round_queued(6, download_s=0.1, exchange_s=0.2, compute_s=0.5, compute_cv=0.3)
    assert 1.0 / simulate(spec, 6, seed=4, cycles=20_000).throughput_per_s == pytest.approx(
        float(law.round_s), rel=5e-3
    )


def test_a_round_that_does_not_wait_for_the_slowest_is_shorter_and_drops_gradients() -> None:
    spec = replace(ROUNDS, compute_s=(0.5, 0.5, 0.5, 5.0), download_s=(0.001,), upload_s=(0.001,))
    waits, goes_on = (simulate(replace(spec, backup_workers=n), 4, seed=4, cycles=2_000) for n in (0, 1))
    assert 1.0 / waits.throughput_per_s == pytest.approx(5.0, rel=0.05)
    assert waits.dropped_per_s == 0.0
    assert 0.5 < 1.0 / goes_on.throughput_per_s < 0.8
    # The straggler ends a computation every 5 s, nearly always too late for its round.
    assert goes_on.dropped_per_s == pytest.approx(1 / 5.0, rel=0.1)
    assert goes_on.barrier_s < waits.barrier_s


def test_backups_beyond_what_straggles_change_little_for_equal_workers() -> None:
    rates = [simulate(replace(ROUNDS, backup_workers=n), 8, seed=4, cycles=5_000).throughput_per_s for n in (0, 1, 2)]
    assert rates == sorted(rates)


def test_rounds_get_slower_with_workers() -> None:
    rates = [simulate(ROUNDS, workers, seed=4, cycles=3_000).throughput_per_s for workers in (1, 2, 4, 8, 16)]
    assert rates == sorted(rates, reverse=True)
