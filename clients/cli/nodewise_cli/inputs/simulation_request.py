"""A simulation's request: from a specification and its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nodewise_cli.inputs.simulation_jobs import PreparedJobs
from nodewise_cli.inputs.simulation_spec import PolicySpec, SimulationSpec
from nodewise_client import (
    Cluster,
    NodePool,
    QueueQuota,
    SimulateRequest,
    SimulationCurve,
    SimulationCurveRows,
    SimulationJobs,
    SimulationSettings,
    SimulationSharedPairs,
    node_pool,
    simulation_jobs,
)
from nodewise_job_traces import Curve, Job, gavel, pollux
from nodewise_values.wire import from_json

__all__ = ["policy_parameters", "pools_of", "simulate_request"]

_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {"gavel": gavel.SETTINGS, "pollux": pollux.SETTINGS}
"""How time passes where a specification does not say, by the format of its jobs: as in the simulators that they come
from (docs/guides/simulation.md)."""

_SETTING_NAMES: Final = frozenset({
    *("clock", "round_s", "on_changes_only", "minimum_decision_interval_s", "restart_cost_s", "first_start_cost_s"),
    *("checkpoints", "failures", "early_stops", "prediction_error"),
})  # fmt: skip
"""Fields of a specification that a request's settings have too."""
_LIKE: Final = (
    *("arrival_s", "deadline_s", "minimum_run_s"),
    *("requested_devices", "server_devices", "stop_samples", "rigid"),
)
"""What jobs and a request's columns of them call alike."""


def simulate_request(spec: SimulationSpec, jobs_and_curves: PreparedJobs) -> SimulateRequest:
    """What to simulate, without the policy."""
    curves: list[SimulationCurve] = []
    places: dict[int, int] = {}

    def place(curve: Curve) -> int:
        if id(curve) not in places:
            places[id(curve)] = len(curves)
            curves.append(jobs_and_curves.predicted.get(id(curve)) or _simulation_curve(curve))
        return places[id(curve)]

    true = [place(job.curve) for job in jobs_and_curves.jobs]
    predictions = [place(job.curve if job.predicted is None else job.predicted) for job in jobs_and_curves.jobs]
    pairs = _shared_pairs(
        spec, [[place(jobs_and_curves.curves[name]) for name in pair.curves] for pair in spec.shared_pairs]
    )
    settings = _settings(spec, jobs_and_curves.format)
    return SimulateRequest(
        cluster=Cluster(pools=pools_of(spec)),
        jobs=_columns(
            jobs_and_curves.jobs, true, () if predictions == true else predictions, settings.restart_cost_seconds
        ),
        curves=tuple(curves),
        quotas=tuple(QueueQuota(queue=queue, max_devices=most) for queue, most in spec.quotas.items()),
        settings=settings,
        shared_pairs=pairs,
    )


def _shared_pairs(spec: SimulationSpec, places: Sequence[Sequence[int]]) -> SimulationSharedPairs | None:
    """Jobs that may share a device, by the places of their curves. Without a pool a pair is one of every pool."""
    pools = [pool.name for pool in spec.cluster]
    rows = [
        (pair, one, other, pool)
        for pair, (one, other) in zip(spec.shared_pairs, places, strict=True)
        for pool in ([pools.index(pair.pool)] if pair.pool else range(len(pools)))
    ]
    if not rows:
        return None
    shares = [pair.predicted_shares or pair.shares for pair, *_ in rows]
    return SimulationSharedPairs(
        first_curve_indexes=tuple(one for _, one, _, _ in rows),
        second_curve_indexes=tuple(other for _, _, other, _ in rows),
        pool_indexes=tuple(pool for *_, pool in rows),
        first_shares=tuple(pair.shares[0] for pair, *_ in rows),
        second_shares=tuple(pair.shares[1] for pair, *_ in rows),
        predicted_first_shares=tuple(first for first, _ in shares),
        predicted_second_shares=tuple(second for _, second in shares),
    )


def pools_of(spec: SimulationSpec) -> tuple[NodePool, ...]:
    """The cluster."""
    return tuple(
        node_pool(
            pool.name,
            pool.device or pool.name,
            nodes=pool.nodes,
            devices_per_node=pool.devices_per_node,
            link_bytes_per_second=pool.link_bytes_per_s or None,
            device_hours_between_failures=pool.device_hours_between_failures,
            restart_seconds=pool.restart_s,
        )
        for pool in spec.cluster
    )


def policy_parameters(policy: PolicySpec, form: str) -> dict[str, float]:
    """Parameters of a policy; jobs of a published simulator imply the parameters that it uses."""
    usual = gavel.PARAMETERS.get(policy.name, {}) if form == "gavel" else {}
    return {**usual, **policy.parameters}


def _simulation_curve(curve: Curve) -> SimulationCurve:
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
    names = {"job_ids": "job_id", "work_samples": "samples", "step_samples": "samples_per_step", "weights": "weight"}
    # What a job does not state is 0, as the contract has it.
    columns: dict[str, Any] = {
        column: [0.0 if (value := getattr(job, name)) is None else value for job in jobs]
        for column, name in (names | {_written_out(name): name for name in _LIKE}).items()
    }
    return simulation_jobs(
        queues=[job.queue for job in jobs],
        curve_indexes=true,
        predicted_curve_indexes=predicted,
        restart_cost_seconds=[restart_cost_s if job.restart_cost_s is None else job.restart_cost_s for job in jobs],
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
    values = {"clock": "events"} | usual | spec.model_dump(include=set(_SETTING_NAMES), exclude_none=True)
    values["clock"] = values["clock"].replace("-", "_")
    return from_json(_contract(values | {"load_factor": spec.load, "seed": spec.seed}), SimulationSettings)


def _contract(value: Any) -> Any:
    """The same by the contract's names."""
    return {_written_out(name): _contract(held) for name, held in value.items()} if isinstance(value, dict) else value


def _written_out(name: str) -> str:
    return f"{name.removesuffix('_s')}_seconds" if name.endswith("_s") else name
