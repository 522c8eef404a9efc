"""Answers that come in pieces, put together: of plans, simulations, replays and diagnoses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import nodewise_values as values
from nodewise_client._answers import Events
from nodewise_client._configurations import configuration_rows
from nodewise_client._pages import join_parts
from nodewise_client._row_kinds import HeldDevices, Prediction, SimulatedJob, prediction_rows
from nodewise_client._rows import Rows
from nodewise_client._timelines import ReplayedCollective, Timeline, gather_timelines
from nodewise_values.value import Value, field_getters
from nodewise_values.wire import from_own_message

Answer = TypeVar("Answer", bound=Value)


def _more(kind: type[Answer], value: Value, **more: Any) -> Answer:
    """A value that says more: what is stated, and of everything else what another value says."""
    value_kind: Any = type(value)
    columns = {name: get(value) for name, get in field_getters(value_kind).items() if name not in more}
    return kind(**columns, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One configuration of a plan, with its prediction."""

    configuration: Mapping[str, Any]
    """What is stated of it, by the names that `configurations` takes."""
    prediction: Prediction


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanAnswer(values.PlanResult):
    """The answer of a plan, with its configurations row by row."""

    best: Planned | None
    """None = nothing is feasible; `rejections` say why."""
    frontier: tuple[Planned, ...]
    """What nothing else beats in time per sample, devices and memory; by devices and time."""

    @property
    def warnings(self) -> tuple[values.Notice, ...]:
        """Warnings about the plan; row 0 is the best configuration, if there is one."""
        return () if self.predictions is None else self.predictions.warnings


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationAnswer(values.SimulationResult):
    """The answer of a simulation, with what was asked for besides, by the seed of the repetition."""

    jobs: Mapping[int, Rows[SimulatedJob]]
    """Finished jobs by arrival."""
    timelines: Mapping[int, Rows[HeldDevices]]
    """Who held what, by its end."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplayAnswer(values.ReplayResult):
    """The answer of a replay, with its exchanges and timelines."""

    collectives: tuple[ReplayedCollective, ...]
    timeline: Timeline | None
    """As executed, where it was asked for."""
    recorded: Timeline | None
    """As recorded, on the first rank's clock."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiagnosisAnswer(values.DiagnosisResult):
    """The answer of a diagnosis, with its exchanges and timelines."""

    collectives: tuple[ReplayedCollective, ...]
    timeline: Timeline | None
    """As executed, where it was asked for."""
    recorded: Timeline | None
    """As recorded, where nothing was executed."""


def plan_answer(events: Events) -> PlanAnswer:
    """The answer that a last reply holds."""
    result = from_own_message(events[-1].result, values.PlanResult)
    configurations = configuration_rows(result.configurations or values.Configurations())
    rows = tuple(
        Planned(configuration=configurations[row] if row < len(configurations) else {}, prediction=prediction)
        for row, prediction in enumerate(prediction_rows(result.predictions))
    )
    return _more(
        PlanAnswer,
        result,
        best=None if result.recommendation is None else rows[result.recommendation.row],
        frontier=tuple(rows[row] for row in result.frontier_rows),
    )


def simulation_answer(events: Events) -> SimulationAnswer:
    """The answer that a last reply and the columns before it hold."""
    jobs: dict[int, list[values.SimulationJobRows]] = {}
    timelines: dict[int, list[values.SimulationTimelineRows]] = {}
    for event in events:
        if event.HasField("jobs"):
            jobs.setdefault(event.jobs.seed, []).append(from_own_message(event.jobs, values.SimulationJobRows))
        elif event.HasField("timeline"):
            timeline_rows = from_own_message(event.timeline, values.SimulationTimelineRows)
            timelines.setdefault(timeline_rows.seed, []).append(timeline_rows)
    joined_jobs = {seed: join_parts(parts) for seed, parts in jobs.items()}
    stretches = {seed: join_parts(parts) for seed, parts in timelines.items()}
    return _more(
        SimulationAnswer,
        from_own_message(events[-1].result, values.SimulationResult),
        jobs={seed: Rows(SimulatedJob, rows, 0, len(rows.job_ids)) for seed, rows in joined_jobs.items()},
        timelines={seed: Rows(HeldDevices, rows, 0, len(rows.job_ids)) for seed, rows in stretches.items()},
    )


def replay_answer(events: Events) -> ReplayAnswer:
    """The answer that a last reply and the pieces before it hold."""
    return _more(ReplayAnswer, from_own_message(events[-1].result, values.ReplayResult), **gather_timelines(events))


def diagnosis_answer(events: Events) -> DiagnosisAnswer:
    """The answer that a last reply and the pieces before it hold."""
    return _more(
        DiagnosisAnswer, from_own_message(events[-1].result, values.DiagnosisResult), **gather_timelines(events)
    )
