"""A question that is ready to be completed: all that its answer depends on."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.configurations import Configurations
from nodewise.estimation.fit.fitted import Fitted
from nodewise.estimation.question import Answer, Basis, Question

__all__ = ["Prepared"]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A question with its configurations resolved, its model fitted, and what its answer rests on.

    Where batches may be chosen, ``configurations`` are the rows with each of them.
    """

    question: Question
    configurations: Configurations
    fitted: Fitted
    basis: Basis
    settled: bool = False
    """Whether the same would be prepared again: nobody was passed over, or is missing, that was only busy."""
    answer: Answer | None = None
    """Where it is known already."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys have equal answers. Holds the objects themselves: a model that is fitted anew is another one."""
        question = self.question
        return self.fitted, self.configurations, question.objective, question.terms.options, question.terms.coverage

    @property
    def lasting(self) -> bool:
        """Whether the same question is answered the same until a profile, what was learned or who is asked changes."""
        return self.settled and not self.basis.stale and not self.basis.fallback
