"""How long the steps of interest take when the recorded job is executed again with other durations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Ints, NodewiseError, Violation
from nodewise_replay.graph.graph import NO_NODE, EdgeKind, Graph
from nodewise_replay.graph.sweep import swept
from nodewise_replay.replaying.measures import DEVICE_KINDS, NOT_THERE, StepTimer, odd_steps

__all__ = ["NS", "Edit", "Stopwatch", "persistence_ns", "wanted_steps", "whole_ns"]

NS = 1e-9
"""Seconds of a nanosecond."""

_NO_LAG_NS = -(10**15)
"""Lag of an edge that is taken away: its source never holds its target."""

_HELD_NS = -(2**60)
"""Releases below say that nothing holds a node back."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """Other durations, lags and begins of the same graph; None = as recorded.

    ``begin_shift_ns`` (ranks,) is by how much later each rank begins the first step.
    """

    duration_ns: Ints | None = None
    lag_ns: Ints | None = None
    begin_shift_ns: Ints | None = None


RECORDED: Final = Edit()
"""Nothing changed."""


def wanted_steps(graph: Graph, ordinals: tuple[int, ...]) -> Ints:
    """Indexes of the steps to look at, by ordinal; without any, all but the first and last of more than three.

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
            told = f"there is no step {ordinal} of all ranks; known: 1 to {len(graph.steps)}"
            raise NodewiseError.invalid([Violation(f"steps[{place}]", told)])
    return np.unique(np.asarray(ordinals, dtype=np.int64) - 1)


class Stopwatch:
    """Times steps, all of them executed one after the other.

    What a step is, ``StepTimer`` says. A stretch of steps lasts as long as on the rank where it lasts longest.
    """

    def __init__(self, graph: Graph, steps: Ints) -> None:
        self.graph, self.steps = graph, steps
        stretches = np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1)
        self._stretches = [(int(stretch[0]), int(stretch[-1])) for stretch in stretches]
        self._timer = StepTimer(graph)

    def times(self, edit: Edit = RECORDED) -> tuple[Ints, Ints]:
        """Begin and end of every node."""
        graph = self.graph
        if edit.begin_shift_ns is not None:
            shift = np.append(edit.begin_shift_ns, 0)[graph.column]
            held = graph.release_ns > _HELD_NS
            graph = replace(graph, release_ns=np.where(held, graph.release_ns + shift, graph.release_ns))
        return swept(graph, edit.duration_ns, edit.lag_ns, joined=True)

    def step_ns(self, edit: Edit = RECORDED) -> float:
        """Mean length of the steps of interest."""
        return float(sum(took.max() for took in self._took_ns(edit, self._stretches))) / len(self.steps)

    def lengths_ns(self, edit: Edit = RECORDED) -> Floats:
        """Length of every step of interest on the rank where it lasts longest."""
        return np.array([float(took.max()) for took in self._took_ns(edit, [(step, step) for step in self.steps])])

    def windows_ns(self, column: int) -> tuple[Ints, Ints]:
        """Begin and end of the steps of interest that a rank has, as recorded."""
        over, begun = self._timer.over(self.graph.end_ns), self.graph.steps.begin_ns
        held = [step for step in self.steps.tolist() if over[step, column] > NOT_THERE]
        begin = np.array([self._timer.begin(over, begun, step)[column] for step in held], dtype=np.int64)
        end = np.array([over[step, column] for step in held], dtype=np.int64)
        return begin, np.maximum(end, begin)

    def _took_ns(self, edit: Edit, stretches: Sequence[tuple[int, int]]) -> Iterator[Ints]:
        """How long every rank takes from the first to the last of some steps."""
        graph, (_, end) = self.graph, self.times(edit)
        begun = graph.steps.begin_ns + (0 if edit.begin_shift_ns is None else edit.begin_shift_ns)
        over = self._timer.over(end)
        for first, until in stretches:
            yield over[until] - self._timer.begin(over, begun, first)

    def without_edges(self, chosen: Ints, lag_ns: Ints | None = None) -> Ints:
        """Lags with which some edges hold nothing back."""
        lags = (self.graph.lag_ns if lag_ns is None else lag_ns).copy()
        lags[chosen] = _NO_LAG_NS
        return lags

    def sync_edges(self) -> NDArray[np.bool_]:
        """Edges through which a host waits for its device."""
        graph = self.graph
        found: NDArray[np.bool_] = (graph.edge_kind == EdgeKind.HOST_SYNC) & np.isin(
            graph.kind[graph.source], DEVICE_KINDS[:3]
        )
        return found


def persistence_ns(lengths_ns: Floats) -> float:
    """Mean |step - mean of the others|; 0 for a single step, of which nobody knows."""
    count = len(lengths_ns)
    if count < 2:
        return 0.0
    others = (lengths_ns.sum() - lengths_ns) / (count - 1)
    return float(np.abs(lengths_ns - others).mean())


def whole_ns(duration_ns: Floats) -> Ints:
    """Durations of a replay: whole, and 0 at least."""
    whole: Ints = np.rint(np.maximum(duration_ns, 0.0)).astype(np.int64)
    return whole
