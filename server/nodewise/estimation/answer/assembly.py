"""Turn predictions into an answer: rates, intervals and warnings of rows, then the verdict of the objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, shared_value
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.predictions import Fidelity, Notice, Predictions
from nodewise.estimation.answer.floors import Floors
from nodewise.estimation.answer.goodput import goodput_per_s
from nodewise.estimation.answer.intervals import interval_of
from nodewise.estimation.answer.objectives import Comparison, compare, decide, whole_finish_s
from nodewise.estimation.fit.fitted_model import FittedModel
from nodewise.estimation.question import Answer, Basis, Question, Terms
from nodewise.estimation.reach import Reach

__all__ = ["judge", "rate"]

FAR_EXTRAPOLATION: Final = 2.0
"""Scale relative to the evidence above which an answer warns. Beyond twice the largest scale of the evidence, the
saturation of even a correct model is an assumption (research/queueing.md)."""


@np.errstate(over="ignore", invalid="ignore")
def rate(
    terms: Terms,
    configurations: Configurations,
    predictions: Predictions,
    fit: FittedModel,
    basis: Basis,
    floors: Floors | None = None,
) -> Answer:
    """Return rates, intervals and warnings without a verdict: the part that does not depend on the objective.

    Parameters
    ----------
    floors : Floors or None
        Lower bounds of the step time of each row, which limit the interval; None = unknown.

    Raises
    ------
    NodewiseError
        ESTIMATOR_INVALID_RESULT, with the name of a column that is not finite.
    """
    rates = configurations.rates
    step_s = predictions.step_s
    if predictions.all_answered:
        steps_per_s = rates.cycles_per_step / step_s
    else:
        is_answered = predictions.answered
        steps_per_s = np.divide(rates.cycles_per_step, step_s, out=np.zeros(len(step_s)), where=is_answered)
    most = None
    if floors is not None and not predictions.simulated:
        floor_s = floors.step_s
        most = np.divide(rates.cycles_per_step, floor_s, out=np.full(len(step_s), np.inf), where=floor_s > 0.0)
    is_calibrated = fit.calibration.jobs > 0
    interval = interval_of(predictions, steps_per_s, terms.coverage, is_calibrated=is_calibrated, most_steps_per_s=most)
    samples_per_s = steps_per_s * rates.samples_per_step
    one_each = shared_value(rates.minibatches_per_step) == 1.0
    minibatches_per_s = steps_per_s if one_each else steps_per_s * rates.minibatches_per_step
    _require_finite(
        fit.basis.estimator,
        {
            "steps_per_s": steps_per_s,
            "samples_per_s": samples_per_s,
            "minibatches_per_s": None if one_each else minibatches_per_s,
            "lower_steps_per_s": None if interval is None else interval.lower_steps_per_s,
            "upper_steps_per_s": None if interval is None else interval.upper_steps_per_s,
        },
    )
    notices = (*predictions.notices, *fit.notices)
    if terms.options.fidelity == Fidelity.SIMULATE and not predictions.simulated:
        message = f"estimator {fit.basis.estimator!r} has no simulation: answered by its model"
        notices = (*notices, Notice("NOT_SIMULATED", message))
    furthest = np.maximum.reduce(predictions.extrapolation, initial=0.0)
    if furthest > FAR_EXTRAPOLATION:
        far = np.flatnonzero(predictions.extrapolation > FAR_EXTRAPOLATION)
        rows = "1 row extrapolates" if len(far) == 1 else f"{len(far)} rows extrapolate"
        message = f"{rows} to more than twice the scale of the evidence (up to {furthest:.3g} times)"
        notices = (*notices, Notice("EXTRAPOLATES", message, tuple(far.tolist())))
    return Answer(
        configurations=configurations,
        predictions=predictions,
        steps_per_s=steps_per_s,
        samples_per_s=samples_per_s,
        minibatches_per_s=minibatches_per_s,
        samples_per_step=rates.samples_per_step,
        interval=interval,
        notices=notices,
        basis=basis,
    )


def judge(question: Question, rows: Answer, basis: Basis, reach: Reach, comparison: Comparison | None = None) -> Answer:
    """Return the answer to a query from its rated rows: add finish times, costs and the verdict of the objective.

    Parameters
    ----------
    comparison : Comparison or None
        The rows prepared for the query's objective; None = it is computed here.

    Raises
    ------
    NodewiseError
        ESTIMATOR_INVALID_RESULT, with the name of a column that is not finite; the errors of ``objectives.decide``.
    """
    configurations, predictions, samples_per_s = rows.configurations, rows.predictions, rows.samples_per_s
    objective, workload = question.objective, question.profile.workload
    if objective is None:
        finish_s = whole_finish_s(configurations, predictions, samples_per_s, workload)
        _require_finite(basis.estimator, {"finish_s": finish_s})
        return rows if finish_s is None and basis is rows.basis else replace(rows, finish_s=finish_s, basis=basis)
    goodput = None
    if objective.efficiency is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            goodput = goodput_per_s(objective.efficiency, configurations, samples_per_s)
    if comparison is None:
        comparison = compare(objective, configurations, predictions, samples_per_s, rows.minibatches_per_s, reach)
    verdict = decide(objective, comparison, configurations, predictions, samples_per_s, workload)
    finish_s, costs = verdict.finish_s, verdict.costs
    _require_finite(basis.estimator, {"finish_s": finish_s, "costs": costs, "goodput_per_s": goodput})
    remarks = (*verdict.remarks, verdict.notice) if verdict.notice is not None else tuple(verdict.remarks)
    return replace(
        rows,
        finish_s=finish_s,
        costs=costs,
        recommendation=verdict.recommendation,
        notices=(*rows.notices, *remarks) if remarks else rows.notices,
        basis=basis,
        goodput_per_s=goodput,
    )


def _require_finite(estimator: str, columns: Mapping[str, Floats | None]) -> None:
    present = [column for column in columns.values() if column is not None]
    # A NaN or an infinity makes the sum non-finite. The loop below excludes finite values whose sum overflows.
    if not present or isfinite(np.add.reduce(present[0] if len(present) == 1 else np.concatenate(present))):
        return
    for name, column in columns.items():
        if column is not None and not np.isfinite(column).all():
            problem = f"{name} is not finite"
            raise NodewiseError(
                Reason.ESTIMATOR_INVALID_RESULT,
                f"the answer of estimator {estimator!r} cannot be used: {problem}",
                {"estimator": estimator, "problem": problem},
            )
