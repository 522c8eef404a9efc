"""A simulation's request: from a specification and its jobs to the client's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nodewise.cli.simulation_jobs import PreparedJobs
from nodewise.cli.simulation_spec import PolicySpec, SimulationSpec
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
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

__all__ = ["pools_of", "simulate_arguments"]

_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "gavel": {
        "clock": "drained-rounds",
        "round_s": 360.0,
        "on_changes_only": True,
        "minimum_decision_interval_s": 1920.0,
    },
    "pollux": {"clock": "fixed-rounds", "round_s": 60.0, "restart_cost_s": 30.0},
}
"""How time passes where a specification does not say, by the format of its jobs: as in the simulators that they come
from (docs/simulation.md)."""


def simulate_arguments(spec: SimulationSpec, prepared: PreparedJobs) -> dict[str, Any]:
    """What `Client.simulate` takes, without the policy."""
    curves: list[ThroughputCurve | PredictedCurve] = []
    places: dict[int, int] = {}

    def place(curve: JobCurve | None) -> int:
        if curve is None:
            return -1
        if id(curve) not in places:
            places[id(curve)] = len(curves)
            curves.append(prepared.predicted.get(id(curve)) or _given(curve))
        return places[id(curve)]

    jobs = _columns(prepared.jobs, [place(_some(job.curve)) for job in prepared.jobs], place)
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


def policy_arguments(policy: PolicySpec) -> dict[str, Any]:
    """The policy of `Client.simulate`."""
    return {"policy": policy.name, "policy_parameters": dict(policy.parameters)}
