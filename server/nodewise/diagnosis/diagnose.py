"""Replay and diagnose: read the traces, call the diagnoser, check its answer."""

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
"""Fields of a replay that compare it with measurements."""

Diagnosers = Mapping[str, LoadedPlugin[DiagnoserRecord]]


def replay_traces(
    diagnosers: Diagnosers,
    loader: TraceLoader,
    question: TraceQuestion,
    options: ReplayQuestion,
    context: DiagnoserContext,
) -> ReplayResult:
    """Replay steps of a job. Takes up to minutes: call it in a thread.

    Raises
    ------
    NodewiseError
        What stands in the way of an answer.
    """
    plugin = _diagnoser_of(diagnosers, question.diagnoser)
    evidence = evidence_of(loader, question, context)
    options = _steps_wanted(options, evidence.steps)
    diagnoser, check = plugin.record.diagnoser, unless_wrong(wrong_replay)
    replay: Replay = call(plugin, diagnoser, "replay", evidence.traces, options, context, check=check)
    if options.changes:
        replay = _without_measured(replay)
    if replay.timeline is not None:
        replay = replace(replay, timeline=with_kinds(replay.timeline, evidence.traces))
    timeline = None
    if options.timeline and len(replay.clock_offset_s) == len(evidence.loaded):
        timeline = recorded_timeline(evidence.traces, replay.clock_offset_s, [step.step for step in replay.steps])
    return ReplayResult(
        profile=question.profile,
        replay=replay,
        evidence=evidence,
        diagnoser=plugin.record.name,
        diagnoser_version=plugin.record.version,
        recorded=timeline,
    )


def diagnose_traces(
    diagnosers: Diagnosers,
    loader: TraceLoader,
    question: TraceQuestion,
    options: DiagnosisQuestion,
    context: DiagnoserContext,
) -> DiagnosisResult:
    """Diagnose a job. Takes up to minutes: call it in a thread.

    Raises
    ------
    NodewiseError
        What stands in the way of an answer.
    """
    plugin = _diagnoser_of(diagnosers, question.diagnoser)
    evidence = evidence_of(loader, question, context)
    _require_steps(options.steps, "steps", evidence.steps)
    diagnoser, check = plugin.record.diagnoser, unless_wrong(wrong_diagnosis)
    traces, profile = evidence.traces, question.profile
    diagnosis: Diagnosis = call(plugin, diagnoser, "diagnose", traces, profile, options, context, check=check)
    if diagnosis.timeline is not None:
        diagnosis = replace(diagnosis, timeline=with_kinds(diagnosis.timeline, evidence.traces))
    timeline = None
    if options.timeline and diagnosis.timeline is None:
        # The diagnoser returns no timeline: the recorded one is returned, each rank on its own clock.
        timeline = recorded_timeline(evidence.traces, np.zeros(len(evidence.loaded)), options.steps)
    return DiagnosisResult(
        profile=question.profile,
        diagnosis=replace(
            diagnosis,
            bottlenecks=diagnosis.bottlenecks[: options.bottlenecks],
            strategies=diagnosis.strategies[: options.strategies],
        ),
        evidence=evidence,
        diagnoser=plugin.record.name,
        diagnoser_version=plugin.record.version,
        recorded=timeline,
    )


def diagnose_step_times(diagnosers: Diagnosers, name: str, windows: StepTimes, hours: StepTimes) -> StepsDiagnosis:
    """Diagnose step times with the diagnoser of a name. Takes up to seconds: call it in a thread.

    Raises
    ------
    NodewiseError
        DIAGNOSER_NOT_FOUND, also for a diagnoser that supports traces only.
    """
    plugin = _diagnoser_of(diagnosers, name)
    diagnoser = plugin.record.diagnoser
    if not hasattr(diagnoser, "diagnose_steps"):
        raise NodewiseError(
            Reason.DIAGNOSER_NOT_FOUND,
            f"diagnoser {plugin.record.name!r} supports traces only, not step times",
            {"diagnoser": plugin.record.name},
        )
    check = unless_wrong(wrong_steps_diagnosis)
    diagnosis: StepsDiagnosis = call(plugin, diagnoser, "diagnose_steps", windows, hours, check=check)
    return diagnosis


def _diagnoser_of(diagnosers: Diagnosers, name: str) -> LoadedPlugin[DiagnoserRecord]:
    """The diagnoser of a name; without one the only diagnoser, else the only shipped one.

    Raises
    ------
    NodewiseError
        DIAGNOSER_NOT_FOUND, with the names that are loaded.
    """
    available = ", ".join(diagnosers) or "none"
    plugin = diagnosers.get(name)
    if plugin is None and not name:
        for candidates in (list(diagnosers.values()), [each for each in diagnosers.values() if each.mode == "inline"]):
            if len(candidates) == 1:
                return candidates[0]
    if plugin is None:
        what = f"no diagnoser is named {name!r}" if name else "the request names no diagnoser, and there is no default"
        raise NodewiseError(
            Reason.DIAGNOSER_NOT_FOUND,
            f"{what}; loaded are: {available}",
            {"diagnoser": name, "available": available},
        )
    return plugin


def _without_measured(replay: Replay) -> Replay:
    """The replay of a changed job, without measurements: a changed job was not measured."""
    steps = tuple(
        replace(step, measured_host_s=0.0, measured_device_s=0.0, rank_measured_host_s=()) for step in replay.steps
    )
    nothing: dict[str, Any] = dict.fromkeys(_ERRORS)
    return replace(replay, steps=steps, **nothing)


def _steps_wanted(question: ReplayQuestion, steps: int) -> ReplayQuestion:
    """The question with its test steps: where steps are fitted, all others, unless it is in-sample."""
    _require_steps(question.fit_steps, "fit_steps", steps)
    _require_steps(question.test_steps, "test_steps", steps)
    if question.in_sample or not question.fit_steps:
        return question
    if question.test_steps:
        for place, step in enumerate(question.test_steps):
            if step in question.fit_steps:
                raise invalid_field(f"test_steps[{place}]", "must not be among fit_steps unless in_sample is true")
        return question
    left = tuple(step for step in range(1, steps + 1) if step not in question.fit_steps)
    if not left:
        raise invalid_field("fit_steps", f"must leave one of the {steps} steps to test, or in_sample must be true")
    return replace(question, test_steps=left)


def _require_steps(ordinals: Sequence[int], path: str, steps: int) -> None:
    for place, step in enumerate(ordinals):
        if not 1 <= step <= steps:
            text = f"must be 1 to {steps}, ordinals of the steps in the traces" if steps else "must be empty"
            raise invalid_field(f"{path}[{place}]", f"{text}; found {step}")
