"""A rank's trace made ready: nested host events, device work in the order of its streams, launches."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, EventKind, Ints, Trace
from nodewise_replay.alignment.clocks import Clock
from nodewise_replay.building.call_names import POLLING
from nodewise_replay.building.nesting import Nesting, cut_host_threads
from nodewise_replay.graph.graph import matching

__all__ = ["View", "numbers_in", "view_of"]

_DEVICE_KINDS = (EventKind.KERNEL, EventKind.COPY, EventKind.FILL)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class View:
    """What the rules of the graph look at.

    Attributes
    ----------
    begin_ns, end_ns : (events,) int64
        On the common clock.
    nesting : Nesting
    device : (device events,) int
        Events of the device by lane, then by begin.
    launch : (device events,) int
        The call that launched each; -1 = not recorded.
    launched_ns : (device events,) int
        When that call began; where it was not recorded, when the work itself began.
    place : (events,) int
        Position in ``device``; -1 for host events.
    main_lane : int
        The host thread that goes from step to step; -1 = none.
    """

    trace: Trace
    begin_ns: Ints
    end_ns: Ints
    nesting: Nesting
    device: Ints
    launch: Ints
    launched_ns: Ints
    place: Ints
    main_lane: int

    def match_names(self, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
        """Events whose name matches."""
        return matching(self.trace.names, pattern)[self.trace.name]

    @property
    def lane(self) -> NDArray[np.int32]:
        """Lane of every event."""
        return self.trace.lane


def view_of(trace: Trace, clock: Clock) -> View:
    """Make a rank's trace ready; ``clock`` brings its times to the common ones."""
    begin = np.ascontiguousarray(clock.common(trace.begin_ns))
    end = np.maximum(clock.common(trace.end_ns), begin)
    duration = end - begin
    kind = np.asarray(trace.kind)
    on_host = np.array([lane.is_host for lane in trace.lanes], dtype=np.bool_)[trace.lane]
    on_device = ~on_host & np.isin(kind, _DEVICE_KINDS)
    polling = (kind == EventKind.CALL) & matching(trace.names, POLLING)[trace.name]
    host = np.flatnonzero(on_host & ~polling)
    device = np.flatnonzero(on_device)
    device = device[np.lexsort((begin[device], trace.lane[device]))]
    launch = _launches(trace, begin, host, device)
    host = host[_busy_lanes(trace, host, launch)[trace.lane[host]]]
    nesting = cut_host_threads(host, trace.lane, begin, duration)
    place = np.full(len(trace), -1, dtype=np.int64)
    place[device] = np.arange(len(device))
    return View(
        trace=trace,
        begin_ns=begin,
        end_ns=end,
        nesting=nesting,
        device=device,
        launch=launch,
        launched_ns=np.where(launch >= 0, begin[np.maximum(launch, 0)], begin[device]),
        place=place,
        main_lane=_main_lane(trace, host),
    )


def _launches(trace: Trace, begin: Ints, host: Ints, device: Ints) -> Ints:
    """The call behind every piece of device work: of those with its correlation, the last one that began before it."""
    correlation = np.asarray(trace.correlation)
    calls = host[(trace.kind[host] == EventKind.CALL) & (correlation[host] != NO_EVENT)]
    launch = np.full(len(device), -1, dtype=np.int64)
    if not len(calls) or not len(device):
        return launch
    calls = calls[np.lexsort((begin[calls], correlation[calls]))]
    numbers = correlation[calls]
    correlations = correlation[device]
    first, last = np.searchsorted(numbers, correlations, "left"), np.searchsorted(numbers, correlations, "right")
    linked = (last > first) & (correlations != NO_EVENT)
    launch[linked] = calls[last[linked] - 1]
    # A correlation that several calls share: rare, so one by one.
    for position in np.flatnonzero(linked & (last > first + 1)):
        same = calls[first[position] : last[position]]
        earlier = same[begin[same] <= begin[device[position]]]
        launch[position] = earlier[-1] if len(earlier) else same[0]
    return launch


def numbers_in(values: NDArray[np.integer], count: int) -> Ints:
    """Which of the numbers 0 to count - 1 occur, ascending."""
    return np.flatnonzero(np.bincount(values, minlength=count))


def _busy_lanes(trace: Trace, host: Ints, launch: Ints) -> NDArray[np.bool_]:
    """Lanes without host threads whose only calls launch nothing: watchdogs, event polling."""
    busy = np.zeros(len(trace.lanes), dtype=np.bool_)
    busy[trace.lane[host[trace.kind[host] != EventKind.CALL]]] = True
    busy[trace.lane[launch[launch >= 0]]] = True
    return busy


def _main_lane(trace: Trace, host: Ints) -> int:
    """The thread that records the steps; where none does, the one on which most was recorded."""
    if not len(host):
        return -1
    steps = trace.steps
    if len(steps):
        at = np.isin(trace.begin_ns[host], steps.begin_ns) & np.isin(trace.end_ns[host], steps.end_ns)
        marking = host[at & (trace.kind[host] != EventKind.CALL)]
        if len(marking):
            return int(np.bincount(trace.lane[marking]).argmax())
    return int(np.bincount(trace.lane[host]).argmax())
