"""From offers to answers: speeds of who is alive, what becomes of the job, the frontier and the offer to take."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodewise.completion.checks import checked_as, checked_completion
from nodewise.completion.choice import chosen, frontier_of
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
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.domain.transitions import HybridOutcome, OnDemandOutcome
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Basis
from nodewise.hosting.calls import call, has
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import CompletionEstimator, EstimatorRecord

__all__ = ["CAPABILITY", "estimated"]

CAPABILITY: Final = "completion"
"""What an estimator that tells completion lists among its capabilities."""


def estimated(answers: Answers, question: CompletionQuestion, budget: Budget) -> CompletionResult:
    """Answer all offers, one after another; what is wrong with one costs the others nothing.

    Raises
    ------
    NodewiseError
        ESTIMATOR_NOT_FOUND, INVALID_FIELD for an estimator that tells no completion; DEADLINE_EXCEEDED.
    """
    loaded = _estimator(answers, question.estimator)
    terms = replace(question.asked, budget=budget)
    rows: list[OfferResult] = []
    for name, offer in zip(question.names, question.offers, strict=True):
        if budget.remaining_s() <= 0.0:
            raise NodewiseError(
                Reason.DEADLINE_EXCEEDED, f"{len(rows)} of {len(question.offers)} offers were done in time"
            )
        rows.append(_row(answers, loaded, question, name, offer, terms, place=len(rows)))
    choice, why = chosen(rows, question.objective, terms.runs)
    on_demand = None
    if question.on_demand is not None:
        check = checked_as(OnDemandOutcome)
        on_demand = call(loaded, loaded.record.estimator, "play", question.on_demand, terms, check=check)
    return CompletionResult(
        rows=rows,
        frontier_rows=frontier_of(rows),
        choice=choice,
        no_choice_why=why,
        estimator=loaded.record.name,
        estimator_version=loaded.record.version,
        on_demand=on_demand,
        hybrid=None if question.hybrid is None else _hybrid(answers, loaded, question, question.hybrid),
    )


def _estimator(answers: Answers, name: str) -> LoadedPlugin[EstimatorRecord]:
    """Who tells completion: the one named, else the first by name that does."""
    able = {each: held for each, held in answers.registry.estimators.items() if CAPABILITY in held.record.capabilities}
    if name and name not in able:
        answers.estimators.by_name(name)
        listed = ", ".join(able) or "none is loaded"
        raise invalid_field("completion_estimator", f"must tell completion ({listed}), found {name!r}")
    if not able:
        raise NodewiseError(Reason.ESTIMATOR_NOT_FOUND, "no estimator that tells completion is loaded", {})
    loaded = able[name or min(able)]
    if not has(loaded, loaded.record.estimator, CompletionEstimator, "complete"):
        raise invalid_field(
            "completion_estimator", f"{loaded.record.name!r} has not the methods of CompletionEstimator"
        )
    return loaded


def _row(
    answers: Answers,
    loaded: LoadedPlugin[EstimatorRecord],
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
        samples = _samples(question)
        offer, speeds = _resolve(answers, question, offer)
        spread = 0.0 if question.certain or not terms.simulates else speeds.log_spread
        case = CompletionCase(offer=offer, samples=samples, speeds=speeds.table, log_spread=spread)
        found: Completion = call(
            loaded, loaded.record.estimator, "complete", case, terms, check=checked_completion, about=f"offer {name!r}"
        )
    except NodewiseError as error:
        if error.reason == Reason.DEADLINE_EXCEEDED:
            raise
        found_at = tuple(Violation(f"offers[{place}].{each.field}", each.description) for each in error.violations)
        placed = NodewiseError.invalid(found_at, error.reason) if found_at else error
        return OfferResult(name=name, offer=offer, error=placed)
    return OfferResult(
        name=name,
        offer=offer,
        completion=found,
        samples_per_s=case.full_speed,
        log_spread=spread,
        basis=speeds.basis,
        warnings=(*speeds.warnings, *found.warnings),
    )


def _resolve(answers: Answers, question: CompletionQuestion, offer: CompletionOffer) -> tuple[CompletionOffer, Speeds]:
    """An offer whose reaction follows from how it trains, and its speeds."""
    if offer.reaction == LossReaction.UNSPECIFIED and offer.sync_mode != SyncMode.UNSPECIFIED:
        offer = _reacting(offer, offer.sync_mode)
    speeds = speeds_of(answers, question.profile, offer, question.terms)
    return _reacting(offer, speeds.sync_mode), speeds


def _reacting(offer: CompletionOffer, mode: SyncMode) -> CompletionOffer:
    if offer.reaction != LossReaction.UNSPECIFIED:
        return offer
    return replace(offer, reaction=LossReaction.CONTINUE if mode == SyncMode.ASYNC else LossReaction.RESTART)


def _samples(question: CompletionQuestion) -> float:
    """The work left."""
    objective, profile = question.objective, question.profile
    if objective.remaining_samples is not None:
        return objective.remaining_samples
    workload = None if profile is None else profile.workload
    per_epoch = None if workload is None else workload.samples_per_epoch
    epochs = objective.remaining_epochs or (None if workload is None else workload.epochs)
    if not per_epoch or not epochs:
        text = "how much work is left is not known: state work.samples, or epochs and samples per epoch"
        raise NodewiseError.refused(Refusal.missing(text, "work"))
    return float(per_epoch) * float(epochs)


def _hybrid(
    answers: Answers, loaded: LoadedPlugin[EstimatorRecord], question: CompletionQuestion, asked: HybridQuestion
) -> HybridResult:
    try:
        times = asked.times
        bases: list[Basis] = []
        warnings: list[Notice] = []
        if times.synchronous_s <= 0.0:
            seconds, answer = _mode_seconds(answers, question, asked, SyncMode.SYNC)
            times = replace(times, synchronous_s=seconds)
            bases.append(answer.basis)
            warnings += answer.notices
        if times.asynchronous_s <= 0.0:
            seconds, answer = _mode_seconds(answers, question, asked, SyncMode.ASYNC)
            times = replace(times, asynchronous_s=seconds)
            bases.append(answer.basis)
            warnings += answer.notices
        outcome = call(loaded, loaded.record.estimator, "switch", times, check=checked_as(HybridOutcome))
    except NodewiseError as error:
        return HybridResult(error=error)
    return HybridResult(outcome=outcome, bases=tuple(bases), warnings=(*dict.fromkeys(warnings), *outcome.warnings))


def _mode_seconds(
    answers: Answers, question: CompletionQuestion, asked: HybridQuestion, mode: SyncMode
) -> tuple[float, Answer]:
    profile: Profile | None = question.profile
    if profile is None or asked.nodes is None:
        text = "both times must be stated, or a profile and the nodes that it runs on, from which they are predicted"
        raise NodewiseError.refused(Refusal.missing(text, "hybrid.synchronous_seconds", "hybrid.asynchronous_seconds"))
    rows = Configurations.of(
        1,
        nodes=asked.nodes.nodes,
        workers=asked.nodes.nodes * asked.nodes.workers_per_node,
        device=asked.nodes.device,
        sync_mode=mode,
        parameter_servers=UNSTATED if asked.parameter_servers is None else asked.parameter_servers,
        batch_per_worker=asked.batch_per_worker,
    )
    answer = predicted_rates(answers, profile, rows, question.terms)
    return _samples(question) / float(answer.samples_per_s[0]), answer
