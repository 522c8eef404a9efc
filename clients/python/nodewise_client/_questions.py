"""Questions: what is asked of the prediction service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodewise_client._configurations import (
    Configurations,
    NodeRange,
    WorkerRange,
    configurations_to_wire,
    ranges_to_wire,
)
from nodewise_client._enums import (
    COLUMNS,
    FIDELITIES,
    FRESHNESS,
    Fidelity,
    FidelityWord,
    Freshness,
    FreshnessWord,
    PredictionColumn,
    PredictionColumnWord,
    to_number,
)
from nodewise_client._evidence import ProfileContent, source_to_wire
from nodewise_client._objectives import Objective, Rule, objective_to_wire
from nodewise_protos.v1 import configuration_pb2
from nodewise_protos.v1 import prediction_service_pb2 as wire


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """How to answer."""

    estimator: str = "auto"
    """Name; "auto" = the service chooses."""
    coverage: float | None = None
    """Coverage of the interval, above 0 and below 1; None = 0.9."""
    freshness: Freshness | FreshnessWord | None = None
    """How fresh the model must be; None = wait for the fit."""
    allow_fallback: bool = False
    """Whether another estimator may answer if the one named fails."""
    columns: Iterable[PredictionColumn | PredictionColumnWord] = ()
    """Optional columns wanted; empty = all that the estimator has."""
    fidelity: Fidelity | FidelityWord | None = None
    """Model or simulation; None = model."""
    seed: int = 0
    """Seed of whatever is random."""
    simulated_steps: int = 0
    """Steps that a simulation counts in each row after warming up; 0 = as many as the estimator thinks right."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about one job, for `stream_predict`."""

    profile: str | ProfileContent
    """Name of a stored profile, or the profile itself."""
    configurations: Configurations | None = None
    """Explicit configurations; their rows come first in the answer."""
    ranges: Iterable[NodeRange | WorkerRange] = ()
    """Ranges of configurations; their rows follow in order."""
    objective: Objective | Rule | None = None
    options: PredictOptions | None = None
    minimum_revision: int = 0
    """Refuse to answer from an older revision; 0 = any."""
    request_id: str = ""
    """Comes back with the answer; empty = numbered by the client from 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", tuple(self.ranges))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """One job of a batch. What it does not bring is shared by the batch."""

    profile: str | ProfileContent
    """Name of a stored profile, or the profile itself."""
    configurations: Configurations | None = None
    ranges: Iterable[NodeRange | WorkerRange] = ()
    objective: Objective | Rule | None = None
    minimum_revision: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", tuple(self.ranges))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQuestion:
    """A question about many jobs, for `stream_predict`."""

    jobs: Iterable[BatchJob | str]
    """Jobs; a name stands for a stored profile that is asked about what the batch shares."""
    configurations: Configurations | None = None
    ranges: Iterable[NodeRange | WorkerRange] = ()
    objective: Objective | Rule | None = None
    options: PredictOptions | None = None
    request_id: str = ""
    """Comes back with the answer; empty = numbered by the client from 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        object.__setattr__(self, "ranges", tuple(self.ranges))


def options_to_wire(options: PredictOptions | None) -> wire.PredictOptions | None:
    """Options as their message."""
    if options is None:
        return None
    message = wire.PredictOptions(
        estimator=options.estimator,
        interval_coverage=options.coverage or 0.0,
        allow_fallback=options.allow_fallback,
        columns=[to_number(COLUMNS, column) for column in options.columns],
        seed=options.seed,
        simulated_steps_count=options.simulated_steps,
    )
    if options.freshness is not None:
        message.freshness = to_number(FRESHNESS, options.freshness)
    if options.fidelity is not None:
        message.fidelity = to_number(FIDELITIES, options.fidelity)
    return message


def predict_request(question: Question) -> wire.PredictRequest:
    """A question about one job as its message."""
    return wire.PredictRequest(
        profile=source_to_wire(question.profile, question.minimum_revision),
        configurations=_given(question.configurations),
        ranges=ranges_to_wire(question.ranges),
        objective=objective_to_wire(question.objective),
        options=options_to_wire(question.options),
    )


def batch_request(question: BatchQuestion) -> wire.BatchPredictRequest:
    """A question about many jobs as its message."""
    jobs = [BatchJob(profile=job) if isinstance(job, str) else job for job in question.jobs]
    return wire.BatchPredictRequest(
        jobs=[
            wire.BatchJob(
                profile=source_to_wire(job.profile, job.minimum_revision),
                configurations=_given(job.configurations),
                ranges=ranges_to_wire(job.ranges),
                objective=objective_to_wire(job.objective),
            )
            for job in jobs
        ],
        configurations=_given(question.configurations),
        ranges=ranges_to_wire(question.ranges),
        objective=objective_to_wire(question.objective),
        options=options_to_wire(question.options),
    )


def stream_request(question: Question | BatchQuestion, number: int) -> wire.StreamPredictRequest:
    """A question as a message of a stream; `number` becomes its id if it has none."""
    request_id = question.request_id or str(number)
    if isinstance(question, Question):
        return wire.StreamPredictRequest(request_id=request_id, predict=predict_request(question))
    return wire.StreamPredictRequest(request_id=request_id, batch=batch_request(question))


def _given(configurations: Configurations | None) -> configuration_pb2.Configurations | None:
    return None if configurations is None else configurations_to_wire(configurations)
