"""Sweeps: policies x loads x prediction errors x seeds, every combination a simulation of its own.

A sweep is sent to an engine as the request of one simulation (bytes, with predicted curves) and small units that state
the differences, so that every engine does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.priors import learned_from
from nodewise.estimation.question import Answer, Question
from nodewise.hosting.registry import Registry, load_registry
from nodewise.mapper.mapping import to_message
from nodewise.plugin import PolicyRecord
from nodewise.ports.executor import Outcome, WorkExecutor
from nodewise.ports.limits import Limits
from nodewise.rpc.options import read_model_options
from nodewise.rpc.schedules import policy_named
from nodewise.rpc.simulation_requests import ReadSimulation, read_simulation
from nodewise.rpc.simulations import write_result
from nodewise.rpc.sources import read_content
from nodewise.scheduling.simulating import simulate_repeatedly
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["SweepUnit", "run_sweep", "simulated_unit", "with_given_curves"]

LIMITS: Final = Limits(simulated_jobs_per_call=1 << 24, simulation_rows_per_call=1 << 26)
"""Limits of a sweep: those of a call protect a server from its callers, but a sweep uses the caller's own memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepUnit:
    """One simulation of a sweep; ``request`` is the index of the request that it changes, among the shared ones."""

    policy: str
    parameters: Mapping[str, float]
    label: str
    load: float
    seed: int
    job_sigma: float = 0.0
    row_sigma: float = 0.0
    request: int = 0


def run_sweep(
    executor: WorkExecutor,
    requests: Sequence[bytes],
    units: Sequence[SweepUnit],
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome[bytes]]:
    """Every unit's outcome, in the order of units, the same for every engine: a SimulationResult's bytes, or its fault.

    Parameters
    ----------
    progress : callable
        Called with the number of units that are done, and of all units.
    """
    by_index: dict[int, Outcome[bytes]] = {}
    outcomes: Iterator[Outcome[bytes]] = executor.run(simulated_unit, tuple(requests), units)
    for outcome in outcomes:
        by_index[outcome.index] = outcome
        if progress is not None:
            progress(len(by_index), len(units))
    return [by_index[index] for index in range(len(units))]


def simulated_unit(requests: tuple[bytes, ...], unit: SweepUnit) -> bytes:
    """One simulation; runs in the processes of an engine.

    Raises
    ------
    NodewiseError
        What Simulate raises.
    """
    request = pb.SimulateRequest.FromString(requests[unit.request])
    request.policy = unit.policy
    request.policy_parameters.clear()
    request.policy_parameters.update(unit.parameters)
    request.repetitions_count = 1
    settings = request.settings
    settings.load_factor, settings.seed = unit.load, unit.seed
    settings.ClearField("prediction_error")
    if unit.job_sigma or unit.row_sigma:
        settings.prediction_error.job_sigma, settings.prediction_error.row_sigma = unit.job_sigma, unit.row_sigma
    policy = policy_named(_registry(), unit.policy)
    read = _read(request, policy.record, _refuse)
    result = simulate_repeatedly(read.question, policy, Budget())
    return write_result(result, 1, policy.record, ()).SerializeToString()


def with_given_curves(request: pb.SimulateRequest) -> pb.SimulateRequest:
    """The request with the curves of its profiles predicted, by the installed estimators and the priors they ship.

    Raises
    ------
    NodewiseError
        What Simulate raises; PROFILE_NOT_FOUND for a stored profile, since a sweep has no store.
    """
    if not any(curve.HasField("profile") for curve in request.curves):
        return request
    registry = _registry()
    catalogue = load_catalogue(None)
    priors = learned_from(registry, ()).priors
    answers = Answers(registry, catalogue=catalogue, priors=priors, max_workers=LIMITS.max_workers)
    policy = next(iter(registry.policies.values())).record
    request_with_curves = pb.SimulateRequest()
    request_with_curves.CopyFrom(request)
    request_with_curves.policy_parameters.clear()
    read = _read(request_with_curves, policy, answers.answer)
    for message, curve in zip(request_with_curves.curves, read.curves):
        if message.HasField("profile"):
            message.rows.CopyFrom(to_message(curve, simulation_pb2.SimulationCurveRows))
    return request_with_curves


def _read(request: pb.SimulateRequest, policy: PolicyRecord, predict: Callable[[Question], Answer]) -> ReadSimulation:
    profiles: dict[int, Any] = {}
    for number, curve in enumerate(request.curves):
        if curve.HasField("profile"):
            source, path = curve.profile.profile, f"curves[{number}].profile.profile"
            if not source.HasField("content"):
                raise NodewiseError(Reason.PROFILE_NOT_FOUND, f"{path}: must hold content, since a sweep has no store")
            profiles[number] = read_content(source.content, f"{path}.content", LIMITS)
    return read_simulation(request, policy, read_model_options(request.options), profiles, predict, Budget(), LIMITS)


def _refuse(_: Question) -> Answer:
    raise NodewiseError(Reason.EVIDENCE_MISSING, "curves of a sweep are predicted before it begins")


@lru_cache(maxsize=1)
def _registry() -> Registry:
    """The installed plugins, loaded once per process."""
    return load_registry()
