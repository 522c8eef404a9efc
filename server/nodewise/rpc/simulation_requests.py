"""From a SimulateRequest to the question that the scheduling room answers, its curves predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.profile import Profile
from nodewise.estimation.question import Basis
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader
from nodewise.plugin import Budget, PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import schedule_limits
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.wire_schedules import read_pools, read_quotas
from nodewise.rpc.wire_simulated_jobs import read_curve, read_jobs, read_profile_curve
from nodewise.scheduling.curves import Predict
from nodewise.scheduling.pair_checks import MOST_SHARE
from nodewise.scheduling.request import ScheduleQuestion
from nodewise.scheduling.simulated_curves import predicted_curves
from nodewise.scheduling.simulating import SimulateQuestion
from nodewise.scheduling.simulation.jobs import JobCurve
from nodewise.scheduling.simulation.settings import Clock, EarlyStops, SimulatedSharing, SimulationSettings
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["ReadSimulation", "read_repetitions", "read_settings", "read_simulation"]

MOST_QUANTILES: Final = 10_000
LARGEST_SEED: Final = 2**31 - 1
_CLOCKS: Final = {simulation_pb2.SIMULATION_CLOCK_UNSPECIFIED: Clock.EVENTS} | {
    simulation_pb2.SimulationClock.Value(f"SIMULATION_CLOCK_{clock.name}"): clock for clock in Clock
}


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


def read_settings(
    message: simulation_pb2.SimulationSettings, quotas: Mapping[str, int], parameters: Mapping[str, float]
) -> SimulationSettings:
    """Time, costs and chance, without a timeline.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader({EarlyStops: _check_early_stops})
    clock = _CLOCKS.get(message.clock)
    if clock is None:
        words = ", ".join(sorted(simulation_pb2.SimulationClock.keys())[:3])
        reader.wrong("settings.clock", f"must be one of {words}, found {message.clock}")
    others = {"clock": clock or Clock.EVENTS, "quotas": quotas, "parameters": parameters}
    settings = from_message(message, SimulationSettings, "settings.", reader, **others)  # type: ignore[arg-type]  # attributes
    reader.finish()
    return settings


def _check_early_stops(found: EarlyStops, path: str, reader: Reader) -> None:
    shares = found.progress
    rising = all(a <= b for a, b in pairwise(shares))
    if not 2 <= len(shares) <= MOST_QUANTILES or not rising or not 0 <= shares[0] <= shares[-1] <= 1:
        reader.wrong(f"{path}progress_shares", "must be two or more ascending quantiles within 0 to 1, or empty")


def read_repetitions(message: pb.SimulateRequest, limits: Limits) -> int:
    """How many repetitions; at least one."""
    reader = Reader()
    most = limits.simulation_repetitions_per_call
    count = 1
    if message.HasField("repetitions_count"):
        count = reader.whole(message.repetitions_count, "repetitions_count", least=1, most=most)
    last = message.settings.seed + count - 1
    if last > LARGEST_SEED:
        reader.wrong("settings.seed", f"must leave room for a seed per repetition up to {LARGEST_SEED}, found {last}")
    told, most = count * message.jobs.count, limits.simulated_jobs_per_call
    if (message.include_jobs or message.include_timeline) and told > most:
        text = f"must come to at most {most} jobs where columns are included, found {count} of {message.jobs.count}"
        reader.wrong("repetitions_count", text)
    reader.finish()
    return count


MOST_CURVES: Final = 1_024
"""Curves where pairs are given: tables of that many squared."""
_COLUMNS: Final = ("first_shares", "second_shares", "predicted_first_shares", "predicted_second_shares")


def read_simulated_pairs(request: pb.SimulateRequest, curves: int, pools: int) -> SimulatedSharing | None:
    """What jobs of two curves keep on one device; None = no job shares one.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS, LIMIT_EXCEEDED.
    """
    if not request.HasField("shared_pairs"):
        return None
    given, reader = request.shared_pairs, Reader()
    rows = len(given.first_curve_indexes)
    if not rows:
        reader.wrong("shared_pairs.first_curve_indexes", "must be given where pairs are")
        reader.finish()
    if curves > MOST_CURVES:
        text = f"may be at most {MOST_CURVES:,} where pairs share devices, found {curves:,}: alike jobs share a curve"
        raise NodewiseError.invalid([Violation("curves", text)], Reason.LIMIT_EXCEEDED)
    if len(given.second_curve_indexes) != rows:
        reader.wrong("shared_pairs.second_curve_indexes", f"must have one entry for each of {rows} rows")
    first = reader.ints(given.first_curve_indexes, _path("first_curve_indexes"), rows, default=None, most=curves - 1)
    second = reader.ints(given.second_curve_indexes, _path("second_curve_indexes"), rows, default=None, most=curves - 1)
    pool = reader.ints(given.pool_indexes, _path("pool_indexes"), rows, default=-1, most=pools - 1)
    shares = {name: _shares(given, name, rows, reader) for name in _COLUMNS}
    if bool(given.predicted_first_shares) != bool(given.predicted_second_shares):
        reader.wrong(_path("predicted_second_shares"), "must be given where predicted_first_shares is, and only there")
    reader.finish()
    seen = "predicted_" if given.predicted_first_shares else ""
    found = [np.zeros((curves, curves)) for _ in range(pools)], [np.zeros((curves, curves)) for _ in range(pools)]
    for row, (one, other, where) in enumerate(zip(first.tolist(), second.tolist(), pool.tolist(), strict=True)):
        for tables, kind in zip(found, ("", seen), strict=True):
            share, others = shares[f"{kind}first_shares"][row], shares[f"{kind}second_shares"][row]
            if one == other:  # jobs of one curve are alike
                share = others = 0.5 * (share + others)
            for table in tables if where < 0 else tables[where : where + 1]:
                if table[one, other] and (table[one, other], table[other, one]) != (share, others):
                    text = f"gives curves {one} and {other} other shares than an earlier row"
                    reader.contradicts(f"shared_pairs.first_curve_indexes[{row}]", text)
                table[one, other], table[other, one] = share, others
    reader.finish()
    true, predicted = (tuple(freeze(table) for table in tables) for tables in found)
    return SimulatedSharing(shares=true, predicted=predicted)


def _shares(given: simulation_pb2.SimulationSharedPairs, name: str, rows: int, reader: Reader) -> Floats:
    values = getattr(given, name)
    if len(values) not in ({0, rows} if name.startswith("predicted") else {rows}):
        reader.wrong(_path(name), f"must have one entry for each of {rows} rows, found {len(values)}")
    return reader.floats(values, _path(name), rows, default=1.0, above=0.0, most=MOST_SHARE)


def _path(name: str) -> str:
    return f"shared_pairs.{name}"
