"""Checks of diagnosers: one record against recordings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from nodewise.catalogue.loading import load_catalogue
from nodewise.conformance.evidence import Evidence, Recording
from nodewise.conformance.findings import Checks, difference, for_each, require, sound_answer
from nodewise.diagnosis.checks import wrong_diagnosis, wrong_replay
from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.errors import NodewiseError
from nodewise.domain.replay import Change, ChangeKind, ReplayQuestion
from nodewise.hosting.calls import unless_wrong
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Catalogue, DiagnoserRecord

__all__ = ["DIAGNOSER_CHECKS"]

SUM_TOLERANCE: Final = 1e-6
"""Relative difference allowed between a step and the sum of its parts."""


@dataclass(frozen=True)
class _Context:
    """Enough time (or none), no listener to progress, and the shipped catalogue."""

    catalogue: Catalogue
    seconds: float = 600.0

    def remaining_s(self) -> float:
        return self.seconds

    def advanced(self, stage: str, done: int, total: int) -> None:
        require(
            bool(stage) and 0 <= done <= total,
            f"advanced({stage!r}, {done}, {total}): 0 to total, stage named",
        )


def _answer(
    plugin: LoadedPlugin[DiagnoserRecord],
    recording: Recording,
    question: ReplayQuestion | DiagnosisQuestion,
    seconds: float = 600.0,
) -> Any:
    """A checked replay or diagnosis, by the question; None = it is refused."""
    context, diagnoser = _Context(load_catalogue(), seconds), plugin.record.diagnoser
    replays = isinstance(question, ReplayQuestion)
    inputs: tuple[Any, ...] = (recording.traces,) if replays else (recording.traces, recording.profile)
    method, wrong_with = ("replay", wrong_replay) if replays else ("diagnose", wrong_diagnosis)
    ask = partial(getattr(diagnoser, method), *inputs, question, context)
    try:
        return sound_answer(f"{method} of {recording.name!r}", ask, unless_wrong(wrong_with))
    except NodewiseError:
        return None


def _answers(plugin: LoadedPlugin[DiagnoserRecord], evidence: Evidence) -> None:
    questions = (ReplayQuestion(), DiagnosisQuestion())
    answers = [_answer(plugin, recording, question) for recording in evidence.recordings for question in questions]
    require(
        any(each is not None for each in answers),
        "the diagnoser refuses every recording; pass other evidence",
    )


def _replay(plugin: LoadedPlugin[DiagnoserRecord], recording: Recording) -> None:
    """Ranks and steps are those of the question, and changed steps have no measurements."""
    steps = len(recording.traces[0].steps)
    replay = _answer(plugin, recording, ReplayQuestion(test_steps=(steps,), timeline=True))
    if replay is None:
        return
    ranks = tuple(trace.rank for trace in recording.traces)
    require(replay.ranks == ranks, f"replay is of ranks {replay.ranks}; the traces are of {ranks}")
    test_steps = tuple(step.step for step in replay.steps)
    require(test_steps == (steps,), f"replay tests steps {test_steps}; the question asks for {steps}")
    _answer(plugin, recording, ReplayQuestion(changes=(Change(kind=ChangeKind.SCALE, value=0.5),)))


def _sums(plugin: LoadedPlugin[DiagnoserRecord], recording: Recording) -> None:
    """The parts of a rank's step add up to it."""
    diagnosis = _answer(plugin, recording, DiagnosisQuestion())
    for each in () if diagnosis is None else diagnosis.ranks:
        parts = each.compute_s + each.exposed_communication_s + each.data_loading_s + each.idle_s
        close = abs(parts - each.step_s) <= SUM_TOLERANCE * each.step_s
        names = "compute_s, exposed_communication_s, data_loading_s and idle_s"
        require(close, f"{names} of rank {each.rank} add up to {parts:.6g} s, but the step takes {each.step_s:.6g} s")


def _order(plugin: LoadedPlugin[DiagnoserRecord], recording: Recording) -> None:
    question = DiagnosisQuestion(bottlenecks=2, strategies=2)
    diagnosis = _answer(plugin, recording, question)
    if diagnosis is None:
        return
    for name, most in (("strategies", question.strategies), ("bottlenecks", question.bottlenecks)):
        count = len(getattr(diagnosis, name))
        require(count <= most, f"{count} {name} where {most} were requested")
    whole = _answer(plugin, recording, DiagnosisQuestion())
    falling = whole is None or all(one.speedup >= other.speedup for one, other in pairwise(whole.strategies))
    require(falling, "strategies are not in order of speedup, largest first")


def _purity(plugin: LoadedPlugin[DiagnoserRecord], recording: Recording) -> None:
    """The same recording gets the same answer, apart from durations."""
    first, second = (_answer(plugin, recording, ReplayQuestion()) for _ in range(2))
    one, other = (_answer(plugin, recording, DiagnosisQuestion()) for _ in range(2))
    where = difference(one, other, "diagnosis")
    if first is not None and second is not None:
        second_with_times = replace(second, build_s=first.build_s, replay_s=first.replay_s)
        where = difference(first, second_with_times, "replay") or where
    require(where is None, f"the same recording gets different answers: {where} differs")


def _inputs(plugin: LoadedPlugin[DiagnoserRecord], recording: Recording) -> None:
    copies = tuple(
        replace(trace, begin_ns=trace.begin_ns.copy(), duration_ns=trace.duration_ns.copy())
        for trace in recording.traces
    )
    _answer(plugin, recording, ReplayQuestion())
    _answer(plugin, recording, DiagnosisQuestion())
    where = difference(copies, recording.traces, "traces")
    require(where is None, f"replay or diagnose writes to {where}, an argument")


def _time(plugin: LoadedPlugin[DiagnoserRecord], recording: Recording) -> None:
    """Without time left: the best result so far, or a refusal."""
    _answer(plugin, recording, ReplayQuestion(), seconds=0.0)
    _answer(plugin, recording, DiagnosisQuestion(), seconds=0.0)


DIAGNOSER_CHECKS: Final[Checks] = {
    "answers": _answers,
    "replays": for_each("recordings", _replay),
    "sums": for_each("recordings", _sums),
    "order": for_each("recordings", _order),
    "inputs are not written to": for_each("recordings", _inputs),
    "purity": for_each("recordings", _purity),
    "no time left": for_each("recordings", _time),
}
