"""Curves of simulated jobs from profiles, by the predictions that a schedule of the same cluster would use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import ClusterState
from nodewise.estimation.question import Basis
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.checks import CheckedQuestion, check_question
from nodewise.scheduling.curves import Predict, gather_curves
from nodewise.scheduling.request import JobQuestion, ScheduleLimits, ScheduleQuestion
from nodewise.scheduling.simulation.jobs import JobCurve

__all__ = ["PredictedCurves", "curve_question", "predicted_curves"]

_JOB: Final = re.compile(r"^jobs\[(\d+)\]")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PredictedCurves:
    """The cluster after its checks, and a curve per question, in order, with the evidence behind them."""

    state: ClusterState
    curves: tuple[JobCurve, ...]
    bases: tuple[Basis, ...]


def curve_question(number: int, question: JobQuestion) -> JobQuestion:
    """A job that represents its curve; only those of its fields that change predictions matter."""
    return replace(question, job_id=f"curve {number}", remaining_samples=1.0, submit_time_s=float(number))


def predicted_curves(
    question: ScheduleQuestion,
    places: Sequence[int],
    policy: PolicyRecord,
    predict: Predict,
    budget: Budget,
    limits: ScheduleLimits,
) -> PredictedCurves:
    """Check cluster, quotas and parameters, and predict a curve for every job of the question.

    Parameters
    ----------
    question : ScheduleQuestion
        Its jobs are those of ``curve_question``.
    places : sequence of int
        The curve in the request that each job represents; errors name the curve.

    Raises
    ------
    NodewiseError
        What ``check_question`` raises; DEADLINE_EXCEEDED; the reason why a curve cannot be predicted, since a
        simulation without some of its jobs would be one of other jobs.
    """
    try:
        inputs = check_question(question, policy.parameters, limits)
        job_curves = gather_curves(question, _one_by_one(inputs), predict, budget, limits)
    except NodewiseError as error:
        raise _of_curves(error, places) from None
    if not job_curves.complete:
        raise NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before all curves were predicted")
    curves = []
    for row, (place, refusal) in enumerate(zip(places, job_curves.refusals)):
        if refusal is not None:
            raise NodewiseError.refused(replace(refusal, message=f"curves[{place}]: {refusal.message}"))
        curves.append(JobCurve.of_rows(job_curves.curves, job_curves.curves.rows(row)))
    bases = {id(basis): basis for basis in job_curves.bases if basis is not None}
    return PredictedCurves(state=inputs.state, curves=tuple(curves), bases=tuple(bases.values()))


def _one_by_one(inputs: CheckedQuestion) -> CheckedQuestion:
    """The question without whole nodes: which counts fill them depends on the servers of each job of a curve."""
    pools = tuple(replace(pool, devices_per_node=0) for pool in inputs.state.pools)
    return replace(inputs, state=replace(inputs.state, pools=pools))


def _of_curves(error: NodewiseError, places: Sequence[int]) -> NodewiseError:
    """The error with the fields of the curves in the request instead of those of the jobs that represent them."""
    if not error.violations:
        return error

    def curve_field(field: str) -> str:
        return _JOB.sub(lambda match: f"curves[{places[int(match[1])]}].profile", field)

    violations = tuple(replace(each, field=curve_field(each.field)) for each in error.violations)
    return replace(NodewiseError.invalid(violations, error.reason), metadata=dict(error.metadata))
