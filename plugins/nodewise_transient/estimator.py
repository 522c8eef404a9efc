"""Completion on machines that can be taken away, as an estimator over whatever predicts the throughput."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import (
    Assessment,
    Completion,
    CompletionCase,
    CompletionTerms,
    Context,
    HybridOutcome,
    HybridTimes,
    Model,
    NodewiseError,
    OnDemandOutcome,
    OnDemandQuestion,
    Profile,
    Query,
    Refusal,
)
from nodewise_transient.completing import completed
from nodewise_transient.playing import play_rules
from nodewise_transient.switching import time_switches

__all__ = ["TransientEstimator"]

_NO_THROUGHPUT: Final = Refusal.unsupported(
    "this estimator predicts time, cost and risk of completion on machines that can be revoked (EstimateCompletion, "
    "`nodewise spot`), from the throughput that another estimator predicts: for throughput, ask another estimator, or "
    "auto",
    "options.estimator",
)


class TransientEstimator:
    """Tells completion, and predicts no throughput itself."""

    def assess(self, profile: Profile, query: Query) -> Assessment:  # noqa: ARG002  # the protocol's
        """Refuse: with all workers running, a cluster is as fast as its throughput estimator predicts."""
        return Assessment(refusal=_NO_THROUGHPUT, of_profile=True)

    def fit(self, profile: Profile, context: Context) -> Model:  # noqa: ARG002  # the protocol's
        """Nothing is fitted: the server does not fit an estimator that refused."""
        raise NodewiseError.refused(_NO_THROUGHPUT)

    def complete(self, case: CompletionCase, terms: CompletionTerms) -> Completion:
        """Time, cost and risk of an offer."""
        return completed(case, terms)

    def play(self, question: OnDemandQuestion, terms: CompletionTerms) -> OnDemandOutcome:
        """Rules of when to pay for machines on demand."""
        return play_rules(question, seed=terms.seed, budget=terms.budget)

    def switch(self, question: HybridTimes) -> HybridOutcome:
        """When to switch from synchronous to asynchronous training."""
        return time_switches(question)
