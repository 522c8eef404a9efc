"""The estimator: replays of recorded steps in other worlds and over other links."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Context,
    Model,
    NodewiseError,
    Notice,
    Profile,
    Query,
    Reason,
    Refusal,
    SyncMode,
    Trace,
    freeze,
)
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.estimating.evidence import Evidence
from nodewise_replay.estimating.model import ReplayModel
from nodewise_replay.estimating.recordings import Recording, recordings_of
from nodewise_replay.estimating.step_seconds import step_seconds
from nodewise_replay.refusals import refuse

__all__ = ["ReplayEstimator"]

SEVERAL_WORLDS: Final = 0.8
ALL_RANKS: Final = 0.7
SOME_RANKS: Final = 0.4
"""Strength of evidence: recordings of several numbers of ranks; of all ranks of one; with ranks missing."""

RECORDED_LOG_ERROR: Final = 0.04
PER_DOUBLING: Final = 0.04
"""Expected |ln(predicted / measured)|: of a run like the recorded one, and more for each doubling or halving of it
(docs/explanation/replay.md, "What-ifs")."""

MISSING_RANKS: Final = 0.15
"""Additional expected error where ranks left no trace: waits of the other ranks are estimated."""


class ReplayEstimator:
    """Step times of other numbers of ranks and other links, from the traces of one or several runs.

    The graphs of the last traces are kept: trials fit the same traces once for every scale that they leave out.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[Trace, ...], list[Recording]] = ((), [])

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Say whether there are traces and of how much of the job; nothing is read yet."""
        if (refusal := refuse(profile, query)) is not None:
            return refusal
        configurations = query.configurations
        modes = (int(SyncMode.ALLREDUCE), int(SyncMode.SYNC), int(SyncMode.UNSPECIFIED))
        if len(configurations) and not np.isin(configurations.sync_mode, modes).any():
            return Assessment(
                refusal=Refusal.unsupported(
                    "a replay predicts synchronous training only: asynchronous workers do not wait for each other"
                )
            )
        ranks: dict[int, set[int]] = {}
        for trace in profile.traces:
            ranks.setdefault(max(trace.world_size, 1), set()).add(trace.rank)
        complete = [world for world, seen in ranks.items() if len(seen) >= world]
        strength = SOME_RANKS if not complete else SEVERAL_WORLDS if len(complete) > 1 else ALL_RANKS
        worlds = np.array(complete or list(ranks), dtype=np.float64)
        workers = np.maximum(configurations.workers, 1).astype(np.float64)
        doublings = np.abs(np.log2(workers[:, None] / worlds)).min(axis=1)
        errors = RECORDED_LOG_ERROR + PER_DOUBLING * doublings + (0.0 if complete else MISSING_RANKS)
        errors = np.where(np.isin(configurations.sync_mode, modes), errors, np.inf)
        evidence = tuple(
            f"traces of {len(seen)} of {world} rank{'s' if world > 1 else ''}" for world, seen in sorted(ranks.items())
        )
        return Assessment(evidence=evidence, strength=strength, expected_log_error=freeze(errors))

    def fit(self, profile: Profile, context: Context) -> Model:
        """Read the traces and build their graphs; replays are made when rows are predicted.

        Raises
        ------
        NodewiseError
            EVIDENCE_MISSING if no trace has times.
        """
        with_steps = [recording for recording in self._recordings(tuple(context.traces())) if recording.steps]
        if not with_steps:
            raise NodewiseError(
                Reason.EVIDENCE_MISSING,
                "the traces hold no step with times: record with a profiler schedule that marks steps",
                {"missing_fields": "traces.steps"},
            )
        recording_by_key: dict[tuple[int, bool], Recording] = {}
        notices = []
        for recording in with_steps:
            key = (recording.workers, recording.hub >= 0)
            other = recording_by_key.get(key)
            if other is not None:
                message = (
                    f"the profile has several recordings with {recording.workers} workers: the one with most ranks is "
                    "used, and of equal ones the last"
                )
                notices.append(Notice("SEVERAL_RECORDINGS", message))
            if other is None or len(recording.scenario.graph.ranks) >= len(other.scenario.graph.ranks):
                recording_by_key[key] = recording
        server_flags = {recording.hub >= 0 for recording in recording_by_key.values() if len(recording.exchanges)}
        if len(server_flags) > 1:
            raise NodewiseError(
                Reason.CONTRADICTORY_FACTS,
                "the profile has traces of all-reduce training and of a parameter server: ingest them as two profiles",
            )
        missing = [recording for recording in recording_by_key.values() if not recording.is_complete]
        for recording in missing:
            graph = recording.scenario.graph
            message = (
                f"only {len(graph.ranks)} of {graph.world_size} ranks were recorded: their waiting is estimated from "
                "the shortest transfer of each exchange"
            )
            notices.append(Notice("RANKS_MISSING", message))
        recordings = list(recording_by_key.values())
        _warm_up(recordings[0].scenario)
        return ReplayModel(
            recordings, Evidence.of(profile, recordings), profile.observations, tuple(dict.fromkeys(notices))
        )

    def _recordings(self, traces: tuple[Trace, ...]) -> list[Recording]:
        traces_before, recordings = self._last
        if len(traces_before) != len(traces) or any(
            one is not other for one, other in zip(traces_before, traces, strict=True)
        ):
            recordings = recordings_of(traces)
            self._last = (traces, recordings)
        return recordings


def _warm_up(scenario: Scenario) -> None:
    """Compile the sweep while fitting, so that the first answer does not wait for it."""
    step_seconds(scenario, scenario.graph.ranks)
