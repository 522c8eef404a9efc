"""Questions and results of plans."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise.domain.objective import Objective, Recommendation
from nodewise.domain.planning import Exclusion, PlanConstraints
from nodewise.domain.profile import Profile
from nodewise.estimation.question import Answer, Terms
from nodewise_values import NamedNumber, PlanExplanation, PlanRejection

__all__ = ["PlanQuestion", "PlanResult", "named_numbers", "rejection"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlanQuestion:
    """What to search for.

    Attributes
    ----------
    profile : Profile
        The facts of the job.
    terms : Terms
        How to answer: by an estimator that plans, or AUTO; without a fallback, whose space would be another one.
    exhaustive : bool
        Evaluate every configuration instead of skipping those that cannot win.
    frontier_points : int
        Most points of the frontier to return; 0 = none.
    explain : bool
        Whether to explain why the winner wins.
    """

    profile: Profile
    constraints: PlanConstraints
    objective: Objective
    terms: Terms = field(default_factory=Terms)
    exhaustive: bool = False
    frontier_points: int = 100
    explain: bool = True


def rejection(exclusion: Exclusion) -> PlanRejection:
    """An exclusion as a result states it, with those of its numbers that are finite."""
    return PlanRejection(
        constraint=exclusion.constraint,
        message=exclusion.message,
        configurations_count=exclusion.count or None,
        numbers=named_numbers(exclusion.numbers),
    )


def named_numbers(numbers: Mapping[str, float]) -> tuple[NamedNumber, ...]:
    """The finite numbers with their names."""
    return tuple(NamedNumber(name=name, value=value) for name, value in numbers.items() if math.isfinite(value))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlanResult:
    """The answer of a plan.

    Attributes
    ----------
    answer : Answer or None
        Dense predictions of the best (row 0, if there is one) and of the frontier; None = there is neither.
    recommendation : Recommendation or None
        Of row 0; None = nothing is feasible, and ``rejections`` say why.
    frontier_rows : tuple of int
        Rows of the frontier, by devices and time.
    frontier_count : int
        Points of the whole frontier; more than ``frontier_rows`` where only some are returned.
    space, evaluated, pruned, feasible : int
        Configurations in the space; of these evaluated; skipped because they cannot win; and of those evaluated
        feasible.
    search_s : float
        Seconds to lay out the space, bound its prefixes and search it.
    complete : bool
        False = the time was over before the search ended.
    rejections : tuple of PlanRejection
        Configurations that the constraints allow and no model has, and those that do not fit or exceed a limit.
    """

    answer: Answer | None
    recommendation: Recommendation | None
    frontier_rows: tuple[int, ...]
    frontier_count: int
    space: int
    evaluated: int
    pruned: int
    feasible: int
    search_s: float
    complete: bool
    estimator: str
    estimator_version: str
    rejections: tuple[PlanRejection, ...] = ()
    explanation: PlanExplanation | None = None
