"""Predictions: the answers, as columns, and what they are based on.

For what an absent or empty value means, see configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.problem import Notice, Problem
from nodewise_values.value import LazyValue, Value, Word

__all__ = [
    "Basis",
    "EstimatorShare",
    "IntervalBasis",
    "NamedColumn",
    "Predictions",
    "QuantileColumn",
    "RowRefusal",
    "RowStatus",
]


class RowStatus(Word):
    """Outcome of a row."""

    ANSWERED = "answered"
    """Predicted."""
    REFUSED = "refused"
    """Not predicted; the row's refusal says why."""
    INFEASIBLE_MEMORY = "infeasible_memory"
    """The row does not fit into memory; excess_memory_bytes says how much is missing."""


class IntervalBasis(Word):
    """Where an interval comes from."""

    MODEL_SPREAD = "model_spread"
    """The model's own spread, not calibrated against measurements."""
    CONFORMAL = "conformal"
    """Calibrated on measured errors (conformal)."""
    SIMULATION = "simulation"
    """Confidence interval of a simulation."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Predictions(LazyValue):
    """Predictions as columns, one entry per row.

    Rows that are not ANSWERED hold 0 in every column. No column holds a NaN.
    """

    rows_count: int = 0
    """Number of rows."""
    statuses: tuple[RowStatus | None, ...] = ()
    """Outcome of each row. Empty = every row is ANSWERED."""
    refusals: tuple[RowRefusal, ...] = ()
    """Why rows were refused."""
    step_seconds: tuple[float, ...] = ()
    """Duration of a step in seconds.

    Duration of a step in seconds: in asynchronous and hybrid training the cycle of one worker, otherwise one global
    batch.
    """
    steps_per_second: tuple[float, ...] = ()
    """Steps per second of the whole job.

    Steps per second of the whole job: in asynchronous and hybrid training workers / step_seconds, otherwise 1 /
    step_seconds.
    """
    samples_per_second: tuple[float, ...] = ()
    """Samples per second of the whole job. Empty = no row's batch is known; 0 in a row whose batch is not known."""
    lower_steps_per_second: tuple[float, ...] = ()
    """Lower bound of steps_per_second. Empty = no interval."""
    upper_steps_per_second: tuple[float, ...] = ()
    """Upper bound of steps_per_second. Empty = no interval."""
    interval_coverage: float | None = None
    """Probability that the measured throughput (for a simulation: the simulated mean) lies within the bounds.

    Absent = no interval.
    """
    interval_basis: IntervalBasis | None = None
    """Where the interval comes from."""
    breakdown_seconds: tuple[NamedColumn, ...] = ()
    """Parts of step_seconds as exposed time.

    In each row the columns add up to step_seconds. Time that an estimator does not attribute to a part is in the column
    "unattributed".
    """
    bottleneck_names: tuple[str, ...] = ()
    """Dictionary of bottlenecks, e.g. "upload".

    An empty name means that the bottleneck is not known: more than half of the step is not attributed to any part.
    Empty = no row has a bottleneck.
    """
    bottleneck_indexes: tuple[int, ...] = ()
    """For each row, an index into bottleneck_names."""
    utilization: tuple[NamedColumn, ...] = ()
    """Share of time for which each station is busy, 0 to 1."""
    staleness_mean_steps: tuple[float, ...] = ()
    """Mean number of updates by other workers between a worker's download and its upload.

    Empty = staleness has no meaning in this mode.
    """
    staleness_p95_steps: tuple[float, ...] = ()
    """95th percentile of the same number. Empty = not computed."""
    extrapolation_ratios: tuple[float, ...] = ()
    """How far the row lies outside the evidence.

    How far the row lies outside the evidence: 1 = within the scale that the evidence identifies, 2 = twice the largest
    such scale. Phase timings of one worker identify a queueing network up to its knee; a measured throughput identifies
    only its own scale.
    """
    memory_bytes: tuple[float, ...] = ()
    """Memory per device, bytes. Empty = not computed."""
    excess_memory_bytes: tuple[float, ...] = ()
    """Memory missing per device, bytes. Above 0 only in rows with the status INFEASIBLE_MEMORY."""
    finish_seconds: tuple[float, ...] = ()
    """Seconds to finish the work, including once_seconds.

    The work is that of the question, else the workload's epochs if they and the batch are known. Empty = no work is
    known.
    """
    costs: tuple[float, ...] = ()
    """Cost of that work, in the currency of the offers. Empty = no offer was given."""
    warnings: tuple[Notice, ...] = ()
    """Warnings for the reader."""
    nodes: tuple[int, ...] = ()
    """Nodes of each row, with defaults resolved."""
    workers: tuple[int, ...] = ()
    """Workers of each row, with defaults resolved."""
    extra: tuple[NamedColumn, ...] = ()
    """Further results of the estimator, e.g. the step times of a hybrid's two phases. Names include units."""
    once_seconds: tuple[float, ...] = ()
    """Seconds that are spent once in addition to the steps, e.g. at a hybrid's switch; part of finish_seconds.

    Empty = none in any row.
    """
    global_batch_samples: tuple[float, ...] = ()
    """Global batch of each row, samples, with defaults resolved or as chosen.

    Empty = not requested; 0 in rows whose batch is not known.
    """
    batch_per_worker_samples: tuple[float, ...] = ()
    """Samples per worker and micro-step, with defaults resolved or as chosen.

    Empty = not requested; 0 in rows where it is not known.
    """
    accumulation_steps: tuple[int, ...] = ()
    """Micro-steps between two exchanges, with defaults resolved or as chosen. Empty = not requested."""
    goodput_samples_per_second: tuple[float, ...] = ()
    """Samples per second times statistical efficiency.

    Empty = the question states no noise scale; 0 in rows whose batch is not known.
    """
    finish_seconds_quantiles: tuple[QuantileColumn, ...] = ()
    """Quantiles of the time to finish the work, ascending by probability. Empty = only the mean is known."""
    cost_quantiles: tuple[QuantileColumn, ...] = ()
    """Quantiles of the cost of the work, ascending by probability. Empty = only the mean is known."""
    revocations_means: tuple[float, ...] = ()
    """Mean number of node revocations until the work is done. Empty = none are expected in any row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuantileColumn(Value):
    """A quantile of a column."""

    probability: float = 0.0
    """Probability that the quantity is at most the value, above 0 and below 1."""
    values: tuple[float, ...] = ()
    """One value per row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamedColumn(Value):
    """A column with a name."""

    name: str = ""
    """Name, e.g. "download"."""
    values: tuple[float, ...] = ()
    """One value per row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RowRefusal(Value):
    """Why rows were not predicted."""

    rows: tuple[int, ...] = ()
    """The rows that were refused for this reason."""
    problem: Problem | None = None
    """Why they were refused."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Basis(Value):
    """What an answer is based on. The same question with the same basis gets the same answer."""

    estimator: str = ""
    """The estimator that answered; "auto" = the mixture below."""
    estimator_version: str = ""
    """Version of the estimator."""
    choice: str = ""
    """Why this estimator (or mixture) answered."""
    mixture: tuple[EstimatorShare, ...] = ()
    """Shares of a mixture, the largest first. Empty = a single estimator answered."""
    profile_revision: int | None = None
    """Revision of the stored profile. Absent = the profile was sent with the question."""
    profile_digest: str = ""
    """Digest of the profile's content."""
    prior_ids: tuple[str, ...] = ()
    """Priors that were used, including those of every part of a mixture. Empty = none."""
    catalog_digest: str = ""
    """Digest of the catalog of devices and links. Empty = the catalog was not used."""
    fit_time: datetime | None = None
    """When the model was fitted."""
    stale: bool = False
    """The model was fitted to an older revision than the profile's newest."""
    fallback: bool = False
    """An estimator other than the requested one answered."""
    evidence: tuple[str, ...] = ()
    """The evidence in words, e.g. "phase timings of 1 run"."""
    digest: str = ""
    """Digest of everything except the question that the answer depends on.

    Digest of everything except the question that the answer depends on: profile, estimators, priors, catalog, options.
    A later call with the same question may send it as `if_none_match`, and then gets an answer only if it differs.
    """
    generation: str = ""
    """Generation of the plugins that answered. It changes when the server swaps plugins."""
    track: str = ""
    """Track that answered, e.g. "canary". Empty = the default track."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorShare(Value):
    """Part of a mixture."""

    estimator: str = ""
    """Name of the estimator."""
    weight: float = 0.0
    """Weight of the estimator. The weights of a mixture add up to 1."""
    estimator_version: str = ""
    """Version of the estimator."""
    expected_log_error: float = 0.0
    """Expected mean absolute logarithmic error of the estimator, from which its weight is computed."""
    prior_id: str = ""
    """The prior that the estimator used. Empty = none."""
