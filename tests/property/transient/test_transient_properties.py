"""What holds of every job on machines that can be taken away."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_transient.deterministic import expect
from nodewise_transient.hybrid import hybrid_s
from nodewise_transient.job import Checkpoints, Group, Job
from nodewise_transient.lifetimes import Lifetime, piecewise_linear, weibull
from nodewise_transient.loss import Burst, ChiefLoss, Reaction
from nodewise_transient.prices import PriceSeries
from nodewise_transient.provenance import Provenance
from nodewise_transient.simulation import simulate
from nodewise_transient.walk import finish_s, losses_to_changes

QUICK = settings(derandomize=True, deadline=None, max_examples=24)
STATED = Provenance(data_set="stated")

weibulls = st.builds(
    lambda scale, shape, cap: weibull(scale * 3600.0, shape, cap_s=cap * 3600.0, provenance=STATED),
    st.floats(0.5, 100.0),
    st.floats(0.3, 3.0),
    st.sampled_from([24.0, math.inf]),
)


@st.composite
def tables(draw: st.DrawFn) -> Lifetime:
    # Of a thousand machines: shares below what a count can tell are none.
    shares = np.sort(draw(st.lists(st.integers(0, 1000), min_size=3, max_size=24))) / 1000.0
    ages = np.arange(1.0, len(shares) + 1.0) * 3600.0
    return piecewise_linear(ages, shares, cap_s=float(ages[-1]), provenance=STATED)


laws = st.one_of(weibulls, tables())


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    workers = draw(st.integers(1, 6))
    delays = tuple(draw(st.lists(st.floats(0.0, 900.0), min_size=0, max_size=3)))
    return Job(
        steps=workers * draw(st.floats(600.0, 40_000.0)),
        groups=(
            Group(count=workers, lifetime=draw(laws), replacement_s=delays, price_per_h=draw(st.floats(0.0, 5.0))),
        ),
        speeds=np.arange(workers + 1.0) ** draw(st.floats(0.5, 1.0)),
        reaction=Reaction(
            rolls_back=draw(st.booleans()),
            waits_for_all=draw(st.booleans()),
            stall_on_loss_s=draw(st.floats(0.0, 100.0)),
            stall_on_join_s=draw(st.floats(0.0, 100.0)),
        ),
        chief=ChiefLoss(policy=draw(st.sampled_from(["none", "fail", "rollback", "re-elect"])), setup_s=60.0),
        checkpoints=Checkpoints(
            interval_steps=draw(st.sampled_from([math.inf, 500.0, 3000.0])), seconds=draw(st.floats(0.0, 60.0))
        ),
        burst=Burst(chance=draw(st.floats(0.0, 1.0)), others=draw(st.integers(0, 3))),
        servers_per_h=draw(st.floats(0.0, 1.0)),
        horizon_s=400_000.0,
    )


@QUICK
@given(job=jobs())
def test_parts_add_up_and_money_is_bounded(job: Job) -> None:
    outcome = simulate(job, runs=40)
    np.testing.assert_allclose(outcome.parts_s.sum(axis=1), outcome.end_s, rtol=1e-6, atol=1e-6)
    done = outcome.finished > 0.0
    saves = job.checkpoints.count(job.steps) * job.checkpoints.stall_s
    assert np.all(outcome.end_s[done] >= (job.ideal_s + saves) * (1.0 - 1e-9))
    np.testing.assert_allclose(outcome.parts_s[done, 1], saves, rtol=1e-6, atol=1e-6)
    most = (job.groups[0].price_per_h * job.groups[0].count + job.servers_per_h) * outcome.end_s / 3600.0
    assert np.all(outcome.cost <= most * (1.0 + 1e-9) + 1e-9)
    assert np.all(outcome.cost >= job.servers_per_h * outcome.end_s / 3600.0 * (1.0 - 1e-9))


@QUICK
@given(job=jobs(), seed=st.integers(0, 2**40))
def test_the_same_seed_is_the_same_answer(job: Job, seed: int) -> None:
    first, second = simulate(job, runs=20, seed=seed), simulate(job, runs=20, seed=seed)
    for name in ("end_s", "finished", "cost", "losses", "parts_s"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@QUICK
@given(law=laws, delay=st.floats(0.0, 600.0), more=st.floats(1.0, 600.0), save=st.floats(0.0, 30.0))
def test_expected_time_does_not_fall_with_delays_and_saves(
    law: Lifetime, delay: float, more: float, save: float
) -> None:
    def time_s(delay_s: float, save_s: float) -> float:
        job = Job(
            steps=4 * 7200.0,
            groups=(Group(count=4, lifetime=law, replacement_s=(delay_s,)),),
            speeds=np.arange(5.0),
            checkpoints=Checkpoints(interval_steps=2400.0, seconds=save_s),
        )
        return expect(job).time_s

    base = time_s(delay, save)
    # Saves move losses along the law's hazard; a later end never has fewer of them.
    assert time_s(delay, save + more) >= base * (1.0 - 1e-6)
    # With every loss there is one replacement fewer in time: a second-order gain at most.
    assert time_s(delay + more, save) >= base * 0.98


@QUICK
@given(law=laws, age=st.floats(0.0, 3000.0), chances=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_quantiles_invert_the_law_of_what_remains(law: Lifetime, age: float, chances: list[float]) -> None:
    if law.revoked_by(age) >= 1.0:
        return
    remaining = law.remaining_s(chances, age_s=age)
    assert np.all(remaining >= 0.0)
    rising = law.remaining_s(np.sort(chances), age_s=age)
    assert np.all(rising[1:] >= rising[:-1])
    ends = np.isfinite(remaining)
    back = law.revoked_within(remaining[ends], age_s=age)
    assert np.all(back >= np.array(chances)[ends] - 1e-6)


@QUICK
@given(job=jobs())
def test_worse_machines_finish_no_sooner_at_the_same_luck(job: Job) -> None:
    """Every life halved: without saves, chiefs and bursts, work at any time is no more."""
    law = job.groups[0].lifetime
    half = replace(law, knots_s=law.knots_s / 2.0, cap_s=law.cap_s / 2.0)
    plain = replace(
        job, reaction=Reaction(), chief=ChiefLoss(), burst=Burst(), groups=(replace(job.groups[0], replacement_s=()),)
    )
    worse = replace(plain, groups=(replace(plain.groups[0], lifetime=half),))
    first, second = simulate(plain, runs=30), simulate(worse, runs=30)
    assert np.all(second.finished <= first.finished)
    both = (first.finished > 0.0) & (second.finished > 0.0)
    assert np.all(second.end_s[both] >= first.end_s[both] * (1.0 - 1e-9))


@QUICK
@given(lost=st.lists(st.floats(0.0, 5000.0), min_size=0, max_size=6), steps=st.floats(1.0, 8000.0))
def test_walks_are_sums_of_uptimes(lost: list[float], steps: float) -> None:
    """For speeds that add up: sum of min(tau, T) is the work."""
    lives = np.array([*lost, math.inf, math.inf])
    found = float(finish_s(*losses_to_changes(lives, np.arange(len(lives) + 1.0)), steps))
    np.testing.assert_allclose(np.minimum(lives, found).sum(), steps, rtol=1e-9)


@QUICK
@given(whole=st.floats(1.0, 1e5), rest=st.floats(1.0, 1e5), switch=st.floats(0.0, 100.0))
def test_hybrids_end_at_their_two_modes(whole: float, rest: float, switch: float) -> None:
    ends = hybrid_s([0.0, 1.0], synchronous_s=whole, asynchronous_s=rest, switch_s=switch)
    assert ends.tolist() == [rest, whole]


def test_more_runs_shrink_the_error_as_their_root() -> None:
    law = weibull(36_000.0, 0.7, provenance=STATED)
    job = Job(steps=4 * 14_400.0, groups=(Group(count=4, lifetime=law, replacement_s=(165.0,)),), speeds=np.arange(5.0))
    few, many = (simulate(job, runs=runs).time_s.standard_error for runs in (1000, 100_000))
    assert 0.08 < many / few < 0.125


@st.composite
def moving_jobs(draw: st.DrawFn) -> Job:
    """Up to three groups whose losses may go on in another; prices may change."""
    places = draw(st.integers(1, 3))
    counts = [draw(st.integers(1, 3)), *(draw(st.integers(0, 2)) for _ in range(places - 1))]
    groups = []
    for count in counts:
        changes = sorted(draw(st.lists(st.floats(1.0, 1e5), min_size=0, max_size=3, unique=True)))
        per_h = [draw(st.floats(0.0, 5.0)) for _ in range(len(changes) + 1)]
        groups.append(
            Group(
                count=count,
                lifetime=draw(laws),
                replacement_s=(draw(st.floats(0.0, 600.0)),),
                joins=draw(st.integers(0, places - 1)),
                bills_startup=draw(st.booleans()),
                prices=PriceSeries(since_s=np.array([0.0, *changes]), per_h=np.array(per_h)),
            )
        )
    bare = Job(steps=1.0, groups=tuple(groups), speeds=np.ones(capacities(groups)))
    speeds = np.indices(bare.speeds.shape).sum(axis=0).astype(np.float64)
    return replace(bare, steps=sum(counts) * draw(st.floats(600.0, 40_000.0)), speeds=speeds, horizon_s=4e6)


def capacities(groups: list[Group]) -> tuple[int, ...]:
    """Entries of the table of speeds along each group."""
    held = [0] * len(groups)
    for start, group in enumerate(groups):
        at, seen = start, set[int]()
        while at not in seen:
            seen.add(at)
            held[at] += group.count
            at = groups[at].joins or 0
    return tuple(each + 1 for each in held)


@QUICK
@given(moving_jobs(), st.integers(0, 3))
def test_moves_and_prices_keep_time_and_money(job: Job, seed: int) -> None:
    outcome = simulate(job, runs=40, seed=seed)
    again = simulate(job, runs=40, seed=seed)
    np.testing.assert_array_equal(outcome.cost, again.cost)
    np.testing.assert_allclose(outcome.parts_s.sum(axis=1), outcome.end_s, rtol=1e-9)
    done = outcome.finished > 0.0
    assert np.all(outcome.end_s[done] >= job.ideal_s * (1.0 - 1e-9))
    everybody = sum(group.count for group in job.groups)
    dearest = max(float(group.prices.per_h.max()) for group in job.groups if group.prices is not None)
    assert np.all(outcome.cost <= everybody * dearest * outcome.end_s / 3600.0 * (1.0 + 1e-9) + 1e-9)


@QUICK
@given(jobs(), st.lists(st.floats(600.0, 1e6), min_size=2, max_size=5), st.floats(0.0, 0.5))
def test_later_deadlines_are_kept_at_least_as_likely(job: Job, deadlines: list[float], log_spread: float) -> None:
    outcome = simulate(job, runs=50, log_spread=log_spread)
    shares = [outcome.p_deadline(deadline) for deadline in sorted(deadlines)]
    assert shares == sorted(shares)
    assert shares[-1] <= 1.0 - outcome.p_failure + 1e-12


@QUICK
@given(jobs(), st.lists(st.floats(1.0, 1e5), min_size=1, max_size=4, unique=True))
def test_recorded_losses_are_walked_exactly(job: Job, times: list[float]) -> None:
    workers = job.groups[0].count
    lost = sorted(times)[:workers]
    changes = tuple((time,) for time in lost) + ((math.inf,),) * (workers - len(lost))
    known = replace(
        job,
        groups=(Group(count=workers, changes_s=changes),),
        reaction=Reaction(),
        chief=ChiefLoss(),
        checkpoints=Checkpoints(),
        burst=Burst(),
        horizon_s=math.inf,
    )
    outcome = simulate(known, runs=1)
    walked = float(finish_s(*losses_to_changes(lost, job.speeds), job.steps))
    assert outcome.end_s[0] == pytest.approx(walked) if math.isfinite(walked) else outcome.p_failure == 1.0
