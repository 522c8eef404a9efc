"""Times of steps and of their phases, as an observation and as phase timings."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from nodewise_client._columns import observations, phase_timings
from nodewise_values import Configurations, Observations, PhaseTimings

Phase: TypeAlias = Literal["download", "compute", "upload", "update"]
PHASES: Final = ("download", "compute", "upload", "update")
# The first steps allocate, compile, and arrange the gradients' buckets anew.
UNTIMED_STEPS: Final = 2
# Below this a mean says little, and a coefficient of variation nothing.
LEAST_STEPS: Final = 3


class StepTimes:
    """Times steps between `mark` calls, of those that count.

    Args:
        most: newest steps that are kept.
        synchronise: waits for the device; called where a row of timed steps begins and ends, and around phases, so that
            work that was only enqueued is not left out.
    """

    def __init__(self, most: int, synchronise: Callable[[], None], clock: Callable[[], float] = time.perf_counter):
        self._steps: Final[deque[float]] = deque(maxlen=most)
        self._phases: Final[deque[dict[str, float]]] = deque(maxlen=most)
        self._synchronise: Final = synchronise
        self._clock: Final = clock
        self._counts = False
        self._begun_at = 0.0
        self._current: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def end_step(self, *, next_counts: bool) -> None:
        """End a step."""
        if self._counts != next_counts:
            self._synchronise()
        if self._counts:
            self._steps.append(self._clock() - self._begun_at)
            self._phases.append(self._current)
        self._current = {}
        self._counts = next_counts

    def begin_step(self) -> None:
        """Begin the next step; whatever was done since the last one ended is not part of it."""
        self._begun_at = self._clock()

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Time a part of the step; parts of the same name add up."""
        if name not in PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}, found {name!r}")
        if not self._counts:
            yield
            return
        self._synchronise()
        begun_at = self._clock()
        yield
        self._synchronise()
        self._current[name] = self._current.get(name, 0.0) + self._clock() - begun_at

    def observation(self, configuration: Configurations) -> Observations | None:
        """The throughput of the timed steps; None where there are too few."""
        if len(self._steps) < LEAST_STEPS:
            return None
        mean = statistics.fmean(self._steps)
        return observations(
            configurations=configuration,
            steps_per_second=1.0 / mean,
            measured_at_unix_seconds=time.time(),
            steps_counts=len(self._steps),
            step_variation=statistics.stdev(self._steps) / mean,
        )

    def timings(self, configuration: Configurations) -> PhaseTimings | None:
        """The phases of the timed steps; None where there are too few or none of them has a compute phase."""
        steps = [phases for phases in self._phases if "compute" in phases]
        if len(steps) < LEAST_STEPS:
            return None
        columns = {name: [phases.get(name, 0.0) for phases in steps] for name in PHASES}
        means = {name: statistics.fmean(column) for name, column in columns.items()}
        return phase_timings(
            configurations=configuration,
            **{f"{name}_seconds": mean for name, mean in means.items()},
            compute_variation=statistics.stdev(columns["compute"]) / means["compute"],
            steps_counts=len(steps),
        )
