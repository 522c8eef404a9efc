"""How long the steps of interest take when the recorded job is executed again with other durations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Ints, NodewiseError, Violation
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, Graph
from nodewise_replay.graph.sweep import latest_ends
from nodewise_replay.replaying.measures import DEVICE_KINDS, NOT_THERE, StepTimer, odd_steps

__all__ = ["NS", "Edit", "Stopwatch", "persistence_ns", "wanted_steps", "whole_ns"]

NS = 1e-9
"""Seconds of a nanosecond."""

_NO_LAG_NS = -(10**15)
"""Lag of a removed edge: its source never delays its target."""

_HELD_NS = -(2**60)
"""Releases below this delay no node."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """Other durations, lags and begins of the same graph; None = as recorded.

    Durations are rounded to whole nanoseconds. ``begin_shift_ns`` (ranks,) is by how much later each rank begins the
    first step.
    """

    duration_ns: Ints | Floats | None = None
    lag_ns: Ints | None = None
    begin_shift_ns: Ints | None = None


RECORDED: Final = Edit()
"""Nothing changed."""


def wanted_steps(graph: Graph, ordinals: tuple[int, ...]) -> Ints:
    """Indexes of the steps to diagnose, by ordinal; without any, all, of more than three without the first and last.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a step that the traces do not have.
    """
    present = np.flatnonzero((graph.steps.last_node != NO_NODE).all(axis=1))
    if not graph.timed:
        present = np.zeros(1, dtype=np.int64)
    elif not len(present):
        present = np.flatnonzero((graph.steps.last_node != NO_NODE).any(axis=1))
    if not ordinals:
        present = np.setdiff1d(present, odd_steps(graph, present))
        return present[1:-1] if len(present) > 3 else present
    for place, ordinal in enumerate(ordinals):
        if ordinal - 1 not in present:
            message = f"all ranks have no step {ordinal}; known are 1 to {len(graph.steps)}"
            raise NodewiseError.invalid([Violation(f"steps[{place}]", message)])
    return np.unique(np.asarray(ordinals, dtype=np.int64) - 1)


class Stopwatch:
    """Times steps, all of them executed one after the other.

    ``StepTimer`` defines a step. A stretch of steps lasts as long as on the rank where it lasts longest.
    """

    def __init__(self, graph: Graph, steps: Ints) -> None:
        self.graph, self.steps = graph, steps
        stretches = np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1)
        self._stretches = [(int(stretch[0]), int(stretch[-1])) for stretch in stretches]
        self._timer = StepTimer(graph)
        work, step, column = self._timer.work
        self._group = np.full(len(graph), -1, dtype=np.int32)
        self._group[work] = step * len(graph.ranks) + column
        self._order = _up_to(graph, int(steps[-1]))
        self._end_ns = np.zeros(len(graph), dtype=np.int64)
        """Result of the last replay: stored, as allocating an array of this size costs more than filling it in."""

    def step_ns(self, edit: Edit = RECORDED) -> float:
        """Mean length of the steps of interest."""
        return float(sum(took.max() for took in self._took_ns(edit, self._stretches))) / len(self.steps)

    def lengths_ns(self, edit: Edit = RECORDED) -> Floats:
        """Length of every step of interest on the rank where it lasts longest."""
        return np.array([float(took.max()) for took in self._took_ns(edit, [(step, step) for step in self.steps])])

    def windows_ns(self, column: int) -> tuple[Ints, Ints]:
        """Begin and end of the steps of interest that a rank has, as recorded."""
        _, begin, end = self.steps_ns(column)
        return begin, end

    def steps_ns(self, column: int) -> tuple[Ints, Ints, Ints]:
        """Indexes of the steps of interest that a rank has, with their begin and end, as recorded."""
        over, begin_ns = self._timer.over(self.graph.end_ns), self.graph.steps.begin_ns
        present_steps = self.steps[over[self.steps, column] > NOT_THERE]
        begin = np.array(
            [self._timer.begin(over, begin_ns, step)[column] for step in present_steps.tolist()], dtype=np.int64
        )
        return present_steps, begin, np.maximum(over[present_steps, column], begin)

    def origin_ns(self) -> int:
        """When the first of the steps of interest begins."""
        begins = [self.windows_ns(column)[0] for column in range(len(self.graph.ranks))]
        return min((int(each[0]) for each in begins if len(each)), default=0)

    def _replayed_over(self, edit: Edit) -> Ints:
        """When every rank is done with every step after changes; of steps after those of interest nothing is known."""
        graph = self.graph
        duration = graph.duration_ns if edit.duration_ns is None else edit.duration_ns
        lag, release = graph.lag_ns if edit.lag_ns is None else edit.lag_ns, graph.release_ns
        if edit.begin_shift_ns is not None:
            shift = np.append(edit.begin_shift_ns, 0)[graph.column]
            release = np.where(release > _HELD_NS, release + shift, release)
        latest = np.full(graph.steps.last_node.shape, NOT_THERE)
        latest_ends(graph, self._order, self._group, duration, lag, release, self._end_ns, latest.reshape(-1))
        return self._timer.over(self._end_ns, latest)

    def _took_ns(self, edit: Edit, stretches: Sequence[tuple[int, int]]) -> Iterator[Ints]:
        """How long every rank takes from the first to the last of some steps."""
        begin_ns = self.graph.steps.begin_ns + (0 if edit.begin_shift_ns is None else edit.begin_shift_ns)
        over = self._replayed_over(edit)
        for first, until in stretches:
            yield over[until] - self._timer.begin(over, begin_ns, first)

    def without_edges(self, edges: Ints, lag_ns: Ints | None = None) -> Ints:
        """Lags with which some edges delay nothing."""
        lags = (self.graph.lag_ns if lag_ns is None else lag_ns).copy()
        lags[edges] = _NO_LAG_NS
        return lags

    def sync_edges(self) -> NDArray[np.bool_]:
        """Edges through which a host waits for its device."""
        graph = self.graph
        mask: NDArray[np.bool_] = (graph.edge_kind == EdgeKind.HOST_SYNC) & np.isin(
            graph.kind[graph.source], DEVICE_KINDS[:3]
        )
        return mask


def _up_to(graph: Graph, last: int) -> NDArray[np.int32]:
    """The nodes of the first steps in order; all nodes where one of a later step holds one of theirs."""
    later = graph.step > last
    if not later.any() or (later[graph.source] & ~later[graph.target]).any():
        return graph.order
    return graph.order[~later[graph.order]]


def persistence_ns(lengths_ns: Floats) -> float:
    """Mean |step - mean of the others|; 0 for a single step, whose variation is unknown."""
    count = len(lengths_ns)
    if count < 2:
        return 0.0
    others = (lengths_ns.sum() - lengths_ns) / (count - 1)
    return float(np.abs(lengths_ns - others).mean())


def whole_ns(duration_ns: Floats) -> Ints:
    """Durations for a replay: whole, and at least 0."""
    whole: Ints = np.rint(np.maximum(duration_ns, 0.0)).astype(np.int64)
    return whole
