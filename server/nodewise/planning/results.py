"""What a plan answers."""

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
        What is known of the job.
    terms : Terms
        How to answer: by an estimator that plans, or AUTO; without a fallback, which would have another space.
    exhaustive : bool
        Evaluate every configuration instead of leaving out what cannot matter.
    frontier_points : int
        Most points of the frontier to answer with; 0 = none.
    explain : bool
        Whether to say why the winner wins.
    """

    profile: Profile
    constraints: PlanConstraints
    objective: Objective
    terms: Terms = field(default_factory=Terms)
    exhaustive: bool = False
    frontier_points: int = 100
    explain: bool = True


def rejection(found: Exclusion) -> PlanRejection:
    """What is violated, as an answer says it: with the numbers that are some."""
    return PlanRejection(
        constraint=found.constraint,
        message=found.message,
        configurations_count=found.count or None,
        numbers=named_numbers(found.numbers),
    )


def named_numbers(numbers: Mapping[str, float]) -> tuple[NamedNumber, ...]:
    """Numbers by their names."""
    return tuple(NamedNumber(name=name, value=value) for name, value in numbers.items() if math.isfinite(value))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlanResult:
    """The answer of a plan.

    Attributes
    ----------
    answer : Answer or None
        Dense predictions of the best (row 0, if there is one) and of the frontier; None = nothing was found.
    recommendation : Recommendation or None
        Of row 0; None = nothing is feasible, and ``rejections`` say why.
    frontier_rows : tuple of int
        Rows of the frontier, by devices and time.
    frontier_count : int
        Points that it has; more than rows where they were thinned out.
    space, evaluated, pruned, feasible : int
        Configurations in all, looked at, left out for a reason, and of those looked at: feasible.
    search_s : float
        Seconds to lay out the space, bound its prefixes and search it.
    complete : bool
        False = time was over.
    rejections : tuple of PlanRejection
        What the constraints allow and cannot be, and what does not fit or exceeds a limit.
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
