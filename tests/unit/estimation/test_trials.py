"""Runs that an estimator is not shown, and what it makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nodewise.domain.columns import as_floats, as_ints, constant_floats
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.lessons.trials import MOST_LEFT_OUT, MOST_RUNS, left_out, trials_at_largest, trials_left_out


def job(workers: list[int], batches: list[int] | None = None, modes: list[SyncMode] | None = None) -> Profile:
    """Runs of one step per second; one worker per node."""
    rows = replace(
        Configurations.of(len(workers), nodes=workers, workers=workers, device="V100"),
        batch_per_worker=as_ints(batches or [8] * len(workers)),
        sync_mode=as_ints(modes or [SyncMode.ALLREDUCE] * len(workers)),
    )
    return Profile(observations=Observations.of(rows, as_floats([1.0] * len(workers))))


class Asked:
    """Answers ``e^0.1`` seconds to whatever is asked, and keeps what was shown and asked."""

    def __init__(self) -> None:
        self.shown: list[list[int]] = []
        self.asked: list[list[int]] = []

    def __call__(self, profile: Profile, configurations: Configurations) -> Predictions:
        assert not profile.digest, "what is shown is no stored profile"
        self.shown.append(profile.observations.configurations.workers.tolist())
        self.asked.append(configurations.workers.tolist())
        return Predictions.of(constant_floats(len(configurations), float(np.exp(0.1))), extrapolation=2.0)


def test_the_smallest_and_the_largest_scale_are_left_out_with_all_their_batches() -> None:
    found = Asked()
    trials = trials_left_out(job([1, 1, 2, 4], [8, 16, 8, 8]), SyncMode.ALLREDUCE, found)
    assert found.asked == [[1, 1], [4]]
    assert found.shown == [[2, 4], [1, 1, 2]]
    first = trials[0]
    assert first is not None
    np.testing.assert_allclose(first.log_errors, -0.1)  # a step that is e^0.1 long is a rate that is e^-0.1 high
    assert first.mean_absolute_log_error == pytest.approx(0.1)
    np.testing.assert_allclose(first.distances, np.log(2.0))
    assert (first.device, first.sync_mode) == ("V100", SyncMode.ALLREDUCE)


def test_one_scale_leaves_nothing_to_predict_from() -> None:
    assert left_out(job([2, 2], [8, 16]), SyncMode.ALLREDUCE) == ()
    assert trials_at_largest(job([2, 2], [8, 16]), Asked()) == ()
    assert left_out(Profile(), SyncMode.ALLREDUCE) == ()


def test_other_modes_stay_shown_and_unasked() -> None:
    found = Asked()
    profile = job([1, 2, 1, 2], modes=[SyncMode.ALLREDUCE, SyncMode.ALLREDUCE, SyncMode.ASYNC, SyncMode.ASYNC])
    (trial,) = (trial for trial in trials_at_largest(profile, found) if trial.sync_mode == SyncMode.ALLREDUCE)
    assert len(trial.log_errors) == 1
    assert [2] in found.asked
    assert [1, 1, 2] in [sorted(shown) for shown in found.shown]


def test_many_scales_and_many_runs_cost_no_more_than_some() -> None:
    found = Asked()
    scales = list(range(1, 41))
    profile = job(scales * 10, [8 * batch for batch in range(1, 11) for _ in scales])
    trials_left_out(profile, SyncMode.ALLREDUCE, found)
    assert len(found.asked) == MOST_LEFT_OUT
    assert [asked[0] for asked in found.asked] == [1, 40]
    assert max(len(shown) for shown in found.shown) == MOST_RUNS


def test_the_order_of_runs_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    scales = rng.permutation(np.repeat(np.arange(1, 41), 10)).tolist()
    batches = rng.integers(1, 100, len(scales)).tolist()
    order = rng.permutation(len(scales)).tolist()
    one, other = Asked(), Asked()
    trials_at_largest(job(scales, batches), one)
    trials_at_largest(job([scales[row] for row in order], [batches[row] for row in order]), other)
    assert sorted(one.shown[0]) == sorted(other.shown[0])


def test_a_refusal_is_no_trial() -> None:
    def refuse(profile: Profile, configurations: Configurations) -> Predictions:
        raise NodewiseError(Reason.EVIDENCE_MISSING, "no")

    assert trials_left_out(job([1, 2]), SyncMode.ALLREDUCE, refuse) == (None, None)
    assert trials_at_largest(job([1, 2]), refuse) == ()


def test_an_absurd_error_counts_as_a_factor_of_twenty() -> None:
    def absurd(profile: Profile, configurations: Configurations) -> Predictions:
        return Predictions.of(constant_floats(len(configurations), 1e9))

    (trial,) = trials_at_largest(job([1, 2]), absurd)
    assert trial.mean_absolute_log_error == 3.0
