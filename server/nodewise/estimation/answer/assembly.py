"""From predictions to an answer: rates, interval, objective, warnings."""

from __future__ import annotations

from math import isfinite
from typing import Final

import numpy as np

from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Fidelity, Notice, Predictions
from nodewise.estimation.answer.goodput import goodput_per_s
from nodewise.estimation.answer.intervals import interval_of
from nodewise.estimation.answer.objectives import judged, whole_finish_s
from nodewise.estimation.fit.fitted import Fitted
from nodewise.estimation.question import Answer, Basis, Question

__all__ = ["assembled"]

_FINITE: Final = ("steps_per_s", "samples_per_s", "minibatches_per_s", "finish_s", "costs", "goodput_per_s")

FAR_EXTRAPOLATION: Final = 2.0
"""Scale relative to the evidence from which an answer warns: beyond twice the largest scale in evidence even the right
model's saturation rests on assumption (research/queueing.md)."""


@np.errstate(over="ignore", invalid="ignore")
def assembled(
    question: Question, configurations: Configurations, predictions: Predictions, fitted: Fitted, basis: Basis
) -> Answer:
    """Everything that follows from the predictions: rates, interval, objective, warnings.

    Raises
    ------
    NodewiseError
        ESTIMATOR_INVALID_RESULT, naming a column that is not finite; as ``objectives.judged``.
    """
    rates = configurations.rates
    step_s = predictions.step_s
    if predictions.all_answered:
        steps_per_s = rates.cycles_per_step / step_s
    else:
        answered = predictions.answered
        steps_per_s = np.divide(rates.cycles_per_step, step_s, out=np.zeros(len(step_s)), where=answered)
    interval = interval_of(predictions, steps_per_s, question.terms.coverage, calibrated=fitted.calibration.jobs > 0)
    samples_per_s = steps_per_s * rates.samples_per_step
    minibatches_per_s = steps_per_s * rates.minibatches_per_step
    notices = (*predictions.notices, *fitted.notices)
    if question.terms.options.fidelity == Fidelity.SIMULATE and not predictions.simulated:
        message = f"estimator {basis.estimator!r} has no simulation: answered by its model"
        notices = (*notices, Notice("NOT_SIMULATED", message))
    furthest = np.maximum.reduce(predictions.extrapolation, initial=0.0)
    if furthest > FAR_EXTRAPOLATION:
        far = np.flatnonzero(predictions.extrapolation > FAR_EXTRAPOLATION)
        beyond = "beyond twice the scale that the evidence identifies"
        message = f"{len(far)} rows lie {beyond} (the furthest {furthest:.3g} times)"
        notices = (*notices, Notice("EXTRAPOLATES", message, tuple(far.tolist())))
    finish_s = costs = recommendation = goodput = None
    workload = question.profile.workload
    if question.objective is None:
        finish_s = whole_finish_s(configurations, predictions, samples_per_s, workload)
    else:
        if question.objective.efficiency is not None:
            goodput = goodput_per_s(question.objective.efficiency, configurations, samples_per_s)
        verdict = judged(question.objective, configurations, predictions, samples_per_s, minibatches_per_s, workload)
        finish_s, costs, recommendation = verdict.finish_s, verdict.costs, verdict.recommendation
        notices = (*notices, *verdict.remarks)
        if verdict.notice is not None:
            notices = (*notices, verdict.notice)
    answer = Answer(
        configurations=configurations,
        predictions=predictions,
        steps_per_s=steps_per_s,
        samples_per_s=samples_per_s,
        minibatches_per_s=minibatches_per_s,
        interval=interval,
        finish_s=finish_s,
        costs=costs,
        recommendation=recommendation,
        notices=notices,
        basis=basis,
        samples_per_step=rates.samples_per_step,
        goodput_per_s=goodput,
    )
    _require_finite(basis.estimator, answer)
    return answer


def _require_finite(estimator: str, answer: Answer) -> None:
    columns = [(name, getattr(answer, name)) for name in _FINITE]
    if answer.interval is not None:
        columns += [(name, getattr(answer.interval, name)) for name in ("lower_steps_per_s", "upper_steps_per_s")]
    for name, column in columns:
        # A NaN or an infinity survives the sum; finite numbers that overflow it are told apart below.
        if column is not None and not isfinite(np.add.reduce(column)) and not np.isfinite(column).all():
            problem = f"{name} is not finite"
            raise NodewiseError(
                Reason.ESTIMATOR_INVALID_RESULT,
                f"the answer of estimator {estimator!r} cannot be told: {problem}",
                {"estimator": estimator, "problem": problem},
            )
