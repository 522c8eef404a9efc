"""Replay and diagnose: read the traces, ask the diagnoser, check what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from nodewise.diagnosis.checks import wrong_diagnosis, wrong_replay, wrong_steps_diagnosis
from nodewise.diagnosis.evidence import evidence_of
from nodewise.diagnosis.results import DiagnosisResult, ReplayResult, TraceQuestion
from nodewise.diagnosis.timelines import recorded_timeline, with_kinds
from nodewise.domain.diagnosis import Diagnosis, DiagnosisQuestion
from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.replay import Replay, ReplayQuestion
from nodewise.domain.step_times import StepsDiagnosis, StepTimes
from nodewise.hosting.calls import call, unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import DiagnoserContext, DiagnoserRecord
from nodewise.profiles.reading import TraceLoader

__all__ = ["diagnose_step_times", "diagnose_traces", "replay_traces"]

_ERRORS: Final = tuple(each.name for each in fields(Replay) if each.name.endswith(("_error", "_error_s")))
"""What a replay says of itself beside what was measured."""

Diagnosers = Mapping[str, LoadedPlugin[DiagnoserRecord]]


def replay_traces(
    diagnosers: Diagnosers,
    loader: TraceLoader,
    question: TraceQuestion,
    wanted: ReplayQuestion,
    context: DiagnoserContext,
) -> ReplayResult:
    """Replay steps of a job. Takes up to minutes: for a thread.

    Raises
    ------
    NodewiseError
        What stands in the way of an answer.
    """
    loaded = _diagnoser_of(diagnosers, question.diagnoser)
    evidence = evidence_of(loader, question, context)
    wanted = _steps_wanted(wanted, evidence.steps)
    diagnoser, check = loaded.record.diagnoser, unless_wrong(wrong_replay)
    replay: Replay = call(loaded, diagnoser, "replay", evidence.traces, wanted, context, check=check)
    if wanted.changes:
        replay = _without_measured(replay)
    if replay.timeline is not None:
        replay = replace(replay, timeline=with_kinds(replay.timeline, evidence.traces))
    recorded = None
    if wanted.timeline and len(replay.clock_offset_s) == len(evidence.loaded):
        recorded = recorded_timeline(evidence.traces, replay.clock_offset_s, [step.step for step in replay.steps])
    return ReplayResult(
        profile=question.profile,
        replay=replay,
        evidence=evidence,
        diagnoser=loaded.record.name,
        diagnoser_version=loaded.record.version,
        recorded=recorded,
    )


def diagnose_traces(
    diagnosers: Diagnosers,
    loader: TraceLoader,
    question: TraceQuestion,
    wanted: DiagnosisQuestion,
    context: DiagnoserContext,
) -> DiagnosisResult:
    """Diagnose a job. Takes up to minutes: for a thread.

    Raises
    ------
    NodewiseError
        What stands in the way of an answer.
    """
    loaded = _diagnoser_of(diagnosers, question.diagnoser)
    evidence = evidence_of(loader, question, context)
    _require_steps(wanted.steps, "steps", evidence.steps)
    diagnoser, check = loaded.record.diagnoser, unless_wrong(wrong_diagnosis)
    traces, profile = evidence.traces, question.profile
    diagnosis: Diagnosis = call(loaded, diagnoser, "diagnose", traces, profile, wanted, context, check=check)
    if diagnosis.timeline is not None:
        diagnosis = replace(diagnosis, timeline=with_kinds(diagnosis.timeline, evidence.traces))
    recorded = None
    if wanted.timeline and diagnosis.timeline is None:
        # The diagnoser draws nothing: what was recorded can be drawn, each rank on its own clock.
        recorded = recorded_timeline(evidence.traces, np.zeros(len(evidence.loaded)), wanted.steps)
    return DiagnosisResult(
        profile=question.profile,
        diagnosis=replace(
            diagnosis,
            bottlenecks=diagnosis.bottlenecks[: wanted.bottlenecks],
            strategies=diagnosis.strategies[: wanted.strategies],
        ),
        evidence=evidence,
        diagnoser=loaded.record.name,
        diagnoser_version=loaded.record.version,
        recorded=recorded,
    )


def diagnose_step_times(diagnosers: Diagnosers, name: str, windows: StepTimes, hours: StepTimes) -> StepsDiagnosis:
    """What the times of steps say, of the diagnoser of a name. Takes up to seconds: for a thread.

    Raises
    ------
    NodewiseError
        DIAGNOSER_NOT_FOUND, also for one that looks at traces alone.
    """
    loaded = _diagnoser_of(diagnosers, name)
    diagnoser = loaded.record.diagnoser
    if not hasattr(diagnoser, "diagnose_steps"):
        raise NodewiseError(
            Reason.DIAGNOSER_NOT_FOUND,
            f"diagnoser {loaded.record.name!r} supports traces only, not step times",
            {"diagnoser": loaded.record.name},
        )
    check = unless_wrong(wrong_steps_diagnosis)
    found: StepsDiagnosis = call(loaded, diagnoser, "diagnose_steps", windows, hours, check=check)
    return found


def _diagnoser_of(diagnosers: Diagnosers, name: str) -> LoadedPlugin[DiagnoserRecord]:
    """The diagnoser of a name; without one the only diagnoser, else the only shipped one.

    Raises
    ------
    NodewiseError
        DIAGNOSER_NOT_FOUND, with the names that are loaded.
    """
    available = ", ".join(diagnosers) or "none"
    found = diagnosers.get(name)
    if found is None and not name:
        for kept in (list(diagnosers.values()), [each for each in diagnosers.values() if each.mode == "inline"]):
            if len(kept) == 1:
                return kept[0]
    if found is None:
        what = f"no diagnoser is named {name!r}" if name else "the request names no diagnoser, and there is no default"
        raise NodewiseError(
            Reason.DIAGNOSER_NOT_FOUND,
            f"{what}; loaded are: {available}",
            {"diagnoser": name, "available": available},
        )
    return found


def _without_measured(replay: Replay) -> Replay:
    """The replay of a changed job, which nobody measured: nothing can be compared."""
    steps = tuple(
        replace(step, measured_host_s=0.0, measured_device_s=0.0, rank_measured_host_s=()) for step in replay.steps
    )
    nothing: dict[str, Any] = dict.fromkeys(_ERRORS)
    return replace(replay, steps=steps, **nothing)


def _steps_wanted(wanted: ReplayQuestion, steps: int) -> ReplayQuestion:
    """The question, with the steps to test spelt out where some are fitted: none of these, unless in-sample."""
    _require_steps(wanted.fit_steps, "fit_steps", steps)
    _require_steps(wanted.test_steps, "test_steps", steps)
    if wanted.in_sample or not wanted.fit_steps:
        return wanted
    if wanted.test_steps:
        for place, step in enumerate(wanted.test_steps):
            if step in wanted.fit_steps:
                raise invalid_field(f"test_steps[{place}]", "must not be among fit_steps unless in_sample is true")
        return wanted
    left = tuple(step for step in range(1, steps + 1) if step not in wanted.fit_steps)
    if not left:
        raise invalid_field("fit_steps", f"must leave one of the {steps} steps to test, or in_sample must be true")
    return replace(wanted, test_steps=left)


def _require_steps(wanted: Sequence[int], path: str, steps: int) -> None:
    for place, step in enumerate(wanted):
        if not 1 <= step <= steps:
            found = f"must be 1 to {steps}, ordinals of the steps in the traces" if steps else "must be empty"
            raise invalid_field(f"{path}[{place}]", f"{found}; found {step}")
