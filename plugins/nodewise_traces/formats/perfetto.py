"""Perfetto's own traces (``.pftrace``, ``.perfetto-trace``): track events with interned names; rocprofv3's among them.

Fields are those of Perfetto's protos: https://perfetto.dev/docs/reference/trace-packet-proto. What a mapping says of
processes and tracks is for any recorder; the categories of rocprofv3 and of the PyTorch profiler are known.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.header import header_of
from nodewise_traces.events.names import KeyNumbers
from nodewise_traces.events.rows import STEP_NAMES, Rows
from nodewise_traces.events.step_spans import pattern_of
from nodewise_traces.formats.protobuf import WireError, fields_of, integers_of, members, signed_integer
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.numbers import small_or

__all__ = ["PerfettoReader"]

NAME: Final = "perfetto"
_MISSING: Final = "the trace holds no slice with a begin and an end: only track events are read, no counters or samples"
_LARGEST_UNPACKED_BYTES: Final = 1 << 31
"""Limit of all compressed packets together: more is an attempt to fill the memory."""
_PACKET_UNPACKED_BYTES: Final = 1 << 26
_CLEARED: Final = 1
_BEGIN, _END = 1, 2
_MOST_OPEN: Final = 1 << 10
"""Slices that are nested on a track."""
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
_OWN_CLOCKS: Final = 64
_INTERNED: Final = frozenset({1, 2, 3})
"""Interned texts that are used: categories, names of events, names of their arguments."""
_CORRELATIONS: Final = frozenset({"corr_id", "correlation", "correlation_id"})


_Message = tuple[dict[int, int], dict[int, list[bytes]]]
"""Numbers of a message by field, the first of each; and fields with a length, all of each."""


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
    """State of one writer: interned texts, defaults, and its clock."""

    names: dict[tuple[int, int], str] = field(default_factory=dict)
    """By field of the interned data and number."""
    clock: int = 0
    track: int = 0
    clocks: dict[int, list[int]] = field(default_factory=dict)
    """Last time, multiplier and whether times are stated as differences, by clock."""

    def time_ns(self, time: int, clock: int) -> int:
        """A packet's time in nanoseconds."""
        snapshot = self.clocks.get(clock or self.clock)
        if snapshot is None:
            return time
        last, multiplier, incremental = snapshot
        if not incremental:
            return time * multiplier
        snapshot[0] = last + time * multiplier
        return snapshot[0]


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
                raise unusable_error(
                    source, f"the stream is not a Perfetto trace, or only a part of one ({error}); record it again"
                ) from None
        return [reading.trace()]


def _begins_with_packet(head: bytes) -> bool:
    if head[:1] != b"\x0a":
        return False
    fields: set[int] = set()
    try:
        for number, message in members(io.BytesIO(head)):
            if number != 1:
                return False
            fields |= {one for one, _ in fields_of(message)}
            if fields & {8, 10} and fields & {11, 60, 6}:
                return True
    except (WireError, struct.error):
        pass
    return bool(fields & {8, 10} and fields & {6, 11, 33, 35, 36, 58, 59, 60})


def _packets(stream: BinaryIO) -> Iterator[_Message]:
    """Packets, also of compressed ones."""
    left = _LARGEST_UNPACKED_BYTES
    for number, packet in members(stream):
        if number != 1:
            continue
        numbers, parts = _split(packet)
        if 50 not in parts:
            yield numbers, parts
            continue
        compressed_bytes = b"".join(parts[50])
        packets = zlib.decompressobj().decompress(compressed_bytes, min(_PACKET_UNPACKED_BYTES, left))
        left -= len(packets)
        if left <= 0 or len(packets) >= _PACKET_UNPACKED_BYTES:
            raise WireError("compressed packets hold more bytes than a trace may have")
        yield from (_split(inner) for key, inner in members(io.BytesIO(packets)) if key == 1)


class _Reading:
    """Slices of all tracks, as packets come."""

    def __init__(self, source: TraceSource) -> None:
        self.rows = Rows()
        self._source = source
        self._device = pattern_of(source, "device")
        self._tracks: dict[int, _Track] = {}
        self._sequences: dict[int, _Sequence] = {}
        self._streams: KeyNumbers[int] = KeyNumbers()

    def take(self, packet: _Message) -> None:
        """Add a packet."""
        numbers, parts = packet
        sequence = self._sequences.setdefault(numbers.get(10, 0), _Sequence())
        if numbers.get(41) or numbers.get(13, 0) & _CLEARED:
            sequence.names.clear()
            sequence.clock = sequence.track = 0
        for take, key in ((_take_defaults, 59), (_take_clocks, 6), (_take_names, 12)):
            for part in parts.get(key, ()):
                take(part, sequence)
        for part in parts.get(60, ()):
            self._describe(part)
        if 11 in parts:
            time_ns = sequence.time_ns(numbers.get(8, 0), numbers.get(58, 0))
            for part in parts[11]:
                self._event(part, sequence, time_ns)

    def _describe(self, message: bytes) -> None:
        numbers, parts = _split(message)
        track = self._tracks.setdefault(numbers.get(1, 0), _Track())
        track.parent = numbers.get(5, track.parent)
        for text in (*parts.get(10, ()), *parts.get(2, ())):
            track.name = _text(text) or track.name
        for part in parts.get(3, ()):
            inner, texts = _split(part)
            track.process_id = inner.get(1, track.process_id)
            track.process = "".join(map(_text, texts.get(6, ()))) or track.process
        for part in parts.get(4, ()):
            inner, texts = _split(part)
            track.process_id, track.thread_id = inner.get(1, track.process_id), inner.get(2, track.thread_id)
            track.name = "".join(map(_text, texts.get(5, ()))) or track.name

    def _event(self, message: bytes, sequence: _Sequence, time_ns: int) -> None:
        numbers, parts = _split(message)
        uuid, kind = numbers.get(11, sequence.track), numbers.get(9, 0)
        track = self._tracks.setdefault(uuid, _Track())
        if kind == _BEGIN and len(track.open) < _MOST_OPEN:
            name = "".join(map(_text, parts.get(23, ()))) or sequence.names.get((2, numbers.get(10, 0)), "")
            category = "".join(map(_text, parts.get(22, ())[:1]))
            category_ids = [one for part in parts.get(3, ()) for one in integers_of(part)]
            category = category or sequence.names.get((1, next(iter(category_ids), numbers.get(3, 0))), "")
            track.open.append((time_ns, name, category.lower(), _correlation(parts.get(4, ()), sequence)))
        elif kind == _END and track.open:
            begin_ns, name, category, correlation = track.open.pop()
            self._slice(uuid, name, category, begin_ns, time_ns, correlation)
        else:
            self.rows.table.counts["dropped_other_phases"] += 1

    def _slice(self, uuid: int, name: str, category: str, begin_ns: int, end_ns: int, correlation: int) -> None:
        track = self._tracks[uuid]
        kind = _KINDS.get(category, EventKind.OPERATOR)
        process = self._process(uuid)
        device = self._device
        if device is not None and (device.search(track.name) or device.search(process.process)):
            kind = max(kind, EventKind.KERNEL)
        rows = self.rows
        if kind >= EventKind.KERNEL:
            lane = rows.lane(0, self._streams[uuid])
            rows.table.lanes.thread_names[0, self._streams[uuid]] = track.name
        else:
            # Tracks that are no threads may overlap: slices of two of them need not nest.
            number = track.thread_id or (1 << 40) + self._streams[uuid]
            lane = rows.lane(-1, number, process.process_id)
            rows.table.lanes.thread_names[process.process_id, number] = track.name
        rows.add(name or "(slice)", lane, kind, begin_ns, end_ns - begin_ns, correlation=correlation)

    def _process(self, uuid: int) -> _Track:
        """The track of the process that a track belongs to; the track itself where it does not state one."""
        track = self._tracks[uuid]
        for _ in range(8):
            if track.process or track.process_id or track.parent not in self._tracks:
                break
            track = self._tracks[track.parent]
        return track

    def trace(self) -> Trace:
        """Make the trace of all slices that ended."""
        open_count = sum(len(track.open) for track in self._tracks.values())
        self.rows.table.counts["dropped_unended"] += open_count
        header = header_of({}, self._source)
        return self.rows.trace(header, self._source, NAME, missing=_MISSING, steps=STEP_NAMES)


def _split(message: bytes) -> _Message:
    """The fields of a message."""
    numbers: dict[int, int] = {}
    parts: dict[int, list[bytes]] = {}
    for key, value in fields_of(message):
        if isinstance(value, int):
            numbers.setdefault(key, value)
        else:
            parts.setdefault(key, []).append(value)
    return numbers, parts


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")


def _take_defaults(message: bytes, sequence: _Sequence) -> None:
    numbers, parts = _split(message)
    sequence.clock = numbers.get(58, sequence.clock)
    for part in parts.get(11, ()):
        sequence.track = _split(part)[0].get(11, sequence.track)


def _take_clocks(message: bytes, sequence: _Sequence) -> None:
    """Clocks of the writer's own (numbers from 64 on): their time, unit, and whether times are differences."""
    for part in _split(message)[1].get(1, ()):
        numbers, _ = _split(part)
        clock = numbers.get(1, 0)
        if clock >= _OWN_CLOCKS:
            multiplier = max(numbers.get(4, 1), 1)
            sequence.clocks[clock] = [numbers.get(2, 0) * multiplier, multiplier, numbers.get(3, 0)]


def _take_names(message: bytes, sequence: _Sequence) -> None:
    for key, entries in _split(message)[1].items():
        if key in _INTERNED:
            for entry in entries:
                numbers, texts = _split(entry)
                sequence.names[key, numbers.get(1, 0)] = "".join(map(_text, texts.get(2, ())))


def _correlation(annotations: Sequence[bytes], sequence: _Sequence) -> int:
    for annotation in annotations:
        numbers, texts = _split(annotation)
        name = "".join(map(_text, texts.get(10, ()))) or sequence.names.get((3, numbers.get(1, 0)), "")
        if name in _CORRELATIONS:
            return small_or(signed_integer(numbers.get(3, numbers.get(4, -1))), -1)
    return -1
