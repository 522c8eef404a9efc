"""A resolved query: the rows as resolved, the model that answers them, and what was made of both."""

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
    """All that an answer depends on but the objective: queries that differ in that alone share it.

    Attributes
    ----------
    configurations : Configurations
        As resolved; where batches may be chosen, the rows with each of them.
    candidates : Candidates or None
        The batches that may be chosen in each row; None = the rows state theirs.
    fitted : FittedModel
        The model that answers.
    basis : Basis
        What the answer rests on.
    small : bool
        Whether the rows may be answered in the caller's thread.
    repeatable : bool
        Whether the same query would be resolved to the same: no estimator is missing that was only busy.
    rated : Answer or None
        The rows predicted and rated, without a verdict, once an answer needed them: a model is pure.
    packed : tuple of (frozenset of int, bytes, bytes) or None
        Columns, the rows with these as they go over the wire, and what they rest on, once both were written for a query
        without work.
    compared : tuple of (float, Comparison) or None
        The rated rows as an objective compares them that says no more than how far they may lie from the evidence, and
        how far that is.
    judged : tuple of (Objective or None, Answer) or None
        The objective that was asked last, and the answer: batches ask many rows of the same.
    number : int
        Another one for each: what is kept under it does not keep the model alive.
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
        """The rated rows as an objective compares them; None = it says something of its own about them.

        Remembered for the next objective, and so is how far from the evidence these may lie.
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
        """What a cache that keeps this keeps alive."""
        rows = self.configurations
        return (*self.fitted.cache_parts, part_of_rows(rows), (self, resolved_bytes(len(rows))))

    @property
    def lasting(self) -> bool:
        """Whether the same query has the same answer until a profile, the lessons or the estimators in use change."""
        return self.repeatable and not self.basis.stale and not self.basis.fallback


def _is_plain(objective: Objective) -> bool:
    """Whether an objective says no more than its rule, and how far rows may lie from the evidence."""
    return (
        objective.current is None
        and objective.confidence is None
        and objective.efficiency is None
        and objective.remaining_samples is None
        and objective.remaining_epochs is None
        and not objective.offers
    )
