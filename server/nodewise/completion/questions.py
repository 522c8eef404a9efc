"""Questions about completion on offers, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nodewise.domain.completion_offers import CompletionGroup, CompletionOffer
from nodewise.domain.completions import Completion, CompletionTerms
from nodewise.domain.errors import NodewiseError
from nodewise.domain.objective import Objective
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Profile
from nodewise.domain.transitions import HybridOutcome, HybridTimes, OnDemandOutcome, OnDemandQuestion
from nodewise.estimation.question import Basis, Terms

__all__ = [
    "Choice",
    "CompletionQuestion",
    "CompletionResult",
    "HybridQuestion",
    "HybridResult",
    "OfferResult",
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HybridQuestion:
    """When to switch from synchronous to asynchronous training.

    Attributes
    ----------
    times : HybridTimes
        Times of 0 are to be predicted.
    nodes : CompletionGroup or None
        Nodes to predict the times for.
    batch_per_worker, parameter_servers : int
        As in CompletionOffer.
    """

    times: HybridTimes
    nodes: CompletionGroup | None = None
    batch_per_worker: int = 0
    parameter_servers: int | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompletionQuestion:
    """Offers, and the terms of the question.

    Attributes
    ----------
    profile : Profile or None
        Evidence of the job; None = every offer states its speeds.
    terms : Terms
        Estimator of the throughput, and its options.
    offers : tuple of CompletionOffer or NodewiseError
        The offers; an invalid offer is its error.
    objective : Objective
        Rule, confidence and work.
    asked : CompletionTerms
        How completion is estimated.
    estimator : str
        Estimator of completion; ``""`` = the default.
    certain : bool
        Whether predicted speeds are taken as if they were certain.
    """

    profile: Profile | None
    terms: Terms = field(default_factory=Terms)
    offers: tuple[CompletionOffer | NodewiseError, ...] = ()
    names: tuple[str, ...] = ()
    objective: Objective = field(default_factory=Objective)
    asked: CompletionTerms = field(default_factory=CompletionTerms)
    estimator: str = ""
    certain: bool = False
    on_demand: OnDemandQuestion | None = None
    hybrid: HybridQuestion | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OfferResult:
    """Result of an offer; ``completion`` None = it was refused, and ``error`` states why.

    Attributes
    ----------
    samples_per_s : float
        Speed with all nodes alive.
    log_spread : float
        Spread of predicted speeds in the runs; 0 = none.
    basis : Basis or None
        Basis of the throughput; None = the throughput was stated.
    """

    name: str
    offer: CompletionOffer | None = None
    completion: Completion | None = None
    error: NodewiseError | None = None
    samples_per_s: float = 0.0
    log_spread: float = 0.0
    basis: Basis | None = None
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen offer, the rule that chose it, and why."""

    row: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HybridResult:
    """When to switch; ``outcome`` None = it was refused, and ``error`` states why."""

    outcome: HybridOutcome | None = None
    error: NodewiseError | None = None
    bases: tuple[Basis, ...] = ()
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompletionResult:
    """Answers in the order of the offers."""

    rows: Sequence[OfferResult]
    frontier_rows: tuple[int, ...]
    choice: Choice | None
    no_choice_why: str
    estimator: str
    estimator_version: str
    on_demand: OnDemandOutcome | None = None
    hybrid: HybridResult | None = None
