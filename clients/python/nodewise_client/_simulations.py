"""Results of simulations: what a policy would have made of jobs over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodewise_client._predictions import Basis, basis_from_wire
from nodewise_protos.v1 import schedule_service_pb2, simulation_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationProgress:
    """How far a simulation is."""

    repetitions_done: int
    repetitions: int
    jobs: int
    """Of one repetition."""
    arrived: int
    """Of the running repetition."""
    finished: int
    now_s: float
    """Simulated time."""
    decisions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """What became of a finished job; times in seconds of simulated time."""

    job_id: str
    arrival_s: float
    start_s: float
    """When it was first given devices."""
    completion_s: float
    slowdown: float
    """Response time over the time alone on its fastest row."""
    finish_time_fairness: float
    """Response time over the time on an exclusive equal share of the cluster."""
    samples: float
    restarts: int

    @property
    def response_s(self) -> float:
        """Completion minus arrival."""
        return self.completion_s - self.arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDevices:
    """Devices that a job held from when to when."""

    job_id: str
    pool: int
    """Index of the cluster's pool."""
    devices: int
    """Those of servers included."""
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRun:
    """One repetition. Figures are None where no job finished."""

    seed: int
    jobs: int
    finished: int
    complete: bool
    average_jct_s: float | None
    """Mean response time."""
    median_jct_s: float | None
    p99_jct_s: float | None
    average_waiting_s: float | None
    average_slowdown: float | None
    p99_slowdown: float | None
    average_finish_time_fairness: float | None
    worst_finish_time_fairness: float | None
    makespan_s: float | None
    utilisation: float | None
    restarts_per_job: float | None
    busy_device_s: float
    restart_device_s: float
    lost_device_s: float
    deadlines: int
    deadlines_missed: int
    decisions: int
    decision_s: float
    longest_decision_s: float
    wall_s: float
    jobs_finished: tuple[SimulatedJob, ...] = field(repr=False)
    """Empty unless asked for."""
    timeline: tuple[HeldDevices, ...] = field(repr=False)
    """Empty unless asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationFigure:
    """A figure over all repetitions: mean, and bounds of its 95 % confidence interval (None = fewer than two)."""

    mean: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """What a policy would have done."""

    runs: tuple[SimulationRun, ...]
    """One per repetition, in the order of seeds."""
    figures: Mapping[str, SimulationFigure]
    """Over all of them, by the names in `SimulationRun`."""
    policy: str
    policy_version: str
    complete: bool
    """False = the call's time was over first."""
    bases: tuple[Basis, ...]
    """What predicted curves rest on."""


def simulation_progress(response: schedule_service_pb2.SimulateResponse) -> SimulationProgress:
    """How far a simulation is, from its message."""
    message = response.progress
    return SimulationProgress(
        repetitions_done=message.repetitions_done_count,
        repetitions=message.repetitions_count,
        jobs=message.jobs_count,
        arrived=message.arrived_count,
        finished=message.finished_count,
        now_s=message.now_seconds,
        decisions=message.decisions_count,
    )


RUN_FIELDS: Final = {
    "seed": "seed",
    "jobs": "jobs_count",
    "finished": "finished_count",
    "complete": "complete",
    "busy_device_s": "busy_device_seconds",
    "restart_device_s": "restart_device_seconds",
    "lost_device_s": "lost_device_seconds",
    "deadlines": "deadlines_count",
    "deadlines_missed": "deadlines_missed_count",
    "decisions": "decisions_count",
    "decision_s": "decision_seconds",
    "longest_decision_s": "longest_decision_seconds",
    "wall_s": "wall_seconds",
}
"""Fields of a run that are always there."""
FIGURE_FIELDS: Final = {
    "average_jct_s": "average_jct_seconds",
    "median_jct_s": "median_jct_seconds",
    "p99_jct_s": "p99_jct_seconds",
    "average_waiting_s": "average_waiting_seconds",
    "average_slowdown": "average_slowdown_ratio",
    "p99_slowdown": "p99_slowdown_ratio",
    "average_finish_time_fairness": "average_finish_time_fairness_ratio",
    "worst_finish_time_fairness": "worst_finish_time_fairness_ratio",
    "makespan_s": "makespan_seconds",
    "utilisation": "utilisation_ratio",
    "restarts_per_job": "restarts_per_job_ratio",
}
"""Fields of a run that may be absent, and names of figures."""
_FIGURE_NAMES: Final = {wire: name for name, wire in FIGURE_FIELDS.items()}


def simulation_result(message: simulation_pb2.SimulationResult) -> SimulationResult:
    """The answer that a message holds, without columns of jobs and timeline."""
    return simulation_answer([schedule_service_pb2.SimulateResponse(result=message)])


def simulation_answer(responses: Sequence[schedule_service_pb2.SimulateResponse]) -> SimulationResult:
    """The answer that a last message and the rows before it hold."""
    jobs: dict[int, list[SimulatedJob]] = {}
    timelines: dict[int, list[HeldDevices]] = {}
    for response in responses:
        if response.HasField("jobs"):
            jobs.setdefault(response.jobs.seed, []).extend(_job_rows(response.jobs))
        elif response.HasField("timeline"):
            timelines.setdefault(response.timeline.seed, []).extend(_timeline_rows(response.timeline))
    message = responses[-1].result
    return SimulationResult(
        runs=tuple(_run(run, jobs.get(run.seed, ()), timelines.get(run.seed, ())) for run in message.runs),
        figures={
            _FIGURE_NAMES[each.name]: SimulationFigure(
                mean=each.mean,
                lower=each.lower if each.HasField("lower") else None,
                upper=each.upper if each.HasField("upper") else None,
            )
            for each in message.figures
            if each.name in _FIGURE_NAMES
        },
        policy=message.policy,
        policy_version=message.policy_version,
        complete=message.complete,
        bases=tuple(basis_from_wire(basis) for basis in message.bases),
    )


def _run(
    message: simulation_pb2.SimulationRun, jobs: Iterable[SimulatedJob], timeline: Iterable[HeldDevices]
) -> SimulationRun:
    values = {name: getattr(message, wire) for name, wire in RUN_FIELDS.items()}
    for name, wire in FIGURE_FIELDS.items():
        values[name] = getattr(message, wire) if message.HasField(wire) else None
    return SimulationRun(**values, jobs_finished=tuple(jobs), timeline=tuple(timeline))


def _job_rows(message: simulation_pb2.SimulationJobRows) -> Iterable[SimulatedJob]:
    columns = zip(
        message.job_ids,
        message.arrival_seconds,
        message.start_seconds,
        message.completion_seconds,
        message.slowdown_ratios,
        message.finish_time_fairness_ratios,
        message.done_samples,
        message.restarts_counts,
        strict=True,
    )
    for job_id, arrival_s, start_s, completion_s, slowdown, fairness, samples, restarts in columns:
        yield SimulatedJob(
            job_id=job_id,
            arrival_s=arrival_s,
            start_s=start_s,
            completion_s=completion_s,
            slowdown=slowdown,
            finish_time_fairness=fairness,
            samples=samples,
            restarts=restarts,
        )


def _timeline_rows(message: simulation_pb2.SimulationTimelineRows) -> Iterable[HeldDevices]:
    columns = zip(
        message.job_ids,
        message.pool_indexes,
        message.devices_counts,
        message.begin_seconds,
        message.end_seconds,
        strict=True,
    )
    for job_id, pool, devices, begin_s, end_s in columns:
        yield HeldDevices(job_id=job_id, pool=pool, devices=devices, begin_s=begin_s, end_s=end_s)
