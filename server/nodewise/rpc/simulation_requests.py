"""Reads a SimulateRequest: jobs, stated curves, and predicted curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from nodewise.domain.columns import as_floats, as_ints, freeze
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import NodePool
from nodewise.estimation.question import Basis
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader
from nodewise.plugin import Budget, PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import check_counts, schedule_limits
from nodewise.rpc.options import ReadOptions
from nodewise.rpc.schedules import read_pools, read_quotas, read_unscaled
from nodewise.scheduling.curves import Predict
from nodewise.scheduling.findings import LARGEST_NUMBER, LONGEST_NAME
from nodewise.scheduling.pair_checks import MOST_SHARE
from nodewise.scheduling.request import JobQuestion, ScheduleQuestion
from nodewise.scheduling.simulated_curves import curve_question, predicted_curves
from nodewise.scheduling.simulating import SimulateQuestion
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import Clock, EarlyStops, SimulatedSharing, SimulationSettings
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb
from nodewise_values.facts import SIMULATION_JOBS

__all__ = [
    "ReadSimulation",
    "check_sizes",
    "read_curve",
    "read_jobs",
    "read_repetitions",
    "read_settings",
    "read_simulation",
]

MOST_DEVICES: Final = 1 << 20


def check_sizes(
    jobs: simulation_pb2.SimulationJobs, curves: Sequence[simulation_pb2.SimulationCurve], limits: Limits
) -> None:
    """Refuse a request that exceeds the limits of a call, before reading it.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED.
    """
    rows = sum(len(curve.rows.devices_counts) for curve in curves)
    check_counts(
        limits,
        ("jobs", "simulated_jobs_per_call", jobs.count),
        ("rows of curves", "simulation_rows_per_call", rows),
    )


def read_profile_curve(
    message: simulation_pb2.SimulationProfileCurve, number: int, profile: Profile | NodewiseError, reader: Reader
) -> JobQuestion:
    """A curve to predict, as the job that represents it."""
    question = JobQuestion(
        job_id="",
        profile=profile,
        remaining_samples=1.0,
        allowed_devices=tuple(message.allowed_devices),
        allowed_pools=tuple(message.allowed_pools),
        settings=read_unscaled(message, f"curves[{number}].profile", reader),
    )
    return curve_question(number, question)


def read_curve(
    message: simulation_pb2.SimulationCurve, number: int, pools: Sequence[NodePool], reader: Reader
) -> JobCurve:
    """A stated curve, without rows that do not fit the empty cluster."""
    rows, path, count = message.rows, f"curves[{number}].rows", len(message.rows.devices_counts)
    if not message.HasField("rows"):
        reader.wrong(f"curves[{number}]", "must hold rows, or a profile to predict them from")
        return NO_CURVE
    if not (count or rows.pool_indexes or rows.samples_per_second):
        return NO_CURVE
    if not count:
        reader.wrong(f"{path}.devices_counts", "must be given with pool_indexes or samples_per_second")
        return NO_CURVE
    pool = reader.ints(rows.pool_indexes, f"{path}.pool_indexes", count, default=0, most=max(len(pools) - 1, 0))
    devices = reader.ints(
        rows.devices_counts, f"{path}.devices_counts", count, default=None, least=1, most=MOST_DEVICES
    )
    rates = reader.floats(
        rows.samples_per_second, f"{path}.samples_per_second", count, default=None, above=0.0, most=LARGEST_NUMBER
    )
    if not reader.clean:
        return NO_CURVE
    order = np.lexsort((devices, pool))
    pool, devices, rates = pool[order], devices[order], rates[order]
    twice = np.flatnonzero((np.diff(pool) == 0) & (np.diff(devices) == 0))
    if len(twice):
        row = int(order[twice[0] + 1])
        text = f"must hold each number once per pool, found {devices[twice[0]]} twice for pool {pool[twice[0]]}"
        reader.wrong(f"{path}.devices_counts[{row}]", text)
        return NO_CURVE
    largest = [np.cumsum(np.sort(each.available_devices)[::-1]) for each in pools]
    totals = np.array([each.total_devices for each in pools])
    fits = devices <= totals[pool]
    pool, devices, rates = pool[fits], devices[fits], rates[fits]
    nodes = np.ones(len(pool), dtype=np.int64)
    for index, sizes in enumerate(largest):
        here = pool == index
        nodes[here] = np.searchsorted(sizes, devices[here], side="left") + 1
    return JobCurve(as_ints(pool), as_ints(devices), as_ints(nodes), as_floats(rates))


LOOK_EVERY: Final = 1_024
"""Jobs read between two checks of the budget: some milliseconds."""
NO_CURVE: Final = JobCurve(as_ints([]), as_ints([]), as_ints([]), as_floats([]))


def read_jobs(
    message: simulation_pb2.SimulationJobs,
    curves: Sequence[JobCurve],
    pools: Sequence[NodePool],
    quotas: Mapping[str, int],
    look: Callable[[], None] = lambda: None,
) -> list[SimulatedJob]:
    """The jobs by arrival; ``look`` is called after every ``LOOK_EVERY`` jobs, and an exception that it raises ends it.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS.
    """
    reader, count = Reader(), message.count
    if count < 1:
        reader.wrong("jobs.count", f"must be 1 or more, found {count}")
        reader.finish()
    columns = {
        fact.row: reader.column(getattr(message, field), f"jobs.{field}", count, fact)
        for field, fact in SIMULATION_JOBS.items()
    }
    arrivals = columns["arrival_s"]
    early = np.flatnonzero(np.diff(arrivals) < 0)
    if len(early):
        row = int(early[0]) + 1
        text = f"must be at least {arrivals[row - 1]:g}, when the previous job arrives, found {arrivals[row]:g}"
        reader.wrong(f"jobs.arrival_seconds[{row}]", f"{text}; sort jobs by arrival")
    last = len(curves) - 1
    curve = reader.ints(message.curve_indexes, "jobs.curve_indexes", count, default=None, most=last)
    predicted_curves_of_jobs = reader.ints(
        message.predicted_curve_indexes, "jobs.predicted_curve_indexes", count, default=0, most=last
    )
    queues = _queues(message, reader)
    ids = _ids(message, reader)
    rigid = list(message.rigid)
    if len(rigid) not in (0, 1, count):
        reader.wrong("jobs.rigid", f"must be empty, have one entry or one for each of {count} jobs")
    fewest, most = columns.pop("min_devices"), columns.pop("max_devices")
    wrong = np.flatnonzero((most > 0) & (fewest > most))
    if len(wrong):
        row = int(wrong[0])
        text = f"must be at most max_devices ({most[row]}), found {fewest[row]}"
        reader.contradicts(f"jobs.min_devices[{row}]", text)
    reader.finish()
    bounded_curves = _BoundedCurves(curves, pools, quotas)
    rigid = rigid * count if len(rigid) == 1 else rigid or [False] * count
    as_true, as_settings = not message.predicted_curve_indexes, not message.restart_cost_seconds
    lists = {name: column.tolist() for name, column in columns.items()}
    bounds = zip(fewest.tolist(), most.tolist(), lists["server_devices"], queues)
    jobs = []
    for row, (true, predicted_curve, bound) in enumerate(
        zip(curve.tolist(), predicted_curves_of_jobs.tolist(), bounds)
    ):
        if not row % LOOK_EVERY:
            look()
        real = bounded_curves.curve(true, *bound)
        jobs.append(
            SimulatedJob(
                job_id=ids[row],
                arrival_s=lists["arrival_s"][row],
                samples=lists["samples"][row],
                curve=real,
                predicted=None if as_true else bounded_curves.curve(predicted_curve, *bound),
                stop_samples=lists["stop_samples"][row] or None,
                requested_devices=lists["requested_devices"][row] or (real.counts[0] if len(real) else 1),
                rigid=rigid[row],
                samples_per_step=lists["samples_per_step"][row],
                restart_cost_s=None if as_settings else lists["restart_cost_s"][row],
                weight=lists["weight"][row],
                queue=queues[row],
                deadline_s=lists["deadline_s"][row] or None,
                minimum_run_s=lists["minimum_run_s"][row],
                server_devices=lists["server_devices"][row],
                kind=true,
            )
        )
    return jobs


def _ids(message: simulation_pb2.SimulationJobs, reader: Reader) -> list[str]:
    count = message.count
    if not message.job_ids:
        width = len(str(count - 1))
        return [f"{number:0{width}d}" for number in range(count)]
    ids = list(message.job_ids)
    if len(ids) != count:
        reader.wrong("jobs.job_ids", f"must be empty or name each of {count} jobs, found {len(ids)}")
        return ids
    numbers: dict[str, int] = {}
    for row, job_id in enumerate(ids):
        if not job_id or len(job_id) > LONGEST_NAME:
            reader.wrong(f"jobs.job_ids[{row}]", f"must have 1 to {LONGEST_NAME} characters, found {len(job_id)}")
        elif numbers.setdefault(job_id, row) != row:
            reader.wrong(f"jobs.job_ids[{row}]", f"must be unique; job {numbers[job_id]} is {job_id!r} too")
    return ids


def _queues(message: simulation_pb2.SimulationJobs, reader: Reader) -> list[str]:
    names = list(message.queue_names)
    for number, name in enumerate(names):
        reader.text(name, f"jobs.queue_names[{number}]", LONGEST_NAME)
    if not message.queue_indexes:
        return [""] * message.count
    indexes = reader.ints(message.queue_indexes, "jobs.queue_indexes", message.count, default=0, most=len(names) - 1)
    return [names[index] if 0 <= index < len(names) else "" for index in indexes.tolist()]


class _BoundedCurves:
    """Curves within the bounds of jobs; jobs of the same bounds share a curve."""

    def __init__(self, curves: Sequence[JobCurve], pools: Sequence[NodePool], quotas: Mapping[str, int]) -> None:
        self._curves = curves
        self._totals = np.array([pool.total_devices for pool in pools])
        self._steps = np.array([pool.step for pool in pools])
        self._quotas = quotas
        self._by_bounds: dict[tuple[int, int, int, int, int | None], JobCurve] = {}

    def curve(self, number: int, least: int, most: int, servers: int, queue: str) -> JobCurve:
        """Rows from least to most (0 = no bound) worker devices that fit the pool, its whole nodes and the quota."""
        quota = self._quotas.get(queue)
        key = (number, least, most, servers, quota)
        if key not in self._by_bounds:
            self._by_bounds[key] = self._bound(*key)
        return self._by_bounds[key]

    def _bound(self, number: int, least: int, most: int, servers: int, quota: int | None) -> JobCurve:
        whole = self._curves[number]
        room = self._totals[whole.pool] if quota is None else np.minimum(self._totals[whole.pool], quota)
        needed_devices = whole.devices + servers
        keep = (whole.devices >= least) & (needed_devices <= room) & (needed_devices % self._steps[whole.pool] == 0)
        if most:
            keep &= whole.devices <= most
        return whole if keep.all() else JobCurve.of_rows(whole, keep)


MOST_QUANTILES: Final = 10_000
LARGEST_SEED: Final = 2**31 - 1
_CLOCKS: Final = {simulation_pb2.SIMULATION_CLOCK_UNSPECIFIED: Clock.EVENTS} | {
    simulation_pb2.SimulationClock.Value(f"SIMULATION_CLOCK_{clock.name}"): clock for clock in Clock
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadSimulation:
    """The question, the curves in the order of the request, and the bases of the predicted ones."""

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
    """Check the request, and predict the curves of its profiles.

    Parameters
    ----------
    profiles : mapping of int to Profile
        By the index of their curve in the request.
    predict : callable
        Answers a question about one curve.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS, LIMIT_EXCEEDED; the reason why a curve cannot be predicted.
    """
    places, reader = sorted(profiles), Reader()
    schedule_question = ScheduleQuestion(
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
    curves_of_policy = predicted_curves(schedule_question, places, policy, predict, budget, caps)
    curve_by_place = dict(zip(places, curves_of_policy.curves))
    curves = tuple(
        curve_by_place[number]
        if number in curve_by_place
        else read_curve(message, number, curves_of_policy.state.pools, reader)
        for number, message in enumerate(request.curves)
    )
    if not curves:
        reader.wrong("curves", "must hold at least one curve")
    reader.finish()
    settings = read_settings(request.settings, curves_of_policy.state.quotas, dict(request.policy_parameters))
    jobs = read_jobs(request.jobs, curves, curves_of_policy.state.pools, curves_of_policy.state.quotas, budget.look_up)
    question = SimulateQuestion(
        jobs=jobs,
        pools=curves_of_policy.state.pools,
        settings=replace(
            settings,
            keep_timeline=request.include_timeline,
            sharing=read_simulated_pairs(request, len(curves), len(curves_of_policy.state.pools)),
        ),
        repetitions=read_repetitions(request, limits),
        keep_jobs=request.include_jobs,
    )
    return ReadSimulation(question=question, curves=curves, bases=curves_of_policy.bases)


def read_settings(
    message: simulation_pb2.SimulationSettings, quotas: Mapping[str, int], parameters: Mapping[str, float]
) -> SimulationSettings:
    """The settings of a simulation, without ``keep_timeline`` and ``sharing``.

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


def _check_early_stops(stops: EarlyStops, path: str, reader: Reader) -> None:
    shares = stops.progress
    rising = all(a <= b for a, b in pairwise(shares))
    if not 2 <= len(shares) <= MOST_QUANTILES or not rising or not 0 <= shares[0] <= shares[-1] <= 1:
        reader.wrong(f"{path}progress_shares", "must be two or more ascending quantiles from 0 to 1, or empty")


def read_repetitions(message: pb.SimulateRequest, limits: Limits) -> int:
    """The number of repetitions, at least one."""
    reader = Reader()
    most = limits.simulation_repetitions_per_call
    count = 1
    if message.HasField("repetitions_count"):
        count = reader.whole(message.repetitions_count, "repetitions_count", least=1, most=most)
    last = message.settings.seed + count - 1
    if last > LARGEST_SEED:
        reader.wrong("settings.seed", f"must be at most {LARGEST_SEED} for the last repetition, found {last}")
    jobs_count, most = count * message.jobs.count, limits.simulated_jobs_per_call
    if (message.include_jobs or message.include_timeline) and jobs_count > most:
        text = f"must be at most {most} times jobs with columns in the reply, found {count} times {message.jobs.count}"
        reader.wrong("repetitions_count", text)
    reader.finish()
    return count


MOST_CURVES: Final = 1_024
"""Most curves of a request with shared_pairs; tables have that number squared of entries."""
_COLUMNS: Final = ("first_shares", "second_shares", "predicted_first_shares", "predicted_second_shares")


def read_simulated_pairs(request: pb.SimulateRequest, curves: int, pools: int) -> SimulatedSharing | None:
    """Shares of solo speed of jobs of two curves on one device; None = no job shares a device.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS, LIMIT_EXCEEDED.
    """
    if not request.HasField("shared_pairs"):
        return None
    message, reader = request.shared_pairs, Reader()
    rows = len(message.first_curve_indexes)
    if not rows:
        reader.wrong("shared_pairs.first_curve_indexes", "must have one entry for each pair, and at least one")
        reader.finish()
    if curves > MOST_CURVES:
        text = f"must be at most {MOST_CURVES:,} with shared_pairs, found {curves:,}: use one curve for equal jobs"
        raise NodewiseError.invalid([Violation("curves", text)], Reason.LIMIT_EXCEEDED)
    for name in ("second_curve_indexes", *_COLUMNS):
        count = len(getattr(message, name))
        if count != rows and (count or not name.startswith("predicted")):
            reader.wrong(_path(name), f"must have one entry for each of {rows} rows, found {count}")
    reader.finish()
    first = reader.ints(message.first_curve_indexes, _path("first_curve_indexes"), rows, default=None, most=curves - 1)
    second = reader.ints(
        message.second_curve_indexes, _path("second_curve_indexes"), rows, default=None, most=curves - 1
    )
    pool = reader.ints(message.pool_indexes, _path("pool_indexes"), rows, default=-1, most=pools - 1)
    shares = {
        name: reader.floats(getattr(message, name), _path(name), rows, default=1.0, above=0.0, most=MOST_SHARE)
        for name in _COLUMNS
    }
    if bool(message.predicted_first_shares) != bool(message.predicted_second_shares):
        reader.wrong(_path("predicted_second_shares"), "must be given if and only if predicted_first_shares is given")
    reader.finish()
    prefix = "predicted_" if message.predicted_first_shares else ""
    tables_of_pools = (
        [np.zeros((curves, curves)) for _ in range(pools)],
        [np.zeros((curves, curves)) for _ in range(pools)],
    )
    for row, (one, other, where) in enumerate(zip(first.tolist(), second.tolist(), pool.tolist(), strict=True)):
        for tables, kind in zip(tables_of_pools, ("", prefix), strict=True):
            share, others = shares[f"{kind}first_shares"][row], shares[f"{kind}second_shares"][row]
            if one == other:  # jobs of one curve are alike
                share = others = 0.5 * (share + others)
            for table in tables if where < 0 else tables[where : where + 1]:
                if table[one, other] and (table[one, other], table[other, one]) != (share, others):
                    text = f"must agree with an earlier row about curves {one} and {other}"
                    reader.contradicts(f"shared_pairs.first_curve_indexes[{row}]", text)
                table[one, other], table[other, one] = share, others
    reader.finish()
    true, predicted_shares = (tuple(freeze(table) for table in tables) for tables in tables_of_pools)
    return SimulatedSharing(shares=true, predicted=predicted_shares)


def _path(name: str) -> str:
    return f"shared_pairs.{name}"
