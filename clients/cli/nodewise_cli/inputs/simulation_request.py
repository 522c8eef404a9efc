"""A simulation's request: from a specification and its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from nodewise_cli.inputs.simulation_jobs import PreparedJobs
from nodewise_cli.inputs.simulation_spec import PolicySpec, SimulationSpec
from nodewise_client import (
    Cluster,
    NodePool,
    QueueQuota,
    SimulateRequest,
    SimulationCheckpoints,
    SimulationClock,
    SimulationCurve,
    SimulationCurveRows,
    SimulationEarlyStops,
    SimulationJobs,
    SimulationNodeFailures,
    SimulationPredictionError,
    SimulationSettings,
)
from nodewise_job_traces import Curve, Job, gavel, pollux

__all__ = ["policy_parameters", "pools_of", "simulate_request"]

ValueT = TypeVar("ValueT")

_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "gavel": gavel.SETTINGS,
    "pollux": pollux.SETTINGS,
}
"""How time passes where a specification does not say, by the format of its jobs: as in the simulators that they come
from (docs/guides/simulation.md)."""

_TIMES: Final = (
    "clock",
    "round_s",
    "on_changes_only",
    "minimum_decision_interval_s",
    "restart_cost_s",
    "first_start_cost_s",
)

_COLUMNS: Final = {
    "job_ids": "job_id",
    "arrival_seconds": "arrival_s",
    "work_samples": "samples",
    "requested_devices": "requested_devices",
    "rigid": "rigid",
    "stop_samples": "stop_samples",
    "step_samples": "samples_per_step",
    "weights": "weight",
    "deadline_seconds": "deadline_s",
    "minimum_run_seconds": "minimum_run_s",
    "server_devices": "server_devices",
}
"""Columns of jobs by what a job calls them."""


def simulate_request(spec: SimulationSpec, prepared: PreparedJobs) -> SimulateRequest:
    """What to simulate, without the policy."""
    curves: list[SimulationCurve] = []
    places: dict[int, int] = {}

    def place(curve: Curve) -> int:
        if id(curve) not in places:
            places[id(curve)] = len(curves)
            curves.append(prepared.predicted.get(id(curve)) or _given(curve))
        return places[id(curve)]

    true = [place(job.curve) for job in prepared.jobs]
    predicted = [place(job.curve if job.predicted is None else job.predicted) for job in prepared.jobs]
    settings = _settings(spec, prepared.format)
    return SimulateRequest(
        cluster=Cluster(pools=pools_of(spec)),
        jobs=_columns(prepared.jobs, true, () if predicted == true else predicted, settings.restart_cost_seconds),
        curves=tuple(curves),
        quotas=tuple(QueueQuota(queue=queue, max_devices=most) for queue, most in spec.quotas.items()),
        settings=settings,
    )


def pools_of(spec: SimulationSpec) -> tuple[NodePool, ...]:
    """The cluster."""
    return tuple(
        NodePool(
            name=pool.name,
            device_name=pool.device or pool.name,
            available_devices=(pool.devices_per_node,) * pool.nodes,
            link_bytes_per_second=pool.link_bytes_per_s or None,
        )
        for pool in spec.cluster
    )


def policy_parameters(policy: PolicySpec, form: str) -> dict[str, float]:
    """A policy's parameters; jobs of a published simulator come with what it does under a policy's name."""
    usual = gavel.PARAMETERS.get(policy.name, {}) if form == "gavel" else {}
    return {**usual, **policy.parameters}


def _given(curve: Curve) -> SimulationCurve:
    return SimulationCurve(
        rows=SimulationCurveRows(
            pool_indexes=tuple(pool for pool, _ in curve.rates),
            devices_counts=tuple(devices for _, devices in curve.rates),
            samples_per_second=tuple(curve.rates.values()),
        )
    )


def _columns(
    jobs: Sequence[Job], true: Sequence[int], predicted: Sequence[int], restart_cost_s: float
) -> SimulationJobs:
    queues = {name: index for index, name in enumerate(dict.fromkeys(job.queue for job in jobs))}
    # What a job does not state is 0, as the contract has it.
    columns: dict[str, Any] = {
        column: tuple(0.0 if (held := getattr(job, name)) is None else held for job in jobs)
        for column, name in _COLUMNS.items()
    }
    return SimulationJobs(
        count=len(jobs),
        curve_indexes=tuple(true),
        predicted_curve_indexes=tuple(predicted),
        restart_cost_seconds=tuple(
            restart_cost_s if job.restart_cost_s is None else job.restart_cost_s for job in jobs
        ),
        queue_names=tuple(queues),
        queue_indexes=tuple(queues[job.queue] for job in jobs),
        **columns,
    )


def _settings(spec: SimulationSpec, form: str) -> SimulationSettings:
    usual = dict(_USUAL.get(form, {}))
    if spec.clock is not None and spec.clock != usual.get("clock"):
        usual = {}
    elif spec.round_s is not None and not usual:
        usual = {"clock": "fixed-rounds"}
    if spec.restart_cost_s is not None:
        usual.pop("first_start_cost_s", None)
    for name in _TIMES:
        stated = getattr(spec, name)
        if stated is not None:
            usual[name] = stated
    clock = SimulationClock(str(usual.pop("clock", SimulationClock.EVENTS)).replace("-", "_"))
    return SimulationSettings(
        clock=clock,
        **{_written_out(name): held for name, held in usual.items()},
        checkpoints=_some(spec.checkpoints, SimulationCheckpoints),
        failures=_some(spec.failures, SimulationNodeFailures),
        early_stops=None
        if spec.early_stops is None
        else SimulationEarlyStops(probability=spec.early_stops.probability, progress_shares=spec.early_stops.progress),
        prediction_error=_some(spec.prediction_error, SimulationPredictionError),
        load_factor=spec.load,
        seed=spec.seed,
    )


def _some(given: BaseModel | None, kind: type[ValueT]) -> ValueT | None:
    """The contract's value of a model with the same fields, whose seconds are written out."""
    if given is None:
        return None
    return kind(**{_written_out(name): held for name, held in given.model_dump().items()})


def _written_out(name: str) -> str:
    return f"{name.removesuffix('_s')}_seconds" if name.endswith("_s") else name
