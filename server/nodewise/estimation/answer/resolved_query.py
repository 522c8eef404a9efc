"""A resolved query: its resolved rows, its fitted model, and the results cached for both."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import Objective
from nodewise.estimation.answer.goodput import Candidates
from nodewise.estimation.answer.objectives import Comparison, compare
from nodewise.estimation.fit.fitted_model import FittedModel
from nodewise.estimation.question import Answer, Basis
from nodewise.estimation.reach import Reach
from nodewise.estimation.weights import part_of_rows, resolved_bytes
from nodewise.ports.cache import Part

__all__ = ["ResolvedQuery"]

_numbers: Final = itertools.count(1)


@dataclass(slots=True, eq=False, kw_only=True)
class ResolvedQuery:
    """Everything that an answer depends on except the objective. Queries that differ only in the objective share it.

    Attributes
    ----------
    configurations : Configurations
        The resolved rows. If batches may be chosen, each row is repeated with each candidate batch.
    candidates : Candidates or None
        The batches that may be chosen in each row; None = each row states its batch.
    fitted : FittedModel
        The model, or mixture, that answers.
    basis : Basis
        The estimator, revisions and evidence that the answer is based on.
    small : bool
        Whether the rows are few and small enough to be answered in the caller's thread.
    repeatable : bool
        Whether the same query would resolve to the same result: no estimator was left out only because it was busy.
    rated : Answer or None
        The predictions with rates and intervals, without a verdict. Set by the first answer and reused, since models
        are pure.
    packed : tuple of (frozenset of int, bytes, bytes) or None
        The requested columns, the serialised rows with these columns, and the serialised basis. Set by the first query
        without work.
    compared : tuple of (float, Comparison) or None
        The extrapolation limit of a plain objective, and the rated rows prepared for comparison under this limit.
    judged : tuple of (Objective or None, Answer) or None
        The last objective and its answer, since batches often repeat an objective.
    number : int
        A unique number. A cache entry under this number does not keep the model in memory.
    """

    configurations: Configurations
    candidates: Candidates | None
    fitted: FittedModel
    basis: Basis
    small: bool
    repeatable: bool
    rated: Answer | None = None
    packed: tuple[frozenset[int], bytes, bytes] | None = None
    compared: tuple[float, Comparison] | None = None
    judged: tuple[Objective | None, Answer] | None = None
    number: int = field(default_factory=_numbers.__next__)

    def compare(self, objective: Objective | None, reach: Reach) -> Comparison | None:
        """Return the rated rows prepared for a plain objective; None for any other objective or without rated rows.

        The result is cached for the next objective with the same extrapolation limit.
        """
        rows, compared = self.rated, self.compared
        if rows is None or objective is None or not _is_plain(objective):
            return None
        most = objective.most_extrapolation
        if compared is None or compared[0] != most:
            rates = rows.samples_per_s, rows.minibatches_per_s
            compared = self.compared = most, compare(objective, rows.configurations, rows.predictions, *rates, reach)
        return compared[1]

    @property
    def cache_parts(self) -> tuple[Part, ...]:
        """Objects that stay in memory as long as this query is cached, with their sizes in bytes."""
        rows = self.configurations
        return (*self.fitted.cache_parts, part_of_rows(rows), (self, resolved_bytes(len(rows))))

    @property
    def lasting(self) -> bool:
        """Whether the answer stays the same until the profile, the lessons or the estimators in use change."""
        return self.repeatable and not self.basis.stale and not self.basis.fallback


def _is_plain(objective: Objective) -> bool:
    """Return whether an objective is plain: it sets nothing but its rule and the extrapolation limit."""
    return (
        objective.current is None
        and objective.confidence is None
        and objective.efficiency is None
        and objective.remaining_samples is None
        and objective.remaining_epochs is None
        and not objective.offers
    )
