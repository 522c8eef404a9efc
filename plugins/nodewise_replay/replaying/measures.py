"""Steps and collectives of a replay, beside what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, ReplayedStep
from nodewise_replay.graph.graph import NO_NODE, Graph, NodeKind

__all__ = ["DEVICE_KINDS", "StepTimes", "replayed_steps", "start_errors_s", "step_times"]

DEVICE_KINDS = (int(NodeKind.KERNEL), int(NodeKind.COPY), int(NodeKind.FILL), int(NodeKind.DEPARTURE))
"""Nodes whose end is the end of work of a device (or of a collective)."""

_NS = 1e-9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepTimes:
    """How long steps take, (steps, ranks) ns each: on the host, and until the end of all that was launched in them.

    -1 where a rank lacks the step.
    """

    host_ns: Ints
    device_ns: Ints


def step_times(graph: Graph, end_ns: Ints, *, joined: bool = False) -> StepTimes:
    """Lengths of all steps of a sweep; ``joined`` as in the sweep."""
    bounds = graph.steps
    host = np.full(bounds.last_node.shape, -1, dtype=np.int64)
    device = host.copy()
    is_device = np.isin(graph.kind, DEVICE_KINDS)
    if not graph.timed:
        # No thread goes from step to step: the step is all that a rank does.
        for column, rank in enumerate(graph.ranks):
            host[:, column] = end_ns[graph.rank == rank].max(initial=0)
            device[:, column] = end_ns[is_device & (graph.rank == rank)].max(initial=0)
        return StepTimes(host_ns=host, device_ns=device)
    for column, rank in enumerate(graph.ranks):
        last = bounds.last_node[:, column]
        steps = np.flatnonzero(last != NO_NODE)
        start = bounds.begin_ns[steps, column].copy()
        if joined:
            # Where the host's step before it ends, and what passed between the two.
            between = start[1:] - graph.end_ns[last[steps[:-1]]]
            start[1:] = end_ns[last[steps[:-1]]] + between
        host[steps, column] = end_ns[last[steps]] - start
        of_rank = np.flatnonzero(is_device & (graph.rank == rank))
        latest = np.zeros(len(bounds), dtype=np.int64)
        np.maximum.at(latest, graph.step[of_rank], end_ns[of_rank])
        # A step without work of a device ends with its host.
        device[steps, column] = np.where(latest[steps] > 0, latest[steps] - start, host[steps, column])
    return StepTimes(host_ns=host, device_ns=device)


def replayed_steps(
    tested: Ints,
    recorded: StepTimes,
    predicted: StepTimes,
    *,
    measured: bool,
    bounds: Sequence[StepTimes] = (),
) -> tuple[ReplayedStep, ...]:
    """Steps by ordinal, the slowest rank of each.

    ``measured`` says whether what was recorded compares, else it is 0; ``bounds`` are other cases that may be.
    """
    found = []
    cases = [case.host_ns.max(axis=1) * _NS for case in bounds]
    for step in tested:
        present = np.flatnonzero(predicted.host_ns[step] >= 0)
        found.append(
            ReplayedStep(
                step=int(step) + 1,
                measured_host_s=float(recorded.host_ns[step].max()) * _NS if measured else 0.0,
                predicted_host_s=float(predicted.host_ns[step].max()) * _NS,
                measured_device_s=float(recorded.device_ns[step].max()) * _NS if measured else 0.0,
                predicted_device_s=float(predicted.device_ns[step].max()) * _NS,
                lower_host_s=float(min((case[step] for case in cases), default=0.0)),
                upper_host_s=float(max((case[step] for case in cases), default=0.0)),
                rank_measured_host_s=tuple((recorded.host_ns[step, present] * _NS).tolist()) if measured else (),
                rank_predicted_host_s=tuple((predicted.host_ns[step, present] * _NS).tolist()),
            )
        )
    return tuple(found)


def start_errors_s(graph: Graph, begin_ns: Ints, tested: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far the begins of the devices' work are from the recorded ones, for nodes of the steps tested."""
    kinds = (int(NodeKind.KERNEL), int(NodeKind.COPY), int(NodeKind.FILL), int(NodeKind.ARRIVAL))
    work = tested & np.isin(graph.kind, kinds)
    errors: NDArray[np.float64] = np.abs(begin_ns[work] - graph.begin_ns[work]) * _NS
    return errors
