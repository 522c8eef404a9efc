"""What holds of order statistics, of rounds with backups or several kinds of workers, and of staleness."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_laws import (
    barrier_round_backup,
    barrier_round_mixed,
    barrier_round_queued,
    expected_maximum_gamma,
    expected_order_statistic_gamma,
    private_cycle_cv,
    staleness_deviation,
    staleness_p95,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=24)
ROUNDING = 1e-9
# The hypercube's own error, where what is compared comes from another method: a standard error is 1/32 of a deviation.
SAMPLED = 0.15

seconds = st.floats(1e-4, 1e2) | st.just(0.0)
spreads = st.floats(0.01, 2.0) | st.just(0.0)


@QUICK
@given(mean_s=st.floats(1e-6, 1e4), cv=st.floats(0.0, 5.0), workers=st.integers(1, 300))
def test_order_statistics_ascend_about_the_mean(mean_s: float, cv: float, workers: int) -> None:
    each = expected_order_statistic_gamma(mean_s, cv, workers, np.arange(1, workers + 1))
    np.testing.assert_allclose(each.mean(), mean_s, rtol=ROUNDING)
    assert np.all(np.diff(each) >= -ROUNDING * mean_s)
    assert np.all(each >= 0.0)
    np.testing.assert_allclose(each[-1], expected_maximum_gamma(mean_s, cv, workers), rtol=1e-8)


@QUICK
@given(workers=st.integers(2, 128), download_s=seconds, exchange_s=seconds, compute_s=seconds, cv=spreads)
def test_backups_shorten_rounds_down_to_what_must_be_done(
    workers: int, download_s: float, exchange_s: float, compute_s: float, cv: float
) -> None:
    backups = np.unique(np.linspace(0, workers - 1, 7).astype(int))
    arguments = {"download_s": download_s, "exchange_s": exchange_s, "compute_s": compute_s, "compute_cv": cv}
    law = barrier_round_backup(workers, **arguments, backup_workers=backups)
    assert law.round_s[0] == barrier_round_queued([workers], **arguments).round_s[0]
    assert np.all(np.diff(law.round_s) <= ROUNDING * law.round_s[0])
    awaited = workers - backups
    # Jensen: the maximum of expectations bounds the expected maximum. First and last finish are two of its terms.
    last, first = (expected_order_statistic_gamma(compute_s, cv, workers, rank) for rank in (awaited, 1))
    slack = SAMPLED * cv * compute_s + ROUNDING * law.round_s
    assert np.all(law.round_s >= workers * download_s + last + exchange_s - slack)
    assert np.all(law.round_s >= workers * download_s + first + awaited * exchange_s - slack)
    assert np.all(law.round_s <= workers * download_s + last + awaited * exchange_s + slack)
    # Whoever drops the slowest b of W does no worse than k workers who are all waited for.
    alone = barrier_round_queued(awaited, **arguments)
    assert np.all(law.round_s - backups * download_s <= alone.round_s * (1.0 + 0.02) + slack)


@QUICK
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=4).filter(any),
    data=st.data(),
    download_s=seconds,
    exchange_s=seconds,
    cv=spreads,
)
def test_mixed_rounds_wait_for_the_slow_and_no_longer_than_if_all_were(
    counts: list[int], data: st.DataObject, download_s: float, exchange_s: float, cv: float
) -> None:
    compute = data.draw(st.lists(seconds, min_size=len(counts), max_size=len(counts)))
    shared = {"compute_cv": cv, "download_s": download_s, "exchange_s": exchange_s}
    total = sum(counts)
    rounds = [
        barrier_round_mixed(counts, compute_s=compute, **shared, backup_workers=spare) for spare in range(min(total, 5))
    ]
    lengths = np.array([one.round_s for one in rounds])
    assert np.all(np.diff(lengths) <= ROUNDING * lengths[0])
    present = [mean for mean, number in zip(compute, counts, strict=True) if number]
    # Sample by sample the slowest class alone is part of it, and its mean is exact in the sample.
    assert rounds[0].slowest_compute_s >= max(present) * (1.0 - ROUNDING)
    assert lengths[0] >= (total * download_s + max(present) + exchange_s) * (1.0 - ROUNDING)
    assert lengths[0] >= total * (download_s + exchange_s) * (1.0 - ROUNDING)
    # Beyond 32 workers that are alike, their round is read between sampled ones.
    slack = 0.02 * cv * max(present) + ROUNDING * lengths[0]
    fast, slow = (barrier_round_queued([total], **shared, compute_s=end(present)).round_s[0] for end in (min, max))
    assert fast - slack <= lengths[0] <= slow + slack


@QUICK
@given(counts=st.lists(st.integers(1, 8), min_size=2, max_size=4), data=st.data(), slower=st.floats(1.0, 5.0))
def test_a_slower_class_never_shortens_a_round(counts: list[int], data: st.DataObject, slower: float) -> None:
    """The last class in order of speed keeps its place in the sample when it gets slower still."""
    compute = sorted(data.draw(st.lists(st.floats(0.1, 2.0), min_size=len(counts), max_size=len(counts), unique=True)))
    shared = {"compute_cv": 0.3, "download_s": 0.01, "exchange_s": 0.05}
    before = barrier_round_mixed(counts, compute_s=compute, **shared)
    after = barrier_round_mixed(counts, compute_s=[*compute[:-1], compute[-1] * slower], **shared)
    assert after.round_s >= before.round_s * (1.0 - ROUNDING)


@QUICK
@given(workers=st.integers(1, 500), cv=st.floats(0.0, 5.0), more=st.floats(0.0, 2.0))
def test_staleness_grows_with_workers_and_with_what_varies(workers: int, cv: float, more: float) -> None:
    curve = staleness_p95(np.arange(1, workers + 1), cv)
    assert curve[0] == 0.0
    assert np.all(np.diff(curve) >= 1.0 - ROUNDING)
    assert np.all(curve >= np.arange(workers))
    assert staleness_p95(workers, cv + more) >= curve[-1] * (1.0 - ROUNDING)
    assert staleness_deviation(workers, cv + more) >= staleness_deviation(workers, cv) * (1.0 - ROUNDING)


@QUICK
@given(compute_s=seconds, waiting_s=st.floats(1e-3, 1e2), cv=spreads, service_cv=spreads)
def test_a_cycle_varies_no_more_than_its_parts(
    compute_s: float, waiting_s: float, cv: float, service_cv: float
) -> None:
    cycle = compute_s + waiting_s
    private = private_cycle_cv(cycle, compute_s, cv, residence_s=[waiting_s], service_cv=service_cv)
    assert private <= max(cv, service_cv) * (1.0 + ROUNDING)
    assert private >= private_cycle_cv(cycle, compute_s, cv)
