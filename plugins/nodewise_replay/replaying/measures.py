"""Steps and collectives of a replay, beside what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, ReplayedStep
from nodewise_replay.graph.graph import NO_NODE, Graph, NodeKind

__all__ = ["DEVICE_KINDS", "NOT_THERE", "StepTimer", "StepTimes", "odd_steps", "replayed_steps", "start_errors_s"]

DEVICE_KINDS = (int(NodeKind.KERNEL), int(NodeKind.COPY), int(NodeKind.FILL), int(NodeKind.DEPARTURE))
"""Nodes whose end is the end of work of a device (or of a collective)."""

_NS = 1e-9


NOT_THERE: Final = -(2**61)
"""End of a step that a rank lacks."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepTimes:
    """How long steps take, (steps, ranks) ns each: until all is done, and until the devices' work is.

    -1 where a rank lacks the step, or has no work of a device in it.
    """

    step_ns: Ints
    device_ns: Ints


class StepTimer:
    """Definition of a step, for every number of every command.

    A rank is done with a step when its host is, and all work that it gave its devices in it. The step lasts since the
    rank was done with the step before, the first one since its mark.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        # Without times there are no ends of steps on the host: all nodes count.
        work = np.isin(graph.kind, DEVICE_KINDS) if graph.timed else graph.rank >= 0
        self.work = self._of_steps(np.flatnonzero(work))
        """Nodes whose end a step waits for, with their steps and the columns of their ranks."""

    def over(self, end_ns: Ints, latest_ns: Ints | None = None) -> Ints:
        """When every rank is done with every step, (steps, ranks); NOT_THERE where it lacks the step.

        Parameters
        ----------
        latest_ns : (steps, ranks) or None
            The latest ends of ``work``; None = they are looked for in ``end_ns``.
        """
        last = self._graph.steps.last_node
        host = np.where(last != NO_NODE, end_ns[np.maximum(last, 0)], NOT_THERE)
        if not self._graph.timed:
            host[:] = 0
        end_times_ns = self._latest(host, self.work, end_ns) if latest_ns is None else np.maximum(host, latest_ns)
        return np.where(host > NOT_THERE, end_times_ns, NOT_THERE)

    def begin(self, over_ns: Ints, mark_ns: Ints, step: int) -> Ints:
        """When every rank begins a step: at the end of the step before, else at its mark."""
        before = over_ns[step - 1] if step > 0 else np.full(over_ns.shape[1], NOT_THERE)
        begin: Ints = np.where(before > NOT_THERE, before, mark_ns[step])
        return begin

    def times(self, end_ns: Ints, *, joined: bool = False) -> StepTimes:
        """Lengths of all steps of a sweep; ``joined`` as in the sweep."""
        over, marks = self.over(end_ns), self._graph.steps.begin_ns
        before = over if joined or not self._graph.timed else self.over(self._graph.end_ns)
        begin = np.stack([self.begin(before, marks, step) for step in range(len(over))]) if len(over) else over
        begin = begin if self._graph.timed else np.zeros_like(over)
        work = self._of_steps(np.flatnonzero(np.isin(self._graph.kind, DEVICE_KINDS[:3])))
        device = self._latest(np.full_like(over, NOT_THERE), work, end_ns)
        there = over > NOT_THERE
        return StepTimes(
            step_ns=np.where(there, np.maximum(over - begin, 0), -1),
            device_ns=np.where(there & (device > NOT_THERE), np.maximum(device - begin, 0), -1),
        )

    def _of_steps(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        """Nodes with their steps and the columns of their ranks."""
        return nodes, self._graph.step[nodes].astype(np.int64), self._graph.column[nodes]

    @staticmethod
    def _latest(least: Ints, work: tuple[Ints, Ints, Ints], end_ns: Ints) -> Ints:
        nodes, step, column = work
        latest = least.copy()
        np.maximum.at(latest, (step, column), end_ns[nodes])
        return latest


def odd_steps(graph: Graph, present: Ints) -> Ints:
    """Steps in which a rank does less than half or more than twice of what it does in the others.

    They were recorded in part, or evaluate, or store a checkpoint. The measure is the number of pieces of a device's
    work; without any, of operators.
    """
    if len(present) < 3:
        return present[:0]
    on_device = np.isin(graph.kind, DEVICE_KINDS[:3])
    work = np.flatnonzero(on_device if on_device.any() else graph.kind == NodeKind.OPERATOR)
    count = np.zeros((len(graph.steps), len(graph.ranks) + 1), dtype=np.int64)
    np.add.at(count, (graph.step[work], graph.column[work]), 1)
    count = count[present, :-1]
    usual = np.sort(count, axis=0)[len(present) // 2]
    odd: Ints = present[((2 * count < usual) | (count > 2 * usual)).any(axis=1)]
    return odd if len(odd) < len(present) else odd[:0]


def replayed_steps(
    tested: Ints,
    recorded: StepTimes,
    predicted: StepTimes,
    *,
    measured: bool,
    bounds: Sequence[StepTimes] = (),
) -> tuple[ReplayedStep, ...]:
    """Steps by ordinal, the slowest rank of each.

    ``measured`` says whether the recorded time is comparable, else it is 0; ``bounds`` are other possible cases.
    """
    steps = []
    cases = [case.step_ns.max(axis=1) * _NS for case in bounds]
    for step in tested:
        present = np.flatnonzero(predicted.step_ns[step] >= 0)
        steps.append(
            ReplayedStep(
                step=int(step) + 1,
                measured_host_s=float(recorded.step_ns[step].max()) * _NS if measured else 0.0,
                predicted_host_s=float(predicted.step_ns[step].max()) * _NS,
                measured_device_s=_seconds(recorded.device_ns[step]) if measured else 0.0,
                predicted_device_s=_seconds(predicted.device_ns[step]),
                lower_host_s=float(min((case[step] for case in cases), default=0.0)),
                upper_host_s=float(max((case[step] for case in cases), default=0.0)),
                rank_measured_host_s=tuple((recorded.step_ns[step, present] * _NS).tolist()) if measured else (),
                rank_predicted_host_s=tuple((predicted.step_ns[step, present] * _NS).tolist()),
            )
        )
    return tuple(steps)


def _seconds(rank_ns: Ints) -> float:
    """The slowest rank's; 0 where none has any."""
    return max(float(rank_ns.max()), 0.0) * _NS


def start_errors_s(graph: Graph, begin_ns: Ints, tested: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far the begins of the devices' work are from the recorded ones, for nodes of the steps tested."""
    kinds = (int(NodeKind.KERNEL), int(NodeKind.COPY), int(NodeKind.FILL), int(NodeKind.ARRIVAL))
    work = tested & np.isin(graph.kind, kinds)
    errors: NDArray[np.float64] = np.abs(begin_ns[work] - graph.begin_ns[work]) * _NS
    return errors
