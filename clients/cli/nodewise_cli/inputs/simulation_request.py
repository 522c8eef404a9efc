"""A simulation's request: from a specification and its jobs to the client's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from nodewise_cli.inputs.simulation_jobs import PreparedJobs
from nodewise_cli.inputs.simulation_spec import PolicySpec, SimulationSpec
from nodewise_client import (
    Checkpoints,
    EarlyStops,
    NodeFailures,
    NodePool,
    PredictedCurve,
    PredictionError,
    QueueQuota,
    SimulationClock,
    SimulationJobs,
    SimulationSettings,
    ThroughputCurve,
)
from nodewise_job_traces import Curve, Job, gavel, pollux

__all__ = ["policy_arguments", "pools_of", "simulate_arguments"]

ValueT = TypeVar("ValueT")

_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "gavel": gavel.SETTINGS,
    "pollux": pollux.SETTINGS,
}
"""How time passes where a specification does not say, by the format of its jobs: as in the simulators that they come
from (docs/simulation.md)."""

_TIMES: Final = (
    "clock",
    "round_s",
    "on_changes_only",
    "minimum_decision_interval_s",
    "restart_cost_s",
    "first_start_cost_s",
)


def simulate_arguments(spec: SimulationSpec, prepared: PreparedJobs) -> dict[str, Any]:
    """What `Client.simulate` takes, without the policy."""
    curves: list[ThroughputCurve | PredictedCurve] = []
    places: dict[int, int] = {}

    def place(curve: Curve | None) -> int:
        if curve is None or (not len(curve) and id(curve) not in prepared.predicted):
            return -1
        if id(curve) not in places:
            places[id(curve)] = len(curves)
            curves.append(prepared.predicted.get(id(curve)) or _given(curve))
        return places[id(curve)]

    jobs = _columns(
        prepared.jobs,
        [place(job.curve) for job in prepared.jobs],
        [place(job.predicted) for job in prepared.jobs],
    )
    return {
        "cluster": pools_of(spec),
        "jobs": jobs,
        "curves": curves,
        "quotas": [QueueQuota(queue=queue, max_devices=most) for queue, most in spec.quotas.items()],
        "settings": _settings(spec, prepared.format),
    }


def pools_of(spec: SimulationSpec) -> list[NodePool]:
    """The cluster."""
    return [
        NodePool(
            name=pool.name,
            device=pool.device or pool.name,
            available_devices=[pool.devices_per_node] * pool.nodes,
            link_bytes_per_s=pool.link_bytes_per_s,
        )
        for pool in spec.cluster
    ]


def policy_arguments(policy: PolicySpec, form: str) -> dict[str, Any]:
    """The policy of `Client.simulate`; jobs of a published simulator come with what it does under a policy's name."""
    usual = gavel.PARAMETERS.get(policy.name, {}) if form == "gavel" else {}
    return {"policy": policy.name, "policy_parameters": {**usual, **policy.parameters}}


def _given(curve: Curve) -> ThroughputCurve:
    return ThroughputCurve(
        pool=[pool for pool, _ in curve.rates],
        devices=[devices for _, devices in curve.rates],
        samples_per_s=list(curve.rates.values()),
    )


def _columns(jobs: Sequence[Job], true: Sequence[int], predicted: Sequence[int]) -> SimulationJobs:
    return SimulationJobs(
        job_ids=[job.job_id for job in jobs],
        arrival_s=[job.arrival_s for job in jobs],
        work_samples=[job.samples for job in jobs],
        curve=true,
        predicted_curve=predicted,
        requested_devices=[job.requested_devices for job in jobs],
        rigid=[job.rigid for job in jobs],
        stop_samples=[job.stop_samples or 0.0 for job in jobs],
        step_samples=[job.samples_per_step for job in jobs],
        restart_cost_s=[-1.0 if job.restart_cost_s is None else job.restart_cost_s for job in jobs],
        weight=[job.weight for job in jobs],
        queue=[job.queue for job in jobs],
        deadline_s=[job.deadline_s or 0.0 for job in jobs],
        minimum_run_s=[job.minimum_run_s for job in jobs],
        server_devices=[job.server_devices for job in jobs],
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
    return SimulationSettings(
        **{"clock": SimulationClock.EVENTS, **usual},
        checkpoints=_some(spec.checkpoints, Checkpoints),
        failures=_some(spec.failures, NodeFailures),
        early_stops=_some(spec.early_stops, EarlyStops),
        prediction_error=_some(spec.prediction_error, PredictionError),
        load=spec.load,
        seed=spec.seed,
    )


def _some(given: BaseModel | None, kind: type[ValueT]) -> ValueT | None:
    """The client's value of a model with the same fields."""
    return None if given is None else kind(**given.model_dump())
