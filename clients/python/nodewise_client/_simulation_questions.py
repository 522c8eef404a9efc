"""Questions of simulations: jobs over time, curves, and how time passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from nodewise_client._columns import frozen
from nodewise_client._configurations import Configurations, configurations_to_wire
from nodewise_client._enums import SIMULATION_CLOCKS, SimulationClock, SimulationClockWord, to_number
from nodewise_client._evidence import ProfileContent, source_to_wire
from nodewise_client._questions import PredictOptions, options_to_wire
from nodewise_client._schedules import Cluster, NodePool, QueueQuota, cluster_to_wire
from nodewise_protos.v1 import schedule_pb2, schedule_service_pb2, simulation_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputCurve:
    """Throughput over devices, given in columns, one entry per row; any number of jobs may have it."""

    devices: Iterable[int]
    """Worker devices."""
    samples_per_s: Iterable[float]
    """Above 0."""
    pool: int | Iterable[int] = 0
    """Index of the cluster's pool, for all rows or per row."""

    def __post_init__(self) -> None:
        for name in ("devices", "samples_per_s", "pool"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCurve:
    """Throughput over devices as the server predicts it for a job."""

    profile: str | ProfileContent
    """Name of a stored profile, or the profile itself."""
    allowed_devices: Iterable[int] = ()
    """Empty = every number that the cluster has."""
    allowed_pools: Iterable[str] = ()
    """Empty = all."""
    template: Configurations | None = None
    """How it runs, as one row without nodes, workers and devices; None = as in its evidence."""
    minimum_revision: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_devices", frozen(self.allowed_devices))
        object.__setattr__(self, "allowed_pools", tuple(self.allowed_pools))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationJobs:
    """Jobs in columns, by arrival. A column is a value for all jobs or one per job; empty = the default."""

    arrival_s: Iterable[float]
    """Ascending, seconds of simulated time; one per job."""
    work_samples: float | Iterable[float]
    """What the policy is told of, in the unit that the curve's rates are per second of."""
    curve: int | Iterable[int] = 0
    """True curve, as an index."""
    predicted_curve: int | Iterable[int] = ()
    """Curve as the policy sees it; -1 = the true one."""
    job_ids: Iterable[str] = ()
    """Empty = numbered from 0."""
    requested_devices: int | Iterable[int] = ()
    """0 = the fewest of the curve."""
    rigid: bool | Iterable[bool] = ()
    """Whether it runs on the requested devices only."""
    min_devices: int | Iterable[int] = ()
    """0 = as the curve has."""
    max_devices: int | Iterable[int] = ()
    """0 = as the curve has."""
    stop_samples: float | Iterable[float] = ()
    """True work, hidden from the policy, where it ends early; 0 = all of it."""
    step_samples: float | Iterable[float] = ()
    """Work is indivisible below this where rounds deal out whole steps; 0 = it flows."""
    restart_cost_s: float | Iterable[float] = ()
    """-1 = as the settings say."""
    weight: float | Iterable[float] = ()
    queue: str | Iterable[str] = ()
    """Empty text = none."""
    deadline_s: float | Iterable[float] = ()
    """Seconds of simulated time; 0 = none."""
    minimum_run_s: float | Iterable[float] = ()
    server_devices: int | Iterable[int] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, frozen(getattr(self, each.name)))

    def __len__(self) -> int:
        return len(tuple(self.arrival_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """A running job saves its state each `interval_s` of progress and stands still for `cost_s` to do so."""

    interval_s: float
    cost_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailures:
    """Nodes fail independently; both times are exponential."""

    mean_time_between_failures_s: float
    mean_repair_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStops:
    """Jobs that end before their declared work is done; the policy does not know which."""

    probability: float
    progress: Iterable[float] = ()
    """Quantiles of the share of the work at which such a job ends, at equal distances from 0 to 1; empty = uniform."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", tuple(self.progress))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """Predicted = true throughput x exp(job_sigma z + row_sigma z'), z once per job, z' per row, standard normal."""

    job_sigma: float = 0.0
    row_sigma: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """How time passes, what changes cost, and what chance brings."""

    clock: SimulationClock | SimulationClockWord = SimulationClock.EVENTS
    round_s: float = 60.0
    on_changes_only: bool = False
    """Ask the policy only when a job arrived or ended, or a node failed or came back."""
    minimum_decision_interval_s: float = 0.0
    restart_cost_s: float = 0.0
    first_start_cost_s: float = 0.0
    checkpoints: Checkpoints | None = None
    """None = a failure undoes the run."""
    failures: NodeFailures | None = None
    early_stops: EarlyStops | None = None
    prediction_error: PredictionError | None = None
    load: float = 1.0
    """Inter-arrival times are divided by it."""
    seed: int = 0
    """Repetitions count on from it."""


def simulate_request(
    *,
    cluster: Cluster | Iterable[NodePool],
    jobs: SimulationJobs,
    curves: Iterable[ThroughputCurve | PredictedCurve],
    policy: str,
    policy_parameters: Mapping[str, float] | None,
    quotas: Iterable[QueueQuota],
    settings: SimulationSettings | None,
    repetitions: int,
    keep_jobs: bool,
    keep_timeline: bool,
    options: PredictOptions | None,
) -> schedule_service_pb2.SimulateRequest:
    """What to simulate."""
    return schedule_service_pb2.SimulateRequest(
        cluster=cluster_to_wire(cluster),
        jobs=_jobs(jobs),
        curves=[_curve(curve) for curve in curves],
        policy=policy,
        policy_parameters=policy_parameters or {},
        quotas=[schedule_pb2.QueueQuota(queue=quota.queue, max_devices=quota.max_devices) for quota in quotas],
        settings=None if settings is None else _settings(settings),
        repetitions_count=repetitions,
        include_jobs=keep_jobs,
        include_timeline=keep_timeline,
        options=options_to_wire(options),
    )


COLUMNS: Final = {
    "job_ids": "job_ids",
    "arrival_s": "arrival_seconds",
    "work_samples": "work_samples",
    "curve": "curve_indexes",
    "predicted_curve": "predicted_curve_indexes",
    "requested_devices": "requested_devices",
    "rigid": "rigid",
    "min_devices": "min_devices",
    "max_devices": "max_devices",
    "stop_samples": "stop_samples",
    "step_samples": "step_samples",
    "restart_cost_s": "restart_cost_seconds",
    "weight": "weights",
    "deadline_s": "deadline_seconds",
    "minimum_run_s": "minimum_run_seconds",
    "server_devices": "server_devices",
}
"""Columns: attribute here -> field there."""


def _jobs(jobs: SimulationJobs) -> simulation_pb2.SimulationJobs:
    message = simulation_pb2.SimulationJobs(count=len(jobs))
    for name, wire in COLUMNS.items():
        getattr(message, wire).extend(getattr(jobs, name))
    queues = tuple(jobs.queue)
    names = {name: index for index, name in enumerate(dict.fromkeys(name for name in queues if name))}
    message.queue_names.extend(names)
    message.queue_indexes.extend(names.get(name, -1) for name in queues)
    return message


def _curve(curve: ThroughputCurve | PredictedCurve) -> simulation_pb2.SimulationCurve:
    if isinstance(curve, ThroughputCurve):
        return simulation_pb2.SimulationCurve(
            pool_indexes=frozen(curve.pool), devices_counts=curve.devices, samples_per_second=curve.samples_per_s
        )
    return simulation_pb2.SimulationCurve(
        profile=source_to_wire(curve.profile, curve.minimum_revision),
        allowed_devices=curve.allowed_devices,
        allowed_pools=curve.allowed_pools,
        template=None if curve.template is None else configurations_to_wire(curve.template),
    )


def _settings(given: SimulationSettings) -> simulation_pb2.SimulationSettings:
    message = simulation_pb2.SimulationSettings(
        clock=to_number(SIMULATION_CLOCKS, given.clock),
        round_seconds=given.round_s,
        on_changes_only=given.on_changes_only,
        minimum_decision_interval_seconds=given.minimum_decision_interval_s,
        restart_cost_seconds=given.restart_cost_s,
        first_start_cost_seconds=given.first_start_cost_s,
        load_factor=given.load,
        seed=given.seed,
    )
    if given.checkpoints is not None:
        message.checkpoints.interval_seconds = given.checkpoints.interval_s
        message.checkpoints.cost_seconds = given.checkpoints.cost_s
    if given.failures is not None:
        message.failures.mean_time_between_failures_seconds = given.failures.mean_time_between_failures_s
        message.failures.mean_repair_seconds = given.failures.mean_repair_s
    if given.early_stops is not None:
        message.early_stops.SetInParent()
        message.early_stops.probability = given.early_stops.probability
        message.early_stops.progress_shares.extend(given.early_stops.progress)
    if given.prediction_error is not None:
        message.prediction_error.SetInParent()
        message.prediction_error.job_sigma = given.prediction_error.job_sigma
        message.prediction_error.row_sigma = given.prediction_error.row_sigma
    return message
