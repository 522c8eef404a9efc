"""Recorded steps executed again: question in, replay out."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    EdgeCounts,
    Ints,
    NodewiseError,
    Reason,
    Replay,
    ReplayedCollective,
    ReplayQuestion,
    Run,
    Trace,
    Violation,
    as_floats,
)
from nodewise_replay.alignment.clocks import Clocks, align_clocks
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.changes.applying import apply_changes
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, Graph, Origin
from nodewise_replay.graph.sweep import sweep_times
from nodewise_replay.replaying.absent import alike, has_absent_ranks
from nodewise_replay.replaying.arrivals import replayed_collectives
from nodewise_replay.replaying.learning import learn_durations
from nodewise_replay.replaying.measures import StepTimer, StepTimes, odd_steps, replayed_steps, start_errors_s
from nodewise_replay.replaying.timeline import timeline

__all__ = ["edge_counts", "persistence_error", "replay_steps"]


def replay_steps(traces: Sequence[Trace], question: ReplayQuestion, run: Run) -> Replay:
    """Replay steps. Raises as ``Diagnoser.replay``."""
    start_s = time.perf_counter()
    by_rank = sorted(traces, key=lambda trace: trace.rank)
    run.advanced("clocks", 0, 3)
    clocks = align_clocks(by_rank)
    run.advanced("graph", 1, 3)
    graph = build_graph(by_rank, clocks)
    built_at = time.perf_counter()
    run.advanced("replay", 2, 3)
    result = _Answer(graph, clocks, {trace.rank: trace for trace in by_rank}, question).replay(start_s, built_at)
    run.advanced("replay", 3, 3)
    return result


class _Answer:
    def __init__(self, graph: Graph, clocks: Clocks, traces: dict[int, Trace], question: ReplayQuestion) -> None:
        self._graph, self._clocks, self._traces, self._question = graph, clocks, traces, question
        present = np.flatnonzero((graph.steps.last_node != NO_NODE).any(axis=1)) if graph.timed else np.zeros(1, "i8")
        if not len(present):
            raise NodewiseError(
                Reason.EVIDENCE_MISSING, "traces: no host thread was recorded; record the host's events"
            )
        # Steps that were recorded in part, or do something else, are neither learned from nor tested unless listed.
        alike = np.setdiff1d(present, odd_steps(graph, present)) if graph.timed else present
        if len(alike) > 1 and any(trace.report.counts.get("truncated") for trace in traces.values()):
            alike = alike[:-1]
        self._tested = _ordinals(question.test_steps, present, "test_steps") if question.test_steps else alike
        self._stated_fit = _ordinals(question.fit_steps, present, "fit_steps") if question.fit_steps else None
        self._present = alike
        self._bounds: list[StepTimes] = []
        self._changed: Scenario | None = None

    def replay(self, start_s: float, built_at: float) -> Replay:
        graph, question = self._graph, self._question
        recorded = StepTimer(graph).times(graph.end_ns)
        begin, end, predicted, unmatched = self._times()
        # Changes may leave another graph than was recorded, with ranks that are copies of recorded ones.
        changed = self._changed
        column = list(range(len(graph.ranks)))
        if changed is not None:
            column = [graph.ranks.index(changed.recorded_rank[rank]) for rank in changed.graph.ranks]
            graph = changed.graph
        replayed_at = time.perf_counter()
        steps = replayed_steps(
            self._tested, recorded, predicted, measured=graph.timed and not question.changes, bounds=self._bounds
        )
        of_tested = np.isin(graph.step, self._tested)
        comparable = not question.changes and graph.timed
        errors = start_errors_s(graph, begin, of_tested) if comparable else np.zeros(0)
        host = _mean_error([(step.predicted_host_s, step.measured_host_s) for step in steps if comparable])
        device = _mean_error([(step.predicted_device_s, step.measured_device_s) for step in steps if comparable])
        uncertainty_s = self._clocks.uncertainty_ns[column] * 1e-9
        p50, p95 = np.percentile(errors, (50, 95)).tolist() if len(errors) else (None, None)
        rests_on = () if changed is None else tuple(f"changed: {note}" for note in changed.rests_on)
        return Replay(
            steps=steps,
            host_error=host,
            device_error=device,
            persistence_error=persistence_error(recorded, self._tested, self._stated_fit, self._present),
            kernel_start_p50_error_s=p50,
            kernel_start_p95_error_s=p95,
            in_sample=question.in_sample,
            events=sum(trace.recorded_events for trace in self._traces.values()),
            nodes=len(graph),
            ranks=graph.ranks,
            world_size=graph.world_size,
            edges=edge_counts(graph),
            clock_offset_s=as_floats(self._clocks.offset_ns[column] * 1e-9),
            # -1 where nothing ties a rank's clock to the first's.
            clock_uncertainty_s=np.where(np.isfinite(uncertainty_s), uncertainty_s, -1.0),
            collectives=self._collectives(begin, end, column),
            build_s=built_at - start_s,
            replay_s=replayed_at - built_at,
            counts={"nodes_unmatched": unmatched, "edges": len(graph.source)},
            warnings=(*self._clocks.warnings, *graph.warnings, *_absence(graph), *rests_on),
            timeline=timeline(graph, begin, end, self._tested) if question.timeline else None,
        )

    def _collectives(self, begin: Ints, end: Ints, column: Sequence[int]) -> tuple[ReplayedCollective, ...]:
        """As recorded where steps are replayed with their own durations, else as replayed.

        ``column`` is the recorded rank behind every rank of the replay, as an index.
        """
        graph, changed = self._graph, self._changed
        steps, uncertainty = self._tested.tolist(), self._clocks.uncertainty_ns[column]
        if changed is not None:
            traces = {rank: self._traces[changed.recorded_rank[rank]] for rank in changed.graph.ranks}
            return replayed_collectives(changed.graph, traces, begin, end, steps, uncertainty, changed.bytes)
        if self._question.in_sample and graph.timed:
            begin, end = graph.end_ns - graph.duration_ns, graph.end_ns
        return replayed_collectives(graph, self._traces, begin, end, steps, uncertainty)

    def _times(self) -> tuple[Ints, Ints, StepTimes, int]:
        """Begins and ends of all nodes, lengths of the steps, and how many nodes had no counterpart."""
        graph, question = self._graph, self._question
        if question.changes:
            return self._changed_times()
        if question.in_sample:
            begin, end = sweep_times(graph, graph.duration_ns, graph.explained_lag_ns)
            return begin, end, StepTimer(graph).times(end), 0
        if self._stated_fit is None and len(self._present) < 2:
            raise _invalid("in_sample", "must be true: no step other than the tested one is there to learn from")
        fit_steps = self._present if self._stated_fit is None else self._stated_fit
        for step in self._tested:
            if not (fit_steps != step).any():
                raise _invalid("fit_steps", f"must hold a step other than {step + 1}, which is tested")
        # Steps are apart from each other, so one sweep replays all, each with what the others teach.
        fit = learn_durations(graph, fit_steps.tolist(), own=False)
        begin, end = sweep_times(graph, fit.duration_ns, fit.lag_ns)
        unmatched = int((np.isin(graph.step, self._tested) & ~fit.known).sum())
        return begin, end, StepTimer(graph).times(end), unmatched

    def _changed_times(self) -> tuple[Ints, Ints, StepTimes, int]:
        """Steps one after the other, each from where the one before leaves it."""
        graph, question = self._graph, self._question
        duration, lag, unmatched = graph.duration_ns, graph.lag_ns, 0
        if not question.in_sample and self._stated_fit is not None:
            fit = learn_durations(graph, self._stated_fit.tolist())
            duration, lag = fit.duration_ns, fit.lag_ns
            unmatched = int((~fit.known).sum())
        cases = [(duration, lag)]
        if has_absent_ranks(graph):
            cases.append(alike(graph, duration, lag))
            if not all(change.ranks for change in question.changes):
                # A change of the whole job changes those without a trace as well.
                cases.reverse()
        changes = [
            apply_changes(Scenario.from_recording(graph, self._traces, *case), question.changes) for case in cases
        ]
        swept_cases = [sweep_times(one.graph, one.duration_ns, one.lag_ns, joined=True) for one in changes]
        times = [
            StepTimer(one.graph).times(end, joined=True) for one, (_, end) in zip(changes, swept_cases, strict=True)
        ]
        if len(times) > 1:
            self._bounds = times
        self._changed = changes[0]
        return *swept_cases[0], times[0], unmatched


def persistence_error(recorded: StepTimes, tested: Ints, fit_steps: Ints | None, present: Ints) -> float | None:
    """Mean error of predicting each step as the mean of the others (of those fitted); None for a single step."""
    lengths = recorded.step_ns.max(axis=1).astype(np.float64)
    others = present if fit_steps is None else fit_steps
    pairs_s = [
        (float(lengths[others[others != step]].mean()), lengths[step]) for step in tested if (others != step).any()
    ]
    return _mean_error(pairs_s)


def _absence(graph: Graph) -> tuple[str, ...]:
    """Say which part of the job the traces are of."""
    if graph.world_size <= len(graph.ranks):
        return ()
    present = f"{len(graph.ranks)} of {graph.world_size} ranks"
    return (f"{present} were recorded: their waiting is estimated from the shortest transfer of each collective",)


def _mean_error(lengths_s: Sequence[tuple[float, float]]) -> float | None:
    """Mean relative error of predicted steps, of those that were measured."""
    errors = [abs(predicted / measured - 1) for predicted, measured in lengths_s if measured > 0]
    return float(np.mean(errors)) if errors else None


def edge_counts(graph: Graph) -> dict[str, EdgeCounts]:
    """Edges by kind: found, inferred, missing."""
    counts: dict[str, EdgeCounts] = {}
    for kind in EdgeKind:
        of_kind: NDArray[np.bool_] = graph.edge_kind == kind
        inferred_count = int((graph.origin[of_kind] == Origin.INFERRED).sum())
        counts[kind.name.lower()] = EdgeCounts(
            found=int(of_kind.sum()) - inferred_count, inferred=inferred_count, missing=graph.missing.get(kind, 0)
        )
    return counts


def _ordinals(ordinals: Sequence[int], present: Ints, field: str) -> Ints:
    """Indexes of steps stated by ordinal, ascending; all where none is stated."""
    if not ordinals:
        return present
    for place, ordinal in enumerate(ordinals):
        if ordinal - 1 not in present:
            raise _invalid(f"{field}[{place}]", f"no step {ordinal} was recorded; the traces have {len(present)} steps")
    return np.unique(np.asarray(ordinals, dtype=np.int64) - 1)


def _invalid(field: str, description: str) -> NodewiseError:
    return NodewiseError.invalid([Violation(field, description)])
