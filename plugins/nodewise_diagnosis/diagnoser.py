"""The object that this package registers as its diagnoser."""

from __future__ import annotations

from collections.abc import Sequence

from nodewise.plugin import (
    DiagnoserContext,
    Diagnosis,
    DiagnosisQuestion,
    Profile,
    Replay,
    ReplayQuestion,
    StepsDiagnosis,
    StepTimes,
    Trace,
)
from nodewise_diagnosis.diagnosing import diagnose_traces
from nodewise_diagnosis.running_job import diagnose_steps
from nodewise_replay.replaying.replayer import replay_steps

__all__ = ["ReplayDiagnoser"]


class ReplayDiagnoser:
    """Replays recorded steps and finds out where their time goes."""

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, context: DiagnoserContext) -> Replay:
        """Replay steps of a job from the traces of some or all of its ranks; see ``nodewise.plugin.Diagnoser``."""
        return replay_steps(traces, question, context)

    def diagnose(
        self, traces: Sequence[Trace], profile: Profile, question: DiagnosisQuestion, context: DiagnoserContext
    ) -> Diagnosis:
        """Bottlenecks and strategies of a job, most worthwhile first; see ``nodewise.plugin.Diagnoser``."""
        return diagnose_traces(traces, profile, question, context)

    def diagnose_steps(self, windows: StepTimes, hours: StepTimes) -> StepsDiagnosis:
        """Slowdowns of a job that runs; see ``nodewise.plugin.StepsDiagnoser``."""
        return diagnose_steps(windows, hours)
