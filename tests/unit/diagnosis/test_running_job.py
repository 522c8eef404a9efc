"""The diagnosis of step times: what is planted is named, what is not is not, and little evidence gives no answer."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.plugin import STEP_PARTS, StepTimes
from nodewise_diagnosis.running_job import diagnose_steps
from nodewise_diagnosis.slow_hours import find_slow_hours
from nodewise_diagnosis.slowdowns import find_slowdowns
from nodewise_diagnosis.step_windows import align_windows, peer_log_ratio

STEPS = 10
NOTHING = StepTimes.concatenated([])
OFTEN = 1e9
"""Windows between false alarms: as good as never in what is tried here."""


def times(own, *, node=None, step=None, first=0, begin_s=0.0, **parts):
    """Windows of steps whose exchange lasts until the slowest rank is there; own [window, rank], seconds."""
    windows, ranks = own.shape
    step = np.repeat(own.max(axis=1)[:, None] + 0.1, ranks, axis=1) if step is None else step
    number = np.repeat((first + np.arange(windows)) * STEPS, ranks)
    columns = {f"{name}_s": np.full(own.size, -1.0) for name in STEP_PARTS}
    columns |= {"backward_s": own.ravel(), "exchange_s": (step - own).ravel()}
    columns |= {f"{name}_s": values.ravel() for name, values in parts.items()}
    return StepTimes(
        rank=np.tile(np.arange(ranks), windows),
        node=np.full(own.size, -1) if node is None else np.tile(node, windows),
        first_step=number,
        steps=np.full(own.size, STEPS),
        begin_s=begin_s + number * 1.0,
        step_s=step.ravel(),
        **columns,
    )


def noise(windows, ranks, spread=0.01, seed=0):
    return np.exp(np.random.default_rng(seed).normal(0.0, spread, (windows, ranks)))


def found(own, **options):
    return diagnose_steps(times(own, **options), NOTHING)


def alarms(own, **options):
    return [(a.kind, a.ranks, a.part) for a in found(own, **options).alarms]


def test_nothing_stands_out_where_nothing_is_slow():
    result = found(noise(300, 8))
    assert result.alarms == ()
    assert result.verdict == "Nothing is slower than it was."
    assert (result.ranks, result.steps, result.lost_windows) == (8, 3000, 0)


def test_a_rank_that_becomes_slow_is_named_with_its_part_and_its_begin():
    own = noise(100, 8)
    own[60:, 5] *= 1.15
    (alarm,) = found(own).alarms
    assert (alarm.kind, alarm.ranks, alarm.part, alarm.end_s) == ("rank", (5,), "backward", 0.0)
    assert abs(alarm.first_step - 600) <= STEPS
    assert alarm.lower_slowdown < 1.15 < alarm.upper_slowdown
    assert alarm.what.startswith("Rank 5 takes 15 %")


def test_a_slowdown_that_is_over_has_an_end():
    own = noise(120, 4)
    own[40:70, 0] *= 1.3
    (alarm,) = found(own).alarms
    assert alarm.end_s == 700.0
    assert found(own).verdict == "Nothing is slower than it was."


def test_loading_that_takes_longer_on_a_rank_is_its_part():
    loading = 0.05 * noise(100, 4, seed=1)
    loading[50:, 2] += 0.2
    own = noise(100, 4)
    step = np.repeat((own + loading).max(axis=1)[:, None], 4, axis=1)
    parts = {"loading": loading, "exchange": np.maximum(step - own - loading, 0.0)}
    assert alarms(own, step=step, **parts) == [("rank", (2,), "loading")]


def test_ranks_of_one_machine_that_become_slow_together_are_its_own():
    own = noise(100, 12)
    own[50:, 4:8] *= 1.2
    node = np.repeat([0, 1, 2], 4)
    (alarm,) = found(own, node=node).alarms
    assert (alarm.kind, alarm.ranks, alarm.node) == ("node", (4, 5, 6, 7), 1)


def test_a_rank_that_always_was_slower_is_told_from_those_that_differ_a_little():
    own = noise(60, 8)
    own[:, 3] *= 1.4
    (alarm,) = found(own).alarms
    assert (alarm.kind, alarm.ranks, alarm.first_step) == ("rank", (3,), -1)
    assert "since the first report" in alarm.what


def test_an_exchange_that_takes_longer_on_all_ranks_is_no_rank_of_them():
    own = noise(100, 4)
    step = np.repeat(own.max(axis=1)[:, None] + 0.2, 4, axis=1)
    step[50:] += 0.3
    assert alarms(own, step=step) == [("exchange", (), "exchange")]


def test_all_ranks_that_become_slower_together_are_the_job():
    own = noise(100, 4)
    own[50:] *= 1.3
    assert alarms(own) == [("job", (), "backward")]


def test_steps_alone_follow_the_job_and_say_what_they_cannot_tell():
    own = noise(100, 4)
    own[50:, 1] *= 1.3
    unknown = np.full(own.shape, -1.0)
    result = found(own, backward=unknown, exchange=unknown)
    assert [(a.kind, a.part) for a in result.alarms] == [("job", "step")]
    assert "the rank cannot be named" in result.verdict


def test_a_few_slow_windows_are_no_slowdown():
    own = noise(200, 4)
    own[80, 0] *= 5.0
    own[120:122, 1] *= 3.0
    assert found(own).alarms == ()


def test_few_windows_give_no_answer():
    own = noise(15, 4)
    own[8:, 0] *= 2.0
    result = found(own)
    assert result.alarms == ()
    assert result.verdict.startswith("Too few steps:")
    assert diagnose_steps(NOTHING, NOTHING).alarms == ()


def test_lost_windows_are_counted_and_do_no_harm():
    own = noise(100, 4)
    own[60:, 2] *= 1.2
    whole = times(own)
    kept = (whole.rank != 2) | (whole.first_step % 50 != 0) | (whole.first_step == 0)
    part = StepTimes(**{f.name: getattr(whole, f.name)[kept] for f in dataclasses.fields(StepTimes)})
    result = diagnose_steps(part, NOTHING)
    assert result.lost_windows == 19
    assert [a.ranks for a in result.alarms] == [(2,)]


def test_a_job_that_starts_anew_is_looked_at_from_there():
    slow = noise(50, 4)
    slow[:, 1] *= 1.5
    both = StepTimes.concatenated([times(slow), times(noise(50, 4, seed=2), begin_s=1e6)])
    result = diagnose_steps(both, NOTHING)
    assert (result.alarms, result.steps) == ((), 500)


def test_windows_of_different_lengths_are_joined():
    own = noise(40, 2)
    whole = times(own)
    rank0 = whole.rank == 0
    short = StepTimes(**{f.name: getattr(whole, f.name)[rank0] for f in dataclasses.fields(StepTimes)})
    paired = (whole.rank == 1) & (whole.first_step % (2 * STEPS) == 0)
    long = StepTimes(**{f.name: getattr(whole, f.name)[paired] for f in dataclasses.fields(StepTimes)})
    long = dataclasses.replace(long, steps=long.steps * 2)
    aligned = align_windows(StepTimes.concatenated([short, long]))
    assert aligned.steps == 2 * STEPS
    assert aligned.step_s.shape == (20, 2)
    assert np.isfinite(aligned.step_s).all()


@settings(max_examples=50)
@given(st.integers(2, 6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_peer_ratio_is_to_the_median_of_the_others(ranks, windows, random):
    seconds = np.array([[random.uniform(0.1, 10.0) for _ in range(ranks)] for _ in range(windows)])
    ratio = peer_log_ratio(seconds)
    for window in range(windows):
        for rank in range(ranks):
            others = np.delete(np.log(seconds[window]), rank)
            assert ratio[window, rank] == pytest.approx(math.log(seconds[window, rank]) - np.median(others))


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-4, 1e4), st.integers(0, 5))
def test_units_and_order_of_ranks_change_nothing(scale, shift):
    own = noise(80, 6)
    own[40:, 2] *= 1.2
    (alarm,) = found(np.roll(own, shift, axis=1) * scale).alarms
    assert alarm.ranks == ((2 + shift) % 6,)
    assert alarm.slowdown == pytest.approx(found(own).alarms[0].slowdown, rel=1e-6)


@pytest.mark.parametrize(("spread", "dependence"), [(0.005, 0.0), (0.02, 0.0), (0.02, 0.6)])
def test_false_alarms_are_rare(spread, dependence):
    """A normal series, also one that depends on its past, raises fewer alarms than are allowed."""
    rng = np.random.default_rng(3)
    values = rng.normal(0.0, spread, (1500, 30))
    for window in range(1, len(values)):
        values[window] = dependence * values[window - 1] + math.sqrt(1 - dependence**2) * values[window]
    allowed = 20_000.0
    assert len(find_slowdowns(values, allowed)) <= values.size / allowed


def test_ten_percent_are_found_within_fifty_steps():
    late = []
    for seed in range(40):
        values = np.random.default_rng(seed).normal(0.0, 0.01, (80, 8))
        values[50:, 3] += math.log(1.10)
        (one,) = find_slowdowns(values, OFTEN)
        assert one.series == 3
        late.append((one.alarm + 1 - 50) * STEPS)
    assert max(late) <= 50


def hours(days, slow=(), slower=1.3):
    step = {(day, hour): slower if (day, hour) in slow else 1.0 for day in range(days) for hour in range(24)}
    count = len(step)
    zero, unknown = np.zeros(count, np.int64), np.full(count, -1.0)
    return StepTimes(
        rank=zero,
        node=zero - 1,
        first_step=zero,
        steps=zero + 100,
        begin_s=np.array([86_400.0 * day + 3600.0 * hour for day, hour in step]),
        step_s=np.array(list(step.values())),
        **{f"{name}_s": unknown for name in STEP_PARTS},
    )


def test_an_hour_that_is_slow_day_after_day_recurs():
    (one,) = find_slow_hours(hours(5, {(day, 14) for day in range(5)}))
    assert (one.hour, one.slow_days, one.days, one.slowdown) == (14, 5, 5, pytest.approx(1.3))


def test_hours_that_are_slow_now_and_then_do_not_recur():
    rng = np.random.default_rng(0)
    now_and_then = {(int(day), int(hour)) for day, hour in zip(rng.integers(0, 7, 30), rng.integers(0, 24, 30))}
    assert find_slow_hours(hours(7, now_and_then)) == ()
    assert find_slow_hours(hours(2, {(0, 3), (1, 3)})) == ()
    assert find_slow_hours(NOTHING) == ()
