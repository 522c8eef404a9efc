"""Which observations are scored, and what they score."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from estimators import Fake, asked, predictions_of, profile_of, registry_of
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options, Predictions, RowRefusal
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.scores import ScoreSums
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Question, Terms
from nodewise.evaluation.running_scores import (
    SCORED_OBSERVATIONS,
    auto_version,
    scorable_observations,
    score_of,
    score_predictions,
)
from nodewise.profiles.ledger import UnscoredCommit

PERFECT = Answers(registry_of({"perfect": Fake()}))
BEFORE = profile_of("before", workers=(1, 2))


def commit(first: int, last: int, retracted: frozenset[int] = frozenset()) -> UnscoredCommit:
    return UnscoredCommit(
        key=1, profile_id="job", uid="u", revision=2, first_number=first, last_number=last, retracted=retracted
    )


def after(workers: list[int], rates: list[float], **stated: object) -> Profile:
    """BEFORE with runs on so many workers, numbered from 3."""
    values = {"sync_mode": SyncMode.ALLREDUCE, "batch_per_worker": 10, "device": "V100"} | stated
    rows = Configurations.of(len(workers), nodes=as_ints(workers), workers=as_ints(workers), **values)
    joined = Observations.concatenated([BEFORE.observations, Observations.of(rows, as_floats(rates))])
    numbered = replace(joined, number=as_ints(range(1, len(joined) + 1)))
    return Profile(digest="after", observations=numbered)


def rates_of(found: Observations) -> list[float]:
    return found.steps_per_s.tolist()


def test_a_commits_own_rows_are_scored_and_no_others() -> None:
    profile = after([3, 4, 5, 6], [3.0, 4.0, 5.0, 6.0])
    assert rates_of(scorable_observations(PERFECT, BEFORE, profile, commit(3, 4))) == [3.0, 4.0]
    assert rates_of(scorable_observations(PERFECT, BEFORE, profile, commit(5, 6))) == [5.0, 6.0]


def test_rows_without_a_rate_and_retracted_ones_are_left_out() -> None:
    profile = after([3, 4, 5, 6], [3.0, 0.0, 5.0, 6.0])
    assert rates_of(scorable_observations(PERFECT, BEFORE, profile, commit(3, 6, frozenset({5})))) == [3.0, 6.0]
    assert not len(scorable_observations(PERFECT, BEFORE, profile, commit(4, 5, frozenset({5}))))


def test_rows_that_nobody_could_have_asked_about_are_left_out_alone() -> None:
    profile = after([3, 4], [3.0, 4.0])
    small = Answers(registry_of({"perfect": Fake()}), max_workers=3)
    assert rates_of(scorable_observations(small, BEFORE, profile, commit(3, 4))) == [3.0]


def test_a_large_commit_is_scored_on_rows_over_its_whole_range() -> None:
    rows = 4 * SCORED_OBSERVATIONS
    profile = after(list(range(1, rows + 1)), [float(each) for each in range(1, rows + 1)])
    found = rates_of(scorable_observations(PERFECT, BEFORE, profile, commit(3, rows + 2)))
    assert len(found) == len(set(found)) == SCORED_OBSERVATIONS
    assert (found[0], found[-1]) == (1.0, rows)
    assert np.diff(found).max() <= 5.0


def test_the_profile_before_answers_and_not_the_one_that_knows() -> None:
    def fit(profile: Profile, _context: object) -> Fake:
        """Always the mean rate of what it was fitted to."""
        rate = float(profile.observations.steps_per_s.mean())
        return Fake(lambda configurations, _: predictions_of([1.0 / rate] * len(configurations)))

    engine = Answers(registry_of({"mean": Fake(fit=fit)}))
    profile = after([4], [3.0])
    found = score_predictions(engine, BEFORE, scorable_observations(engine, BEFORE, profile, commit(3, 3)), "mean")
    assert found.log_error == pytest.approx(math.log(1.5 / 3.0))  # rates of 1 and 2 before; with the 3 it would be 2
    assert found.absolute_log_error == pytest.approx(math.log(2.0))
    assert (found.observations, found.unanswered) == (1, 0)


def test_auto_is_scored_by_what_it_would_have_answered() -> None:
    engine = Answers(registry_of({"perfect": Fake(strength=0.9)}))
    observations = scorable_observations(engine, BEFORE, after([3, 4], [6.0, 2.0]), commit(3, 4))
    assert score_predictions(engine, BEFORE, observations, AUTO) == score_predictions(
        engine, BEFORE, observations, "perfect"
    )


def test_refused_rows_are_counted_apart() -> None:
    def predict(configurations: Configurations, _options: Options) -> Predictions:
        far = tuple(np.flatnonzero(configurations.workers > 3).tolist())
        refusals = (RowRefusal(far, Refusal(Reason.EVIDENCE_MISSING, "too many")),) if far else ()
        return Predictions.of(1.0 / configurations.workers, refusals=refusals)

    engine = Answers(registry_of({"shy": Fake(predict)}))
    observations = scorable_observations(engine, BEFORE, after([3, 4, 5], [3.0, 4.0, 5.0]), commit(3, 5))
    found = score_predictions(engine, BEFORE, observations, "shy")
    assert (found.observations, found.unanswered) == (1, 2)
    assert found.absolute_log_error == pytest.approx(0.0, abs=1e-12)


def test_a_model_is_kept_and_answers_that_nobody_asks_for_again_are_not() -> None:
    fake = Fake()
    engine = Answers(registry_of({"perfect": fake}))
    observations = scorable_observations(engine, BEFORE, after([3, 4], [3.0, 4.0]), commit(3, 4))
    first = engine.answer(Question(profile=BEFORE, configurations=observations.configurations), keep=False)
    again = engine.answer(Question(profile=BEFORE, configurations=observations.configurations), keep=False)
    assert again is not first
    assert again.steps_per_s.tolist() == first.steps_per_s.tolist() == [3.0, 4.0]
    assert fake.fitted == 1


def test_an_estimator_that_refuses_the_job_says_so() -> None:
    engine = Answers(registry_of({"able": Fake(), "unable": Fake(refusal=Refusal(Reason.EVIDENCE_MISSING, "no", ()))}))
    with pytest.raises(NodewiseError) as caught:
        score_predictions(
            engine, BEFORE, scorable_observations(engine, BEFORE, after([3], [3.0]), commit(3, 3)), "unable"
        )
    assert caught.value.reason == Reason.EVIDENCE_MISSING


FACTORS = st.lists(st.floats(0.25, 4.0), min_size=1, max_size=12)


@given(FACTORS)
def test_a_score_is_the_sum_over_its_rows(factors: list[float]) -> None:
    workers = list(range(1, len(factors) + 1))
    answer = PERFECT.answer(Question(profile=BEFORE, configurations=asked(*workers), terms=Terms(estimator="perfect")))
    measured = as_floats([rate * factor for rate, factor in zip(answer.steps_per_s, factors, strict=True)])
    found = score_of(answer, measured)
    logs = [-math.log(factor) for factor in factors]
    assert answer.interval is not None
    bounds = zip(answer.interval.lower_steps_per_s, measured, answer.interval.upper_steps_per_s, strict=True)
    assert found.observations == found.intervals == len(factors)
    assert found.covered == sum(low <= each <= high for low, each, high in bounds)
    assert found.log_error == pytest.approx(sum(logs), abs=1e-9)
    assert found.absolute_log_error == pytest.approx(sum(map(abs, logs)), abs=1e-9)
    assert abs(found.mean_log_error) <= found.mean_absolute_log_error + 1e-12
    assert found.coverage == found.covered / len(factors)


def test_measurements_on_the_bounds_of_their_interval_are_covered() -> None:
    answer = PERFECT.answer(Question(profile=BEFORE, configurations=asked(1, 2), terms=Terms(estimator="perfect")))
    assert answer.interval is not None
    assert score_of(answer, answer.interval.lower_steps_per_s).covered == 2
    assert score_of(answer, answer.interval.upper_steps_per_s).covered == 2
    assert score_of(answer, as_floats(answer.interval.upper_steps_per_s * 1.0001)).covered == 0


def test_without_intervals_there_is_no_coverage() -> None:
    assert ScoreSums(observations=2, absolute_log_error=1.0, log_error=-1.0).coverage is None


def test_auto_has_the_version_of_all_that_it_chooses_among() -> None:
    names = auto_version(registry_of({"b": Fake(), "a": Fake()}))
    assert names == "a 1.0, b 1.0"
