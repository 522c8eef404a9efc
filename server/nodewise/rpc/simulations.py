"""SimulationService: simulations with progress, and results in chunks of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from nodewise.domain.profile import Profile
from nodewise.estimation.question import Basis
from nodewise.mapper.mapping import to_message
from nodewise.plugin import PolicyRecord
from nodewise.ports.compute import LongRun
from nodewise.rpc.calls import Call
from nodewise.rpc.caps import answered_within
from nodewise.rpc.errors import below
from nodewise.rpc.long_call import JobService, LongCall, Workshop, stream_result
from nodewise.rpc.options import read_model_options
from nodewise.rpc.schedules import policy_named
from nodewise.rpc.simulation_requests import check_sizes, read_simulation
from nodewise.rpc.wire_predictions import write_basis
from nodewise.scheduling.simulating import Repetition, figures_of, simulate_repeatedly
from nodewise.scheduling.simulation.core import Progress
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["Simulations", "write_progress", "write_result", "write_rows"]


@dataclass(slots=True, eq=False)
class Simulations(JobService):
    """The behaviour of Simulate.

    Attributes
    ----------
    default_policy : str
        Used when a request names none.
    """

    default_policy: str

    @stream_result
    async def simulate(self, request: pb.SimulateRequest, call: Call) -> LongCall:
        """Sends progress, then columns, then the result, which is not complete if the time was over first."""
        policy = request.policy or self.default_policy
        policy_named(self.answers.registry, policy)
        options = read_model_options(request.options).required_of(self.answers)
        check_sizes(request.jobs, request.curves, self.limits)
        profiles: dict[int, Profile] = {}
        for number, curve in enumerate(request.curves):
            if curve.HasField("profile"):
                with below(f"curves[{number}].profile."):
                    profiles[number] = await self.sources.profile(curve.profile.profile, options.waiting(call))
        return LongCall(_simulate, (request.SerializeToString(), policy, profiles))


def _simulate(workshop: Workshop, arguments: tuple[bytes, str, dict[int, Profile]], run: LongRun) -> Iterator[bytes]:
    """Read the request, predict curves and simulate; messages are serialised as they are sent."""
    data, policy_name, profiles = arguments
    request = pb.SimulateRequest.FromString(data)
    policy = policy_named(workshop.answers.registry, policy_name)
    options = read_model_options(request.options)

    answer = partial(answered_within, workshop.limits, workshop.answers)
    read = read_simulation(request, policy.record, options, profiles, answer, run.budget, workshop.limits)
    question = read.question
    jobs, repetitions = len(question.jobs), question.repetitions

    def report(count: int, result: Progress) -> None:
        run.tell(lambda: write_progress(count, repetitions, jobs, result).SerializeToString())

    result = simulate_repeatedly(question, policy, run.budget, report)
    last = result[-1].result
    end = Progress(
        now_s=last.last_completion_s,
        arrived=last.jobs,
        finished=last.finished,
        active=last.jobs - last.finished,
        decisions=last.decisions,
    )
    report(sum(each.result.complete for each in result), end)
    for message in write_rows(result, jobs=request.include_jobs):
        yield message.SerializeToString()
    yield pb.SimulateResponse(result=write_result(result, repetitions, policy.record, read.bases)).SerializeToString()


ROWS_PER_MESSAGE: Final = 8_192
"""Most rows of a message: names of 256 bytes and seven numbers are 2.6 MB, below the 4 MiB that clients accept."""

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
"""Optional fields of SimulationRun, and their names in a result's summary."""


def write_progress(done_count: int, repetitions: int, jobs: int, state: Progress) -> pb.SimulateResponse:
    """The progress of a simulation."""
    counts = {"repetitions_done_count": done_count, "repetitions_count": repetitions, "jobs_count": jobs}
    return pb.SimulateResponse(progress=to_message(state, simulation_pb2.SimulationProgress, **counts))  # type: ignore[arg-type]  # fields


def write_rows(repetitions: Sequence[Repetition], *, jobs: bool) -> Iterator[pb.SimulateResponse]:
    """Columns of every repetition, and timelines if they were recorded, in messages that every client accepts."""
    for each in repetitions:
        columns, timeline, finished_count = (
            each.result.per_job,
            each.result.timeline,
            each.result.finished if jobs else 0,
        )
        for rows in _slices(finished_count):
            yield pb.SimulateResponse(
                jobs=to_message(
                    columns,
                    simulation_pb2.SimulationJobRows,
                    only=rows,
                    seed=each.seed,
                    done_samples=columns.samples[rows].tolist(),
                )
            )
        for rows in _slices(0 if timeline is None else len(timeline.job_id)):
            part = to_message(timeline, simulation_pb2.SimulationTimelineRows, only=rows, seed=each.seed)
            yield pb.SimulateResponse(timeline=part)


def _slices(rows: int) -> Iterator[slice]:
    return (slice(first, first + ROWS_PER_MESSAGE) for first in range(0, rows, ROWS_PER_MESSAGE))


def write_result(
    results: Sequence[Repetition], repetitions: int, policy: PolicyRecord, bases: Sequence[Basis]
) -> simulation_pb2.SimulationResult:
    """The result."""
    figures = figures_of([{name: each.summary[key] for name, key in FIGURES.items()} for each in results])
    return simulation_pb2.SimulationResult(
        runs=[_run(each.seed, each.result, each.summary) for each in results],
        figures=[to_message(it, simulation_pb2.SimulationFigure, measure=name) for name, it in figures.items()],
        policy=policy.name,
        policy_version=policy.version,
        complete=len(results) == repetitions and all(each.result.complete for each in results),
        bases=[write_basis(basis) for basis in bases],
    )


def _run(
    seed: int, result: SimulationResult, summary: Mapping[str, float | int | None]
) -> simulation_pb2.SimulationRun:
    figures: dict[str, Any] = {name: summary[key] for name, key in FIGURES.items()}
    return to_message(result, simulation_pb2.SimulationRun, seed=seed, **figures)
