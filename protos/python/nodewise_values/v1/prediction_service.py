"""PredictionService: how fast, how sure, how many nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import ConfigurationRange, Configurations
from nodewise_values.v1.objective import Objective, Recommendation
from nodewise_values.v1.prediction import Basis, IntervalBasis, Notice, PredictionColumn, Predictions
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.value import Value, Word

__all__ = [
    "BatchJob",
    "BatchJobOutcome",
    "BatchPredictRequest",
    "BatchPredictResponse",
    "Estimator",
    "Fidelity",
    "Freshness",
    "ListEstimatorsRequest",
    "ListEstimatorsResponse",
    "MeasurementSuggestion",
    "PluginProblem",
    "PredictOptions",
    "PredictRequest",
    "PredictResponse",
    "RunningScore",
    "StreamPredictRequest",
    "StreamPredictResponse",
    "SuggestMeasurementsRequest",
    "SuggestMeasurementsResponse",
]


class Freshness(Word):
    """How fresh a fitted model must be."""

    CACHED_ONLY = "cached_only"
    """Answer from a model that is already fitted, else refuse."""
    ALLOW_STALE = "allow_stale"
    """Answer from an older revision's model rather than wait for a slow fit; the answer says that it is stale."""
    WAIT = "wait"
    """Wait for the fit."""


class Fidelity(Word):
    """How an answer is computed."""

    MODEL = "model"
    """By the estimator's model."""
    SIMULATE = "simulate"
    """By simulation, where the estimator has one; the interval is then the confidence interval of the simulation.

    Where it has none its model answers, with the warning NOT_SIMULATED. A simulation that the call's deadline would cut
    short ends with DEADLINE_EXCEEDED: a shorter one would be another answer.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictOptions(Value):
    """How to answer."""

    estimator: str = ""
    """Estimator's name. Empty or "auto" = the service chooses."""
    interval_coverage: float = 0.0
    """Coverage of the interval, above 0, at most 0.9999. 0 = 0.9."""
    freshness: Freshness | None = None
    """How fresh the model must be."""
    allow_fallback: bool = False
    """Whether another estimator may answer if the one named refuses. A fault of the one named is always reported."""
    columns: tuple[PredictionColumn | None, ...] = ()
    """Optional columns wanted. Empty = all that the estimator has."""
    fidelity: Fidelity | None = None
    """Model or simulation."""
    seed: int = 0
    """Seed of whatever is random."""
    simulated_steps_count: int = 0
    """Steps that a simulation counts in each row after warming up: workers' cycles (asynchronous), else rounds.

    0 = as many as the estimator thinks right. Rows times steps are capped (LIMIT_EXCEEDED, simulated_steps_per_call).
    Only with FIDELITY_SIMULATE.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictRequest(Value):
    """A question about one job."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """Explicit configurations; their rows come first in the answer."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of configurations; their rows follow in order."""
    objective: Objective | None = None
    """What best means. Absent = no recommendation."""
    options: PredictOptions | None = None
    """How to answer."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictResponse(Value):
    """The answer about one job."""

    predictions: Predictions | None = None
    """One row per configuration asked about."""
    recommendation: Recommendation | None = None
    """The recommended row. Absent without an objective or when no row meets it (a warning then says why)."""
    basis: Basis | None = None
    """What the answer rests on."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchJob(Value):
    """One job of a batch."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """Its own configurations. Absent together with ranges = those shared by the batch."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """Its own ranges."""
    objective: Objective | None = None
    """Its own objective. Absent = the one shared by the batch."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictRequest(Value):
    """A question about many jobs."""

    jobs: tuple[BatchJob, ...] = ()
    """The jobs, answered in this order."""
    configurations: Configurations | None = None
    """Configurations for every job that brings none of its own."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges for every job that brings none of its own."""
    objective: Objective | None = None
    """Objective for every job that brings none of its own."""
    options: PredictOptions | None = None
    """How to answer."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchJobOutcome(Value):
    """What became of one job of a batch."""

    error: object | None = None
    """Why the job could not be answered. Absent = answered."""
    basis_index: int = 0
    """Entry of BatchPredictResponse.bases. -1 when not answered."""
    columns: tuple[PredictionColumn | None, ...] = ()
    """Optional columns that this job's rows hold; all other optional columns are 0 in its rows."""
    interval_basis: IntervalBasis | None = None
    """Where this job's interval comes from."""
    recommendation: Recommendation | None = None
    """The recommended row, counted from the job's first row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictResponse(Value):
    """The answers about many jobs, in compressed sparse rows."""

    outcomes: tuple[BatchJobOutcome, ...] = ()
    """One outcome per job, in order."""
    row_offsets: tuple[int, ...] = ()
    """Rows of job j are row_offsets[j] to row_offsets[j + 1] of predictions; a job with an error has none."""
    predictions: Predictions | None = None
    """The rows of all jobs, one after the other. A column that only some jobs have is 0 in the others' rows."""
    bases: tuple[Basis, ...] = ()
    """What the answers rest on, without repetition."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPredictRequest(Value):
    """A request on a stream."""

    request_id: str = ""
    """Chosen by the caller; the reply carries it."""
    predict: PredictRequest | None = None
    """About one job."""
    batch: BatchPredictRequest | None = None
    """About many jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPredictResponse(Value):
    """A reply on a stream."""

    request_id: str = ""
    """The request that this answers."""
    predict: PredictResponse | None = None
    """About one job."""
    batch: BatchPredictResponse | None = None
    """About many jobs."""
    error: object | None = None
    """The request could not be answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuggestMeasurementsRequest(Value):
    """A question about the next measurement."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """What may be run; with the rows of ranges at most 1,024 (LIMIT_EXCEEDED, rows_per_suggestion)."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of what may be run; their rows follow in order."""
    objective: Objective | None = None
    """The decision that the measurement should improve. Absent = highest throughput."""
    suggestions_count: int = 0
    """At most this many suggestions, 1 to 3. 0 = 1. Each rests on those before it."""
    start_up_seconds: float = 0.0
    """Seconds to start a run, in which its nodes are held."""
    run_steps_count: int = 0
    """Steps of a run: workers' cycles (asynchronous and hybrid), else global batches. 0 = 100."""
    options: PredictOptions | None = None
    """How to answer.

    How to answer; FIDELITY_SIMULATE is refused, as the spread of a simulation is not that of a measurement, and columns
    have no meaning.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuggestMeasurementsResponse(Value):
    """The next measurements."""

    suggestions: tuple[MeasurementSuggestion, ...] = ()
    """Best first. Empty where no measurement would teach anything (a warning then says why)."""
    basis: Basis | None = None
    """What the answer rests on."""
    expected_regret: float = 0.0
    """Expected regret of deciding without a measurement.

    Expected regret of deciding without a measurement: how far the throughput of the row that the objective recommends
    now is expected to lie from that of the row it would recommend if all were known, as a share of the latter.
    """
    warnings: tuple[Notice, ...] = ()
    """What the reader should know, of the predictions as well."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeasurementSuggestion(Value):
    """A measurement worth making."""

    row: int = 0
    """Row of what may be run."""
    cost_node_seconds: float = 0.0
    """Cost of the run, node-seconds: nodes held, those of parameter servers included, times start-up and steps."""
    expected_regret_fall: float = 0.0
    """Expected fall of the decision's regret, as a share of the best throughput; at least 0."""
    expected_width_fall: float = 0.0
    """Expected fall of the interval's logarithmic width ln(upper / lower), averaged over the rows; at least 0."""
    why: str = ""
    """Why, for people."""
    nodes: int = 0
    """Machines that run workers in this row."""
    workers: int = 0
    """Workers of this row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListEstimatorsRequest(Value):
    """Which estimators to list."""

    page_size: int = 0
    """At most this many. 0 = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListEstimatorsResponse(Value):
    """Estimators."""

    estimators: tuple[Estimator, ...] = ()
    """The estimators, by name."""
    problems: tuple[PluginProblem, ...] = ()
    """Plugins that were left out."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
    auto_score: RunningScore | None = None
    """How well "auto" has predicted in operation, with the estimators that are loaded now.

    Absent until observations have scored it.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimator(Value):
    """An estimator."""

    name: str = ""
    """Name to ask for."""
    version: str = ""
    """Version."""
    description: str = ""
    """What it does, for people."""
    distribution: str = ""
    """Distribution that brought it, with its version."""
    mode: str = ""
    """Where it runs: "inline" or "thread"."""
    capabilities: tuple[str, ...] = ()
    """What it can do, e.g. "phase_timings"."""
    score: RunningScore | None = None
    """How well it has predicted in operation. Absent until observations have scored it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunningScore(Value):
    """How well predictions matched the observations that arrived after them."""

    observations_count: int = 0
    """Observations scored: those that the revision before them had an answer for."""
    mean_absolute_log_error: float = 0.0
    """Mean absolute logarithmic error: of ln(predicted / measured steps per second)."""
    mean_log_error: float = 0.0
    """Mean logarithmic error; above 0 = predicted too fast."""
    coverage: float | None = None
    """Share of observations within the 90 % interval, of those whose prediction had one. Absent = none had."""
    update_time: datetime | None = None
    """When it was last updated."""
    unanswered_count: int = 0
    """Observations that there was no answer for, refused or failed; they are in none of the figures above."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PluginProblem(Value):
    """A plugin that was left out, and why."""

    name: str = ""
    """Entry point or record."""
    distribution: str = ""
    """Distribution that brought it, with its version."""
    kind: str = ""
    """"estimator", "policy", "trace_reader", "diagnoser" or "plugin"."""
    reason: str = ""
    """Stable reason, e.g. "PLUGIN_BROKEN"."""
    message: str = ""
    """For people."""
