"""Running scores: new observations against the predictions of the revision before them."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_ints, freeze
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.scores import ScoreSums
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO, Answer, Question, Terms
from nodewise.hosting.registry import Registry
from nodewise.profiles.ledger import UnscoredCommit

__all__ = ["SCORED_OBSERVATIONS", "auto_version", "scorable_observations", "score_of", "score_predictions"]

SCORED_OBSERVATIONS: Final = 256
"""Observations of one commit that are scored, evenly spaced over its rows, so that a sweep of configurations keeps its
range. A commit of thousands of rows costs no more than its mean needs: its standard error is a sixteenth of the
spread."""


def auto_version(registry: Registry) -> str:
    """The version of ``auto`` in scores: the estimators that it chooses among, with their versions."""
    return ", ".join(f"{name} {plugin.record.version}" for name, plugin in sorted(registry.predicting.items()))


def scorable_observations(
    answers: Answers, before: Profile, after: Profile, commit: UnscoredCommit, most: int = SCORED_OBSERVATIONS
) -> Observations:
    """The observations of a commit that can be scored, ``most`` of them.

    Left out are those that were retracted meanwhile, those without a rate, and those whose configuration the evidence
    before them does not complete, as no question could have been about it.

    Parameters
    ----------
    before, after : Profile
        The profile before and after the commit.
    """
    observations = after.observations
    new = (observations.number >= commit.first_number) & (observations.number <= commit.last_number)
    mask = new & (observations.steps_per_s > 0.0)
    if commit.retracted:
        mask &= np.isin(observations.number, list(commit.retracted), invert=True)
    scorable = observations.take(freeze(np.flatnonzero(mask).astype(np.int64, copy=False)))
    scorable = scorable.take(_space_out(len(scorable), most))
    if _resolves(answers, before, scorable):
        return scorable
    return scorable.take(
        as_ints([row for row in range(len(scorable)) if _resolves(answers, before, scorable.take(as_ints([row])))])
    )


def score_predictions(
    answers: Answers, before: Profile, observations: Observations, estimator: str = AUTO
) -> ScoreSums:
    """The score of an estimator's predictions from a profile against later measurements.

    Refused rows are counted separately. Fits the profile unless the model is cached.

    Raises
    ------
    NodewiseError
        As ``Answers.answer``.
    """
    question = Question(profile=before, configurations=observations.configurations, terms=Terms(estimator=estimator))
    return score_of(answers.answer(question, keep=False), observations.steps_per_s)


def score_of(answer: Answer, measured_steps_per_s: Floats) -> ScoreSums:
    """The score of an answer against measured rates above 0, row by row."""
    rows = np.flatnonzero(answer.predictions.answered & (answer.steps_per_s > 0.0))
    measured_rates = measured_steps_per_s[rows]
    log_error = np.log(answer.steps_per_s[rows]) - np.log(measured_rates)
    intervals = covered_count = 0
    if answer.interval is not None:
        lower, upper = answer.interval.lower_steps_per_s[rows], answer.interval.upper_steps_per_s[rows]
        intervals = len(rows)
        covered_count = int(((lower <= measured_rates) & (measured_rates <= upper)).sum())
    return ScoreSums(
        observations=len(rows),
        absolute_log_error=float(np.abs(log_error).sum()),
        log_error=float(log_error.sum()),
        intervals=intervals,
        covered=covered_count,
        unanswered=len(measured_steps_per_s) - len(rows),
    )


def _space_out(rows: int, most: int) -> Ints:
    """At most so many rows, evenly spaced from the first to the last, in their order."""
    if rows <= most:
        return freeze(np.arange(rows, dtype=np.int64))
    return freeze(np.linspace(0.0, rows - 1.0, most).round().astype(np.int64))


def _resolves(answers: Answers, profile: Profile, observations: Observations) -> bool:
    try:
        answers.resolve_configurations(profile, observations.configurations)
    except NodewiseError:
        return False
    return True
