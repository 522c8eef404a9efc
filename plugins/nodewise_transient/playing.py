"""When to pay for machines on demand: the published rules and a plan, played against a record of availability."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise.plugin import (
    AvailabilityLaw,
    AvailabilityRecord,
    Budget,
    Floats,
    NodewiseError,
    OnDemandOutcome,
    OnDemandQuestion,
    OnDemandRule,
    Reason,
    Refusal,
)
from nodewise_transient.deadlines import (
    Chain,
    Deadline,
    Rule,
    RuleOutcome,
    availability_states,
    learn_chain,
    plan,
    plan_cells,
    play_rule,
)
from nodewise_transient.traces import Availability

__all__ = ["play_rules"]

PAST: Final = 4
"""One part in so many of a record teaches, the others are played."""
DRAWN_RUNS: Final = 400
"""Runs with and without spot of a record that is drawn, and at least so many deadlines: enough that neither the quarter
that teaches nor the starts that are played are few."""
DRAWN_DEADLINES: Final = 40
MOST_TICKS: Final = 2_000_000
MOST_PLAN_BYTES: Final = 1 << 27
"""Decisions of a plan: so many take some seconds to tens of them."""
TIMED: Final = (0.25, 0.5, 0.75)
"""Shares of the time after which timed rules go on demand."""


def play_rules(question: OnDemandQuestion, *, seed: int = 0, budget: Budget | None = None) -> OnDemandOutcome:
    """Play every rule from the same starts.

    Raises
    ------
    NodewiseError
        Why it cannot be answered; DEADLINE_EXCEEDED.
    """
    job = _job(question)
    has_spot = _ticks(question, seed)
    states = availability_states(has_spot, question.tick_s)
    first, last = len(states) // PAST, len(states) - job.span
    if last <= first:
        needed_s = job.span * question.tick_s * PAST / (PAST - 1)
        text = (
            "the first quarter of the availability record is used to choose a rule and the rest to test it: the "
            f"record must be longer than {needed_s:.0f} s"
        )
        raise NodewiseError.refused(Refusal.missing(text, "on_demand.availability"))
    starts = np.random.default_rng(seed).integers(first, last, question.starts)
    rules: list[tuple[Rule, float | None]] = [("on-demand", None), ("greedy", None), ("uniform-progress", None)]
    rules += [("timed", share * question.deadline_s) for share in TIMED]
    outcomes = []
    for rule, until_s in rules:
        _look(budget)
        outcomes.append(
            _state_rule(question, rule, until_s, play_rule(job, states, starts, rule, until_s=until_s or 0.0))
        )
    _look(budget)
    others = [availability_states(_of_record(each, question), question.tick_s) for each in question.learned_from]
    chain = learn_chain(np.concatenate([*others, states[:first]]), question.tick_s)
    outcomes.append(
        _state_rule(question, "planned", None, play_rule(job, states, starts, "planned", table=_plan(job, chain)))
    )
    outcomes.sort(key=lambda each: each.cost_mean)
    best = min(outcomes, key=lambda each: (each.late_ratio, each.cost_mean))
    return OnDemandOutcome(
        rules=tuple(outcomes),
        rule=best.rule,
        why=_why(best, outcomes, len(starts)),
        available_ratio=float(np.mean(has_spot[first:])),
        latest_switch_s=question.deadline_s - question.work_s - question.switch_s,
        starts=len(starts),
    )


def _job(question: OnDemandQuestion) -> Deadline:
    try:
        return Deadline(
            work_s=question.work_s,
            deadline_s=question.deadline_s,
            switch_s=question.switch_s,
            spot_share=question.spot_per_h / question.on_demand_per_h,
            tick_s=question.tick_s,
        )
    except ValueError:
        least_s = question.work_s + question.switch_s
        text = (
            f"on demand the job takes {least_s:g} s with its start, and decisions are made every {question.tick_s:g} "
            f"s: the deadline of {question.deadline_s:g} s cannot be met"
        )
        raise NodewiseError.refused(Refusal.unsupported(text, "on_demand.deadline_seconds")) from None


def _plan(job: Deadline, chain: Chain) -> npt.NDArray[np.int8]:
    if plan_cells(job, chain) > MOST_PLAN_BYTES:
        text = "the plan has too many decisions: set a longer tick_seconds"
        raise NodewiseError.refused(Refusal.unsupported(text, "on_demand.tick_seconds"))
    return plan(job, chain)


def _ticks(question: OnDemandQuestion, seed: int) -> Floats:
    """Whether there was spot at every tick."""
    if isinstance(question.availability, AvailabilityLaw):
        return _draw(question, question.availability, seed)
    return _of_record(question.availability, question)


def _of_record(record: AvailabilityRecord, question: OnDemandQuestion) -> Floats:
    if record.length_s / question.tick_s > MOST_TICKS:
        raise _too_fine()
    availability = Availability(
        since_s=np.array(record.since_s), instances=np.array(record.nodes, dtype=np.int64), length_s=record.length_s
    )
    return availability.ticks(question.tick_s, needed=question.nodes_needed)


def _draw(question: OnDemandQuestion, law: AvailabilityLaw, seed: int) -> Floats:
    """A record of runs of exponential length."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0]))
    cycle_s = law.available_mean_s + law.unavailable_mean_s
    runs = math.ceil(max(DRAWN_RUNS, DRAWN_DEADLINES * question.deadline_s / cycle_s))
    if runs * cycle_s / question.tick_s > MOST_TICKS:
        raise _too_fine()
    lengths = rng.exponential(1.0, (runs, 2)) * [law.available_mean_s, law.unavailable_mean_s]
    ends = np.cumsum(lengths.ravel())
    ticks = np.arange(0.0, ends[-1], question.tick_s)
    is_available: Floats = (np.searchsorted(ends, ticks, side="right") % 2 == 0).astype(np.float64)
    return is_available


def _too_fine() -> NodewiseError:
    text = f"the record has more than {MOST_TICKS} ticks: set a longer tick_seconds"
    return NodewiseError.refused(Refusal.unsupported(text, "on_demand.tick_seconds"))


def _state_rule(question: OnDemandQuestion, rule: str, until_s: float | None, outcome: RuleOutcome) -> OnDemandRule:
    alone = (question.work_s + question.switch_s) / 3600.0 * question.on_demand_per_h
    dollars = outcome.cost * alone
    ranked = np.sort(dollars)
    return OnDemandRule(
        rule=rule,
        until_s=until_s,
        cost_mean=float(dollars.mean()),
        cost_p90=float(ranked[math.ceil(0.9 * len(ranked)) - 1]),
        cost_ratio=float(outcome.cost.mean()),
        late_ratio=float(np.mean(outcome.end_s > question.deadline_s + 1e-6)),
        time_mean_s=float(outcome.end_s.mean()),
        spot_mean_s=float(outcome.spot_s.mean()),
        on_demand_mean_s=float(outcome.on_demand_s.mean()),
    )


def _why(best: OnDemandRule, rules: list[OnDemandRule], starts: int) -> str:
    fixed = next(each for each in rules if each.rule != "planned")
    beside = ""
    if best.rule == "planned":
        beside = f", {best.cost_mean / fixed.cost_mean:.3f} times that of {fixed.rule}, the cheapest fixed rule"
    late = "none" if best.late_ratio == 0.0 else f"{100 * best.late_ratio:.1f} %"
    return (
        f"it costs {100 * best.cost_ratio:.0f} % of on demand only on average{beside}, and {late} of {starts:,} "
        "starts are late"
    )


def _look(budget: Budget | None) -> None:
    if budget is not None and budget.remaining_s() <= 0.0:
        raise NodewiseError(Reason.DEADLINE_EXCEEDED, "the deadline passed before all rules were simulated")
