"""From a SimulateRequest to the question that the scheduling room answers, its curves predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.estimation.question import Basis
from nodewise.mapper.reading import Reader
from nodewise.plugin import Budget, PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import schedule_limits
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.wire_schedules import read_pools, read_quotas
from nodewise.rpc.wire_shared_pairs import read_simulated_pairs
from nodewise.rpc.wire_simulated_jobs import read_curve, read_jobs, read_profile_curve
from nodewise.rpc.wire_simulations import read_repetitions, read_settings
from nodewise.scheduling.curves import Predict
from nodewise.scheduling.request import ScheduleQuestion
from nodewise.scheduling.simulated_curves import predicted_curves
from nodewise.scheduling.simulating import SimulateQuestion
from nodewise.scheduling.simulation.jobs import JobCurve
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["ReadSimulation", "read_simulation"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadSimulation:
    """What to simulate, the curves by their places in the request, and what predicted ones rest on."""

    question: SimulateQuestion
    curves: tuple[JobCurve, ...]
    bases: tuple[Basis, ...]


def read_simulation(
    request: pb.SimulateRequest,
    policy: PolicyRecord,
    options: ReadOptions,
    profiles: Mapping[int, Profile | NodewiseError],
    predict: Predict,
    budget: Budget,
    limits: Limits,
) -> ReadSimulation:
    """Check everything, and predict the curves that come from profiles.

    Parameters
    ----------
    profiles : mapping of int to Profile
        By the place of their curve in the request.
    predict : callable
        Answers a question about one curve.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS, LIMIT_EXCEEDED; what curves that cannot be predicted raise.
    """
    places, reader = sorted(profiles), Reader()
    asked = ScheduleQuestion(
        now_s=0.0,
        pools=read_pools(request.cluster.pools, reader),
        jobs=tuple(
            read_profile_curve(request.curves[place].profile, place, profiles[place], reader) for place in places
        ),
        parameters=dict(request.policy_parameters),
        quotas=read_quotas(request.quotas),
        terms=options.terms.within(budget),
    )
    reader.finish()
    caps = schedule_limits(limits, limits.simulated_jobs_per_call)
    caps = replace(caps, candidate_rows=min(limits.simulation_rows_per_call, caps.candidate_rows))
    found = predicted_curves(asked, places, policy, predict, budget, caps)
    predicted = dict(zip(places, found.curves))
    curves = tuple(
        predicted[number] if number in predicted else read_curve(message, number, found.state.pools, reader)
        for number, message in enumerate(request.curves)
    )
    if not curves:
        reader.wrong("curves", "must hold a curve")
    reader.finish()
    settings = read_settings(request.settings, found.state.quotas, dict(request.policy_parameters))
    jobs = read_jobs(request.jobs, curves, found.state.pools, found.state.quotas, budget.look_up)
    question = SimulateQuestion(
        jobs=jobs,
        pools=found.state.pools,
        settings=replace(
            settings,
            keep_timeline=request.include_timeline,
            sharing=read_simulated_pairs(request, len(curves), len(found.state.pools)),
        ),
        repetitions=read_repetitions(request, limits),
        keep_jobs=request.include_jobs,
    )
    return ReadSimulation(question=question, curves=curves, bases=found.bases)
