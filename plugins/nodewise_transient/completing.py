"""Completion of a job on an offer: converts the question into the job's model, and its outcome into the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from nodewise.plugin import (
    ChiefLoss,
    Completion,
    CompletionBreakdown,
    CompletionCase,
    CompletionGroup,
    CompletionOffer,
    CompletionSaves,
    CompletionSpread,
    CompletionTerms,
    LossReaction,
    NodewiseError,
    Notice,
    Reason,
    Refusal,
    SavedBytes,
    best_interval_s,
)
from nodewise_transient.deterministic import expect
from nodewise_transient.intervals import daly_s, young_s
from nodewise_transient.job import Checkpoints, Group, Job
from nodewise_transient.loss import ASYNCHRONOUS, Burst, Reaction, elastic, synchronous
from nodewise_transient.loss import ChiefLoss as ChiefRule
from nodewise_transient.node_lifetimes import Lives, lives_of
from nodewise_transient.prices import PriceSeries
from nodewise_transient.saving import fit_saves
from nodewise_transient.simulation import Breakdown, Spread, simulate
from nodewise_transient.tuning import best_interval_steps

__all__ = ["completed"]

GIVE_UP: Final = 100.0
"""Multiple of the loss-free time after which a run counts as never done, where the question states no limit."""
TUNING_RUNS: Final = 2000
"""Runs for the choice of an interval: variants see the same random numbers, so few runs distinguish them."""
_CHIEF: Final[dict[ChiefLoss, Literal["none", "fail", "rollback", "re-elect"]]] = {
    ChiefLoss.NONE: "none",
    ChiefLoss.FAIL: "fail",
    ChiefLoss.ROLLBACK: "rollback",
    ChiefLoss.REELECT: "re-elect",
}


def completed(case: CompletionCase, terms: CompletionTerms) -> Completion:
    """Time, cost and risk of an offer.

    Raises
    ------
    NodewiseError
        Why it cannot be answered; DEADLINE_EXCEEDED.
    """
    lives = [lives_of(group, terms.now_s) for group in case.offer.groups]
    job, is_tuned = _tune(case, _job(case, lives), terms)
    completion = _simulate(job, case, lives, terms) if terms.simulates else _expect(job, case, lives)
    warnings = [notice for each in lives for notice in each.warnings]
    ends_s = min(each.ends_s for each in lives)
    if math.isfinite(ends_s):
        warnings.append(
            Notice(
                "RECORD_ENDS",
                (f"the record of node changes ends after {ends_s:.0f} s: no node is assumed to run after it"),
            )
        )
    return replace(
        completion,
        ideal_s=job.ideal_s,
        checkpoints=_saves(job, completion, is_tuned=is_tuned),
        lifetimes=tuple(each.basis(at) for at, each in enumerate(lives)),
        warnings=tuple(dict.fromkeys([*completion.warnings, *warnings])),
    )


def _job(case: CompletionCase, lives: Sequence[Lives]) -> Job:
    offer = case.offer
    horizon_s = offer.horizon_s or GIVE_UP * case.samples / case.full_speed
    stall = 0.0 if offer.checkpoints is None else _save_s(offer)
    return Job(
        steps=case.samples,
        groups=tuple(_group(offer, at, each, life) for at, (each, life) in enumerate(zip(offer.groups, lives))),
        speeds=case.speeds,
        reaction=_reaction(offer),
        chief=ChiefRule(policy=_CHIEF[offer.chief_loss], setup_s=offer.chief_setup_s),
        checkpoints=_checkpoints(case, stall),
        burst=Burst(chance=offer.burst_probability, others=offer.burst_others),
        servers_per_h=offer.kept_per_h,
        horizon_s=min(horizon_s, *(each.ends_s for each in lives)),
    )


def _group(offer: CompletionOffer, at: int, group: CompletionGroup, lives: Lives) -> Group:
    replacement = group.replacement
    prices = None
    if group.prices is not None and group.prices.since_s:
        prices = PriceSeries(since_s=np.array(group.prices.since_s), per_h=np.array(group.prices.per_h))
    joins = offer.replacement_group(at)
    return Group(
        count=group.nodes,
        lifetime=lives.law,
        price_per_h=group.price_per_h,
        prices=prices,
        ages_s=group.ages_s or (0.0,),
        replacement_s=() if replacement is None else replacement.delays_s,
        bills_startup=replacement is not None and replacement.bills_startup,
        joins=None if joins == at else joins,
        changes_s=lives.changes_s,
    )


def _reaction(offer: CompletionOffer) -> Reaction:
    if offer.reaction == LossReaction.RESTART:
        return synchronous(offer.restart_s)
    if offer.reaction in {LossReaction.ELASTIC, LossReaction.ELASTIC_FROM_CHECKPOINT}:
        back = offer.reaction == LossReaction.ELASTIC_FROM_CHECKPOINT
        return elastic(offer.restart_s, rolls_back=back)
    return ASYNCHRONOUS


def _save_s(offer: CompletionOffer) -> float:
    assert offer.checkpoints is not None
    save_cost = offer.checkpoints.seconds
    if not isinstance(save_cost, SavedBytes):
        return save_cost
    megabyte = 1e6
    weights = np.array(save_cost.measured_weights_bytes) / megabyte
    graph = np.array(save_cost.measured_graph_bytes) / megabyte if save_cost.measured_graph_bytes else None
    law = fit_saves(save_cost.measured_s, weights, graph)
    save_s = float(law.seconds(save_cost.weights_bytes / megabyte, save_cost.graph_bytes / megabyte))
    if save_s < 0.0:
        text = (
            "the save times that were measured do not extrapolate to a save of this size (the fitted time is below "
            "0): measure a save of a similar size"
        )
        raise NodewiseError.refused(Refusal.missing(text, "checkpoints.saved.measured_seconds"))
    return save_s


def _checkpoints(case: CompletionCase, seconds: float) -> Checkpoints:
    stated = case.offer.checkpoints
    if stated is None:
        return Checkpoints()
    interval = case.samples
    if stated.interval_samples is not None:
        interval = stated.interval_samples
    elif stated.interval_s is not None:
        interval = stated.interval_s * case.full_speed
    return Checkpoints(interval_steps=min(interval, case.samples), seconds=seconds, share_stopped=stated.stopped)


def _tune(case: CompletionCase, job: Job, terms: CompletionTerms) -> tuple[Job, bool]:
    """The job with an interval between its saves; whether it was chosen."""
    stated = case.offer.checkpoints
    if stated is None or stated.interval_s is not None or stated.interval_samples is not None:
        return job, False
    if not (job.reaction.rolls_back or job.chief.policy == "rollback"):
        return job, True  # nothing goes back to a save: the last one is enough
    if terms.simulates:
        runs = min(terms.runs, TUNING_RUNS)
        best, _ = best_interval_steps(
            job,
            objective="cost" if terms.saves_cost else "time",
            runs=runs,
            seed=terms.seed,
            look=lambda: _look(terms),
        )
    else:
        expectation = expect(job)
        losses = (
            expectation.losses if math.isfinite(expectation.losses) else float(sum(group.count for group in job.groups))
        )
        if losses <= 0.0:
            return job, True
        base_s = expectation.time_s if math.isfinite(expectation.time_s) else job.ideal_s
        between_s = base_s / losses
        best = float(best_interval_s(max(job.checkpoints.stall_s, 1e-6), between_s)) * job.full_speed
        best = job.steps / max(round(job.steps / best), 1)
    return replace(job, checkpoints=replace(job.checkpoints, interval_steps=best)), True


def _look(terms: CompletionTerms) -> None:
    if terms.budget is not None and terms.budget.remaining_s() <= 0.0:
        raise NodewiseError(
            Reason.DEADLINE_EXCEEDED,
            ("the deadline passed before all simulated runs were made: allow more time, or ask for fewer runs"),
        )


def _simulate(job: Job, case: CompletionCase, lives: Sequence[Lives], terms: CompletionTerms) -> Completion:
    lucky = any(each.is_random for each in lives) or case.log_spread > 0.0
    outcome = simulate(
        job,
        runs=terms.runs if lucky else 1,
        seed=terms.seed,
        log_spread=case.log_spread,
        look=lambda: _look(terms),
    )
    deadline_s = terms.deadline_s
    parts = outcome.breakdown
    return Completion(
        time_s=_spread_of(outcome.time_s),
        cost=_spread_of(outcome.dollars),
        ideal_s=job.ideal_s,
        revocations_mean=outcome.expected_losses,
        deadline_probability=None if deadline_s is None else outcome.p_deadline(deadline_s),
        failure_probability=outcome.p_failure,
        breakdown=None if parts is None else _breakdown(parts),
    )


def _breakdown(parts: Breakdown) -> CompletionBreakdown:
    return CompletionBreakdown(
        compute_s=parts.compute_s,
        degraded_s=parts.degraded_s,
        checkpoint_s=parts.checkpoint_s,
        lost_work_s=parts.lost_work_s,
        restart_s=parts.restart_s,
    )


def _expect(job: Job, case: CompletionCase, lives: Sequence[Lives]) -> Completion:
    """Compute means only; where all changes are recorded, a single run gives them."""
    if not any(each.is_random for each in lives):
        return replace(
            _simulate(job, replace(case, log_spread=0.0), lives, CompletionTerms(runs=1)), failure_probability=None
        )
    if any(each.changes_s for each in lives) or any(group.joins is not None for group in job.groups):
        text = "nodes that move to other groups, and recorded changes beside random losses,"
        raise _only_simulated_error(text)
    if any(group.prices is not None for group in job.groups):
        raise _only_simulated_error("prices that change")
    if job.burst.others and job.burst.chance > 0.0:
        raise _only_simulated_error("losses of several nodes at once")
    expectation = expect(job)
    return Completion(
        time_s=CompletionSpread(mean=_finite(expectation.time_s)),
        cost=CompletionSpread(mean=_finite(expectation.dollars)),
        ideal_s=job.ideal_s,
        revocations_mean=_finite(expectation.losses),
        warnings=tuple(Notice("MEAN_IS_DOUBTFUL", text) for text in expectation.warnings),
    )


def _only_simulated_error(what: str) -> NodewiseError:
    return NodewiseError.refused(
        Refusal.unsupported((f"{what} have no closed form: set method to MONTE_CARLO"), "method")
    )


def _saves(job: Job, completion: Completion, *, is_tuned: bool) -> CompletionSaves | None:
    saves = job.checkpoints
    if not math.isfinite(saves.interval_steps):
        return None
    young = daly = None
    losses, mean_s = _costly(job, completion.revocations_mean or 0.0), completion.time_s.mean
    if losses and mean_s and saves.stall_s > 0.0:
        young, daly = float(young_s(saves.stall_s, mean_s / losses)), float(daly_s(saves.stall_s, mean_s / losses))
    return CompletionSaves(
        seconds=saves.seconds,
        interval_samples=saves.interval_steps,
        interval_s=saves.interval_steps / job.full_speed,
        chosen=is_tuned,
        young_interval_s=young,
        daly_interval_s=daly,
    )


def _costly(job: Job, losses: float) -> float:
    """Losses after which work goes back to a save; the chief's are assumed to be a mean node's."""
    if job.reaction.rolls_back:
        return losses
    return losses / sum(group.count for group in job.groups) if job.chief.policy == "rollback" else 0.0


def _spread_of(spread: Spread) -> CompletionSpread:
    return CompletionSpread(
        mean=_finite(spread.mean),
        standard_error=_finite(spread.standard_error),
        p50=_finite(spread.p50),
        p90=_finite(spread.p90),
        p99=_finite(spread.p99),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
