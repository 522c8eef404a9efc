"""The PyTorch profiler's (Kineto's) Chrome trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from nodewise.plugin import Trace, TraceSource
from nodewise_replay.readers.assemble import assembled
from nodewise_replay.readers.events import EventTable
from nodewise_replay.readers.header import header_of
from nodewise_replay.readers.refusals import refused
from nodewise_replay.readers.stream import ChromeStream

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

    def recognises(self, head: bytes, source: TraceSource) -> bool:
        """A JSON document (or a bare list) with the profiler's own members; one with a mapping is for ``chrome``."""
        starts = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        return (
            starts in {b"{", b"["}
            and any(mark in head for mark in _MARKS)
            and not source.mapping.keys() - {"step", "communication"}
        )

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
