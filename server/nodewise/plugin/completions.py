"""Estimators that tell what becomes of a job on machines that can be taken away."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from nodewise.domain.completions import Completion, CompletionCase, CompletionTerms
from nodewise.domain.transitions import HybridOutcome, HybridTimes, OnDemandOutcome, OnDemandQuestion
from nodewise.plugin.estimators import Estimator

__all__ = ["CompletionEstimator"]


@runtime_checkable
class CompletionEstimator(Estimator, Protocol):
    """Optional: an estimator of completion, over whatever predicts the throughput. Pure: same arguments, same answer.

    Nothing of a profile is fitted: speeds of the sets of nodes that may be alive come with the question. Long work
    looks at ``terms.budget`` and raises DEADLINE_EXCEEDED where it is over.
    """

    def complete(self, case: CompletionCase, terms: CompletionTerms) -> Completion:
        """Time, cost and risk of an offer; the interval between its saves is chosen where it is left open."""
        ...

    def play(self, question: OnDemandQuestion, terms: CompletionTerms) -> OnDemandOutcome:
        """Rules of when to pay for machines on demand, played against a record of availability."""
        ...

    def switch(self, question: HybridTimes) -> HybridOutcome:
        """When to switch from synchronous to asynchronous training."""
        ...
