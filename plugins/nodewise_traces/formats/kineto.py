"""The PyTorch profiler's (Kineto's) Chrome trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from nodewise.plugin import Trace, TraceSource
from nodewise_traces.events.assemble import assembled
from nodewise_traces.events.events import scanned
from nodewise_traces.events.header import header_of
from nodewise_traces.scanning.decode import starts_json

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
        table, members = scanned(stream, source)
        header = header_of(members, source)
        for group in header.groups:
            table.groups.learn(group)
        return [assembled(table, table.columns(), header, source, NAME)]
