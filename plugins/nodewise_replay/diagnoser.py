"""The object that this package registers as its diagnoser."""

from __future__ import annotations

from collections.abc import Sequence

from nodewise.plugin import Replay, ReplayQuestion, Run, Trace
from nodewise_replay.replaying.replayer import replayed

__all__ = ["Replayer"]


class Replayer:
    """Replays recorded steps."""

    def replay(self, traces: Sequence[Trace], question: ReplayQuestion, run: Run) -> Replay:
        """Replay steps of a job from the traces of some or all of its ranks; see ``nodewise.plugin.Diagnoser``."""
        return replayed(traces, question, run)
