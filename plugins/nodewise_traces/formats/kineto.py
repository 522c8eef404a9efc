"""The PyTorch profiler's (Kineto's) Chrome trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from nodewise.plugin import Trace, TraceSource
from nodewise_traces.events.assemble import assembled
from nodewise_traces.events.events import EventTable
from nodewise_traces.events.header import header_of
from nodewise_traces.refusals import refused
from nodewise_traces.scanning.decode import starts_json
from nodewise_traces.scanning.stream import ChromeStream

__all__ = ["KinetoReader"]

NAME: Final = "kineto"
_MARKS: Final = (
    b'"schemaVersion"',
    b'"distributedInfo"',
    b'"deviceProperties"',
    b'"cpu_op"',
    b'"user_annotation"',
    b'"cuda_runtime"',
    b'"Operator"',
    b'"Runtime"',
    b'"External id"',
)
"""What only the PyTorch profiler writes."""


class KinetoReader:
    """Reads Chrome traces of the PyTorch profiler: CUDA, ROCm and CPU; names of today and of older releases."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A JSON document (or a bare list) with what the profiler alone writes, unless the mapping asks for more."""
        if not starts_json(head) or source.mapping.keys() - {"step", "communication"}:
            return 0.0
        return 0.8 if any(mark in head for mark in _MARKS) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read the events of one rank. See TraceReader."""
        document = ChromeStream(stream)
        table = EventTable()
        for batch in document.batches():
            table.add(batch)
        if not document.has_events:
            raise refused(source, "the stream has no list of events: neither a member traceEvents nor a bare list")
        table.counts.update(document.counts)
        header = header_of(document.members, source)
        for group in header.groups:
            table.groups.learn(group)
        return [assembled(table, table.columns(), header, source, NAME)]
