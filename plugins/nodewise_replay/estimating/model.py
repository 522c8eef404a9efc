"""The fitted model: every row answered from the recording that is nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.plugin import (
    MEASUREMENT_LOG_SPREAD,
    Change,
    ChangeKind,
    Configurations,
    Floats,
    NodewiseError,
    Notice,
    Observations,
    Options,
    Predictions,
    Reason,
    Refusal,
    RowRefusal,
)
from nodewise_replay.changes.applying import apply_changes
from nodewise_replay.changes.network import LATENCY_BYTES
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.estimating.evidence import Evidence
from nodewise_replay.estimating.recordings import Recording
from nodewise_replay.estimating.step_seconds import PARTS, step_parts, step_seconds

__all__ = ["ReplayModel"]

MOST_SERVED: Final = 32
"""Workers of a parameter server up to which each is replayed; beyond, the step grows on a straight line, as the server
takes them one by one."""

_LEAST_SHARE: Final = 0.2
"""Of a replayed step that is left of it whatever observations say: below, they are of something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Seconds of the parts of a step, in the order of PARTS, and what is not known of ln(step)."""

    parts: Floats
    log_spread: float


class ReplayModel:
    """Replays of recordings with other numbers of ranks and other links.

    Parameters
    ----------
    recordings : sequence of Recording
        At least one, no two of the same number of workers.
    evidence : Evidence
        What the profile says of the recorded job besides its traces.
    observations : Observations
        Measured runs, which correct what the recorder added.
    notices : tuple of Notice
        What holds of every row.
    """

    measurement_log_spread = MEASUREMENT_LOG_SPREAD
    """Noise of one measured ln(step)."""

    def __init__(
        self,
        recordings: Sequence[Recording],
        evidence: Evidence,
        observations: Observations,
        notices: tuple[Notice, ...],
    ) -> None:
        self._recordings = sorted(recordings, key=lambda recording: recording.workers)
        self._evidence = evidence
        self._notices = notices
        self._answers: dict[tuple[int, float], _Answer | Refusal] = {}
        self._known = np.array([recording.workers for recording in self._recordings], dtype=np.float64)
        self._corrected_at, self._correction_s = self._corrections(observations)

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row; refuse row by row what was recorded otherwise. One replay per distinct configuration."""
        rows_by_refusal: dict[Refusal, list[int]] = {}
        values = np.zeros((2 + len(PARTS), len(configurations)))
        ratios, refusals = self._evidence.judge(configurations, self._recordings)
        farthest = max(self._known.max(), self._corrected_at.max(initial=0.0))
        for row, workers in enumerate(configurations.workers.tolist()):
            answer = refusals[row] or self._answer(workers, float(ratios[row]), options)
            if isinstance(answer, Refusal):
                rows_by_refusal.setdefault(answer, []).append(row)
                continue
            parts = self._correct(answer.parts, workers)
            values[:, row] = (answer.log_spread, max(workers / farthest, 1.0), *parts)
        is_answered = sum(map(len, rows_by_refusal.values())) < len(configurations)
        return Predictions.assembled(
            dict(zip(PARTS, values[2:])),
            log_spread=values[0],
            extrapolation=values[1],
            refusals=tuple(RowRefusal(tuple(found), refusal) for refusal, found in rows_by_refusal.items()),
            notices=self._notices_of() if is_answered else (),
        )

    def _notices_of(self) -> tuple[Notice, ...]:
        worst = max(recording.persistence for recording in self._recordings)
        fewest = min(recording.steps for recording in self._recordings)
        message = (
            f"recorded steps vary by {worst:.1%} (standard deviation): a single step cannot be predicted more precisely"
            if fewest > 1
            else "only a single step was recorded: the variation between steps is unknown"
        )
        if len(self._corrected_at):
            overhead = "the overhead of the recorder was removed by comparison with measured runs"
        else:
            overhead = (
                "step times include the overhead of the recorder: ingest a step time that was measured without the "
                "recorder"
            )
        return (*self._notices, Notice("PERSISTENCE", message), Notice("RECORDED_STEPS", overhead))

    def _answer(self, workers: int, link_ratio: float, options: Options) -> _Answer | Refusal:
        key = (workers, link_ratio)
        if key not in self._answers:
            if options.budget is not None and options.budget.remaining_s() <= 0:
                raise NodewiseError(Reason.DEADLINE_EXCEEDED, "the deadline passed before the replay was done")
            try:
                self._answers[key] = self._replay(workers, link_ratio)
            except NodewiseError as error:
                missing = tuple(filter(None, str(error.metadata.get("missing_fields", "")).split(",")))
                self._answers[key] = Refusal(error.reason, error.message, missing)
        return self._answers[key]

    def _nearest(self, workers: int) -> Recording:
        return self._recordings[int(np.argmin(np.abs(np.log(self._known / workers))))]

    def _replay(self, workers: int, link_ratio: float) -> _Answer:
        recording = self._nearest(workers)
        if recording.hub >= 0 and workers > max(MOST_SERVED, recording.workers):
            near, far = (self._replay(count, link_ratio) for count in (MOST_SERVED // 2, MOST_SERVED))
            share = (workers - MOST_SERVED) / (MOST_SERVED - MOST_SERVED // 2)
            extrapolated = np.maximum(far.parts + share * (far.parts - near.parts), 0.0)
            return _Answer(parts=extrapolated, log_spread=far.log_spread)
        changes = self._changes(recording, workers, link_ratio)
        parts = step_parts(apply_changes(recording.scenario, changes), recording.hub)
        distance = abs(float(np.log(workers / recording.workers)))
        spread = (
            MEASUREMENT_LOG_SPREAD**2
            + recording.persistence**2 * (1.0 + distance)
            + self._network_log_spread(recording, changes, parts) ** 2
        )
        return _Answer(parts=parts, log_spread=float(np.sqrt(spread)))

    @staticmethod
    def _changes(recording: Recording, workers: int, link_ratio: float) -> tuple[Change, ...]:
        world = workers + (recording.hub >= 0)
        changes = []
        if world != recording.scenario.graph.world_size:
            changes.append(Change(kind=ChangeKind.WORLD_SIZE, value=float(world)))
        if link_ratio != 1.0 and world > 1:
            changes.append(Change(kind=ChangeKind.LINK_BANDWIDTH, value=link_ratio))
        return tuple(changes)

    @staticmethod
    def _network_log_spread(recording: Recording, changes: Sequence[Change], parts: Floats) -> float:
        """What is not known of the cost of exchanges, in ln(step)."""
        # What a parameter server does for a worker more it was seen to do: that is no matter of cost.
        kinds = [change.kind for change in changes]
        if not kinds or (recording.hub >= 0 and ChangeKind.LINK_BANDWIDTH not in kinds):
            return 0.0
        costs = [
            cost
            for pair in recording.exchanges.costs(recording.scenario).values()
            for cost in pair
            if cost.s_per_byte or cost.fixed_s
        ]
        if not costs:
            return 0.0
        if not all(cost.latency_told for cost in costs):
            ends = [_with_latency(recording, changes, latency_bytes) for latency_bytes in LATENCY_BYTES[::2]]
            # The ends of the range are two standard deviations from its middle.
            return abs(float(np.log(ends[1] / ends[0]))) / 4.0
        weight = [float(np.mean(cost.seconds(recording.exchanges.wire_bytes()))) for cost in costs]
        misfit = float(np.average([cost.log_error for cost in costs], weights=weight))
        step_s = float(parts.sum())
        return misfit * float(parts[PARTS.index("communication")]) / step_s if step_s else 0.0

    def _corrections(self, observations: Observations) -> tuple[Floats, Floats]:
        """By numbers of workers, seconds that measured steps were longer than replayed ones."""
        nothing = np.zeros(0)
        configurations = observations.configurations
        if not len(observations):
            return nothing, nothing
        ratios, refusals = self._evidence.judge(configurations, self._recordings)
        errors_by_recording: dict[int, list[float]] = {}
        for row, workers in enumerate(configurations.workers.tolist()):
            if refusals[row] is not None or ratios[row] != 1.0:
                continue
            answer = self._answer(workers, 1.0, Options())
            if isinstance(answer, _Answer):
                measured_s = 1.0 / float(observations.steps_per_s[row])
                errors_by_recording.setdefault(workers, []).append(measured_s - float(answer.parts.sum()))
        at = np.array(sorted(errors_by_recording), dtype=np.float64)
        return at, np.array([float(np.median(errors_by_recording[int(workers)])) for workers in at])

    def _correct(self, parts: Floats, workers: int) -> Floats:
        """A step longer or shorter by what measured ones were; the host's part takes it, then all in proportion."""
        if not len(self._corrected_at):
            return parts
        by = float(np.interp(np.log(workers), np.log(self._corrected_at), self._correction_s))
        step_s, host = float(parts.sum()), PARTS.index("host")
        by = max(by, (_LEAST_SHARE - 1.0) * step_s)
        left = float(parts[host]) + by
        corrected: Floats = parts * (1.0 if left >= 0 else (step_s + by) / (step_s - parts[host]))
        corrected[host] = max(left, 0.0)
        return corrected


def _with_latency(recording: Recording, changes: Sequence[Change], latency_bytes: float) -> float:
    scenario: Scenario = apply_changes(replace(recording.scenario, latency_bytes=latency_bytes), changes)
    ranks = tuple(rank for rank in scenario.graph.ranks if rank != recording.hub)
    return step_seconds(scenario, ranks)
