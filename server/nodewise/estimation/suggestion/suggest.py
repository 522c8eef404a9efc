"""What to measure next, from a question as it is asked to suggestions."""

from __future__ import annotations

from dataclasses import replace

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question
from nodewise.estimation.suggestion.covariance import covariance_of
from nodewise.estimation.suggestion.search import Suggestions, Wish, refusal_of, suggested

__all__ = ["suggest"]


def suggest(answers: Answers, question: Question, wish: Wish) -> Suggestions:
    """What to measure next. Takes up to seconds: for a thread.

    Raises
    ------
    NodewiseError
        As ``Answers.answer``; the first refusal where every row is refused; DEADLINE_EXCEEDED.
    """
    prepared = answers.prepared(question)
    if prepared.fitted.parts:
        # How errors hang together is told by one model: the heaviest part of a mixture.
        heaviest = prepared.fitted.parts[0].share.estimator
        prepared = answers.prepared(replace(question, terms=question.terms.by(heaviest)))
    answer, fitted = answers.complete(prepared), prepared.fitted
    refusal = refusal_of(answer.predictions)
    if refusal is not None:
        raise NodewiseError.refused(refusal)
    name = fitted.basis.estimator
    shown = answers.estimators.shown(name, question.profile, prepared.configurations)
    covariance = covariance_of(answers.estimators.named(name), fitted, shown, answer, question.terms.options)
    return suggested(question, answer, covariance, wish)
