"""The PyTorch profiler's (Kineto's) Chrome trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO, Final

import numpy as np

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.assemble import assemble_trace
from nodewise_traces.events.events import STREAM_EVENTS, Columns, EventTable, scan
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


_DEVICE: Final = re.compile(r"^(?:Ascend Hardware|/device:(?!CPU))")
"""Processes that represent devices: of torch_npu, whose work states no stream, and of XLA."""


class KinetoReader:
    """Reads Chrome traces of the PyTorch profiler: CUDA, ROCm and CPU; names of today and of older releases."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A JSON document (or a bare list) with members of this profiler, unless the mapping asks for more."""
        if not starts_json(head) or source.mapping.keys() - {"step", "communication"}:
            return 0.0
        return 0.8 if any(mark in head for mark in _MARKS) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read the events of one rank. See TraceReader."""
        table, members = scan(stream, source)
        header = header_of(members, source)
        for group in header.groups:
            table.groups.learn(group)
        return [assemble_trace(table, _with_devices(table), header, source, NAME)]


def _with_devices(table: EventTable) -> Columns:
    """Columns in which what runs on processes that are devices by their names is work."""
    lanes, columns = table.lanes, table.columns()
    devices = sorted(process for process, text in lanes.process_names.items() if _DEVICE.search(text))
    if not devices:
        return columns
    lanes.device_processes.update((process, number) for number, process in enumerate(devices))
    waits = np.array([bool(STREAM_EVENTS.search(text)) for text in table.names.texts()], dtype=np.bool_)
    kind = columns.kind.copy()
    works = (kind == EventKind.OTHER) & lanes.device_lanes()[columns.lane] & ~waits[columns.name]
    kind[works] = EventKind.KERNEL
    return replace(columns, kind=kind)
