"""Objectives: recommend the best of the answered rows by a rule, with the reason and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, largest, only_value
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Reason, invalid_field
from nodewise.domain.objective import (
    CurrentConfiguration,
    FewestDevices,
    LeastCost,
    LeastTime,
    Objective,
    Recommendation,
    RecommendationBound,
    Rule,
)
from nodewise.domain.predictions import Notice, Predictions
from nodewise.domain.words import number, pluralize
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.goodput import goodput_per_s
from nodewise.estimation.answer.intervals import one_sided_rate
from nodewise.estimation.answer.offers import Charges, charges_of
from nodewise.estimation.answer.rules import Preference, Rows, apply_rule
from nodewise.estimation.reach import UNMEASURED, Reach

__all__ = ["Comparison", "Verdict", "compare", "decide", "verdict_of", "whole_finish_s", "work_of"]


_LARGE: Final = np.errstate(over="ignore", invalid="ignore")
"""Silences overflow in times and costs. ``assembly.judge`` checks that they are finite."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Verdict:
    """Time and cost columns (None = the work is unknown), the recommendation, and a notice if there is none.

    ``remarks`` apply with or without a recommendation.
    """

    finish_s: Floats | None
    costs: Floats | None
    recommendation: Recommendation | None
    notice: Notice | None
    remarks: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Comparison:
    """Rows prepared for the comparison by an objective. They do not depend on the remaining work.

    Attributes
    ----------
    rows : Rows
        The rows that may be recommended, without times and costs.
    is_judged : bool
        Mask of these rows among the rows of the question.
    further : bool or None
        Mask of answered rows too far beyond the evidence to be recommended; None = no such rows.
    rate : float
        Rate of each row of the question, in the unit of ``rows.rate_name``.
    is_known : bool
        Whether the batch of every row is known. Rates then count samples, else steps.
    by : str
        The criterion of the comparison, as text for people; empty = the predicted point.
    remarks : tuple of Notice
        Notices that apply with or without a recommendation.
    reach : Reach
        Largest scale of the evidence.
    """

    rows: Rows
    is_judged: NDArray[np.bool_]
    further: NDArray[np.bool_] | None
    rate: Floats
    is_known: bool
    by: str
    remarks: tuple[Notice, ...]
    reach: Reach


@_LARGE
def compare(
    objective: Objective,
    configurations: Configurations,
    predictions: Predictions,
    samples_per_s: Floats,
    minibatches_per_s: Floats,
    reach: Reach = UNMEASURED,
) -> Comparison:
    """Prepare predicted rows for the comparison by an objective.

    Rates are samples/s, or goodput if the objective states the statistical efficiency. If the batch of a row is
    unknown, rates are steps/s, scaled to the number of workers of the smallest row. This makes rows with the same
    batch per worker comparable.
    """
    every, is_answered, current = predictions.all_answered, predictions.answered, objective.current
    is_known = _batch_known(configurations, predictions, samples_per_s)
    rate, rate_name = (
        _of_samples(objective, configurations, samples_per_s)
        if is_known
        else _alike_steps(configurations, is_answered, minibatches_per_s)
    )
    is_judged, by = is_answered, ""
    remarks: tuple[Notice, ...] = ()
    if objective.confidence is not None:
        rate = one_sided_rate(predictions, rate, objective.confidence)
        is_judged, by, remarks = _with_spread(predictions, is_answered, objective.confidence)
    near = reach.within(objective.most_extrapolation, configurations, predictions.extrapolation)
    further = None
    if near is not None:
        is_judged, further = _within_reach(is_judged, near, current, alike=is_judged is is_answered and every)
    index: slice | Ints = slice(None)
    nodes, workers, rates = configurations.nodes, configurations.workers, rate
    if further is not None or not ((is_judged is is_answered and every) or np.logical_and.reduce(is_judged)):
        index = np.flatnonzero(is_judged)
        nodes, workers, rates = nodes[index], workers[index], rate[index]
    nodes_vary = len(nodes) < 2 or only_value(nodes) is None
    rows = Rows(
        nodes=nodes,
        workers=workers,
        configurations=configurations,
        index=index,
        scale=nodes if nodes_vary else workers,
        scale_name="nodes" if nodes_vary else "workers",
        rate=rates,
        rate_name=rate_name,
    )
    return Comparison(
        rows=rows,
        is_judged=is_judged,
        further=further,
        rate=rate,
        is_known=is_known,
        by=by,
        remarks=remarks,
        reach=reach,
    )


def verdict_of(
    objective: Objective,
    configurations: Configurations,
    predictions: Predictions,
    samples_per_s: Floats,
    minibatches_per_s: Floats,
    workload: Workload,
    reach: Reach = UNMEASURED,
) -> Verdict:
    """Compare predicted rows by an objective and apply it; raises the errors of :func:`decide`."""
    comparison = compare(objective, configurations, predictions, samples_per_s, minibatches_per_s, reach)
    return decide(objective, comparison, configurations, predictions, samples_per_s, workload)


def decide(
    objective: Objective,
    comparison: Comparison,
    configurations: Configurations,
    predictions: Predictions,
    samples_per_s: Floats,
    workload: Workload,
) -> Verdict:
    """Apply an objective to the rows prepared for it.

    Times and costs of all rows but the current one include the restart when the rows are compared.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if the rule needs work, a data set size or prices that are not given.
    """
    rows, further, is_known, current = comparison.rows, comparison.further, comparison.is_known, objective.current
    work = work_of(objective, workload, is_known=is_known)
    charges = charges_of(objective, configurations)
    finish_s = weighed_s = None if work is None else _work_s(objective, work, charges, comparison, predictions)
    # The comparison includes the restart; the columns of the answer do not.
    if finish_s is not None and current is not None:
        weighed_s = np.where(_elsewhere(predictions, current), finish_s + current.restart_cost_s, finish_s)
    costs = weighed_costs = None
    if finish_s is not None or objective.rule.compares_costs:
        costs = weighed_costs = _costs(objective, charges, finish_s)
        if weighed_s is not finish_s:
            weighed_costs = _costs(objective, charges, weighed_s)
    if weighed_s is not None:
        costs_of_rows = None if weighed_costs is None else weighed_costs[rows.index]
        rows = replace(rows, finish_s=weighed_s[rows.index], costs=costs_of_rows, currency=objective.currency)
    reach, remarks = comparison.reach, comparison.remarks
    most = objective.most_extrapolation
    nothing: tuple[str, Preference] = "", (None, "no row was answered", {})
    rule, (best, why, numbers) = apply_rule(objective.rule, rows) if len(rows.nodes) else nothing
    if best is None:
        far = "" if further is None else out_of_reach(configurations, reach, most, further)
        why = "; ".join(filter(None, (why if len(rows.nodes) or not far else "", far)))
        notice = Notice(Reason.OBJECTIVE_UNREACHABLE, why)
        return Verdict(finish_s=finish_s, costs=costs, recommendation=None, notice=notice, remarks=remarks)
    keeps, (bound, ends) = False, bound_of(objective.rule, rows, best, reach, most, further)
    index = rows.index
    if current is not None and comparison.is_judged[current.row]:
        here = current.row if isinstance(index, slice) else int(np.searchsorted(index, current.row))
        best, why, keeps = _or_kept(objective.rule, current, rows, here, (best, why))
        bound, ends = (RecommendationBound.NOTHING, "") if keeps else (bound, ends)
        numbers |= {rows.rate_key: float(rows.rate[best]), "restart_cost_s": current.restart_cost_s}
    row = best if isinstance(index, slice) else int(index[best])
    recommendation = Recommendation(
        row=row,
        nodes=int(configurations.nodes[row]),
        workers=int(configurations.workers[row]),
        rule=rule,
        why=why + comparison.by + ends,
        numbers=numbers,
        device=configurations.devices[configurations.device_index[row]],
        offer="" if charges is None else objective.offers[charges.index[row]].name,
        samples_per_s=float(samples_per_s[row]) if is_known else None,
        finish_s=None if weighed_s is None else float(weighed_s[row]),
        cost=None if weighed_costs is None else float(weighed_costs[row]),
        keeps_current=keeps,
        bounded_by=bound,
    )
    return Verdict(finish_s=finish_s, costs=costs, recommendation=recommendation, notice=None, remarks=remarks)


def _elsewhere(predictions: Predictions, current: CurrentConfiguration | None) -> NDArray[np.bool_]:
    """Return a mask of the answered rows other than the current one."""
    is_answered = predictions.answered
    return is_answered if current is None else is_answered & (np.arange(len(is_answered)) != current.row)


@_LARGE
def _work_s(
    objective: Objective, work: float, charges: Charges | None, comparison: Comparison, predictions: Predictions
) -> Floats:
    """Return the seconds that the work takes in each row. All rows but the current one include the start of nodes."""
    if not comparison.is_known:
        path = "configurations.batch_per_worker_samples"
        text = "must be known, here or from the profile's evidence: the work is counted in samples"
        raise invalid_field(path, text)
    finish_s = _finish_s(work, comparison.rate, predictions)
    if charges is None:
        return finish_s
    return np.where(_elsewhere(predictions, objective.current), finish_s + charges.start_up_s, finish_s)


def _of_samples(objective: Objective, configurations: Configurations, samples_per_s: Floats) -> tuple[Floats, str]:
    """Return throughput or goodput of each row in samples/s, and the name of the unit."""
    if objective.efficiency is None:
        return samples_per_s, "samples/s"
    return goodput_per_s(objective.efficiency, configurations, samples_per_s), "samples/s of goodput"


def _alike_steps(
    configurations: Configurations, is_answered: NDArray[np.bool_], minibatches_per_s: Floats
) -> tuple[Floats, str]:
    """Return steps/s scaled to the workers of the smallest row, and the name of the unit."""
    sizes = configurations.rates.minibatches_per_step[is_answered]
    smallest, largest = sizes.min(initial=np.inf), sizes.max(initial=1.0)
    if largest == 1.0:
        return minibatches_per_s, "steps/s"
    of = "" if smallest == largest else f" of {smallest:.0f} worker{'s' if smallest > 1 else ''}"
    return minibatches_per_s / smallest, f"steps/s{of}"


def _within_reach(
    judging: NDArray[np.bool_], near: NDArray[np.bool_], current: CurrentConfiguration | None, *, alike: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return masks of the rows within the extrapolation limit and of the rows beyond it; None = no rows beyond.

    The current row counts as within, since the job runs on it. ``alike``: whether all rows may be recommended.
    """
    if current is None and alike:
        return near, ~near
    if current is not None:
        near = near.copy()
        near[current.row] = True
    further = judging & ~near
    return (judging & near, further) if np.logical_or.reduce(further) else (judging, None)


def _or_kept(
    rule: Rule, current: CurrentConfiguration, rows: Rows, here: int, preference: tuple[int, str]
) -> tuple[int, str, bool]:
    """Return the preferred row (the current one if a move does not pay), the reason, and whether it is current."""
    best, why = preference
    if best == here:
        return here, f"{why}, and it runs there now", True
    window_s = payback_window_s(rule, current, here, best, rows)
    if window_s is None:
        return best, f"{why}, worth a restart of {number(current.restart_cost_s)} s", False
    where = f"{rows.scale[here]} {rows.scale_name}"
    text = (
        f"{where}, as now: {number(float(rows.rate[best]))} {rows.rate_name} on {rows.scale[best]} instead of "
        f"{number(float(rows.rate[here]))} do not pay for a restart of {number(current.restart_cost_s)} s within "
        f"{number(window_s)} s"
    )
    return here, text, True


@_LARGE
def whole_finish_s(
    configurations: Configurations, predictions: Predictions, samples_per_s: Floats, workload: Workload
) -> Floats | None:
    """Return the predicted seconds to train all epochs of the workload; None if epochs or batch are unknown."""
    work = _whole(workload)
    if work is None or not _batch_known(configurations, predictions, samples_per_s):
        return None
    return _finish_s(work, samples_per_s, predictions)


def _batch_known(configurations: Configurations, predictions: Predictions, samples_per_s: Floats) -> bool:
    if predictions.all_answered:
        return configurations.rates.batch_known
    return bool((samples_per_s[predictions.answered] > 0).all())


def _finish_s(work: float, rate: Floats, predictions: Predictions) -> Floats:
    """Return the seconds to process ``work`` samples, including time spent once; 0 in unanswered rows."""
    steps_s = np.divide(work, rate, out=np.zeros(len(rate)), where=rate > 0)
    return steps_s if predictions.once_s is None else steps_s + predictions.once_s


def _with_spread(
    predictions: Predictions, is_answered: NDArray[np.bool_], confidence: float
) -> tuple[NDArray[np.bool_], str, tuple[Notice, ...]]:
    """Return a mask of the rows to compare at a confidence, the criterion as text, and notices on missing spreads."""
    spread = is_answered & (predictions.log_spread > 0)
    without = is_answered & ~spread
    by = f", judged by what is reached with probability {confidence:g}"
    if not without.any():
        return is_answered, by, ()
    if not spread.any():
        message = "no row has a spread: the objective's confidence cannot be kept, rows are judged by their points"
        return is_answered, ", judged by the point: the model states no spread", (Notice("NO_SPREAD", message),)
    rows = tuple(np.flatnonzero(without).tolist())
    message = f"{len(rows)} rows have no spread and are not recommended: the objective asks for a confidence"
    return spread, by, (Notice("NO_SPREAD", message, rows),)


def _whole(workload: Workload) -> float | None:
    """Return the samples of all epochs; None if the number of epochs or the samples per epoch are unknown."""
    if workload.epochs is None or workload.samples_per_epoch is None:
        return None
    return workload.epochs * workload.samples_per_epoch


def work_of(objective: Objective, workload: Workload, *, is_known: bool) -> float | None:
    """Return the remaining samples: those of the objective, else those of all epochs; None = unknown.

    A rule that needs work is refused without it. If the batch is unknown, the epochs count only for such a rule.
    """
    if objective.remaining_samples is not None:
        return objective.remaining_samples
    if objective.remaining_epochs is not None:
        if workload.samples_per_epoch is None:
            text = "needs the profile's workload.samples_per_epoch; give it, or give work.samples"
            raise invalid_field("work.epochs", text)
        return objective.remaining_epochs * workload.samples_per_epoch
    rule = objective.rule
    has_limits = rule.deadline_s is not None or rule.max_cost is not None
    needs = has_limits or (rule.compares_costs and bool(objective.offers))
    whole = _whole(workload)
    if needs and whole is None:
        text = (
            "must be given, or the profile's workload.epochs_count and workload.samples_per_epoch: the rule compares "
            "with a time or a cost"
        )
        raise invalid_field("work", text)
    return whole if is_known or needs else None


@_LARGE
def _costs(objective: Objective, charges: Charges | None, finish_s: Floats | None) -> Floats | None:
    """Return the cost of the work; None without work or offers. A rule that compares costs is refused then."""
    if charges is None or finish_s is None:
        if objective.rule.compares_costs:
            raise invalid_field("offers" if charges is None else "work", "must be given: the rule compares costs")
        return None
    return finish_s * charges.per_s


USUAL_PAYBACK_S: Final = 3600.0
"""Seconds within which a move must pay off if the duration of the work is unknown."""


def payback_window_s(rule: Rule, current: CurrentConfiguration, here: int, there: int, rows: Rows) -> float | None:
    """Return the seconds within which a move from one row to another does not pay off; None = the move pays off.

    Rules of time and cost compare times and costs that include the restart. Other rules compare the samples done
    within the payback window. The window is stated, or is the time of the work on the current row.
    """
    if not rows.within(rule)[here]:
        return None
    work_s = None if rows.finish_s is None else float(rows.finish_s[here])
    stated_s = current.payback_s
    window_s = stated_s if stated_s is not None else work_s if work_s is not None else USUAL_PAYBACK_S
    now, then = _key(rule, rows, here), _key(rule, rows, there)
    if now is not None and then is not None:
        return None if then < now else work_s if work_s is not None else window_s
    samples = float(rows.rate[there]) * max(window_s - current.restart_cost_s, 0.0)
    return None if samples > float(rows.rate[here]) * window_s else window_s


def _key(rule: Rule, rows: Rows, row: int) -> tuple[float, ...] | None:
    """Return what a rule of time or cost compares (less is better); None = the rule compares rates."""
    if isinstance(rule, LeastCost) and rows.costs is not None:
        return (float(rows.costs[row]),)
    if isinstance(rule, FewestDevices) and rows.finish_s is not None:
        return float(rows.devices[row]), float(rows.finish_s[row])
    if isinstance(rule, LeastTime) and rows.finish_s is not None:
        return (float(rows.finish_s[row]),)
    return None


def bound_of(
    rule: Rule, rows: Rows, best: int, reach: Reach, most: float, further: NDArray[np.bool_] | None
) -> tuple[RecommendationBound, str]:
    """Return what limits the size of the recommendation, and the text to add to its reason.

    Parameters
    ----------
    rows, best : Rows, int
        The rows that may be recommended, and the place of the recommended one.
    most : float
        Largest scale that may be recommended, as a multiple of the evidence; 0 = no limit.
    further : bool or None
        Mask of the answered rows of the question beyond this limit; None = no such rows.
    """
    question_rows, scale = rows.configurations, int(rows.scale[best])
    full = rule.max_nodes is not None and int(rows.nodes_held[best]) >= rule.max_nodes
    if isinstance(rule, FewestDevices) or full or scale < largest(rows.scale):
        return RecommendationBound.NOTHING, ""
    if further is not None:
        by_nodes = _by_nodes(question_rows, reach, most, further)
    else:
        sizes = question_rows.nodes if rows.scale_name == "nodes" else question_rows.workers
        if scale == rows.scale.min() or scale < largest(sizes):  # nothing was compared, or a larger row has no answer
            return RecommendationBound.NOTHING, ""
        most_nodes, most_workers = reach.limits(most)
        counts_nodes = rows.scale_name == "nodes"
        by_nodes = counts_nodes and scale + 1 > most_nodes
        next_workers = int(rows.workers[best]) * (scale + 1) / scale
        if reach.by_phases or not (by_nodes or next_workers > most_workers):
            unmeasured_text = "" if reach.is_measured else ", and no run of the job was measured"
            return RecommendationBound.RANGE, f"; the range asked about ends here{unmeasured_text}"
    text = f"; {_reaches(reach, most, by_nodes=by_nodes)}: measure {rows.scale_text(best)} to look further"
    return RecommendationBound.EVIDENCE, text


def out_of_reach(configurations: Configurations, reach: Reach, most: float, further: NDArray[np.bool_]) -> str:
    """Explain why no row is recommended if the rows lie beyond the extrapolation limit."""
    text = _reaches(reach, most, by_nodes=_by_nodes(configurations, reach, most, further))
    return f"no row is near enough: {text}; measure a larger run, or state max_extrapolation_ratio (0 = no limit)"


def _by_nodes(configurations: Configurations, reach: Reach, most: float, further: NDArray[np.bool_]) -> bool:
    """Return whether the rows beyond the limit exceed it in nodes; otherwise they exceed it in workers only."""
    return bool(configurations.nodes[further].min() > reach.limits(most)[0])


def _reaches(reach: Reach, most: float, *, by_nodes: bool) -> str:
    if reach.by_phases:
        return f"{most:g} times what the evidence identifies is the furthest that is recommended"
    scale = pluralize(reach.nodes, "node") if by_nodes else pluralize(reach.workers, "worker")
    return f"the evidence reaches {scale}, and {most:g} times that is the furthest that is recommended"
