"""Which step of the job is when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Ints, Trace

__all__ = ["StepClock", "step_clocks"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepClock:
    """Steps of one rank on the common clock; columns by index of the job's steps, begin 0 and end -1 where it has none.

    ``last_ns`` is when the recording ends.
    """

    begin_ns: Ints
    end_ns: Ints
    present: Ints

    def step_of(self, time_ns: Ints) -> Ints:
        """Index of the step in which, or after which but before the next one, a time lies; -1 = none."""
        at = np.searchsorted(self.begin_ns[self.present], time_ns, "right") - 1
        step = np.where(at >= 0, self.present[np.maximum(at, 0)], -1) if len(self.present) else np.full(len(time_ns), -1)
        after_all = time_ns >= (self.end_ns[self.present[-1]] if len(self.present) else 0)
        return np.where(after_all, -1, step)


def step_clocks(traces: Sequence[Trace], offsets_ns: Sequence[int]) -> tuple[Ints, list[StepClock]]:
    """Numbers of the job's steps, ascending, and when each was on every rank.

    Where no trace has steps, everything that was recorded is step 1.
    """
    if not any(len(trace.steps) for trace in traces):
        clocks = []
        for trace, offset in zip(traces, offsets_ns, strict=True):
            first = int(trace.begin_ns.min(initial=0)) if len(trace) == 0 else int(trace.begin_ns.min())
            last = int(trace.end_ns.max()) if len(trace) else 0
            clocks.append(
                StepClock(
                    begin_ns=np.array([first + offset], dtype=np.int64),
                    end_ns=np.array([last + offset + 1], dtype=np.int64),
                    present=np.zeros(1, dtype=np.int64),
                )
            )
        return np.ones(1, dtype=np.int64), clocks
    numbers = np.unique(np.concatenate([trace.steps.number for trace in traces]))
    clocks = []
    for trace, offset in zip(traces, offsets_ns, strict=True):
        present = np.searchsorted(numbers, trace.steps.number)
        begin, end = np.zeros(len(numbers), dtype=np.int64), np.full(len(numbers), -1, dtype=np.int64)
        begin[present], end[present] = trace.steps.begin_ns + offset, trace.steps.end_ns + offset
        clocks.append(StepClock(begin_ns=begin, end_ns=end, present=present.astype(np.int64)))
    return numbers.astype(np.int64), clocks
