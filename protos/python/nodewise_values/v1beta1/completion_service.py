"""CompletionService: when a job is done on machines that can be taken away, at what cost and at what risk.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.objective import Objective, Work
from nodewise_values.v1.options import ModelOptions
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.v1beta1.completion import (
    CompletionChoice,
    CompletionRow,
    HybridAnswer,
    HybridQuestion,
    OnDemandAnswer,
    OnDemandQuestion,
)
from nodewise_values.v1beta1.completion_offer import CompletionOffer, LifetimeDataSet
from nodewise_values.value import Value, Word

__all__ = [
    "CompletionMethod",
    "EstimateCompletionRequest",
    "EstimateCompletionResponse",
]


class CompletionMethod(Word):
    """How completion is estimated."""

    MONTE_CARLO = "monte_carlo"
    """By runs against drawn lives: means, quantiles and probabilities."""
    DETERMINISTIC = "deterministic"
    """By closed forms and fixed points: means alone, and warnings where these mislead."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimateCompletionRequest(Value):
    """Offers, and what is asked of them."""

    profile: ProfileSource | None = None
    """What is known of the job; its predicted throughput is the speed of each set of nodes that is alive.

    Absent = every offer states its speeds.
    """
    options: ModelOptions | None = None
    """Who predicts the throughput, and how; the seed is also that of the runs."""
    work: Work | None = None
    """Work left. Absent = as said of Work."""
    offers: tuple[CompletionOffer, ...] = ()
    """What can be had, at least one unless policy or hybrid is asked for; at most 1,000."""
    common: CompletionOffer | None = None
    """What holds for every offer that does not state it itself; no name and no groups."""
    objective: Objective | None = None
    """What is best: least_cost (within a deadline), least_time (within a cost) or fewest_devices, at a confidence.

    Absent = least cost. Its deadline is the one that probabilities are told of.
    """
    method: CompletionMethod | None = None
    """How it is estimated."""
    runs_count: int | None = None
    """Runs of each offer. Absent = 10,000. Offers times runs: at most 10,000,000 (LIMIT_EXCEEDED)."""
    data_sets: tuple[LifetimeDataSet, ...] = ()
    """Lifetimes that groups may name, beside those that are shipped."""
    completion_estimator: str = ""
    """Who estimates the completion. Empty = the estimator that does, where one is loaded."""
    now: datetime | None = None
    """Today, which tells how old lifetimes are. Absent = by the server's clock."""
    on_demand: OnDemandQuestion | None = None
    """When to pay for machines on demand. Absent = not asked."""
    hybrid: HybridQuestion | None = None
    """When to switch from synchronous to asynchronous training. Absent = not asked."""
    certain_speeds: bool = False
    """Take predicted speeds as if they were certain.

    Otherwise every run has a pace of its own, within the interval of the prediction.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimateCompletionResponse(Value):
    """Answers, in the order of the offers."""

    rows: tuple[CompletionRow, ...] = ()
    """One for each offer."""
    frontier_rows: tuple[int, ...] = ()
    """Rows that no other beats in mean cost, 90th percentile of time, and failures."""
    choice: CompletionChoice | None = None
    """The offer to take. Absent = none meets the objective."""
    no_choice_why: str = ""
    """Why no offer was chosen. Empty = one was, or none was asked about."""
    estimator: str = ""
    """Who estimated."""
    estimator_version: str = ""
    """Its version."""
    on_demand: OnDemandAnswer | None = None
    """When to pay for machines on demand."""
    hybrid: HybridAnswer | None = None
    """When to switch from synchronous to asynchronous training."""
