"""A Chrome trace as a stream: batches of events, and the members of the top level around them, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from nodewise.plugin import Ints
from nodewise_traces.scanning._scanner import BROKEN, CLOSED, FULL, resynchronise, scan_events
from nodewise_traces.scanning._text import Bytes, skip_on
from nodewise_traces.scanning.alike import number_texts
from nodewise_traces.scanning.decode import decode_json
from nodewise_traces.scanning.fields import COLUMNS, key_hashes

__all__ = ["Batch", "ChromeStream", "Source"]

CHUNK_BYTES: Final = 1 << 20
EVENTS_PER_BATCH: Final = 1 << 13
LONGEST_EVENT_BYTES: Final = 1 << 20
"""A longer event counts as damaged: an event with shapes and a call stack has a few kilobytes."""
LONGEST_MEMBER_BYTES: Final = 1 << 24
"""A longer member of the top level is ignored: devices and process groups of the largest jobs have less."""
_KEPT_TAIL: Final = 64
"""Bytes in which the beginning of an event may be cut by the end of a chunk."""
_RESCAN_FACTOR: Final = 4
"""Bytes that may be read again after damage, per byte of the file: keeps the time linear for any damage."""

_BLANKS: Final = b" \t\r\n"


class Source(Protocol):
    """Source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; empty at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of events: the bytes that contain them, and the scanner's columns (see ``fields``)."""

    text: bytes
    rows: Ints

    def event(self, row: int) -> dict[str, Any]:
        """One event, decoded whole; empty if that is not possible."""
        value = decode_json(self.text[self.rows[row, 0] : self.rows[row, 1]])
        return value if isinstance(value, dict) else {}

    def number_texts(self, column: int, number: Callable[[bytes], int], only_rows: Ints | None = None) -> Ints:
        """The numbers of the raw texts of a column, of empty ones where there is none; see ``alike.number_texts``."""
        rows = self.rows if only_rows is None else self.rows[only_rows]
        return number_texts(self.text, rows[:, column].clip(0), rows[:, column + 1].clip(0), number)


@dataclass(slots=True)
class ChromeStream:
    """Reads a document from its first byte to its last.

    ``members`` holds the top level without the events, complete when ``batches`` has ended; ``counts`` what was met:
    ``events``, ``malformed``, ``truncated``, ``members_left_out``.
    """

    stream: Source
    events_key: str = "traceEvents"
    members: dict[str, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    has_events: bool = False
    _text: bytes = b""
    _at: int = 0
    _ended: bool = False
    _read_bytes: int = 0
    _rescanned_bytes: int = 0

    def batches(self) -> Iterator[Batch]:
        """Events in the order of the file."""
        first = self._next_byte()
        if first == b"\xef" and self._text.startswith(b"\xef\xbb\xbf", self._at):
            self._at += 3
            first = self._next_byte()
        if first == b"[":
            self._at += 1
            yield from self._events()
        elif first == b"{":
            self._at += 1
            yield from self._document()

    def _document(self) -> Iterator[Batch]:
        """Members of the top level, one after the other."""
        while True:
            byte = self._next_byte()
            if byte == b",":
                self._at += 1
                continue
            if byte != b'"':
                if byte != b"}":
                    self.counts["truncated" if not byte else "malformed"] += 1
                return
            key = self._value()
            byte = self._next_byte()
            if byte != b":":
                self.counts["truncated" if not byte else "malformed"] += 1
                return
            self._at += 1
            if key == self.events_key and self._next_byte() == b"[":
                self._at += 1
                yield from self._events()
                continue
            value = self._value()
            if isinstance(key, str) and value is not None:
                self.members[key] = value

    def _value(self) -> Any:
        """The next value, decoded; None if it is too long or no JSON."""
        self._next_byte()
        state = np.zeros(3, dtype=np.int64)
        parts: list[bytes] = []
        kept_length = 0
        while True:
            begin, end = self._at, len(self._text)
            stop = int(skip_on(self._array(), begin, end, state))
            self._at = end if stop < 0 else stop
            kept_length += self._at - begin
            if kept_length <= LONGEST_MEMBER_BYTES:
                parts.append(self._text[begin : self._at])
            if stop >= 0 or not self._fill():
                break
        value = decode_json(b"".join(parts)) if kept_length <= LONGEST_MEMBER_BYTES else None
        if value is None and parts[:1] != [b"null"]:
            self.counts["members_left_out"] += 1
        return value

    def _events(self) -> Iterator[Batch]:
        """The list of events, from behind its bracket to behind its end."""
        self.has_events = True
        rows = np.empty((EVENTS_PER_BATCH, COLUMNS), dtype=np.int64)
        keys = key_hashes()
        while True:
            why, event_count, self._at, broke_at = scan_events(self._array(), self._at, len(self._text), *keys, rows)
            if event_count:
                self.counts["events"] += event_count
                yield Batch(self._text, rows[:event_count])
            if why == FULL:
                continue
            if why == CLOSED:
                return
            if why == BROKEN or len(self._text) - self._at > LONGEST_EVENT_BYTES:
                self.counts["malformed"] += 1
                if not self._resynchronise(broke_at if why == BROKEN else len(self._text) - _KEPT_TAIL):
                    return
            elif not self._fill():
                self.counts["malformed"] += self._at < len(self._text)
                self.counts["truncated"] += 1
                return

    def _resynchronise(self, broke_at: int) -> bool:
        """Go on at the next event; False = there is none."""
        # From the broken event's beginning if that stays affordable, for what broke may have swallowed others.
        again = broke_at - self._at
        if self._rescanned_bytes + again <= _RESCAN_FACTOR * self._read_bytes:
            self._rescanned_bytes += again
            self._at += 1
        else:
            self._at = max(broke_at, self._at + 1)
        while True:
            at = int(resynchronise(self._array(), self._at, len(self._text)))
            if at >= 0:
                self._at = at
                return True
            self._at = max(self._at, len(self._text) - _KEPT_TAIL)
            if not self._fill():
                self.counts["truncated"] += 1
                return False

    def _next_byte(self) -> bytes:
        """The next byte that is no white space, not consumed; empty at the end."""
        while True:
            rest = self._text[self._at : self._at + 1]
            if rest and rest not in _BLANKS:
                return rest
            if rest:
                self._at += 1
            elif not self._fill():
                return b""

    def _fill(self) -> bool:
        """Read on, and discard the bytes before; False at the end of the stream."""
        if self._ended:
            return False
        chunk = self.stream.read(CHUNK_BYTES)
        if not chunk:
            self._ended = True
            return False
        self._read_bytes += len(chunk)
        before = min(self._at, _KEPT_TAIL)
        self._text = self._text[self._at - before :] + chunk
        self._at = before
        return True

    def _array(self) -> Bytes:
        return np.frombuffer(self._text, dtype=np.uint8)
