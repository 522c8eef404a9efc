"""PredictionService: how fast, how sure, how many nodes. Absence, as on the whole wire: see configuration.proto."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import ConfigurationRange, Configurations
from nodewise_values.v1.objective import (
    BatchBounds,
    CurrentConfiguration,
    NamedNumber,
    Objective,
    Offer,
    Recommendation,
    StatisticalEfficiency,
    Work,
)
from nodewise_values.v1.options import ModelOptions, PredictionColumn, PredictOptions
from nodewise_values.v1.plugin import Plugin, PluginKind, PluginProblem
from nodewise_values.v1.prediction import Basis, IntervalBasis, Predictions
from nodewise_values.v1.problem import Notice, Problem
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.v1.workload import Architectures
from nodewise_values.value import Value

__all__ = [
    "ArchitectureRanking",
    "BatchJob",
    "BatchJobOutcome",
    "BatchPredictRequest",
    "BatchPredictResponse",
    "Device",
    "Estimator",
    "ListDevicesRequest",
    "ListDevicesResponse",
    "ListEstimatorsRequest",
    "ListEstimatorsResponse",
    "ListPluginsRequest",
    "ListPluginsResponse",
    "MeasurementSuggestion",
    "PredictRequest",
    "PredictResponse",
    "RunningScore",
    "StreamPredictRequest",
    "StreamPredictResponse",
    "SuggestMeasurementsRequest",
    "SuggestMeasurementsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictRequest(Value):
    """A question about one job."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """Explicit configurations; their rows come first in the answer.

    Absent together with ranges = one range that counts neither nodes nor workers.
    """
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of configurations; their rows follow in order."""
    objective: Objective | None = None
    """What best means. Absent = the knee."""
    work: Work | None = None
    """Work left, which times and costs are computed of. Absent = as said of Work."""
    offers: tuple[Offer, ...] = ()
    """What nodes cost. Empty = costs are not known."""
    current: CurrentConfiguration | None = None
    """What the job runs on now. Absent = it does not run, or moving costs nothing."""
    efficiency: StatisticalEfficiency | None = None
    """What another batch is worth. Absent = a sample is a sample."""
    batch_bounds: BatchBounds | None = None
    """Batches that may be chosen. Absent = those of the rows. Needs efficiency."""
    options: PredictOptions | None = None
    """How to answer."""
    if_none_match: str = ""
    """Basis.digest of an earlier answer to the same question: where it still holds, the answer is `unchanged`.

    Empty = answer in any case.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictResponse(Value):
    """The answer about one job."""

    predictions: Predictions | None = None
    """One row per configuration asked about."""
    recommendation: Recommendation | None = None
    """The recommended row. Absent where no row meets the objective (a warning then says why)."""
    basis: Basis | None = None
    """What the answer rests on."""
    unchanged: bool = False
    """The digest that was asked about still holds: there is nothing here but the basis."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchJob(Value):
    """One job of a batch. What it does not bring is that of the batch."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """Its own configurations.

    Absent together with ranges = those shared by the batch; where these are absent, too, as in PredictRequest.
    """
    ranges: tuple[ConfigurationRange, ...] = ()
    """Its own ranges."""
    objective: Objective | None = None
    """Its own objective. Absent = the one shared by the batch."""
    work: Work | None = None
    """Work left of it. Absent = as said of Work."""
    offers: tuple[Offer, ...] = ()
    """What nodes cost it. Empty = the offers shared by the batch."""
    current: CurrentConfiguration | None = None
    """What it runs on now. Absent = it does not run, or moving costs nothing."""
    efficiency: StatisticalEfficiency | None = None
    """What another batch is worth. Absent = a sample is a sample."""
    batch_bounds: BatchBounds | None = None
    """Batches that may be chosen. Absent = those of the rows. Needs efficiency."""
    if_none_match: str = ""
    """Basis.digest of an earlier answer to the same question. Empty = answer in any case."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictRequest(Value):
    """A question about many jobs, or about many architectures of one job."""

    jobs: tuple[BatchJob, ...] = ()
    """The jobs, answered in this order. Empty with architectures."""
    configurations: Configurations | None = None
    """Configurations for every job that brings none of its own."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges for every job that brings none of its own."""
    objective: Objective | None = None
    """Objective for every job that brings none of its own. Absent = the knee."""
    offers: tuple[Offer, ...] = ()
    """Offers for every job that brings none of its own."""
    options: PredictOptions | None = None
    """How to answer."""
    architectures: Architectures | None = None
    """Instead of jobs: architectures, each on all of the shared configurations.

    Row c of architecture a is row a x configurations + c of the answer, and what Predict answers about a profile of
    those facts by the same estimator. One estimator answers for all of them, chosen by the first of those that tell
    most and can be answered. An architecture of facts that cannot be, or that Predict would refuse as a whole, has its
    rows refused. Neither objective nor offers apply.
    """
    profile: ProfileSource | None = None
    """What is known of all architectures alike.

    Its evidence says what the configurations leave open, such as device and batch, and no more: no run of it is one of
    an architecture. Absent = nothing. Only with architectures.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ArchitectureRanking(Value):
    """How architectures rank on one configuration."""

    architecture_indexes: tuple[int, ...] = ()
    """The architectures that are answered, least seconds per step first; equal ones in the order asked."""
    expected_kendall_tau: float | None = None
    """Kendall's tau that this order is expected to have with the measured one, -1 to 1.

    Absent = fewer than two are answered, or the estimator states no spread.
    """
    refused_share: float = 0.0
    """Share of the architectures that are not answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchJobOutcome(Value):
    """What became of one job of a batch."""

    problem: Problem | None = None
    """Why the job could not be answered. Absent = answered."""
    basis_index: int | None = None
    """Entry of BatchPredictResponse.bases. Absent = not answered."""
    recommendation: Recommendation | None = None
    """The recommended row, counted from the job's first row."""
    columns: tuple[PredictionColumn | None, ...] = ()
    """Columns that this job's rows hold; all other optional columns are 0 in its rows."""
    interval_basis: IntervalBasis | None = None
    """Where this job's interval comes from."""
    unchanged: bool = False
    """The digest that was asked about still holds: the job has no rows here."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictResponse(Value):
    """The answers about many jobs, in compressed sparse rows."""

    outcomes: tuple[BatchJobOutcome, ...] = ()
    """One outcome per job, in order."""
    row_offsets: tuple[int, ...] = ()
    """Rows of job j are row_offsets[j] to row_offsets[j + 1] of predictions; a job with a problem has none."""
    predictions: Predictions | None = None
    """The rows of all jobs, one after the other. A column that only some jobs have is 0 in the others' rows."""
    bases: tuple[Basis, ...] = ()
    """What the answers rest on, without repetition."""
    rankings: tuple[ArchitectureRanking, ...] = ()
    """Of architectures: how they rank, one for each configuration in order.

    There are no outcomes and row_offsets then, and one basis, or none where no architecture is answered.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPredictRequest(Value):
    """A question on a stream."""

    question_id: str = ""
    """Chosen by the caller; the reply carries it."""
    predict: PredictRequest | None = None
    """About one job."""
    batch: BatchPredictRequest | None = None
    """About many jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPredictResponse(Value):
    """A reply on a stream."""

    question_id: str = ""
    """The question that this answers."""
    predict: PredictResponse | None = None
    """About one job."""
    batch: BatchPredictResponse | None = None
    """About many jobs."""
    problem: Problem | None = None
    """The question could not be answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuggestMeasurementsRequest(Value):
    """A question about the next measurement."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """What may be run; with the rows of ranges at most 1,024 (LIMIT_EXCEEDED, rows_per_suggestion).

    Absent together with ranges = as in PredictRequest.
    """
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of what may be run; their rows follow in order."""
    objective: Objective | None = None
    """The decision that the measurement should improve. Absent = the knee."""
    work: Work | None = None
    """Work left, for objectives of time or cost. Absent = as said of Work."""
    offers: tuple[Offer, ...] = ()
    """What nodes cost, for objectives of cost."""
    max_suggestions: int | None = None
    """At most this many suggestions. Absent = 1. Each rests on those before it."""
    start_up_seconds: float = 0.0
    """Seconds to start a run, in which its nodes are held."""
    run_steps_count: int | None = None
    """Steps of a run: workers' cycles (asynchronous and hybrid), else global batches. Absent = 100."""
    options: ModelOptions | None = None
    """Who answers."""


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
    now is expected to lie from that of the row it would recommend if all were known, as a share of the latter. It
    trusts the model: where the decision rests on a boundary that no run has crossed, a warning BOUNDARY_UNMEASURED says
    so.
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

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListEstimatorsResponse(Value):
    """Estimators."""

    estimators: tuple[Estimator, ...] = ()
    """The estimators, by name and version."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimator(Value):
    """An estimator."""

    plugin: Plugin | None = None
    """What every plugin says of itself."""
    capabilities: tuple[str, ...] = ()
    """What it can do, e.g. "phase_timings"."""
    score: RunningScore | None = None
    """How well it has predicted in operation. Absent until observations have scored it."""
    track: str = ""
    """Track that it answers on, e.g. "canary". Empty = the default one."""


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
class ListDevicesRequest(Value):
    """Which devices to list."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListDevicesResponse(Value):
    """Devices."""

    devices: tuple[Device, ...] = ()
    """The devices, by name."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
    catalog_digest: str = ""
    """Digest of the catalog, as in Basis."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Device(Value):
    """A device that the catalog knows."""

    name: str = ""
    """Name, e.g. "V100"."""
    aliases: tuple[str, ...] = ()
    """Other names that mean the same. Case, spaces and marks do not matter, nor does a leading "NVIDIA"."""
    facts: tuple[NamedNumber, ...] = ()
    """Facts; their names carry units, e.g. "fp16_flops_per_s"."""
    intra_node_link: str = ""
    """Link between devices of one node, e.g. "NVLink2". Empty = not known."""
    source: str = ""
    """Where the facts come from."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginsRequest(Value):
    """Which plugins to list."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""
    kind: PluginKind | None = None
    """Only this kind."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginsResponse(Value):
    """Plugins."""

    plugins: tuple[Plugin, ...] = ()
    """Those loaded, by kind, name and version."""
    problems: tuple[PluginProblem, ...] = ()
    """All that were left out, on the first page."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
