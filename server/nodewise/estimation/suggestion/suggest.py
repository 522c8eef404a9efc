"""Suggest the next measurements for a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nodewise.domain.columns import as_ints
from nodewise.domain.errors import NodewiseError
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.resolved_query import ResolvedQuery
from nodewise.estimation.fit.fitted_model import MixturePart
from nodewise.estimation.question import Question
from nodewise.estimation.suggestion.boundaries import boundary_of
from nodewise.estimation.suggestion.covariance import add_doubt, covariance_of
from nodewise.estimation.suggestion.search import Suggestions, Wish, choose_measurements, refusal_of

__all__ = ["suggest"]


def suggest(answers: Answers, question: Question, wish: Wish) -> Suggestions:
    """Return the next measurements. Takes up to seconds; call it in a thread.

    Raises
    ------
    NodewiseError
        The errors of ``Answers.answer``; the first refusal if every row is refused; DEADLINE_EXCEEDED.
    """
    query = answers.resolve(question)
    if query.fitted.parts:
        question, query = _of_one_model(answers, question, query.fitted.parts)
    answer, fit = answers.complete(question, query), query.fitted
    refusal = refusal_of(answer.predictions)
    if refusal is not None:
        raise NodewiseError.refused(refusal)
    name = fit.basis.estimator
    support = answers.estimators.supported_rows(name, question.profile, query.configurations)
    covariance = covariance_of(answers.estimators.by_name(name), fit, support, answer, question.terms.options)
    reach = answers.reach(question.profile)
    ratios = reach.ratios(answer.configurations, answer.predictions.extrapolation)
    answered_rows = as_ints(np.flatnonzero(answer.predictions.answered))
    doubtful = add_doubt(covariance, ratios[answered_rows])
    boundary = boundary_of(question.profile, answer.configurations, answered_rows, answers.estimators.catalogue)
    return choose_measurements(question, answer, doubtful, wish, reach, boundary)


def _of_one_model(answers: Answers, question: Question, parts: Sequence[MixturePart]) -> tuple[Question, ResolvedQuery]:
    """Choose the mixture's model for the covariance: the one that answers most rows, then the largest weight."""
    terms = [replace(question, terms=question.terms.by(part.share.estimator)) for part in parts]
    alone = [(each, answers.resolve(each)) for each in terms]
    return max(alone, key=lambda each: int(answers.complete(*each).predictions.answered.sum()))
