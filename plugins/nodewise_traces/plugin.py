"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import TraceReader, TraceReaderRecord, hookimpl
from nodewise_traces.formats.chakra import ChakraReader
from nodewise_traces.formats.chrome import ChromeReader
from nodewise_traces.formats.dpro import DproReader
from nodewise_traces.formats.kineto import KinetoReader

__all__ = ["nodewise_trace_readers"]

VERSION: Final = "1.3"
"""Of what is read: columns are kept by it, so a reader that finds something else in the same trace has another one."""


@hookimpl
def nodewise_trace_readers() -> list[TraceReaderRecord]:
    """Readers of what profilers write."""
    readers: tuple[tuple[str, str, TraceReader], ...] = (
        ("kineto", "Chrome traces of the PyTorch profiler (Kineto): CUDA, ROCm and CPU.", KinetoReader()),
        ("chakra", "Chakra execution traces: protobuf and JSON.", ChakraReader()),
        ("dpro", "dPRO's JSON traces.", DproReader()),
        ("chrome", "Chrome traces of any recorder, with a mapping of names.", ChromeReader()),
    )
    return [
        TraceReaderRecord(name=name, version=VERSION, description=description, reader=reader)
        for name, description, reader in readers
    ]
