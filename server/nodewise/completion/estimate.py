"""From offers to answers: speeds of sets of live nodes, the job's outcomes, the frontier and the chosen offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodewise.completion.checks import checked_as, checked_completion
from nodewise.completion.choice import choose_offer, frontier_of
from nodewise.completion.questions import (
    CompletionQuestion,
    CompletionResult,
    HybridQuestion,
    HybridResult,
    OfferResult,
)
from nodewise.completion.speeds import Speeds, predicted_rates, speeds_of
from nodewise.domain.budget import Budget
from nodewise.domain.completion_offers import CompletionOffer, LossReaction
from nodewise.domain.completions import Completion, CompletionCase, CompletionTerms
from nodewise.domain.configurations import UNSTATED, Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal, Violation, invalid_field
from nodewise.domain.objective import Objective
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.domain.transitions import HybridOutcome, OnDemandOutcome
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Basis
from nodewise.hosting.calls import call, has
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import CompletionEstimator, EstimatorRecord

__all__ = ["CAPABILITY", "complete_offer", "completion_estimator", "estimate_completion", "remaining_samples"]

CAPABILITY: Final = "completion"
"""The capability that an estimator of completion lists."""


def estimate_completion(answers: Answers, question: CompletionQuestion, budget: Budget) -> CompletionResult:
    """Answer all offers, one after another; an error of one offer does not affect the others.

    Raises
    ------
    NodewiseError
        ESTIMATOR_NOT_FOUND, INVALID_FIELD for an estimator without completion; DEADLINE_EXCEEDED.
    """
    plugin = completion_estimator(answers, question.estimator)
    terms = replace(question.asked, budget=budget)
    rows: list[OfferResult] = []
    for name, offer in zip(question.names, question.offers, strict=True):
        if budget.remaining_s() <= 0.0:
            raise NodewiseError(
                Reason.DEADLINE_EXCEEDED, f"the deadline passed after {len(rows)} of {len(question.offers)} offers"
            )
        rows.append(_row(answers, plugin, question, name, offer, terms, place=len(rows)))
    choice, why = choose_offer(rows, question.objective, terms.runs)
    on_demand = None
    if question.on_demand is not None:
        check = checked_as(OnDemandOutcome)
        on_demand = call(plugin, plugin.record.estimator, "play", question.on_demand, terms, check=check)
    return CompletionResult(
        rows=rows,
        frontier_rows=frontier_of(rows),
        choice=choice,
        no_choice_why=why,
        estimator=plugin.record.name,
        estimator_version=plugin.record.version,
        on_demand=on_demand,
        hybrid=None if question.hybrid is None else _hybrid(answers, plugin, question, question.hybrid),
    )


def completion_estimator(answers: Answers, name: str = "") -> LoadedPlugin[EstimatorRecord]:
    """The estimator of completion: the one of the name, else the first by name. Raises NodewiseError if none can."""
    able = {each: one for each, one in answers.registry.estimators.items() if CAPABILITY in one.record.capabilities}
    if name and name not in able:
        answers.estimators.by_name(name)
        names = ", ".join(able) or "none is loaded"
        raise invalid_field("completion_estimator", f"must estimate completion ({names}), found {name!r}")
    if not able:
        raise NodewiseError(Reason.ESTIMATOR_NOT_FOUND, "no estimator of completion times is loaded", {})
    plugin = able[name or min(able)]
    if not has(plugin, plugin.record.estimator, CompletionEstimator, "complete"):
        raise invalid_field("completion_estimator", f"{plugin.record.name!r} lacks the methods of CompletionEstimator")
    return plugin


def _row(
    answers: Answers,
    plugin: LoadedPlugin[EstimatorRecord],
    question: CompletionQuestion,
    name: str,
    offer: CompletionOffer | NodewiseError,
    terms: CompletionTerms,
    *,
    place: int,
) -> OfferResult:
    if isinstance(offer, NodewiseError):
        return OfferResult(name=name, error=offer)
    try:
        samples = remaining_samples(question.objective, question.profile)
        offer, speeds = _resolve(answers, question, offer)
        if question.certain:
            speeds = replace(speeds, log_spread=0.0)
        return complete_offer(plugin, name, offer, samples, speeds, terms)
    except NodewiseError as error:
        if error.reason == Reason.DEADLINE_EXCEEDED:
            raise
        found_at = tuple(Violation(f"offers[{place}].{each.field}", each.description) for each in error.violations)
        error_of_offer = NodewiseError.invalid(found_at, error.reason) if found_at else error
        return OfferResult(name=name, offer=offer, error=error_of_offer)


def complete_offer(
    plugin: LoadedPlugin[EstimatorRecord],
    name: str,
    offer: CompletionOffer,
    samples: float,
    speeds: Speeds,
    terms: CompletionTerms,
) -> OfferResult:
    """Completion of so many samples on an offer with these speeds. Raises NodewiseError."""
    spread = speeds.log_spread if terms.simulates else 0.0
    case = CompletionCase(offer=offer, samples=samples, speeds=speeds.table, log_spread=spread)
    completion: Completion = call(
        plugin, plugin.record.estimator, "complete", case, terms, check=checked_completion, about=f"offer {name!r}"
    )
    return OfferResult(
        name=name,
        offer=offer,
        completion=completion,
        samples_per_s=case.full_speed,
        log_spread=spread,
        basis=speeds.basis,
        warnings=(*speeds.warnings, *completion.warnings),
    )


def _resolve(answers: Answers, question: CompletionQuestion, offer: CompletionOffer) -> tuple[CompletionOffer, Speeds]:
    """The offer with its loss reaction resolved from the synchronisation mode, and its speeds."""
    if offer.reaction == LossReaction.UNSPECIFIED and offer.sync_mode != SyncMode.UNSPECIFIED:
        offer = _reacting(offer, offer.sync_mode)
    speeds = speeds_of(answers, question.profile, offer, question.terms)
    return _reacting(offer, speeds.sync_mode), speeds


def _reacting(offer: CompletionOffer, mode: SyncMode) -> CompletionOffer:
    if offer.reaction != LossReaction.UNSPECIFIED:
        return offer
    return replace(offer, reaction=LossReaction.CONTINUE if mode == SyncMode.ASYNC else LossReaction.RESTART)


def remaining_samples(objective: Objective, profile: Profile | None) -> float:
    """The remaining work, in samples. Raises NodewiseError (EVIDENCE_MISSING) if it is not known."""
    if objective.remaining_samples is not None:
        return objective.remaining_samples
    workload = None if profile is None else profile.workload
    per_epoch = None if workload is None else workload.samples_per_epoch
    epochs = objective.remaining_epochs or (None if workload is None else workload.epochs)
    if not per_epoch or not epochs:
        text = "the remaining work is not known; state work.samples, or epochs and samples per epoch"
        raise NodewiseError.refused(Refusal.missing(text, "work"))
    return float(per_epoch) * float(epochs)


def _hybrid(
    answers: Answers, plugin: LoadedPlugin[EstimatorRecord], question: CompletionQuestion, hybrid: HybridQuestion
) -> HybridResult:
    try:
        times = hybrid.times
        bases: list[Basis] = []
        warnings: list[Notice] = []
        if times.synchronous_s <= 0.0:
            seconds, answer = _mode_seconds(answers, question, hybrid, SyncMode.SYNC)
            times = replace(times, synchronous_s=seconds)
            bases.append(answer.basis)
            warnings += answer.notices
        if times.asynchronous_s <= 0.0:
            seconds, answer = _mode_seconds(answers, question, hybrid, SyncMode.ASYNC)
            times = replace(times, asynchronous_s=seconds)
            bases.append(answer.basis)
            warnings += answer.notices
        outcome = call(plugin, plugin.record.estimator, "switch", times, check=checked_as(HybridOutcome))
    except NodewiseError as error:
        return HybridResult(error=error)
    return HybridResult(outcome=outcome, bases=tuple(bases), warnings=(*dict.fromkeys(warnings), *outcome.warnings))


def _mode_seconds(
    answers: Answers, question: CompletionQuestion, hybrid: HybridQuestion, mode: SyncMode
) -> tuple[float, Answer]:
    profile: Profile | None = question.profile
    if profile is None or hybrid.nodes is None:
        text = "both times must be stated, or a profile and the nodes that it runs on, from which they are predicted"
        raise NodewiseError.refused(Refusal.missing(text, "hybrid.synchronous_seconds", "hybrid.asynchronous_seconds"))
    rows = Configurations.of(
        1,
        nodes=hybrid.nodes.nodes,
        workers=hybrid.nodes.nodes * hybrid.nodes.workers_per_node,
        device=hybrid.nodes.device,
        sync_mode=mode,
        parameter_servers=UNSTATED if hybrid.parameter_servers is None else hybrid.parameter_servers,
        batch_per_worker=hybrid.batch_per_worker,
    )
    answer = predicted_rates(answers, profile, rows, question.terms)
    return remaining_samples(question.objective, question.profile) / float(answer.samples_per_s[0]), answer
