"""Traces: the recorded events of one rank of a job, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Ints, freeze

__all__ = [
    "NO_EVENT",
    "CollectiveKind",
    "Collectives",
    "EventKind",
    "Frames",
    "Lane",
    "MemorySamples",
    "ProcessGroup",
    "SyncKind",
    "SyncRecords",
    "Trace",
    "TraceReport",
    "TraceSource",
    "TraceSteps",
]

NO_EVENT = -1
"""Value of an index, correlation or sequence number that an event does not have."""

SmallInts = NDArray[np.int32]
Codes = NDArray[np.int8]


class EventKind(IntEnum):
    """Kind of an event, independent of the recorder's name for it."""

    OPERATOR = 0
    """A framework's operator on a host thread."""
    ANNOTATION = 1
    """A span that a user or a library named on a host thread."""
    CALL = 2
    """A call of the device's runtime or driver on a host thread."""
    KERNEL = 3
    """A kernel on a device's stream; those of collectives included."""
    COPY = 4
    """A copy on a device's stream."""
    FILL = 5
    """A fill of memory on a device's stream."""
    OTHER = 6
    """Anything else that takes time on its lane."""


class CollectiveKind(IntEnum):
    """Kind of an exchange between ranks."""

    UNKNOWN = 0
    ALL_REDUCE = 1
    REDUCE = 2
    ALL_GATHER = 3
    GATHER = 4
    SCATTER = 5
    BROADCAST = 6
    ALL_TO_ALL = 7
    REDUCE_SCATTER = 8
    SEND = 9
    RECEIVE = 10
    BARRIER = 11
    PUSH = 12
    """Gradients to a parameter server."""
    PULL = 13
    """Parameters from a parameter server."""


class SyncKind(IntEnum):
    """What a recorded synchronisation waits for."""

    STREAM_WAIT = 0
    """A stream waits for an event of another one."""
    EVENT = 1
    """The host waits for an event."""
    STREAM = 2
    """The host waits for a stream."""
    DEVICE = 3
    """The host waits for everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A sequence of events (or nested events): a host thread, or a stream of a device.

    ``device`` is -1 for a host thread; ``number`` is the thread's or the stream's.
    """

    device: int
    number: int
    name: str = ""

    @property
    def is_host(self) -> bool:
        """Whether it is a host thread."""
        return self.device < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessGroup:
    """Ranks of an exchange. ``ranks`` is empty where the recorder cut or omitted the list; ``size`` 0 = not known."""

    name: str
    size: int = 0
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Records:
    """Columns of a recorder's statements besides events; columns of kinds hold small integers."""

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        names = [each.name for each in fields(cls) if each.default is MISSING]
        columns: dict[str, Any] = {
            name: freeze(np.zeros(0, dtype=np.int8 if name == "kind" else np.int64)) for name in names
        }
        return cls(**columns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Collectives(_Records):
    """Exchanges between ranks as columns, one row per exchange that took place on this rank, by launch.

    Attributes
    ----------
    event : int
        The event whose span it is: the kernel on a device, the library's span on a host thread.
    call : int
        The host event that issued it (the framework's operator); -1 = not known.
    kind : CollectiveKind
    group : int
        Index into ``groups``; -1 = not known.
    in_bytes, out_bytes : int
        Bytes that this rank puts in and takes out; -1 = not known.
    sequence : int
        The recorder's own count within the group; -1 = none.
    peer : int
        The other rank of SEND, RECEIVE, PUSH and PULL, or the root; -1 = none.
    """

    event: Ints
    call: Ints
    kind: Codes
    group: Ints
    in_bytes: Ints
    out_bytes: Ints
    sequence: Ints
    peer: Ints
    groups: tuple[ProcessGroup, ...] = ()

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SyncRecords(_Records):
    """Synchronisations that the recorder states, as columns.

    Attributes
    ----------
    kind : SyncKind
    correlation : int
        Of the call that synchronises; -1 = not known.
    lane : int
        The stream that waits or is waited for; -1 = all, or not known.
    awaited_lane : int
        STREAM_WAIT and EVENT: the stream whose event is awaited; -1 = not resolved.
    awaited_correlation : int
        Of the call that recorded that event; -1 = not resolved.
    """

    kind: Codes
    correlation: Ints
    lane: Ints
    awaited_lane: Ints
    awaited_correlation: Ints

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TraceSteps:
    """Training steps of the host, ascending: the number that the job gave each, when it began and ended (ns)."""

    number: Ints
    begin_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MemorySamples(_Records):
    """Memory that the framework's allocator held, as columns: when (ns), on which device (-1 = host), bytes."""

    time_ns: Ints
    device: Ints
    allocated_bytes: Ints

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Frames(_Records):
    """Calls of the interpreter's functions, as columns in order of begin, longer ones first, so that they nest.

    Long calls, and of short ones the outermost.

    ``name`` and ``lane`` are indexes into the trace's; ``begin_ns`` and ``duration_ns`` as those of its events.
    """

    name: Ints
    lane: Ints
    begin_ns: Ints
    duration_ns: Ints

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """A reader's counts by name (``events``, ``device_events_linked``, ``malformed`` ...), and warnings."""

    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSource:
    """Facts of a trace besides its bytes.

    Attributes
    ----------
    name : str
        File name without directories; may tell the format and nothing else.
    rank, world_size : int
        As the sender states them; -1 and 0 = taken from the trace.
    mapping : mapping of str to str
        For generic Chrome traces: the kinds of categories or names (see docs/reference/replay.md).
    """

    name: str = ""
    rank: int = -1
    world_size: int = 0
    mapping: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trace:
    """The trace of one rank. Events are columns in order of begin, longer ones first, so that spans nest.

    Attributes
    ----------
    rank, world_size : int
        Process that recorded it and how many there were; world_size 0 = not known.
    format : str
        Name of the reader.
    names : tuple of str
        Dictionary of ``name``; paths, host and user names are stripped.
    name, lane : (events,) int32
        Indexes into ``names`` and ``lanes``.
    kind : (events,) int8
        EventKind.
    begin_ns, duration_ns : (events,) int64
        On the rank's own clock; instants last 0. Where ``timed`` is False, begins are 0.
    correlation : (events,) int64
        Links a call to the device's work that it launched; -1 = none.
    sequence, forward_lane : (events,) int64, int32
        Of operators: a backward operator's sequence number equals its forward operator's, which ran on
        ``forward_lane``; -1 = none.
    bytes : (events,) int64
        Of copies and fills; -1 = not known.
    dependencies : (edges, 2) int64
        (before, after) events where the trace states its own edges (Chakra, dPRO); else empty.
    timed : bool
        Whether begins are recorded.
    devices : tuple of str
        Names of the devices, by number; empty = not known.
    """

    rank: int
    world_size: int
    format: str
    names: tuple[str, ...]
    name: SmallInts
    lanes: tuple[Lane, ...]
    lane: SmallInts
    kind: Codes
    begin_ns: Ints
    duration_ns: Ints
    correlation: Ints
    sequence: Ints
    forward_lane: SmallInts
    bytes: Ints
    steps: TraceSteps
    collectives: Collectives = field(default_factory=Collectives.none)
    syncs: SyncRecords = field(default_factory=SyncRecords.none)
    memory: MemorySamples = field(default_factory=MemorySamples.none)
    frames: Frames = field(default_factory=Frames.none)
    dependencies: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    timed: bool = True
    devices: tuple[str, ...] = ()
    report: TraceReport = field(default_factory=TraceReport)

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def recorded_events(self) -> int:
        """Number of recorded events, including those that the reader left out and counted."""
        return self.report.counts.get("events", len(self))

    @property
    def end_ns(self) -> Ints:
        """When every event ended."""
        ends: Ints = self.begin_ns + self.duration_ns
        return ends
