"""Predict rows with a fitted model or a mixture. If a part of a mixture fails, the other parts answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Predictions
from nodewise.estimation.answer.bounded_influence import move_by_others
from nodewise.estimation.answer.mixture import Part, mix
from nodewise.estimation.estimators.estimators import Estimators
from nodewise.estimation.fit.fitted_model import FittedModel, lost_part
from nodewise.estimation.question import Question

__all__ = ["predict_rows"]


def predict_rows(
    estimators: Estimators, fit: FittedModel, configurations: Configurations, question: Question
) -> Predictions:
    """Predict every row with a fitted model or a mixture, and calibrate the spreads.

    Parameters
    ----------
    configurations : Configurations
        Resolved rows.

    Raises
    ------
    NodewiseError
        The estimator's refusal, ESTIMATOR_FAILED or ESTIMATOR_INVALID_RESULT.
    """
    if fit.others:
        own = predict_rows(estimators, replace(fit, others=()), configurations, question)
        return move_by_others(own, _predict_others(estimators, fit.others, configurations, question))
    if fit.parts:
        return _mix(estimators, fit, configurations, question)
    name = fit.basis.estimator
    support = estimators.supported_rows(name, question.profile, configurations)
    own = estimators.predict(name, fit.model, support.configurations, question.terms.options)
    return support.merge(fit.calibration.apply(own), len(configurations.workers))


def _predict_others(
    estimators: Estimators, others: Sequence[FittedModel], configurations: Configurations, question: Question
) -> list[Predictions]:
    """Predict the rows with the models of other owners' groups. A model that fails is left out."""
    predictions = []
    for other in others:
        with suppress(NodewiseError):
            predictions.append(predict_rows(estimators, other, configurations, question))
    return predictions


def _mix(estimators: Estimators, fit: FittedModel, configurations: Configurations, question: Question) -> Predictions:
    """Predict with each part of a mixture and combine the predictions."""
    able = []
    failures = []
    for part in fit.parts:
        name = part.share.estimator
        try:
            predictions = predict_rows(estimators, part.fitted, configurations, question)
        except NodewiseError as error:
            failures.append((name, error))
            continue
        able.append(Part(part.share, predictions, part.weights, part.errors))
    if not able:
        raise failures[0][1]
    together = mix(able)
    notices = tuple(lost_part(name, error) for name, error in failures)
    return replace(together, notices=(*together.notices, *notices)) if notices else together
