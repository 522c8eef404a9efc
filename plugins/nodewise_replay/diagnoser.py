"""The object that this package registers as its diagnoser."""

from __future__ import annotations

from collections.abc import Sequence

from nodewise.plugin import Diagnosis, DiagnosisQuestion, Profile, Replay, ReplayQuestion, Run, Trace
from nodewise_replay.diagnosis.diagnosing import diagnosed
from nodewise_replay.replaying.replayer import replayed

__all__ = ["Replayer"]


class Replayer:
    """Replays recorded steps and finds out where their time goes."""

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, run: Run) -> Replay:
        """Replay steps of a job from the traces of some or all of its ranks; see ``nodewise.plugin.Diagnoser``."""
        return replayed(traces, question, run)

    def diagnose(self, traces: Sequence[Trace], profile: Profile, question: DiagnosisQuestion, run: Run) -> Diagnosis:
        """Bottlenecks and strategies of a job, most worthwhile first; see ``nodewise.plugin.Diagnoser``."""
        return diagnosed(traces, profile, question, run)
