"""Calls of functions, and other spans of host threads, by the time that they are to explain."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Frames, Ints, Trace
from nodewise_replay.alignment.clocks import Clock
from nodewise_replay.graph.graph import Graph

__all__ = ["Calls", "ClaimedSpans"]

_COVERS: Final = 0.9
"""What takes at least this share of a span of time explains it."""

_LONG_EVENT_NS: Final = 900_000
"""Events that explain a millisecond of nothing else take most of it."""


class ClaimedSpans:
    """Ascending spans of a gap that have a name already."""

    def __init__(self, begin_ns: Ints, end_ns: Ints) -> None:
        self._at = np.stack((begin_ns, end_ns), axis=1).ravel()
        self._before = np.stack((np.zeros_like(begin_ns), end_ns - begin_ns), axis=1).ravel().cumsum()

    @classmethod
    def nothing(cls) -> Self:
        """No span."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none)

    def before(self, time_ns: Ints) -> Floats:
        """How much is taken before some times."""
        if not len(self._at):
            return np.zeros(np.shape(time_ns))
        first = int(self._at[0])
        claimed_ns: Floats = np.interp(time_ns - first, self._at - first, self._before)
        return claimed_ns


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls on the common clock, in order of begin, longer ones first, by lane of the graph."""

    names: tuple[str, ...]
    name: Ints
    lane: Ints
    begin_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def functions(cls, graph: Graph, trace: Trace, clock: Clock) -> Self:
        """Calls of the interpreter's functions of a rank."""
        return cls._of(graph, trace, clock, trace.frames, np.arange(len(trace.frames)))

    @classmethod
    def events(cls, graph: Graph, trace: Trace, clock: Clock) -> Self:
        """Long events of a rank's host, without the marks of steps."""
        on_host = np.array([lane.is_host for lane in trace.lanes], dtype=np.bool_)[trace.lane]
        marks = np.isin(trace.begin_ns, trace.steps.begin_ns) & np.isin(trace.end_ns, trace.steps.end_ns)
        rows = np.flatnonzero(on_host & ~marks & (trace.duration_ns >= _LONG_EVENT_NS))
        return cls._of(graph, trace, clock, trace, rows)

    @classmethod
    def _of(cls, graph: Graph, trace: Trace, clock: Clock, spans: Trace | Frames, rows: Ints) -> Self:
        first = next(place for place, (rank, _) in enumerate(graph.lanes) if rank == trace.rank)
        begin = spans.begin_ns[rows]
        end = begin + spans.duration_ns[rows]
        name, lane = (np.asarray(column[rows], dtype=np.int64) for column in (spans.name, spans.lane))
        return cls(trace.names, name, lane + first, clock.common(begin), clock.common(end))

    def of_lane(self, lane: int) -> Calls:
        """Those of one thread."""
        mine = np.flatnonzero(self.lane == lane)
        order = mine[np.lexsort((-self.end_ns[mine], self.begin_ns[mine]))]
        return Calls(self.names, self.name[order], self.lane[order], self.begin_ns[order], self.end_ns[order])

    def around(self, begin: int, end: int) -> str:
        """The innermost that takes nearly all of a span of time; empty = none."""
        rows = np.arange(np.searchsorted(self.begin_ns, end, "left"))
        inside = np.minimum(self.end_ns[rows], end) - np.maximum(self.begin_ns[rows], begin)
        rows = rows[inside >= _COVERS * (end - begin)]
        if not len(rows):
            return ""
        return self.names[int(self.name[rows[np.argmin((self.end_ns - self.begin_ns)[rows])]])]

    def own(self, begin: int, end: int, claimed_spans: ClaimedSpans | None = None) -> dict[str, float]:
        """Time in a span that calls of each function take, ns, without the spans that are claimed already.

        A call is the span's own if most of it is in there. Of calls inside each other the outermost counts, unless
        those of one function within it take nearly all of the span.
        """
        claimed_spans = claimed_spans or ClaimedSpans.nothing()
        # Most of a call that begins earlier than a span's length before the span is outside of it.
        first, last = np.searchsorted(self.begin_ns, (2 * begin - end, end), "left")
        rows = np.arange(first, last)
        since, until = np.maximum(self.begin_ns[rows], begin), np.minimum(self.end_ns[rows], end)
        inside = (until - since) - (claimed_spans.before(until) - claimed_spans.before(since))
        own = (until > since) & (2 * (until - since) >= (self.end_ns - self.begin_ns)[rows]) & (inside > 0)
        rows, until, inside = rows[own], until[own], inside[own]
        if not len(rows):
            return {}
        totals: dict[str, float] = {}
        free = (end - begin) - float(claimed_spans.before(np.array(end)) - claimed_spans.before(np.array(begin)))
        for name in np.unique(self.name[rows]).tolist():
            mine = self.name[rows] == name
            totals[self.names[name]] = float(inside[mine & self._outermost(rows, until, mine)].sum())
        nearly = [name for name, total in totals.items() if total >= _COVERS * free]
        if nearly:
            # The innermost of them: what calls it takes as long or longer.
            inner = min(nearly, key=lambda name: totals[name])
            return {inner: min(totals[inner], free)}
        outer = self._outermost(rows, until, np.ones(len(rows), dtype=np.bool_))
        own_ns: dict[str, float] = defaultdict(float)
        for name, each in zip(self.name[rows[outer]].tolist(), inside[outer].tolist(), strict=True):
            own_ns[self.names[name]] += each
        over = max(sum(own_ns.values()) / free, 1.0)
        return {name: took / over for name, took in own_ns.items()}

    def _outermost(self, rows: Ints, until: Ints, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the chosen calls are inside no other chosen one."""
        places = np.flatnonzero(mask)
        outer = np.zeros(len(rows), dtype=np.bool_)
        if len(places):
            reach = np.maximum.accumulate(until[places])
            outer[places[0]] = True
            # By their middle: ends are rounded, so that neighbours overlap and inner calls outlast outer ones.
            middle = (self.begin_ns[rows[places]] + until[places]) // 2
            outer[places[1:]] = middle[1:] >= reach[:-1]
        return outer
