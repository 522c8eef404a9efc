"""Shares of jobs on one device: what pairs teach, what is known before them, and what it comes to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.plugin import PairRun, ShareBasis, ShareVerdict, SoloJob
from nodewise_sharing.jobs import busy_of
from nodewise_sharing.shares import fit_shares
from nodewise_sharing.verdict import share_device

GIB = 2**30


def planted(models: int = 6, jobs_each: int = 2) -> list[PairRun]:
    """All pairs of jobs that lose by contention, by a weakness of their own and by an aggression of the partner."""
    generator = np.random.default_rng(5)
    jobs, weak, strong = [], {}, {}
    for model, job in itertools.product(range(models), range(jobs_each)):
        each = SoloJob(f"{model}/{job}", str(model), float(generator.uniform(0.3, 1.0)))
        jobs.append(each)
        weak[each.name], strong[each.name] = generator.normal(0.0, 0.05, 2)

    def share(victim: SoloJob, aggressor: SoloJob) -> float:
        loss = 0.45 * busy_of(victim) * busy_of(aggressor)
        return float(1.0 - loss + weak[victim.name] - strong[aggressor.name] + generator.normal(0.0, 0.01))

    return [PairRun((a, b), (share(a, b), share(b, a))) for a, b in itertools.combinations(jobs, 2)]


def test_a_pair_that_ran_is_told_as_measured_in_either_order() -> None:
    runs = planted()
    (one, other), shares = runs[7].jobs, runs[7].shares
    told = fit_shares(runs).predict([(one, other), (other, one)])
    np.testing.assert_array_equal(told.middle, [shares, shares[::-1]])
    np.testing.assert_array_equal(told.low, told.high)
    assert told.basis == (ShareBasis.MEASURED, ShareBasis.MEASURED)


def test_a_missing_pair_of_known_jobs_is_completed() -> None:
    runs = planted()
    left, kept = runs[::6], [run for index, run in enumerate(runs) if index % 6]
    told = fit_shares(kept).predict([run.jobs for run in left])
    shares = np.array([run.shares for run in left])
    assert set(told.basis) == {ShareBasis.COMPLETED}
    # Noise of 1 point, and effects known from some ten pairs each.
    assert np.abs(told.middle - shares).mean() < 0.02
    assert np.mean((shares >= told.low) & (shares <= told.high)) > 0.8


def test_the_less_is_known_the_wider_the_range() -> None:
    model = fit_shares([run for run in planted() if {job.name for job in run.jobs} != {"0/0", "1/0"}])
    known, partner = SoloJob("0/0", "0", 0.6), SoloJob("1/0", "1", 0.6)
    new, newer = SoloJob("new", "new", 0.6), SoloJob("newer", "newer", 0.6)
    told = model.predict([(known, partner), (known, new), (new, newer)])
    width = (told.high - told.low).sum(axis=1)
    assert told.basis == (ShareBasis.COMPLETED, ShareBasis.PARTNER, ShareBasis.SOLO)
    assert width[0] < width[1] < width[2]


@given(
    busy=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2),
    coverages=st.lists(st.floats(0.1, 0.99), min_size=2, max_size=2, unique=True),
)
def test_before_any_pair_ranges_are_in_order_and_grow_with_coverage(busy: list[float], coverages: list[float]) -> None:
    pair = SoloJob("a", "a", busy[0]), SoloJob("b", "b", busy[1])
    narrow, wide = (fit_shares([]).predict([pair], coverage) for coverage in sorted(coverages))
    assert np.all((wide.low <= narrow.low) & (narrow.low <= narrow.middle))
    assert np.all((narrow.middle <= narrow.high) & (narrow.high <= wide.high))
    assert np.all((narrow.middle >= 0.5 - 1e-9) & (narrow.middle <= 1.0 + 1e-9))


@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.floats(0.01, 10.0))
def test_the_order_of_a_pair_changes_nothing(busy: float, others: float, step_s: float) -> None:
    model = fit_shares([])
    one, other = SoloJob("a", "a", busy, step_seconds=step_s), SoloJob("b", "b", others, step_seconds=1.0)
    forth, back = model.predict([(one, other)]), model.predict([(other, one)])
    np.testing.assert_allclose(forth.middle, back.middle[:, ::-1])


def test_the_order_of_runs_changes_nothing_that_counts() -> None:
    runs = planted()
    pair = [(SoloJob("new", "new", 0.7), runs[0].jobs[0])]
    forth, back = fit_shares(runs).predict(pair), fit_shares(runs[::-1]).predict(pair)
    np.testing.assert_allclose(forth.middle, back.middle, rtol=1e-6)
    np.testing.assert_allclose(forth.high, back.high, rtol=1e-6)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_saturated_jobs_of_one_kind_share_alike(count: int) -> None:
    told = share_device([SoloJob(str(index), str(index), 1.0) for index in range(count)], fit_shares([]))
    np.testing.assert_allclose(told.middle, 1.0 / count)
    assert told.verdict is ShareVerdict.SERIALISED
    assert told.total[0] < 1.0 < told.total[2]


def test_verdicts() -> None:
    runs = planted()
    model = fit_shares(runs)
    one, other = runs[0].jobs
    slow = fit_shares([PairRun((one, other), (0.3, 0.4))])
    both = [SoloJob("a", "a", 0.05, memory_bytes=9.0 * GIB), SoloJob("b", "b", 0.05, memory_bytes=8.0 * GIB)]
    assert share_device([one, other], slow).verdict is ShareVerdict.EXCLUSIVE
    assert share_device([one, other], slow).basis is ShareBasis.MEASURED
    assert share_device(both, model, device_bytes=24.0 * GIB).verdict is ShareVerdict.CONCURRENT
    assert share_device(both, model, device_bytes=16.0 * GIB).verdict is ShareVerdict.DOES_NOT_FIT
    assert share_device(both, model, device_bytes=16.0 * GIB).memory_bytes == 17.0 * GIB
    assert share_device([one, other], model, device_bytes=1.0).verdict is not ShareVerdict.DOES_NOT_FIT


def test_a_job_alone_keeps_all() -> None:
    told = share_device([SoloJob("a")], fit_shares([]))
    assert told.middle.tolist() == [1.0]
    assert (told.verdict, told.basis) == (ShareVerdict.EXCLUSIVE, None)
