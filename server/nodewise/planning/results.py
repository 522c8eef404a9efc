"""What a plan answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nodewise.domain.objective import Objective, Recommendation
from nodewise.domain.planning import Exclusion, PlanConstraints
from nodewise.domain.profile import Profile
from nodewise.estimation.question import Answer, Terms

__all__ = ["Alternative", "Explanation", "PlanQuestion", "PlanResult", "Sensitivity"]


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

    def asking(self, objective: Objective) -> PlanQuestion:
        """The same with another objective."""
        return replace(self, objective=objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The best that another value of one dimension allows, the others staying but for what follows from it.

    Attributes
    ----------
    dimension, chosen, alternative : str
        A column of Configurations, the winner's value, and the other.
    fits : bool
        Whether it fits into memory; else ``excess_bytes`` are missing on each device.
    step_s, change : float
        Seconds of a step; time per sample relative to the winner's, - 1.
    term, term_s : str, float
        What makes most of the difference and by how many seconds of the winner's step; "" = not known.
    """

    dimension: str
    chosen: str
    alternative: str
    fits: bool
    step_s: float
    change: float
    term: str
    term_s: float
    excess_bytes: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The best under one changed circumstance, such as ``link_x2``.

    ``speedup``: time per sample of the winner over that of the new best; 0 = nothing is feasible.
    """

    change: str
    best: str
    speedup: float
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the winner wins, what holds it back, and what would change it. Cut short when time is over."""

    alternatives: tuple[Alternative, ...] = ()
    binding: tuple[Exclusion, ...] = ()
    sensitivities: tuple[Sensitivity, ...] = ()
    complete: bool = True


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
    rejections : tuple of Exclusion
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
    rejections: tuple[Exclusion, ...] = ()
    explanation: Explanation | None = None
