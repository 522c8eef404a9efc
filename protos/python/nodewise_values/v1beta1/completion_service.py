"""CompletionService: when a job is done on machines that can be revoked, at what cost and at what risk.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import ConfigurationRange, Configurations
from nodewise_values.v1.objective import Objective, Work
from nodewise_values.v1.options import ModelOptions
from nodewise_values.v1.prediction import Predictions
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
from nodewise_values.v1beta1.run_estimate import RunAssumption, RunDoubt, RunEnergy, RunFailures, RunMemory, RunPower
from nodewise_values.value import Value, Word

__all__ = [
    "CompletionMethod",
    "EstimateCompletionRequest",
    "EstimateCompletionResponse",
    "EstimateRunRequest",
    "EstimateRunResponse",
]


class CompletionMethod(Word):
    """How completion is estimated."""

    MONTE_CARLO = "monte_carlo"
    """Simulated runs with random lifetimes: means, quantiles and probabilities."""
    DETERMINISTIC = "deterministic"
    """Closed forms and fixed points: only means, with warnings where these are misleading."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimateCompletionRequest(Value):
    """Offers, and the questions about them."""

    profile: ProfileSource | None = None
    """What is known of the job.

    Its predicted throughput is the speed with each set of running nodes. Absent = every offer states its speeds.
    """
    options: ModelOptions | None = None
    """Which estimator predicts the throughput, and how. Its seed is also the seed of the simulated runs."""
    work: Work | None = None
    """Work left. Absent = the default of Work."""
    offers: tuple[CompletionOffer, ...] = ()
    """Available offers: at most 1,000, and at least one unless on_demand or hybrid is given."""
    common: CompletionOffer | None = None
    """Values for every offer that does not state them. Has no name and no groups."""
    objective: Objective | None = None
    """What the caller wants: least_cost (by a deadline), least_time (within a cost) or fewest_devices, at a confidence.

    Absent = least cost. Deadline probabilities refer to its deadline.
    """
    method: CompletionMethod | None = None
    """How completion is estimated."""
    runs_count: int | None = None
    """Simulated runs of each offer. Absent = 10,000. Offers times runs may be at most 10,000,000 (LIMIT_EXCEEDED)."""
    data_sets: tuple[LifetimeDataSet, ...] = ()
    """Lifetimes that groups may refer to, in addition to the shipped ones."""
    completion_estimator: str = ""
    """Estimator of the completion. Empty = the estimator that can do this, if one is loaded."""
    now: datetime | None = None
    """Current time, from which the age of lifetimes is computed. Absent = the server's clock."""
    on_demand: OnDemandQuestion | None = None
    """When to pay for machines on demand. Absent = not requested."""
    hybrid: HybridQuestion | None = None
    """When to switch from synchronous to asynchronous training. Absent = not requested."""
    certain_speeds: bool = False
    """Whether to treat predicted speeds as certain.

    Otherwise each simulated run has its own speed, drawn from the interval of the prediction.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimateCompletionResponse(Value):
    """The estimates, in the order of the offers."""

    rows: tuple[CompletionRow, ...] = ()
    """One row for each offer."""
    frontier_rows: tuple[int, ...] = ()
    """Rows that no other row beats in mean cost, 90th percentile of time, and failures."""
    choice: CompletionChoice | None = None
    """The recommended offer. Absent = no offer meets the objective."""
    no_choice_why: str = ""
    """Why no offer is recommended. Empty = one is, or the request has no offers."""
    estimator: str = ""
    """Name of the completion estimator."""
    estimator_version: str = ""
    """Version of the completion estimator."""
    on_demand: OnDemandAnswer | None = None
    """When to pay for machines on demand."""
    hybrid: HybridAnswer | None = None
    """When to switch from synchronous to asynchronous training."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimateRunRequest(Value):
    """A run, and the questions about it."""

    profile: ProfileSource | None = None
    """What is known of the job."""
    options: ModelOptions | None = None
    """Which estimator predicts the throughput, and how. Its seed is also the seed of the simulated runs."""
    work: Work | None = None
    """Work of the run. Absent = the default of Work."""
    configurations: Configurations | None = None
    """Configuration of the run: one row, here or in ranges."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """The same as a range of one row."""
    failures: RunFailures | None = None
    """Failures and recovery. Absent = all of it is assumed."""
    power: RunPower | None = None
    """Power and emissions. Absent = all of it is assumed."""
    price_per_node_hour: float | None = None
    """Price of one node for one hour. Absent = cost is not estimated."""
    deadline_seconds: float | None = None
    """Seconds from the start by which the run must be done. Absent = no deadline."""
    runs_count: int | None = None
    """Simulated runs. Absent = 10,000."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimateRunResponse(Value):
    """The card of a run."""

    predictions: Predictions | None = None
    """Prediction of the run's throughput, one row with all columns."""
    memory: RunMemory | None = None
    """Memory of each device."""
    completion: CompletionRow | None = None
    """Time, cost and chance of meeting the deadline, with failures. REFUSED if the run does not fit into memory."""
    energy: RunEnergy | None = None
    """Energy and emissions. Absent = the run does not fit, or the power of the device is not known."""
    assumptions: tuple[RunAssumption, ...] = ()
    """Values that the request does not state."""
    doubts: tuple[RunDoubt, ...] = ()
    """What is unsure about each figure."""
