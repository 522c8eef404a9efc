"""Batches of decoded events, gathered into columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, EventKind, Ints, Lane
from nodewise_replay.readers.categories import CATEGORY_KINDS, CUDA_SYNC, DEVICE_KINDS
from nodewise_replay.readers.names import Names
from nodewise_replay.readers.numbers import integer_or, small_or

__all__ = ["COLLECTIVE_KEYS", "Columns", "EventTable"]

COLLECTIVE_KEYS: Final = ("Collective name", "Input Dims")
"""Arguments that make those of an event worth keeping, if its name is a communication's."""

Event = Mapping[str, Any]
_NONE: Final[Event] = {}
_MEMORY: Final = "[memory]"
_ANNOTATIONS: Final = ("ProfilerStep#", "nccl:", "gloo:", "## ", "Optimizer.", "enumerate(DataLoader)")
"""Beginnings of annotations' names, which older recorders file among the operators."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Events as columns, in the order of the file; meanings as in Trace."""

    name: NDArray[np.int32]
    lane: NDArray[np.int32]
    kind: NDArray[np.int8]
    begin_ns: Ints
    duration_ns: Ints
    correlation: Ints
    sequence: Ints
    forward_thread: Ints
    bytes: Ints


_TYPES: Final = (np.int32, np.int32, np.int8, *(np.int64,) * 6)


@dataclass(slots=True)
class EventTable:
    """What was decoded so far: dense columns of spans, and lists of the few rows of other kinds."""

    names: Names = field(default_factory=Names)
    lanes: dict[tuple[int, Any, Any], int] = field(default_factory=dict)
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    arguments: dict[int, Event] = field(default_factory=dict)
    """Arguments of communication's events, by row."""
    syncs: list[Event] = field(default_factory=list)
    memory: list[tuple[int, Event]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    _batches: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def add(self, events: list[Any], begins_ns: Iterable[int], durations_ns: Iterable[int]) -> None:
        """Take a batch; what makes no sense is counted as ``malformed``."""
        columns: tuple[list[int], ...] = tuple([] for _ in _TYPES)
        for event, begin_ns, duration_ns in zip(events, begins_ns, durations_ns, strict=True):
            try:
                self._add(event, begin_ns, duration_ns, columns)
            except (TypeError, ValueError, AttributeError, OverflowError):
                self.counts["malformed"] += 1
        self._batches.append(tuple(np.array(column, dtype) for column, dtype in zip(columns, _TYPES)))

    def _add(self, event: Event, begin_ns: int, duration_ns: int, columns: tuple[list[int], ...]) -> None:
        phase = event.get("ph", "X")
        arguments = event.get("args") or _NONE
        name = str(event.get("name", ""))
        if phase == "M":
            if name == "thread_name":
                key = (integer_or(event.get("pid"), NO_EVENT), integer_or(event.get("tid"), NO_EVENT))
                self.thread_names[key] = str(arguments.get("name", "")).strip()
            return
        if phase in "iI":
            if name == _MEMORY:
                self.memory.append((begin_ns, arguments))
            return
        if phase != "X":
            self.counts[f"phase_{phase}"] += 1
            return
        category = str(event.get("cat", "")).lower()
        if category == CUDA_SYNC:
            self.syncs.append(arguments)
            return
        kind = CATEGORY_KINDS.get(category, EventKind.OTHER)
        if kind == EventKind.OPERATOR and name.startswith(_ANNOTATIONS):
            kind = EventKind.ANNOTATION
        lane = self._lane(event, arguments, kind)
        if duration_ns < 0:
            self.counts["negative_durations"] += 1
            duration_ns = 0
        row = (
            self.names[name],
            lane,
            int(kind),
            begin_ns,
            duration_ns,
            integer_or(arguments.get("correlation"), NO_EVENT),
            integer_or(arguments.get("Sequence number"), NO_EVENT),
            integer_or(arguments.get("Fwd thread id"), 0),
            small_or(arguments.get("bytes"), NO_EVENT),
        )
        if any(key in arguments for key in COLLECTIVE_KEYS) and _communicates(name):
            self.arguments[self.rows] = arguments
        for column, value in zip(columns, row):
            column.append(value)
        self.rows += 1

    def _lane(self, event: Event, arguments: Event, kind: EventKind) -> int:
        key: tuple[int, Any, Any]
        if kind in DEVICE_KINDS:
            tid = event.get("tid")
            stream = tid.removeprefix("stream ") if isinstance(tid, str) else tid
            key = (
                0,
                small_or(arguments.get("device"), integer_or(event.get("pid"), 0)),
                small_or(arguments.get("stream"), integer_or(stream, 0)),
            )
        else:
            key = (1, integer_or(event.get("pid"), NO_EVENT), integer_or(event.get("tid"), NO_EVENT))
        return self.lanes.setdefault(key, len(self.lanes))

    def lane_of_stream(self, device: int, stream: int) -> int:
        """The lane of a stream, also of one on which nothing ran."""
        return self.lanes.setdefault((0, device, stream), len(self.lanes))

    def lane_values(self) -> tuple[Lane, ...]:
        """All lanes by number."""
        return tuple(
            Lane(device=-1, number=third, name=self.thread_names.get((second, third), ""))
            if host
            else Lane(device=second, number=third, name=f"stream {third}")
            for host, second, third in self.lanes
        )

    def columns(self) -> Columns:
        """Everything so far."""
        if not self._batches:
            return Columns(*(np.zeros(0, dtype) for dtype in _TYPES))
        return Columns(*(np.concatenate(parts) for parts in zip(*self._batches)))


def _communicates(name: str) -> bool:
    return "nccl" in name or name.startswith(("record_param_comms", "c10d::", "gloo:"))
