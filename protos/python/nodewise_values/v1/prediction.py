"""Predictions: the answers, as columns, and what they rest on.

Absence, as on the whole wire: see configuration.proto.
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
    """What became of a row."""

    ANSWERED = "answered"
    """Predicted."""
    REFUSED = "refused"
    """Not predicted; the refusal says why."""
    INFEASIBLE_MEMORY = "infeasible_memory"
    """Does not fit into memory; excess_memory_bytes says by how much."""


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

    Rows that are not ANSWERED hold 0 in every column. There is never a NaN.
    """

    rows_count: int = 0
    """Rows."""
    statuses: tuple[RowStatus | None, ...] = ()
    """What became of each row. Empty = every row is ANSWERED."""
    refusals: tuple[RowRefusal, ...] = ()
    """Why rows were refused."""
    step_seconds: tuple[float, ...] = ()
    """Seconds of a step: asynchronous and hybrid, the cycle of one worker; otherwise one global batch."""
    steps_per_second: tuple[float, ...] = ()
    """Steps per second of the whole job.

    Steps per second of the whole job: asynchronous and hybrid, workers / step_seconds; otherwise 1 / step_seconds.
    """
    samples_per_second: tuple[float, ...] = ()
    """Samples per second of the whole job. Empty = no row's batch is known; 0 in a row whose batch is not known."""
    lower_steps_per_second: tuple[float, ...] = ()
    """Lower bound of steps_per_second. Empty = no interval."""
    upper_steps_per_second: tuple[float, ...] = ()
    """Upper bound of steps_per_second. Empty = no interval."""
    interval_coverage: float | None = None
    """Probability that the measured throughput (of a simulation: the simulated mean) lies within the bounds.

    Absent = no interval.
    """
    interval_basis: IntervalBasis | None = None
    """Where the interval comes from."""
    breakdown_seconds: tuple[NamedColumn, ...] = ()
    """Parts of step_seconds as exposed time; over all columns they add up to step_seconds in each row.

    What an estimator does not divide into parts is the column "unattributed".
    """
    bottleneck_names: tuple[str, ...] = ()
    """Dictionary of bottlenecks, e.g. "upload".

    An empty name stands for rows of which none is known: the larger half of their step is not attributed to any part.
    Empty = no row has one.
    """
    bottleneck_indexes: tuple[int, ...] = ()
    """Row to entry of bottleneck_names."""
    utilization: tuple[NamedColumn, ...] = ()
    """Share of time that each station is busy, 0 to 1."""
    staleness_mean_steps: tuple[float, ...] = ()
    """Mean updates by others between a worker's download and its upload. Empty where it has no meaning."""
    staleness_p95_steps: tuple[float, ...] = ()
    """95th percentile of the same. Empty where it is not computed."""
    extrapolation_ratios: tuple[float, ...] = ()
    """How far the row lies outside the evidence.

    How far the row lies outside the evidence: 1 = within what the evidence identifies, 2 = twice the largest scale that
    it identifies. A profile of one worker's phases identifies a queueing network up to its knee, a throughput its own
    scale.
    """
    memory_bytes: tuple[float, ...] = ()
    """Memory per device, bytes. Empty = not computed."""
    excess_memory_bytes: tuple[float, ...] = ()
    """Memory missing per device, bytes; above 0 only where the status is INFEASIBLE_MEMORY."""
    finish_seconds: tuple[float, ...] = ()
    """Seconds to do the work.

    Seconds to do the work: what the question says, else the workload's epochs where they and the batch are known,
    besides once_seconds. Empty = no work is known.
    """
    costs: tuple[float, ...] = ()
    """Cost of that work, in the currency of the offers. Empty = no offer was given."""
    warnings: tuple[Notice, ...] = ()
    """What the reader should know."""
    nodes: tuple[int, ...] = ()
    """Nodes of each row as resolved."""
    workers: tuple[int, ...] = ()
    """Workers of each row as resolved."""
    extra: tuple[NamedColumn, ...] = ()
    """What else an estimator has to say, e.g. the step times of a hybrid's two phases. Names carry units."""
    once_seconds: tuple[float, ...] = ()
    """Seconds spent once besides the steps, e.g. at a hybrid's switch; part of finish_seconds.

    Empty = none in any row.
    """
    global_batch_samples: tuple[float, ...] = ()
    """Global batch of each row as resolved or chosen, samples.

    Empty = not wanted; 0 in rows whose batch is not known.
    """
    batch_per_worker_samples: tuple[float, ...] = ()
    """Samples per worker and micro-step as resolved or chosen. Empty = not wanted; 0 in rows where it is not known."""
    accumulation_steps: tuple[int, ...] = ()
    """Micro-steps between two exchanges as resolved or chosen. Empty = not wanted."""
    goodput_samples_per_second: tuple[float, ...] = ()
    """Samples per second times statistical efficiency.

    Empty = the question tells no noise scale; 0 in rows whose batch is not known.
    """
    finish_seconds_quantiles: tuple[QuantileColumn, ...] = ()
    """Quantiles of the time to do the work, ascending by probability. Empty = only the mean is known."""
    cost_quantiles: tuple[QuantileColumn, ...] = ()
    """Quantiles of its cost, ascending by probability. Empty = only the mean is known."""
    revocations_means: tuple[float, ...] = ()
    """Mean revocations of nodes until the work is done. Empty = none are expected in any row."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuantileColumn(Value):
    """A quantile of a column."""

    probability: float = 0.0
    """Probability of at most the value, above 0, below 1."""
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
    """The rows."""
    problem: Problem | None = None
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Basis(Value):
    """What an answer rests on. Same basis and same question: same answer."""

    estimator: str = ""
    """The estimator that answered; "auto" = the mixture below."""
    estimator_version: str = ""
    """Its version."""
    choice: str = ""
    """Why this estimator (or mixture) answered."""
    mixture: tuple[EstimatorShare, ...] = ()
    """Shares of a mixture, the heaviest first. Empty = one estimator alone."""
    profile_revision: int | None = None
    """Revision of the stored profile. Absent = the profile came with the question."""
    profile_digest: str = ""
    """Digest of the profile's content."""
    prior_ids: tuple[str, ...] = ()
    """Priors that were used; of a mixture all of them. Empty = none."""
    catalog_digest: str = ""
    """Digest of the catalog of devices and links. Empty = not used."""
    fit_time: datetime | None = None
    """When the model was fitted."""
    stale: bool = False
    """The model was fitted to an older revision than the profile's newest."""
    fallback: bool = False
    """Another estimator than the one asked for answered."""
    evidence: tuple[str, ...] = ()
    """The evidence in words, e.g. "phase timings of 1 run"."""
    digest: str = ""
    """Digest of all that the answer depends on but the question: profile, estimators, priors, catalog, options.

    As `if_none_match` of the same question later it asks for an answer only if there is another one.
    """
    generation: str = ""
    """Generation of the plugins that answered; it changes when the server swaps them."""
    track: str = ""
    """Track that answered, e.g. "canary". Empty = the default one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorShare(Value):
    """Part of a mixture."""

    estimator: str = ""
    """Estimator."""
    weight: float = 0.0
    """Its weight; all weights add up to 1."""
    estimator_version: str = ""
    """Its version."""
    expected_log_error: float = 0.0
    """Mean absolute logarithmic error that is expected of it, of which the weights are made."""
    prior_id: str = ""
    """The prior that it used. Empty = none."""
