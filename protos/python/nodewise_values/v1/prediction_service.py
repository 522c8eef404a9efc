"""PredictionService: predicts throughput with intervals, and recommends node counts.

For what an absent or empty value means, see configuration.proto.
"""

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
    """Explicit configurations.

    Their rows come first in the answer. Absent with empty ranges = one ConfigurationRange without an axis.
    """
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of configurations. Their rows follow in order."""
    objective: Objective | None = None
    """What the caller wants. Absent = the knee."""
    work: Work | None = None
    """Work left, for times and costs. Absent = the default of Work."""
    offers: tuple[Offer, ...] = ()
    """Nodes that are available, and what they cost. Empty = costs are not known."""
    current: CurrentConfiguration | None = None
    """The configuration that the job runs on now. Absent = the job does not run, or a move costs nothing."""
    efficiency: StatisticalEfficiency | None = None
    """How much a sample is worth at another batch. Absent = the same at every batch."""
    batch_bounds: BatchBounds | None = None
    """Batches that the service may choose. Absent = each row's own batch. Needs efficiency."""
    options: PredictOptions | None = None
    """Options of the answer."""
    if_none_match: str = ""
    """Basis.digest of an earlier answer to the same question.

    If it still holds, the answer is only `unchanged`. Empty = always answer.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictResponse(Value):
    """The answer about one job."""

    predictions: Predictions | None = None
    """One row per requested configuration."""
    recommendation: Recommendation | None = None
    """The recommended row. Absent = no row meets the objective; a warning says why."""
    basis: Basis | None = None
    """What the answer is based on."""
    unchanged: bool = False
    """The digest in if_none_match still holds: the response holds nothing but the basis."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchJob(Value):
    """One job of a batch. The batch's shared values replace those that the job does not state."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """Configurations of this job.

    Absent with empty ranges = those of the batch, and without those as in PredictRequest.
    """
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of this job."""
    objective: Objective | None = None
    """Objective of this job. Absent = that of the batch."""
    work: Work | None = None
    """Work left of this job. Absent = the default of Work."""
    offers: tuple[Offer, ...] = ()
    """Offers for this job. Empty = those of the batch."""
    current: CurrentConfiguration | None = None
    """The configuration that the job runs on now. Absent = the job does not run, or a move costs nothing."""
    efficiency: StatisticalEfficiency | None = None
    """How much a sample is worth at another batch. Absent = the same at every batch."""
    batch_bounds: BatchBounds | None = None
    """Batches that the service may choose. Absent = each row's own batch. Needs efficiency."""
    if_none_match: str = ""
    """Basis.digest of an earlier answer to the same question. Empty = always answer."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictRequest(Value):
    """A question about many jobs, or about many architectures of one job."""

    jobs: tuple[BatchJob, ...] = ()
    """The jobs, answered in this order. Must be empty if architectures are given."""
    configurations: Configurations | None = None
    """Configurations for every job that states none."""
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges for every job that states none."""
    objective: Objective | None = None
    """Objective for every job that states none. Absent = the knee."""
    offers: tuple[Offer, ...] = ()
    """Offers for every job that states none."""
    options: PredictOptions | None = None
    """Options of the answers."""
    architectures: Architectures | None = None
    """Architectures instead of jobs, each predicted on all shared configurations.

    Row c of architecture a is row a x configurations + c of the answer. It equals Predict's answer by the same
    estimator for a profile with the architecture's facts. One estimator answers for all: the choice is made for the
    first architecture with the most facts that can be answered. If the facts of an architecture are impossible, or
    Predict would refuse it as a whole, its rows are refused. Objective and offers have no effect.
    """
    profile: ProfileSource | None = None
    """What is known of all architectures alike.

    Its evidence only sets what the configurations leave open, such as device and batch; its runs do not count as runs
    of an architecture. Absent = nothing is known. Only with architectures.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ArchitectureRanking(Value):
    """Order of the architectures on one configuration."""

    architecture_indexes: tuple[int, ...] = ()
    """The answered architectures by seconds per step, the fastest first; equal ones in the order of the request."""
    expected_kendall_tau: float | None = None
    """Expected Kendall's tau between this order and the measured one, -1 to 1.

    Absent = fewer than two architectures are answered, or the estimator states no spread.
    """
    refused_share: float = 0.0
    """Share of the architectures that are not answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchJobOutcome(Value):
    """Outcome of one job of a batch."""

    problem: Problem | None = None
    """Why the job could not be answered. Absent = it was answered."""
    basis_index: int | None = None
    """Index into BatchPredictResponse.bases. Absent = the job was not answered."""
    recommendation: Recommendation | None = None
    """The recommended row, counted from the job's first row."""
    columns: tuple[PredictionColumn | None, ...] = ()
    """Optional columns that this job's rows hold. All other optional columns are 0 in its rows."""
    interval_basis: IntervalBasis | None = None
    """Where this job's interval comes from."""
    unchanged: bool = False
    """The digest in the job's if_none_match still holds: the job has no rows here."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictResponse(Value):
    """The answers about many jobs, in compressed sparse rows."""

    outcomes: tuple[BatchJobOutcome, ...] = ()
    """One outcome per job, in the order of the request."""
    row_offsets: tuple[int, ...] = ()
    """Job j has rows row_offsets[j] to row_offsets[j + 1] of predictions; a job with a problem has none."""
    predictions: Predictions | None = None
    """The rows of all jobs, one job after another. A column that only some jobs have is 0 in the rows of the others."""
    bases: tuple[Basis, ...] = ()
    """What the answers are based on, each basis once."""
    rankings: tuple[ArchitectureRanking, ...] = ()
    """Only with architectures: their order on each configuration.

    outcomes and row_offsets are then empty, and bases has one entry, or none if no architecture is answered.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPredictRequest(Value):
    """A question on a stream."""

    question_id: str = ""
    """Id that the caller chooses; the reply carries it."""
    predict: PredictRequest | None = None
    """About one job."""
    batch: BatchPredictRequest | None = None
    """About many jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPredictResponse(Value):
    """A reply on a stream."""

    question_id: str = ""
    """Id of the question that this answers."""
    predict: PredictResponse | None = None
    """About one job."""
    batch: BatchPredictResponse | None = None
    """About many jobs."""
    problem: Problem | None = None
    """Why the question could not be answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuggestMeasurementsRequest(Value):
    """A question about the next measurement."""

    profile: ProfileSource | None = None
    """The job."""
    configurations: Configurations | None = None
    """Configurations that may be run.

    Together with the rows of ranges at most 1,024 (LIMIT_EXCEEDED, rows_per_suggestion). Absent with empty ranges = as
    in PredictRequest.
    """
    ranges: tuple[ConfigurationRange, ...] = ()
    """Ranges of configurations that may be run. Their rows follow in order."""
    objective: Objective | None = None
    """The decision that the measurement should improve. Absent = the knee."""
    work: Work | None = None
    """Work left, for objectives of time or cost. Absent = the default of Work."""
    offers: tuple[Offer, ...] = ()
    """Nodes that are available, and what they cost, for objectives of cost."""
    max_suggestions: int | None = None
    """Most suggestions. Absent = 1. Each suggestion assumes that those before it are measured."""
    start_up_seconds: float = 0.0
    """Seconds that a run takes to start; it occupies its nodes meanwhile."""
    run_steps_count: int | None = None
    """Steps of a run: workers' cycles (asynchronous and hybrid), else global batches. Absent = 100."""
    options: ModelOptions | None = None
    """Which estimator answers, and how."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuggestMeasurementsResponse(Value):
    """The next measurements."""

    suggestions: tuple[MeasurementSuggestion, ...] = ()
    """Suggestions, best first. Empty = no measurement would help; a warning says why."""
    basis: Basis | None = None
    """What the answer is based on."""
    expected_regret: float = 0.0
    """Expected regret of a decision without a measurement, as a share of the best throughput.

    Expected regret of a decision without a measurement, as a share of the best throughput: how far the throughput of
    the row that is recommended now is expected to lie below that of the row that would be recommended if all
    throughputs were known. The figure assumes that the model is right. If the decision depends on a boundary that no
    run has crossed, the warning BOUNDARY_UNMEASURED says so.
    """
    warnings: tuple[Notice, ...] = ()
    """Warnings for the reader, those of the predictions included."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeasurementSuggestion(Value):
    """A suggested measurement."""

    row: int = 0
    """Row of the configurations that may be run."""
    cost_node_seconds: float = 0.0
    """Cost of the run in node-seconds.

    Cost of the run in node-seconds: nodes, those of parameter servers included, times the seconds of start-up and
    steps.
    """
    expected_regret_fall: float = 0.0
    """Expected decrease of the decision's regret, as a share of the best throughput; at least 0."""
    expected_width_fall: float = 0.0
    """Expected decrease of the interval's logarithmic width ln(upper / lower), averaged over the rows; at least 0."""
    why: str = ""
    """Why it is suggested, for people."""
    nodes: int = 0
    """Machines that run workers in this row."""
    workers: int = 0
    """Workers of this row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListEstimatorsRequest(Value):
    """Lists estimators."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListEstimatorsResponse(Value):
    """A page of estimators."""

    estimators: tuple[Estimator, ...] = ()
    """The estimators, by name and version."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimator(Value):
    """An estimator."""

    plugin: Plugin | None = None
    """Facts that every plugin states."""
    capabilities: tuple[str, ...] = ()
    """What the estimator can do, e.g. "phase_timings"."""
    score: RunningScore | None = None
    """Accuracy of its predictions in operation. Absent = no observation has scored it yet."""
    track: str = ""
    """Track that the estimator answers on, e.g. "canary". Empty = the default track."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunningScore(Value):
    """How well predictions matched the observations that arrived after them."""

    observations_count: int = 0
    """Observations scored: those that the preceding revision predicted."""
    mean_absolute_log_error: float = 0.0
    """Mean absolute logarithmic error, where an error is ln(predicted / measured steps per second)."""
    mean_log_error: float = 0.0
    """Mean logarithmic error; above 0 = predictions are too fast."""
    coverage: float | None = None
    """Share of observations within the 90 % interval, among those predicted with one.

    Absent = no prediction had one.
    """
    update_time: datetime | None = None
    """When the score was last updated."""
    unanswered_count: int = 0
    """Observations that could not be predicted because the estimator refused or failed.

    The other figures do not include them.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListDevicesRequest(Value):
    """Lists devices."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListDevicesResponse(Value):
    """A page of devices."""

    devices: tuple[Device, ...] = ()
    """The devices, by name."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""
    catalog_digest: str = ""
    """Digest of the catalog, as in Basis."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Device(Value):
    """A device of the catalog."""

    name: str = ""
    """Name, e.g. "V100"."""
    aliases: tuple[str, ...] = ()
    """Other names of the device. Comparison ignores case, spaces and punctuation, and a leading "NVIDIA"."""
    facts: tuple[NamedNumber, ...] = ()
    """Facts about the device. Their names include units, e.g. "fp16_flops_per_s"."""
    intra_node_link: str = ""
    """Link between devices of one node, e.g. "NVLink2". Empty = not known."""
    source: str = ""
    """Where the facts come from."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginsRequest(Value):
    """Lists plugins."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""
    kind: PluginKind | None = None
    """Only plugins of this kind. UNSPECIFIED = all kinds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListPluginsResponse(Value):
    """A page of plugins."""

    plugins: tuple[Plugin, ...] = ()
    """Plugins that are loaded, by kind, name and version."""
    problems: tuple[PluginProblem, ...] = ()
    """All plugins that could not be loaded; only on the first page."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""
