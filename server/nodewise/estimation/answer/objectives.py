"""Objectives: which of the answered rows is best, by which rule, with which numbers."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Reason, invalid_field
from nodewise.domain.objective import (
    CurrentConfiguration,
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    Objective,
    Recommendation,
    Rule,
)
from nodewise.domain.predictions import Notice, Predictions
from nodewise.domain.words import number
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.goodput import goodput_per_s
from nodewise.estimation.answer.intervals import one_sided_rate
from nodewise.estimation.answer.moving import Stay, staying
from nodewise.estimation.answer.offers import Charged, charged

__all__ = ["Verdict", "judged", "whole_finish_s", "work_of"]

KNEE_TOLERANCE = 1e-9
"""Relative slack of the knee's comparison: exactly linear scaling must not fail at share 1 by one bit of rounding."""


_RATE_KEYS: Final = MappingProxyType(
    {
        "samples/s": "samples_per_s",
        "mini-batches/s": "minibatches_per_s",
        "samples/s of goodput": "goodput_samples_per_s",
    }
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Verdict:
    """Time and cost columns (None = no work is known), the recommendation, and a notice when there is none.

    ``remarks`` hold with or without a recommendation.
    """

    finish_s: Floats | None
    costs: Floats | None
    recommendation: Recommendation | None
    notice: Notice | None
    remarks: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Rows:
    """The answered rows of a question, as the rules compare them.

    ``held``: nodes with those of parameter servers; ``devices``: workers, and as many again as there are servers.
    """

    nodes: Ints
    held: Ints
    workers: Ints
    devices: Ints
    scale: Ints
    scale_name: str
    rate: Floats
    rate_name: str
    finish_s: Floats | None
    costs: Floats | None
    currency: str


def judged(
    objective: Objective,
    configurations: Configurations,
    predictions: Predictions,
    samples_per_s: Floats,
    minibatches_per_s: Floats,
    workload: Workload,
) -> Verdict:
    """Apply an objective to predicted rows.

    Rates are samples/s, or goodput where the objective says what another batch is worth; where the batch of a row is
    not known, mini-batches/s, which compare rows of one batch alike. Other rows than the current one are judged with
    the restart in their times and costs.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the rule needs work, a data set's size or prices that were not given.
    """
    answered = predictions.answered
    efficiency, current = objective.efficiency, objective.current
    everything = predictions.all_answered
    known = _batch_known(configurations, predictions, samples_per_s)
    rate, rate_name = (samples_per_s, "samples/s") if known else (minibatches_per_s, "mini-batches/s")
    if known and efficiency is not None:
        rate, rate_name = goodput_per_s(efficiency, configurations, samples_per_s), "samples/s of goodput"
    elsewhere = answered if current is None else answered & (np.arange(len(answered)) != current.row)
    judging = answered
    remarks: tuple[Notice, ...] = ()
    confidence = objective.confidence
    if confidence is not None:
        rate = one_sided_rate(predictions, rate, confidence)
        judging, confidence, remarks = _with_spread(predictions, answered, confidence)
        everything = everything and judging is answered
    work = work_of(objective, workload, known=known)
    charges = charged(objective, configurations)
    finish_s = None
    if work is not None:
        if not known:
            path = "configurations.batch_per_worker_samples"
            text = "must be known, here or from the profile's evidence: the work is counted in samples"
            raise invalid_field(path, text)
        finish_s = _finish_s(work, rate, predictions)
        if charges is not None:
            finish_s = np.where(elsewhere, finish_s + charges.start_up_s, finish_s)
    costs = _costs(objective, charges, finish_s)
    # Judged by what a move really takes; the columns say what each row would take by itself.
    weighed_s, weighed_costs = finish_s, costs
    if finish_s is not None and current is not None:
        weighed_s = np.where(elsewhere, finish_s + current.restart_cost_s, finish_s)
        weighed_costs = _costs(objective, charges, weighed_s)
    index: slice | Ints = slice(None) if everything else np.flatnonzero(judging)
    nodes = configurations.nodes[index]
    varied = len(nodes) < 2 or bool(np.logical_or.reduce(nodes != nodes[0]))
    rows = _Rows(
        nodes=nodes,
        held=configurations.nodes_held()[index],
        workers=configurations.workers[index],
        devices=configurations.devices_held()[index],
        scale=nodes if varied else configurations.workers[index],
        scale_name="nodes" if varied else "workers",
        rate=rate[index],
        rate_name=rate_name,
        finish_s=None if weighed_s is None else weighed_s[index],
        costs=None if weighed_costs is None else weighed_costs[index],
        currency=objective.currency,
    )
    chosen, rule, why, numbers = _apply(objective, rows) if len(nodes) else (None, "", "no row was answered", {})
    if chosen is None:
        notice = Notice(Reason.OBJECTIVE_UNREACHABLE, why)
        return Verdict(finish_s=finish_s, costs=costs, recommendation=None, notice=notice, remarks=remarks)
    keeps = False
    if current is not None and judging[current.row]:
        here = current.row if isinstance(index, slice) else int(np.searchsorted(index, current.row))
        chosen, why, keeps = _or_kept(objective.rule, current, rows, here, (chosen, why))
        numbers |= {_rate_key(rows): float(rows.rate[chosen]), "restart_cost_s": current.restart_cost_s}
    row = chosen if isinstance(index, slice) else int(index[chosen])
    if confidence is not None:
        why += f", judged by what is reached with probability {confidence:g}"
    elif objective.confidence is not None:
        why += ", judged by the point: the model states no spread"
    recommendation = Recommendation(
        row=row,
        nodes=int(configurations.nodes[row]),
        workers=int(configurations.workers[row]),
        rule=rule,
        why=why,
        numbers=numbers,
        device=configurations.devices[configurations.device_index[row]],
        offer="" if charges is None else objective.offers[charges.index[row]].name,
        samples_per_s=float(samples_per_s[row]) if known else None,
        finish_s=None if weighed_s is None else float(weighed_s[row]),
        cost=None if weighed_costs is None else float(weighed_costs[row]),
        keeps_current=keeps,
    )
    return Verdict(finish_s=finish_s, costs=costs, recommendation=recommendation, notice=None, remarks=remarks)


def _or_kept(
    rule: Rule, current: CurrentConfiguration, rows: _Rows, here: int, preferred: tuple[int, str]
) -> tuple[int, str, bool]:
    """The preferred row and why, or the current one where moving does not pay; and whether it is the current one."""
    chosen, why = preferred
    if chosen == here:
        return here, f"{why}, and it runs there now", True
    weighed = Stay(rate=rows.rate, finish_s=rows.finish_s, costs=rows.costs, held=rows.held, devices=rows.devices)
    window_s = staying(rule, current, here, chosen, weighed)
    if window_s is None:
        return chosen, f"{why}, worth a restart of {number(current.restart_cost_s)} s", False
    where = f"{rows.scale[here]} {rows.scale_name}"
    text = (
        f"{where}, as now: {number(float(rows.rate[chosen]))} {rows.rate_name} on {rows.scale[chosen]} instead of "
        f"{number(float(rows.rate[here]))} do not pay for a restart of {number(current.restart_cost_s)} s within "
        f"{number(window_s)} s"
    )
    return here, text, True


def whole_finish_s(
    configurations: Configurations, predictions: Predictions, samples_per_s: Floats, workload: Workload
) -> Floats | None:
    """Seconds to train all of the workload's epochs, by the point; None where they or the batch are not known."""
    work = _whole(workload)
    if work is None or not _batch_known(configurations, predictions, samples_per_s):
        return None
    return _finish_s(work, samples_per_s, predictions)


def _batch_known(configurations: Configurations, predictions: Predictions, samples_per_s: Floats) -> bool:
    if predictions.all_answered:
        return configurations.rates.batch_known
    return bool((samples_per_s[predictions.answered] > 0).all())


def _finish_s(work: float, rate: Floats, predictions: Predictions) -> Floats:
    """Seconds for so many samples, with what is spent once; 0 in rows that are not answered."""
    steps_s = np.divide(work, rate, out=np.zeros(len(rate)), where=rate > 0)
    return steps_s if predictions.once_s is None else steps_s + predictions.once_s


def _with_spread(
    predictions: Predictions, answered: NDArray[np.bool_], confidence: float
) -> tuple[NDArray[np.bool_], float | None, tuple[Notice, ...]]:
    """Rows to judge at a confidence, that confidence (None = by the point), and what the reader should know of it."""
    spread = answered & (predictions.log_spread > 0)
    without = answered & ~spread
    if not without.any():
        return answered, confidence, ()
    if not spread.any():
        message = "no row has a spread: the objective's confidence cannot be kept, rows are judged by their points"
        return answered, None, (Notice("NO_SPREAD", message),)
    rows = tuple(np.flatnonzero(without).tolist())
    message = f"{len(rows)} rows have no spread and are not recommended: the objective asks for a confidence"
    return spread, confidence, (Notice("NO_SPREAD", message, rows),)


_Choice = tuple[int | None, str, str, dict[str, float]]


def _apply(objective: Objective, rows: _Rows) -> _Choice:
    rule = objective.rule
    if isinstance(rule, HighestThroughput):
        return _highest(rows)
    if isinstance(rule, Knee):
        return _knee(rows, rule.share)
    if isinstance(rule, LeastTime):
        return _least_time(rows, rule)
    if isinstance(rule, FewestDevices):
        return _fewest_devices(rows, rule.deadline_s)
    return _least_cost(rows, rule)


def _highest(rows: _Rows) -> _Choice:
    best = _first(-rows.rate, rows.nodes)
    value = float(rows.rate[best])
    where = f"{rows.scale[best]} {rows.scale_name}"
    why = f"{number(value)} {rows.rate_name} on {where} is the highest of {len(rows.rate)} rows"
    return best, "highest_throughput", why, {_rate_key(rows): value}


def _knee(rows: _Rows, share: float) -> _Choice:
    # Plain numbers: a question has a few dozen rows, on which array functions spend longer starting than working.
    scale, rate = rows.scale.tolist(), rows.rate.tolist()
    best: dict[int, int] = {}
    for row, count in enumerate(scale):
        if count not in best or rate[row] > rate[best[count]]:
            best[count] = row  # the best row of each scale stands for it
    counts = sorted(best)
    base = rate[best[counts[0]]] / counts[0]
    enough = share * base * (1.0 - KNEE_TOLERANCE)
    at, gain = 0, 0.0
    for place in range(1, len(counts)):
        below, above = counts[place - 1], counts[place]
        gained = (rate[best[above]] - rate[best[below]]) / (above - below)
        if gained >= enough:
            at, gain = place, gained
    chosen, unit, name = best[counts[at]], rows.rate_name, rows.scale_name
    key, one = _rate_key(rows), name[:-1]
    numbers = {key: rate[chosen], "share": share, f"{key}_per_{one}": base}
    if at:
        numbers[f"gain_per_{one}"] = gain
        why = (
            f"{counts[at]} {name}: the step from {counts[at - 1]} brings {number(gain)} {unit} each, "
            f"at least {share:g} of the {number(base)} at {counts[0]}; no larger step does"
        )
    else:
        why = f"{counts[0]} {name}: no larger step brings {share:g} of the {number(base)} {unit} each at {counts[0]}"
    return chosen, "knee", why, numbers


def _least_time(rows: _Rows, rule: LeastTime) -> _Choice:
    allowed = np.ones(len(rows.rate), dtype=bool)
    limits = []
    if rule.max_nodes is not None:
        allowed &= rows.held <= rule.max_nodes
        limits.append(f"{rule.max_nodes} nodes")
    if rule.max_cost is not None:
        assert rows.costs is not None  # _costs refuses a budget without prices and work
        allowed &= rows.costs <= rule.max_cost
        limits.append(f"a cost of {rule.max_cost:g} {rows.currency}".rstrip())
    within = " and ".join(limits) or "no limit"
    if not allowed.any():
        least = f"; the cheapest row costs {number(rows.costs.min())}" if rows.costs is not None else ""
        return None, "", f"no row stays within {within}: the smallest has {rows.held.min()} nodes{least}", {}
    candidates = np.flatnonzero(allowed)
    # What is spent once may turn the order of rates.
    slowness = -rows.rate if rows.finish_s is None else rows.finish_s
    best = int(candidates[_first(slowness[candidates], rows.nodes[candidates])])
    numbers = {_rate_key(rows): float(rows.rate[best])}
    time = f"{number(rows.rate[best])} {rows.rate_name}"
    if rows.finish_s is not None:
        numbers["finish_s"] = float(rows.finish_s[best])
        time = f"{number(rows.finish_s[best])} s"
    if rows.costs is not None:
        numbers["cost"] = float(rows.costs[best])
    return best, "least_time", f"{time} on {rows.nodes[best]} nodes is the least time within {within}", numbers


def _least_cost(rows: _Rows, rule: LeastCost) -> _Choice:
    assert rows.costs is not None  # _costs refuses least cost without prices
    allowed = np.ones(len(rows.rate), dtype=bool)
    within = "without a deadline"
    if rule.deadline_s is not None:
        assert rows.finish_s is not None  # work_of refuses a deadline without work
        allowed &= rows.finish_s <= rule.deadline_s
        within = f"within {number(rule.deadline_s)} s"
        if not allowed.any():
            fastest = int(rows.finish_s.argmin())
            fastest_s, nodes = rows.finish_s[fastest], rows.nodes[fastest]
            why = f"no row finishes {within}: the fastest takes {number(fastest_s)} s on {nodes} nodes"
            return None, "", why, {}
    candidates = np.flatnonzero(allowed)
    best = int(candidates[_first(rows.costs[candidates], rows.nodes[candidates])])
    numbers = {"cost": float(rows.costs[best]), _rate_key(rows): float(rows.rate[best])}
    if rows.finish_s is not None:
        numbers["finish_s"] = float(rows.finish_s[best])
    why = (
        f"{number(rows.costs[best])} {rows.currency}".rstrip()
        + f" on {rows.nodes[best]} nodes is the least cost {within}"
    )
    return best, "least_cost", why, numbers


def _fewest_devices(rows: _Rows, deadline_s: float) -> _Choice:
    assert rows.finish_s is not None  # work_of refuses a deadline without work
    in_time = np.flatnonzero(rows.finish_s <= deadline_s)
    if not len(in_time):
        fastest = int(rows.finish_s.argmin())
        took = f"the fastest takes {number(rows.finish_s[fastest])} s on {_devices(rows, fastest)}"
        return None, "", f"no row finishes within {number(deadline_s)} s: {took}", {}
    best = int(in_time[np.lexsort((rows.nodes[in_time], rows.finish_s[in_time], rows.devices[in_time]))[0]])
    numbers = {_rate_key(rows): float(rows.rate[best]), "finish_s": float(rows.finish_s[best])}
    why = (
        f"{_devices(rows, best)}, done in {number(rows.finish_s[best])} s, are the fewest within {number(deadline_s)} s"
    )
    return best, "fewest_devices", why, numbers


def _devices(rows: _Rows, row: int) -> str:
    servers = int(rows.devices[row] - rows.workers[row])
    beside = f" and {servers} parameter server{'s' if servers > 1 else ''}" if servers else ""
    return f"{rows.workers[row]} devices{beside}"


def _first(key: Floats, nodes: Ints) -> int:
    """Least key; among equals the fewest nodes, then the first row."""
    return int(np.lexsort((nodes, key))[0])


def _rate_key(rows: _Rows) -> str:
    return _RATE_KEYS[rows.rate_name]


def _whole(workload: Workload) -> float | None:
    """Samples of all epochs, where the profile says how many there are and of how many samples."""
    if workload.epochs is None or workload.samples_per_epoch is None:
        return None
    return workload.epochs * workload.samples_per_epoch


def work_of(objective: Objective, workload: Workload, *, known: bool) -> float | None:
    """Samples left: as the objective says, else all of the workload's; refuses rules that need them without.

    None = not known. Without a known batch the workload's epochs are work only for a rule that needs some.
    """
    if objective.remaining_samples is not None:
        return objective.remaining_samples
    if objective.remaining_epochs is not None:
        if workload.samples_per_epoch is None:
            text = "needs the profile's workload.samples_per_epoch; give it, or give work.samples"
            raise invalid_field("work.epochs", text)
        return objective.remaining_epochs * workload.samples_per_epoch
    rule = objective.rule
    needs = (
        isinstance(rule, FewestDevices)
        or (isinstance(rule, LeastTime) and rule.max_cost is not None)
        or (isinstance(rule, LeastCost) and (rule.deadline_s is not None or bool(objective.offers)))
    )
    whole = _whole(workload)
    if needs and whole is None:
        text = (
            "must be given, or the profile's workload.epochs_count and workload.samples_per_epoch: the rule compares "
            "with a time or a cost"
        )
        raise invalid_field("work", text)
    return whole if known or needs else None


def _costs(objective: Objective, charges: Charged | None, finish_s: Floats | None) -> Floats | None:
    """Cost of the work, None without work or offers; refuses rules that need them without."""
    rule = objective.rule
    if charges is None:
        if isinstance(rule, LeastCost) or (isinstance(rule, LeastTime) and rule.max_cost is not None):
            raise invalid_field("offers", "must be given: the rule compares costs")
        return None
    if finish_s is None:
        if isinstance(rule, LeastCost):
            raise invalid_field("work", "must be given: the rule compares costs")
        return None
    return finish_s * charges.per_s
