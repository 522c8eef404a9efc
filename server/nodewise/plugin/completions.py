"""Estimators of completion: jobs on machines that a provider may take away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nodewise.plugin.estimators import Estimator

if TYPE_CHECKING:
    from nodewise.domain.completions import Completion, CompletionCase, CompletionTerms
    from nodewise.domain.transitions import HybridOutcome, HybridTimes, OnDemandOutcome, OnDemandQuestion

__all__ = ["CompletionEstimator"]


@runtime_checkable
class CompletionEstimator(Estimator, Protocol):
    """Optional: an estimator of completion, for any estimator of throughput. Pure: same arguments, same answer.

    It fits nothing to a profile: the question has the speeds on the sets of nodes that may be alive. Long work must
    check ``terms.budget`` and raise DEADLINE_EXCEEDED when it is over.
    """

    def complete(self, case: CompletionCase, terms: CompletionTerms) -> Completion:
        """Time, cost and risk of an offer; chooses the checkpoint interval where the case states none."""
        ...

    def play(self, question: OnDemandQuestion, terms: CompletionTerms) -> OnDemandOutcome:
        """Outcomes of rules that decide when to use on-demand machines, for a record of availability."""
        ...

    def switch(self, question: HybridTimes) -> HybridOutcome:
        """When to switch from synchronous to asynchronous training."""
        ...
