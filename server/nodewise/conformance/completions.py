"""Checks of estimators of completion that do not predict throughput."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.completion.checks import checked_as, checked_completion
from nodewise.completion.estimate import CAPABILITY
from nodewise.conformance.evidence import Evidence
from nodewise.conformance.findings import Checks, NonConformanceError, require, sound, sound_answer
from nodewise.domain.completion_offers import (
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    LossReaction,
    NodeReplacement,
)
from nodewise.domain.completions import Completion, CompletionCase, CompletionTerms
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.lifetimes import AvailabilityLaw, ExponentialLifetimes, LifetimeLaw, NamedLifetimes
from nodewise.domain.profile import Profile
from nodewise.domain.transitions import HybridOutcome, HybridTimes, OnDemandOutcome, OnDemandQuestion
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import CompletionEstimator, EstimatorRecord, Query

__all__ = ["COMPLETION_CHECKS"]

HOUR_S: Final = 3600.0
TERMS: Final = CompletionTerms(runs=400, deadline_s=9.0 * HOUR_S)


def _case(**changes: object) -> CompletionCase:
    """Eight hours of four nodes, each of which is lost after ten on average and replaced within minutes."""
    group = CompletionGroup(
        device="A",
        nodes=4,
        spot=True,
        price_per_h=1.0,
        lifetime=LifetimeLaw(law=ExponentialLifetimes(mean_s=10.0 * HOUR_S)),
        replacement=NodeReplacement(delays_s=(120.0, 180.0)),
    )
    offer = CompletionOffer(
        name="spot",
        groups=(replace(group, **changes),),  # type: ignore[arg-type]  # fields of it
        reaction=LossReaction.ELASTIC_FROM_CHECKPOINT,
        restart_s=30.0,
        checkpoints=CompletionCheckpoints(seconds=10.0, interval_s=900.0),
    )
    return CompletionCase(offer=offer, samples=4.0 * 8.0 * HOUR_S, speeds=np.arange(5.0))


def _estimator(plugin: LoadedPlugin[EstimatorRecord]) -> CompletionEstimator:
    record = plugin.record
    require(CAPABILITY in record.capabilities, f"a record with predicts=False must list the capability {CAPABILITY!r}")
    estimator = record.estimator
    if not isinstance(estimator, CompletionEstimator):
        raise NonConformanceError(
            f"the record lists the capability {CAPABILITY!r}, but lacks the methods complete, play and switch"
        )
    return estimator


def _complete(estimator: CompletionEstimator, case: CompletionCase, terms: CompletionTerms = TERMS) -> Completion:
    return sound_answer("complete", lambda: estimator.complete(case, terms), checked_completion)


def _throughput(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    query = Query(configurations=Configurations.of(1, nodes=1, workers=1))
    profiles = [Profile(), *(job.profile for job in evidence.jobs)]
    for profile in profiles:
        refusal = plugin.record.estimator.assess(profile, query).refusal
        require(
            refusal is not None and bool(refusal.message),
            "a record with predicts=False must refuse every question about throughput, with a message",
        )


def _answers(plugin: LoadedPlugin[EstimatorRecord], _: Evidence) -> None:
    estimator = _estimator(plugin)
    completion = _complete(estimator, _case())
    mean = completion.time_s.mean
    require(mean is not None and mean >= completion.ideal_s > 0.0, "complete returns less time than without losses")
    require(completion.failure_probability is not None, "complete returns no failure_probability for simulated runs")
    means = _complete(estimator, _case(), replace(TERMS, simulates=False))
    require(means.time_s.p90 is None, "complete returns quantiles although the question asks for no simulation")


def _purity(plugin: LoadedPlugin[EstimatorRecord], _: Evidence) -> None:
    estimator, case = _estimator(plugin), _case()
    first = _complete(estimator, case)
    _complete(estimator, case, replace(TERMS, seed=1))
    require(_complete(estimator, case) == first, "the same question and seed get different answers")


def _deadlines(plugin: LoadedPlugin[EstimatorRecord], _: Evidence) -> None:
    estimator, case = _estimator(plugin), _case()
    shares = [
        _complete(estimator, case, replace(TERMS, deadline_s=hours * HOUR_S)).deadline_probability or 0.0
        for hours in (8.0, 8.5, 9.0, 12.0, 1000.0)
    ]
    require(shares == sorted(shares), f"a later deadline has a lower probability: {shares}")


def _refuses(plugin: LoadedPlugin[EstimatorRecord], _: Evidence) -> None:
    estimator = _estimator(plugin)
    for lifetime in (LifetimeLaw(law=NamedLifetimes(name="unknown")), LifetimeLaw()):
        is_refusal = False
        try:
            sound("complete", lambda lifetime=lifetime: estimator.complete(_case(lifetime=lifetime), TERMS))  # type: ignore[misc]  # a default
        except NodewiseError:
            is_refusal = True
        require(is_refusal, "complete answers a spot group of unknown lifetimes; it must refuse it")


def _transitions(plugin: LoadedPlugin[EstimatorRecord], _: Evidence) -> None:
    estimator = _estimator(plugin)
    question = OnDemandQuestion(
        work_s=8.0 * HOUR_S,
        deadline_s=12.0 * HOUR_S,
        switch_s=600.0,
        spot_per_h=1.0,
        on_demand_per_h=3.0,
        availability=AvailabilityLaw(available_mean_s=2.0 * HOUR_S, unavailable_mean_s=HOUR_S),
        starts=50,
    )
    times = HybridTimes(synchronous_s=10_000.0, asynchronous_s=1_000.0, fractions=(0.0, 0.5, 1.0))
    sound_answer("play", lambda: estimator.play(question, TERMS), checked_as(OnDemandOutcome))
    outcome = sound_answer("switch", lambda: estimator.switch(times), checked_as(HybridOutcome))
    require(len(outcome.points) == 3, "switch returns no time for some of the requested fractions")


COMPLETION_CHECKS: Final[Checks] = {
    "throughput is refused": _throughput,
    "answers": _answers,
    "purity": _purity,
    "deadlines": _deadlines,
    "refusals": _refuses,
    "transitions": _transitions,
}
