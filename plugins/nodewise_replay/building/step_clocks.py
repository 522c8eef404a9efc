"""Which step of the job is when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Ints, Trace
from nodewise_replay.alignment.clocks import Clock

__all__ = ["StepClock", "step_clocks"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepClock:
    """Steps of one rank on the common clock, by index of the job's steps; begin 0 and end -1 where it has none."""

    begin_ns: Ints
    end_ns: Ints
    present: Ints

    def step_of(self, time_ns: Ints) -> Ints:
        """Index of the step that contains a time, or that ended before it while the next has not begun; -1 = none."""
        at = np.searchsorted(self.begin_ns[self.present], time_ns, "right") - 1
        step = (
            np.where(at >= 0, self.present[np.maximum(at, 0)], -1) if len(self.present) else np.full(len(time_ns), -1)
        )
        after_all = time_ns >= (self.end_ns[self.present[-1]] if len(self.present) else 0)
        return np.where(after_all, -1, step)


def step_clocks(traces: Sequence[Trace], clocks: Sequence[Clock]) -> tuple[Ints, list[StepClock]]:
    """Numbers of the job's steps, ascending, and when each was on every rank.

    Where no trace has steps, everything that was recorded is step 1.
    """
    if not any(len(trace.steps) for trace in traces):
        return np.ones(1, dtype=np.int64), [_whole(trace, clock) for trace, clock in zip(traces, clocks, strict=True)]
    numbers = np.unique(np.concatenate([trace.steps.number for trace in traces]))
    aligned_steps = []
    for trace, clock in zip(traces, clocks, strict=True):
        present = np.searchsorted(numbers, trace.steps.number)
        begin, end = np.zeros(len(numbers), dtype=np.int64), np.full(len(numbers), -1, dtype=np.int64)
        begin[present], end[present] = clock.common(trace.steps.begin_ns), clock.common(trace.steps.end_ns)
        aligned_steps.append(StepClock(begin_ns=begin, end_ns=end, present=present.astype(np.int64)))
    return numbers.astype(np.int64), aligned_steps


def _whole(trace: Trace, clock: Clock) -> StepClock:
    """Everything recorded as one step."""
    if not len(trace):
        empty = np.zeros(0, dtype=np.int64)
        return StepClock(begin_ns=np.zeros(1, dtype=np.int64), end_ns=np.full(1, -1, dtype=np.int64), present=empty)
    return StepClock(
        begin_ns=clock.common(trace.begin_ns.min(keepdims=True)),
        end_ns=clock.common(trace.end_ns.max(keepdims=True) + 1),
        present=np.zeros(1, dtype=np.int64),
    )
