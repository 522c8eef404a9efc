"""The recorded timeline, on one clock, for comparison with the replayed one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, freeze
from nodewise.domain.replay import Timeline
from nodewise.plugin import EventKind, Lane, Trace

__all__ = ["lane_name", "recorded_timeline"]

COLLECTIVE: Final = "collective"
KINDS: Final = (*(kind.name.lower() for kind in EventKind), COLLECTIVE)


def recorded_timeline(traces: Sequence[Trace], clock_offset_s: Floats, steps: Sequence[int]) -> Timeline | None:
    """Events of some steps of each trace; None where the traces hold no times or none of these steps.

    Parameters
    ----------
    clock_offset_s : (ranks,) float
        Clock of each trace's rank minus that of the first.
    steps : sequence of int
        Ordinals, from 1; empty = all.
    """
    offsets = np.rint(np.asarray(clock_offset_s) * 1e9).astype(np.int64)
    windows = [
        (trace, window, int(offset))
        for trace, offset in zip(traces, offsets)
        if trace.timed and (window := _window(trace, steps)) is not None
    ]
    if not windows:
        return None
    origin = min(window[0] - offset for _, window, offset in windows)
    lanes: dict[str, int] = {}
    names: dict[str, int] = {}
    parts: list[dict[str, Ints]] = []
    for trace, (begin, end), offset in windows:
        rows = np.flatnonzero((trace.begin_ns < end) & (trace.end_ns > begin))
        parts.append(
            {
                "rank": np.full(len(rows), trace.rank, dtype=np.int64),
                "lane": _recode(lanes, [lane_name(lane) for lane in trace.lanes], trace.lane[rows]),
                "name": _recode(names, trace.names, trace.name[rows]),
                "begin_ns": trace.begin_ns[rows] - offset - origin,
                "duration_ns": trace.duration_ns[rows],
                "kind": _kinds_of(trace)[rows],
            }
        )
    columns: dict[str, Any] = {name: freeze(np.concatenate([part[name] for part in parts])) for name in parts[0]}
    return Timeline(**columns, lanes=tuple(lanes), names=tuple(names), kinds=KINDS)


def with_kinds(timeline: Timeline, traces: Sequence[Trace]) -> Timeline:
    """A timeline with kinds of events: where the diagnoser states none, the kinds of the names in the traces."""
    if len(timeline.kind):
        return timeline
    kind_by_name: dict[str, int] = {}
    for trace in traces:
        kinds = _kinds_of(trace)
        # The last event of a name decides, and exchanges come last.
        order = np.argsort(kinds, kind="stable")
        last = np.full(len(trace.names), -1, dtype=np.int64)
        last[trace.name[order]] = kinds[order]
        kind_by_name.update((name, kind) for name, kind in zip(trace.names, last.tolist()) if kind >= 0)
    by_name = np.array([kind_by_name.get(name, EventKind.OTHER) for name in timeline.names], dtype=np.int64)
    return replace(timeline, kind=freeze(by_name[timeline.name] if len(timeline) else by_name[:0]), kinds=KINDS)


def _kinds_of(trace: Trace) -> Ints:
    """Indexes into KINDS, by event."""
    kinds = trace.kind.astype(np.int64)
    kinds[trace.collectives.event] = len(KINDS) - 1
    return kinds


def lane_name(lane: Lane) -> str:
    """A lane for people: a stream of a device, or a host thread."""
    suffix = f" {lane.name}" if lane.name else ""
    if lane.is_host:
        return f"thread {lane.number}{suffix}"
    return f"device {lane.device} stream {lane.number}{suffix}"


def _window(trace: Trace, steps: Sequence[int]) -> tuple[int, int] | None:
    """Begin of the first and end of the last of some steps, ns on the trace's clock."""
    places = [step - 1 for step in steps if 0 < step <= len(trace.steps)] if steps else range(len(trace.steps))
    if not places:
        return None
    rows = np.array(places)
    return int(trace.steps.begin_ns[rows].min()), int(trace.steps.end_ns[rows].max())


def _recode(dictionary: dict[str, int], words: Sequence[str], index: NDArray[np.integer]) -> Ints:
    """Indexes into ``words`` as indexes into a shared dictionary, to which the words in use are added."""
    codes, inverse = np.unique(index, return_inverse=True)
    places = np.array([dictionary.setdefault(words[word], len(dictionary)) for word in codes.tolist()], dtype=np.int64)
    return places[inverse] if len(places) else np.zeros(0, dtype=np.int64)
