"""Spans of recorders that write no Chrome trace: rows that become a Trace as scanned events do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import orjson

from nodewise.plugin import NO_EVENT, EventKind, Trace, TraceSource
from nodewise_traces.events.assemble import assemble_trace
from nodewise_traces.events.events import Columns, EventTable
from nodewise_traces.events.exchange_arguments import Exchange
from nodewise_traces.events.header import Header
from nodewise_traces.events.names import KeyNumbers
from nodewise_traces.refusals import unusable_error

__all__ = ["NO_TIME", "STEP_NAMES", "Rows"]

WINDOW: Final = "(recording)"
_LATEST_NS: Final = 2**62
_MOST_NUMBERS: Final = 2**61
"""Threads, streams and processes have smaller numbers; a few recorders write hashes of 64 bits."""
_OF_DEVICES: Final = frozenset({EventKind.KERNEL, EventKind.COPY, EventKind.FILL})
NO_TIME: Final = -_LATEST_NS
"""Begin of a span whose begin is impossible: the span is counted and ignored."""
STEP_NAMES: Final = r"(?i)^(?:ProfilerStep#|(?:train(?:ing)?[ _-]?)?(?:step|iter(?:ation)?)[ _#:=-]*)(\d+)$"
"""Usual names of the ranges that users put around training steps, where no tool names these for them."""
_LONGEST_TEXT: Final = 1 << 16
"""Characters of a name that are looked at; fewer are shown."""


class _Names(KeyNumbers[str]):
    """Numbers of names as they are; the table's own are texts of JSON."""

    def __init__(self, table: EventTable) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, key: str) -> int:
        text = key[:_LONGEST_TEXT].encode("utf-8", errors="replace").decode()
        number = self[key] = self._table.names[orjson.dumps(text)[1:-1]]
        return number


@dataclass(slots=True)
class Rows:
    """The spans of one rank, row by row, and the table that they are assembled with.

    ``table.exchanges``, ``table.groups``, ``table.counts`` and the names of ``table.lanes`` are the reader's to fill.
    """

    table: EventTable = field(default_factory=EventTable)
    _rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    _frames: list[tuple[int, int, int, int]] = field(default_factory=list)
    _names: _Names = field(init=False)

    def __post_init__(self) -> None:
        self._names = _Names(self.table)

    def __len__(self) -> int:
        return len(self._rows)

    def lane(self, device: int, number: int, process: int = 0) -> int:
        """The stream ``number`` of a device, or with device -1 the thread of a process on the host."""
        number = number if -1 <= number < _MOST_NUMBERS else number % _MOST_NUMBERS
        first = (device if device >= 0 else process) % _MOST_NUMBERS
        return self.table.lanes[device >= 0, first, number]

    def add(
        self,
        name: str,
        lane: int,
        kind: EventKind,
        begin_ns: int,
        duration_ns: int,
        *,
        correlation: int = NO_EVENT,
        moved_bytes: int = NO_EVENT,
        exchange: Exchange | None = None,
    ) -> None:
        """Add a span; one with an impossible time or duration is counted as ``malformed``."""
        self.table.counts["events"] += 1
        if not (-_LATEST_NS < begin_ns < _LATEST_NS and 0 <= duration_ns < _LATEST_NS):
            self.table.counts["malformed"] += 1
            return
        if exchange is not None:
            self.table.exchanges[len(self._rows)] = exchange
        numbers = (correlation, moved_bytes)
        correlation, moved_bytes = (number if 0 <= number < _LATEST_NS else NO_EVENT for number in numbers)
        self._rows.append((self._names[name], lane, kind, begin_ns, duration_ns, correlation, moved_bytes))

    def frame(self, name: str, lane: int, begin_ns: int, duration_ns: int) -> None:
        """Take a call of a Python function."""
        self.table.counts["events"] += 1
        if -_LATEST_NS < begin_ns < _LATEST_NS and 0 <= duration_ns < _LATEST_NS:
            self._frames.append((self._names[name], lane, begin_ns, duration_ns))

    def trace(self, header: Header, source: TraceSource, reader: str, *, missing: str, steps: str = "") -> Trace:
        """Make the trace.

        Parameters
        ----------
        missing : str
            What to record where no span is left.
        steps : str
            Names of spans that are steps, where the sender's mapping says nothing.

        Raises
        ------
        NodewiseError
            INVALID_FIELD if no span is left.
        """
        if not self._rows:
            raise unusable_error(source, missing)
        if all(row[2] in _OF_DEVICES for row in self._rows):
            # A window begins and ends on a host: where none was recorded, it is the time of what the devices did.
            begin = min(row[3] for row in self._rows)
            end = max(row[3] + row[4] for row in self._rows)
            for edge in (begin, end):
                self.add(WINDOW, self.lane(-1, 0), EventKind.ANNOTATION, edge, 0)
            self.table.counts["hosts_unrecorded"] = 1
        name, lane, kind, begin_ns, duration_ns, correlation, moved_bytes = np.array(
            self._rows, dtype=np.int64
        ).T.copy()
        none = np.full(len(self._rows), NO_EVENT, dtype=np.int64)
        columns = Columns(
            name=name.astype(np.int32),
            lane=lane.astype(np.int32),
            kind=kind.astype(np.int8),
            begin_ns=begin_ns,
            duration_ns=duration_ns,
            correlation=correlation,
            sequence=none,
            forward_thread=np.zeros_like(none),
            bytes=moved_bytes,
            external=none,
        )
        if self._frames:
            self.table.keep_frames(np.array(self._frames, dtype=np.int64).T)
        if steps and "step" not in source.mapping:
            source = replace(source, mapping={**source.mapping, "step": steps})
        return assemble_trace(self.table, columns, header, source, reader)
