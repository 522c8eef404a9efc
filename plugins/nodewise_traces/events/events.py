"""Batches of scanned events, gathered into columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import NO_EVENT, EventKind, Frames, Ints, TraceSource
from nodewise_traces.events.categories import DROPPED, FRAME, SYNC, Categories
from nodewise_traces.events.exchange_arguments import Exchange, Groups, exchange_of
from nodewise_traces.events.lanes import Lanes
from nodewise_traces.events.names import Names
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.fields import (
    ARGUMENT_KEYS,
    CATEGORY,
    DUR,
    FIRST_ARGUMENT,
    MISSING,
    NAME,
    PHASE,
    PID,
    TID,
    TS,
)
from nodewise_traces.scanning.numbers import integer_or
from nodewise_traces.scanning.stream import Batch, ChromeStream, Source

__all__ = ["STREAM_EVENTS", "Columns", "EventTable", "scan"]

_ARGUMENT: Final = {key: FIRST_ARGUMENT + place for place, key in enumerate(ARGUMENT_KEYS)}
_MEMORY: Final = "[memory]"
_MEMORY_COLUMNS: Final = [
    TS,
    *(_ARGUMENT[key] for key in ("Device Type", "Device Id", "Total Allocated", "Bytes")),
]
_THREAD_NAME: Final = "thread_name"
_PROCESS_NAME: Final = "process_name"
_ANNOTATIONS: Final = ("ProfilerStep#", "nccl:", "gloo:", "## ", "Optimizer.", "enumerate(DataLoader)")
"""Beginnings of annotations' names, which older recorders file among the operators."""
_SHORTEST_FRAME_NS: Final = 500_000
"""There are millions of shorter calls of Python functions. Many of one function may add up to a wait that matters, so
those are kept that are inside no other short one: one of some ten to thirty."""
_MIXING: Final = 1_000_003
"""Combines the numbers of a process and a thread into one; a prime, so that two of a trace hardly ever collide."""
_COPIES: Final = re.compile(r"dma|memcpy|copy", re.IGNORECASE)
STREAM_EVENTS: Final = re.compile(r"^event_|(?:wait|record)_?event|^notify_?(?:wait|record)", re.IGNORECASE)
"""Names of what devices of other makers do on their streams: the first move data, the second pass no time at work."""
_COMMUNICATION: Final = (
    "nccl", "rccl", "msccl", "record_param_comms", "c10d::", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:", "mccl:"
)  # fmt: skip
"""Beginnings of names whose arguments describe exchanges."""

_ANNOTATES: Final = 1
"""Meaning of a name, as bits."""
_COMMUNICATES: Final = 2
_MEMORY_SAMPLE: Final = 4
_NAMES_LANES: Final = 8
_MOVES: Final = 16
_WAITS: Final = 32


@dataclass(frozen=True, slots=True)
class Columns:
    """Spans as columns, in the order of the file; meanings as in Trace."""

    name: NDArray[np.int32]
    lane: NDArray[np.int32]
    kind: NDArray[np.int8]
    begin_ns: Ints
    duration_ns: Ints
    correlation: Ints
    sequence: Ints
    forward_thread: Ints
    bytes: Ints
    external: Ints

    def rows(self, order: Ints) -> Columns:
        """Some spans, in an order."""
        return Columns(*(getattr(self, one.name)[order] for one in fields(self)))


_TYPES: Final = (np.int32, np.int32, np.int8, *(np.int64,) * 7)


@dataclass(slots=True)
class EventTable:
    """All scanned events so far: dense columns of spans, and the few rows of other kinds."""

    names: Names = field(default_factory=Names)
    lanes: Lanes = field(default_factory=Lanes)
    categories: Categories = field(default_factory=Categories)
    groups: Groups = field(default_factory=Groups)
    exchanges: dict[int, Exchange] = field(default_factory=dict)
    """Exchanges described by the arguments of communication events, by row."""
    syncs: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    _texts: list[str] = field(default_factory=list)
    _meanings: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _batches: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    _memory: list[Ints] = field(default_factory=list)
    _frames: list[Ints] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Add a batch; events without a phase or time are counted as ``malformed``."""
        rows = batch.rows
        phase = rows[:, PHASE]
        categories = self.categories
        category = batch.number_texts(CATEGORY, categories.__getitem__)
        code = categories.codes[category]
        frame = (code == FRAME) & (phase == ord("X"))
        kept_frame = np.zeros(len(rows), dtype=np.bool_)
        candidates = np.flatnonzero(frame & (rows[:, DUR] >= 0) & (rows[:, TS] != MISSING))
        thread = rows[candidates, PID] * _MIXING + rows[candidates, TID]
        kept_frame[candidates[_outer(thread, rows[candidates, TS], rows[candidates, DUR])]] = True
        is_dropped = ((code == DROPPED) | (frame & ~kept_frame)) & (phase != ord("M"))
        for label, count in zip(categories.texts(), np.bincount(category[is_dropped]).tolist()):
            if count:
                self.counts[f"dropped_{label}"] += count
        kept_rows = np.flatnonzero(~is_dropped)
        name = np.full(len(rows), NO_EVENT, dtype=np.int64)
        name[kept_rows] = batch.number_texts(NAME, self.names.__getitem__, kept_rows)
        meaning = self._meaning_of(name)
        spans = ~is_dropped & ~kept_frame & (phase == ord("X"))
        instants = ~is_dropped & ((phase == ord("i")) | (phase == ord("I")))
        metadata = phase == ord("M")
        self.counts["malformed"] += int(np.count_nonzero(spans & (rows[:, TS] == MISSING) | (phase == MISSING)))
        self.counts["dropped_instants"] += int(np.count_nonzero(instants & (meaning & _MEMORY_SAMPLE == 0)))
        self.counts["metadata"] += int(np.count_nonzero(metadata))
        self.counts["dropped_other_phases"] += int(
            np.count_nonzero(~is_dropped & ~spans & ~instants & ~metadata & (phase != MISSING))
        )
        spans &= rows[:, TS] != MISSING
        self._add_spans(batch, np.flatnonzero(spans & (code >= 0)), name, code, meaning)
        self._add_frames(batch, np.flatnonzero(kept_frame), name)
        self.syncs.extend(_arguments(batch, row) for row in np.flatnonzero(spans & (code == SYNC)).tolist())
        samples = np.flatnonzero(instants & (meaning & _MEMORY_SAMPLE > 0) & (rows[:, TS] != MISSING))
        self._memory.append(rows[samples][:, _MEMORY_COLUMNS])
        for row in np.flatnonzero(metadata & (meaning & _NAMES_LANES > 0)).tolist():
            self._name_lane(batch.event(row))

    def _meaning_of(self, name: Ints) -> Ints:
        """Meanings of names; each new name is examined once."""
        texts = self.names.texts(len(self._texts))
        if texts:
            self._texts.extend(texts)
            self._meanings = np.append(self._meanings, [_meaning(text) for text in texts])
        if not len(self._meanings):
            return np.zeros(len(name), dtype=np.int64)
        meaning: Ints = np.where(name >= 0, self._meanings[name], 0)
        return meaning

    def _add_spans(self, batch: Batch, spans: Ints, name: Ints, code: NDArray[np.int8], meaning: Ints) -> None:
        rows = batch.rows[spans]
        kind = code[spans].copy()
        kind[(kind == EventKind.OPERATOR) & (meaning[spans] & _ANNOTATES > 0)] = EventKind.ANNOTATION
        on_device = (kind == EventKind.KERNEL) | (kind == EventKind.COPY) | (kind == EventKind.FILL)
        device, stream = rows[:, _ARGUMENT["device"]], rows[:, _ARGUMENT["stream"]]
        # Arguments show what runs on a stream in a category of another recorder.
        other = (kind == EventKind.OTHER) & (stream >= 0)
        kind[other & (meaning[spans] & _WAITS == 0)] = EventKind.KERNEL
        kind[other & (meaning[spans] & (_WAITS | _MOVES) == _MOVES)] = EventKind.COPY
        self.counts["work_of_other_categories"] += int(np.count_nonzero(other & (kind != EventKind.OTHER)))
        on_device |= other
        duration_ns = rows[:, DUR]
        self.counts["durations_missing"] += int(np.count_nonzero(duration_ns == MISSING))
        self.counts["durations_negative"] += int(np.count_nonzero((duration_ns < 0) & (duration_ns != MISSING)))
        has_size = on_device & (kind != EventKind.KERNEL)
        self._batches.append(
            (
                name[spans].astype(np.int32),
                self.lanes.of_rows(batch, spans, on_device, device, stream).astype(np.int32),
                kind,
                rows[:, TS],
                np.maximum(duration_ns, 0),
                _or_none(rows[:, _ARGUMENT["correlation"]]),
                _or_none(rows[:, _ARGUMENT["Sequence number"]]),
                np.maximum(rows[:, _ARGUMENT["Fwd thread id"]], 0),
                np.where(has_size, _or_none(rows[:, _ARGUMENT["bytes"]]), NO_EVENT),
                _or_none(rows[:, _ARGUMENT["External id"]]),
            )
        )
        # All events that state their exchange; of shapes, only those of communication events.
        has_shapes = (rows[:, _ARGUMENT["Input Dims"]] == 1) & (meaning[spans] & _COMMUNICATES > 0)
        has_shapes |= rows[:, _ARGUMENT["Collective name"]] == 1
        for place in np.flatnonzero(has_shapes).tolist():
            row = int(spans[place])
            self.exchanges[self.rows + place] = exchange_of(
                self._texts[int(name[row])], _arguments(batch, row), self.groups
            )
        self.rows += len(spans)

    def _add_frames(self, batch: Batch, frames: Ints, name: Ints) -> None:
        """Keep calls of Python functions: name, lane, begin, duration."""
        unknown = np.full(len(frames), MISSING, dtype=np.int64)
        lane = self.lanes.of_rows(batch, frames, np.zeros(len(frames), dtype=np.bool_), unknown, unknown)
        self._frames.append(np.stack((name[frames], lane, batch.rows[frames, TS], batch.rows[frames, DUR])))

    def keep_frames(self, rows: Ints) -> None:
        """Keep calls of Python functions: name, lane, begin, duration, of which long ones count."""
        self._frames.append(rows[:, rows[3] >= _SHORTEST_FRAME_NS])

    def frames(self, base_ns: int) -> Frames:
        """Calls of Python functions, long ones and the outermost short ones, in order of begin, longer ones first."""
        name, lane, begin, duration = np.concatenate([np.zeros((4, 0), dtype=np.int64), *self._frames], axis=1)
        rows = np.flatnonzero(_outer(lane, begin, duration))
        order = rows[np.lexsort((-duration[rows], begin[rows]))]
        columns = {"name": name, "lane": lane, "begin_ns": begin + base_ns, "duration_ns": duration}
        return Frames(**{key: np.ascontiguousarray(column[order]) for key, column in columns.items()})

    def _name_lane(self, event: dict[str, Any]) -> None:
        """Keep the names of processes and threads, where both are numbers."""
        arguments = event.get("args")
        if not isinstance(arguments, dict):
            return
        process, text = integer_or(event.get("pid"), NO_EVENT), str(arguments.get("name", "")).strip()
        if event.get("name") == _PROCESS_NAME:
            self.lanes.process_names[process] = text
        else:
            self.lanes.thread_names[process, integer_or(event.get("tid"), NO_EVENT)] = text

    def columns(self) -> Columns:
        """All spans so far; the batches are released."""
        empty = tuple(np.zeros(0, dtype) for dtype in _TYPES)
        columns: list[Any] = [np.concatenate(parts) for parts in zip(empty, *self._batches)]
        self._batches.clear()
        return Columns(*columns)

    def memory(self, base_ns: int) -> Ints:
        """Samples of memory, as ``memory_of`` takes them."""
        samples = np.concatenate(self._memory) if self._memory else np.zeros((0, 5), dtype=np.int64)
        samples[:, 0] += base_ns
        return samples


def scan(stream: Source, source: TraceSource) -> tuple[EventTable, Mapping[str, Any]]:
    """All events of a stream, and the members beside them.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if it has no list of events.
    """
    document, table = ChromeStream(stream), EventTable()
    for batch in document.batches():
        table.add(batch)
    if not document.has_events:
        raise unusable_error(source, "the stream has no list of events: neither a member traceEvents nor a bare list")
    table.counts.update(document.counts)
    return table, document.members


def _meaning(name: str) -> int:
    meaning = _ANNOTATES * name.startswith(_ANNOTATIONS) | _COMMUNICATES * name.lower().startswith(_COMMUNICATION)
    meaning |= _MOVES * bool(_COPIES.search(name)) | _WAITS * bool(STREAM_EVENTS.search(name))
    return meaning | _MEMORY_SAMPLE * (name == _MEMORY) | _NAMES_LANES * (name in {_THREAD_NAME, _PROCESS_NAME})


def _outer(thread: Ints, begin: Ints, duration: Ints) -> NDArray[np.bool_]:
    """Calls of functions that are long, or in no other short one of their thread."""
    is_outer: NDArray[np.bool_] = duration >= _SHORTEST_FRAME_NS
    short = np.flatnonzero(~is_outer)
    for number in np.unique(thread[short]):
        mine = short[thread[short] == number]
        since, took = begin[mine], duration[mine]
        later = np.diff(since)
        if not ((later > 0) | ((later == 0) & (np.diff(took) <= 0))).all():  # recorders mostly write them in order
            mine = mine[np.lexsort((-took, since))]
            since, took = begin[mine], duration[mine]
        reach = np.maximum.accumulate(since + took)
        is_outer[mine[0]] = True
        # By their middle: ends are rounded, so that neighbours overlap and inner calls outlast outer ones.
        is_outer[mine[1:]] = since[1:] + took[1:] // 2 >= reach[:-1]
    return is_outer


def _or_none(column: Ints) -> Ints:
    """Negative and missing values are no numbers."""
    return np.where(column < 0, NO_EVENT, column)


def _arguments(batch: Batch, row: int) -> dict[str, Any]:
    arguments = batch.event(row).get("args")
    return arguments if isinstance(arguments, dict) else {}
