"""Simulations on the wire: jobs in columns, curves and settings in; runs, columns in chunks and figures out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from nodewise.estimation.question import Basis
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import Reader
from nodewise.plugin import PolicyRecord
from nodewise.ports.limits import Limits
from nodewise.rpc.wire_predictions import write_basis
from nodewise.scheduling.simulating import Repetition, figures_of
from nodewise.scheduling.simulation.core import Progress
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import (
    Clock,
    EarlyStops,
    SimulationSettings,
)
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["read_repetitions", "read_settings", "write_progress", "write_result", "write_rows"]

ROWS_PER_MESSAGE: Final = 8_192
"""Of columns in one message: names of 256 bytes and seven numbers come to 2.6 MB, below the 4 MiB that clients take."""
MOST_QUANTILES: Final = 10_000
LARGEST_SEED: Final = 2**31 - 1

_CLOCKS: Final = {simulation_pb2.SIMULATION_CLOCK_UNSPECIFIED: Clock.EVENTS} | {
    simulation_pb2.SimulationClock.Value(f"SIMULATION_CLOCK_{clock.name}"): clock for clock in Clock
}

FIGURES: Final[Mapping[str, str]] = {
    "average_jct_seconds": "average_jct_s",
    "median_jct_seconds": "p50_jct_s",
    "p99_jct_seconds": "p99_jct_s",
    "average_waiting_seconds": "average_waiting_s",
    "average_slowdown_ratio": "average_slowdown",
    "p99_slowdown_ratio": "p99_slowdown",
    "average_finish_time_fairness_ratio": "average_finish_time_fairness",
    "worst_finish_time_fairness_ratio": "worst_finish_time_fairness",
    "makespan_seconds": "makespan_s",
    "utilization_ratio": "utilisation",
    "restarts_per_job_ratio": "restarts_per_job",
}
"""Fields of SimulationRun that may be absent, and their names in a result's summary."""


def read_settings(
    message: simulation_pb2.SimulationSettings, quotas: Mapping[str, int], parameters: Mapping[str, float]
) -> SimulationSettings:
    """Time, costs and chance, without a timeline.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    clock = _CLOCKS.get(message.clock)
    if clock is None:
        words = ", ".join(sorted(simulation_pb2.SimulationClock.keys())[:3])
        reader.wrong("settings.clock", f"must be one of {words}, found {message.clock}")
    settings = from_message(
        message,
        SimulationSettings,
        "settings.",
        reader,
        clock=clock or Clock.EVENTS,
        early_stops=_early_stops(message, reader),
        quotas=quotas,
        parameters=parameters,
    )
    reader.finish()
    return settings


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


def _early_stops(message: simulation_pb2.SimulationSettings, reader: Reader) -> EarlyStops | None:
    if not message.HasField("early_stops"):
        return None
    path, shares = "settings.early_stops.", tuple(message.early_stops.progress_shares)
    found = from_message(message.early_stops, EarlyStops, path, reader)
    if not shares:
        return found
    rising = all(a <= b for a, b in pairwise(shares))
    if not 2 <= len(shares) <= MOST_QUANTILES or not rising or not 0 <= shares[0] <= shares[-1] <= 1:
        reader.wrong(f"{path}progress_shares", "must be two or more ascending quantiles within 0 to 1, or empty")
    return replace(found, progress=shares)


def write_progress(done: int, repetitions: int, jobs: int, found: Progress) -> pb.SimulateResponse:
    """How far a simulation is."""
    progress = to_message(
        found,
        simulation_pb2.SimulationProgress,
        repetitions_done_count=done,
        repetitions_count=repetitions,
        jobs_count=jobs,
    )
    return pb.SimulateResponse(progress=progress)


def write_rows(found: Sequence[Repetition], *, jobs: bool) -> Iterator[pb.SimulateResponse]:
    """Columns of every repetition, in messages that every client takes; timelines where they were kept."""
    for each in found:
        columns, held, finished = each.result.per_job, each.result.timeline, each.result.finished if jobs else 0
        for rows in _slices(finished):
            yield pb.SimulateResponse(
                jobs=to_message(
                    columns,
                    simulation_pb2.SimulationJobRows,
                    only=rows,
                    seed=each.seed,
                    done_samples=columns.samples[rows].tolist(),
                )
            )
        for rows in _slices(0 if held is None else len(held.job_id)):
            part = to_message(held, simulation_pb2.SimulationTimelineRows, only=rows, seed=each.seed)
            yield pb.SimulateResponse(timeline=part)


def _slices(rows: int) -> Iterator[slice]:
    return (slice(first, first + ROWS_PER_MESSAGE) for first in range(0, rows, ROWS_PER_MESSAGE))


def write_result(
    found: Sequence[Repetition], repetitions: int, policy: PolicyRecord, bases: Sequence[Basis]
) -> simulation_pb2.SimulationResult:
    """The answer."""
    figures = figures_of([{name: each.summary[key] for name, key in FIGURES.items()} for each in found])
    complete = len(found) == repetitions and all(each.result.complete for each in found)
    return simulation_pb2.SimulationResult(
        runs=[_run(each.seed, each.result, each.summary) for each in found],
        figures=[
            to_message(figure, simulation_pb2.SimulationFigure, measure=f"SIMULATION_MEASURE_{name.upper()}")
            for name, figure in figures.items()
        ],
        policy=policy.name,
        policy_version=policy.version,
        complete=complete,
        bases=[write_basis(basis) for basis in bases],
    )


def _run(
    seed: int, result: SimulationResult, summary: Mapping[str, float | int | None]
) -> simulation_pb2.SimulationRun:
    figures = {name: summary[key] for name, key in FIGURES.items()}
    told: dict[str, Any] = {
        name: None if value is None or not math.isfinite(value) else value for name, value in figures.items()
    }
    return to_message(result, simulation_pb2.SimulationRun, seed=seed, **told)
