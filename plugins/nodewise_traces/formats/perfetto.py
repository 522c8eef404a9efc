"""Perfetto's own traces (``.pftrace``, ``.perfetto-trace``): track events with interned names; rocprofv3's among them.

Fields are those of Perfetto's protos: https://perfetto.dev/docs/reference/trace-packet-proto. What a mapping says of
processes and tracks is for any recorder; the categories of rocprofv3 and of the PyTorch profiler are known.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.header import header_of
from nodewise_traces.events.names import Numbered
from nodewise_traces.events.rows import STEP_NAMES, Rows
from nodewise_traces.events.step_spans import pattern_of
from nodewise_traces.formats.protobuf import WireError, fields_of, members, packed, signed
from nodewise_traces.refusals import refused
from nodewise_traces.scanning.numbers import small_or

__all__ = ["PerfettoReader"]

NAME: Final = "perfetto"
_MISSING: Final = "the trace holds no slice with a begin and an end: only track events are read, no counters or samples"
_LARGEST_UNPACKED_BYTES: Final = 1 << 31
"""Of all compressed packets together: more is no trace but an attempt to fill the memory."""
_PACKET_UNPACKED_BYTES: Final = 1 << 26
_CLEARED: Final = 1
_BEGIN, _END = 1, 2
_MOST_OPEN: Final = 1 << 10
"""Slices that lie in each other on a track."""
_KINDS: Final = {
    "kernel_dispatch": EventKind.KERNEL,
    "kernel": EventKind.KERNEL,
    "memory_copy": EventKind.COPY,
    "gpu_memcpy": EventKind.COPY,
    "gpu_memset": EventKind.FILL,
    "hip_api": EventKind.CALL,
    "hip_runtime_api": EventKind.CALL,
    "hsa_api": EventKind.CALL,
    "cuda_runtime": EventKind.CALL,
    "cuda_driver": EventKind.CALL,
    "cpu_op": EventKind.OPERATOR,
    "marker_api": EventKind.ANNOTATION,
    "user_annotation": EventKind.ANNOTATION,
}
"""Kinds by category, of rocprofv3 and of the PyTorch profiler."""
_PARTS: Final = frozenset({6, 11, 12, 59, 60})
"""Fields of packets that are looked at: clocks, events, interned texts, defaults, descriptors of tracks."""
_CORRELATIONS: Final = frozenset({"corr_id", "correlation", "correlation_id"})


@dataclass(slots=True)
class _Track:
    """Where slices nest; names are the track's own or its thread's, and its process's."""

    name: str = ""
    process: str = ""
    process_id: int = 0
    thread_id: int = 0
    parent: int = 0
    open: list[tuple[int, str, str, int]] = field(default_factory=list)
    """Begin, name, category, correlation of slices that have not ended."""


@dataclass(slots=True)
class _Sequence:
    """What one writer has said before: interned texts, defaults, and its clock."""

    names: dict[tuple[int, int], str] = field(default_factory=dict)
    """By field of the interned data and number."""
    clock: int = 0
    track: int = 0
    clocks: dict[int, list[int]] = field(default_factory=dict)
    """Last time, multiplier and whether times are told as differences, by clock."""

    def time_ns(self, stated: int, clock: int) -> int:
        """A packet's time in nanoseconds."""
        known = self.clocks.get(clock or self.clock)
        if known is None:
            return stated
        last, multiplier, incremental = known
        if not incremental:
            return stated * multiplier
        known[0] = last + stated * multiplier
        return known[0]


class PerfettoReader:
    """Reads track events of one process, or of several on one host, as one rank."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A message whose first fields are packets with a sequence, a clock or a descriptor."""
        del source
        return 0.8 if _begins_with_packet(head) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read all slices. See TraceReader."""
        reading = _Reading(source)
        try:
            for packet in _packets(stream):
                reading.take(packet)
        except (WireError, struct.error, zlib.error) as error:
            reading.rows.table.counts["truncated"] += 1
            if not len(reading.rows):
                raise refused(
                    source, f"the stream is no Perfetto trace or a part of one ({error}); record it again"
                ) from None
        return [reading.trace()]


def _begins_with_packet(head: bytes) -> bool:
    if head[:1] != b"\x0a":
        return False
    found: set[int] = set()
    try:
        for number, message in members(io.BytesIO(head)):
            if number != 1:
                return False
            found |= {one for one, _ in fields_of(message)}
            if found & {8, 10} and found & {11, 60, 6}:
                return True
    except (WireError, struct.error):
        pass
    return bool(found & {8, 10} and found & {6, 11, 33, 35, 36, 58, 59, 60})


def _packets(stream: BinaryIO) -> Iterator[bytes]:
    """Packets, also of compressed ones."""
    left = _LARGEST_UNPACKED_BYTES
    for number, packet in members(stream):
        if number != 1:
            continue
        compressed = b"".join(value for key, value in fields_of(packet) if key == 50 and isinstance(value, bytes))
        if not compressed:
            yield packet
            continue
        unpacked = zlib.decompressobj().decompress(compressed, min(_PACKET_UNPACKED_BYTES, left))
        left -= len(unpacked)
        if left <= 0 or len(unpacked) >= _PACKET_UNPACKED_BYTES:
            raise WireError("compressed packets hold more than a trace does")
        yield from (inner for key, inner in members(io.BytesIO(unpacked)) if key == 1)


class _Reading:
    """Slices of all tracks, as packets come."""

    def __init__(self, source: TraceSource) -> None:
        self.rows = Rows()
        self._source = source
        self._device = pattern_of(source, "device")
        self._tracks: dict[int, _Track] = {}
        self._sequences: dict[int, _Sequence] = {}
        self._streams: Numbered[int] = Numbered()

    def take(self, packet: bytes) -> None:
        """Take a packet."""
        stated = clock = number = flags = 0
        parts: dict[int, list[bytes]] = {}
        for key, value in fields_of(packet):
            if isinstance(value, bytes):
                if key in _PARTS:
                    parts.setdefault(key, []).append(value)
            elif key == 8:
                stated = value
            elif key == 10:
                number = value
            elif key == 13:
                flags = value
            elif key == 58:
                clock = value
            elif key == 41 and value:
                flags |= _CLEARED
        sequence = self._sequences.setdefault(number, _Sequence())
        if flags & _CLEARED:
            sequence.names.clear()
            sequence.clock = sequence.track = 0
        for part in parts.get(59, ()):
            _take_defaults(part, sequence)
        for part in parts.get(6, ()):
            _take_clocks(part, sequence)
        for part in parts.get(12, ()):
            _take_names(part, sequence)
        for part in parts.get(60, ()):
            self._describe(part)
        if 11 in parts:
            time_ns = sequence.time_ns(stated, clock)
            for part in parts[11]:
                self._event(part, sequence, time_ns)

    def _describe(self, message: bytes) -> None:
        told: dict[int, Any] = {}
        for key, value in fields_of(message):
            told[key] = value
        uuid = told.get(1, 0)
        if not isinstance(uuid, int):
            raise WireError("a track without a number")
        track = self._tracks.setdefault(uuid, _Track())
        track.name = _text(told.get(2) or told.get(10)) or track.name
        if isinstance(told.get(5), int):
            track.parent = told[5]
        for key, value in _inner(told.get(3)):
            if key == 1 and isinstance(value, int):
                track.process_id = value
            elif key == 6:
                track.process = _text(value)
        for key, value in _inner(told.get(4)):
            if isinstance(value, int):
                if key == 1:
                    track.process_id = value
                elif key == 2:
                    track.thread_id = value
            elif key == 5:
                track.name = _text(value) or track.name

    def _event(self, message: bytes, sequence: _Sequence, time_ns: int) -> None:
        kind = uuid = -1
        name, category = "", ""
        annotations: list[bytes] = []
        for key, value in fields_of(message):
            if isinstance(value, bytes):
                if key == 23:
                    name = _text(value)
                elif key == 22:
                    category = category or _text(value)
                elif key == 3:
                    category = category or sequence.names.get((1, next(iter(packed(value)), 0)), "")
                elif key == 4:
                    annotations.append(value)
            elif key == 9:
                kind = value
            elif key == 11:
                uuid = value
            elif key == 10:
                name = sequence.names.get((2, value), name)
            elif key == 3:
                category = category or sequence.names.get((1, value), "")
        track = self._tracks.setdefault(sequence.track if uuid < 0 else uuid, _Track())
        if kind == _BEGIN and len(track.open) < _MOST_OPEN:
            track.open.append((time_ns, name, category.lower(), _correlation(annotations, sequence)))
        elif kind == _END and track.open:
            begin_ns, name, category, correlation = track.open.pop()
            self._slice(sequence.track if uuid < 0 else uuid, name, category, begin_ns, time_ns, correlation)
        else:
            self.rows.table.counts["dropped_other_phases"] += 1

    def _slice(self, uuid: int, name: str, category: str, begin_ns: int, end_ns: int, correlation: int) -> None:
        track = self._tracks[uuid]
        kind = _KINDS.get(category, EventKind.OPERATOR)
        process = self._process(uuid)
        device = self._device
        if device is not None and (device.search(track.name) or device.search(process.process)):
            kind = kind if kind >= EventKind.KERNEL else EventKind.KERNEL
        rows = self.rows
        if kind >= EventKind.KERNEL:
            lane = rows.lane(0, self._streams[uuid])
            rows.table.lanes.thread_names[0, self._streams[uuid]] = track.name
        else:
            # A track of its own is no thread: slices of two of them need not nest.
            number = track.thread_id or (1 << 40) + self._streams[uuid]
            lane = rows.lane(-1, number, process.process_id)
            rows.table.lanes.thread_names[process.process_id, number] = track.name
        rows.add(name or "(slice)", lane, kind, begin_ns, end_ns - begin_ns, correlation=correlation)

    def _process(self, uuid: int) -> _Track:
        """The track of the process that a track belongs to, itself where it does not say."""
        track = self._tracks[uuid]
        for _ in range(8):
            if track.process or track.process_id or track.parent not in self._tracks:
                break
            track = self._tracks[track.parent]
        return track

    def trace(self) -> Trace:
        """Make the trace of all slices that ended."""
        unended = sum(len(track.open) for track in self._tracks.values())
        self.rows.table.counts["dropped_unended"] += unended
        header = header_of({}, self._source)
        return self.rows.trace(header, self._source, NAME, missing=_MISSING, steps=STEP_NAMES)


def _inner(value: Any) -> Iterator[tuple[int, Any]]:
    return fields_of(value) if isinstance(value, bytes) else iter(())


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else ""


def _take_defaults(message: bytes, sequence: _Sequence) -> None:
    for key, value in fields_of(message):
        if key == 58 and isinstance(value, int):
            sequence.clock = value
        elif key == 11:
            for inner, number in _inner(value):
                if inner == 11 and isinstance(number, int):
                    sequence.track = number


def _take_clocks(message: bytes, sequence: _Sequence) -> None:
    """Clocks of the writer's own (numbers from 64 on): where they stand, their unit, and how times are told."""
    for key, value in fields_of(message):
        if key != 1:
            continue
        told = {inner: number for inner, number in _inner(value) if isinstance(number, int)}
        if told.get(1, 0) >= 64:
            multiplier = told.get(4, 1) or 1
            sequence.clocks[told[1]] = [told.get(2, 0) * multiplier, multiplier, told.get(3, 0)]


def _take_names(message: bytes, sequence: _Sequence) -> None:
    for key, value in fields_of(message):
        if key in {1, 2, 3}:
            number, name = 0, ""
            for inner, content in _inner(value):
                if inner == 1 and isinstance(content, int):
                    number = content
                elif inner == 2:
                    name = _text(content)
            sequence.names[key, number] = name


def _correlation(annotations: list[bytes], sequence: _Sequence) -> int:
    for annotation in annotations:
        name, content = "", -1
        for key, value in fields_of(annotation):
            if key == 10:
                name = _text(value)
            elif key == 1 and isinstance(value, int):
                name = sequence.names.get((3, value), "")
            elif key in {3, 4} and isinstance(value, int):
                content = signed(value)
        if name in _CORRELATIONS:
            return small_or(content, -1)
    return -1
