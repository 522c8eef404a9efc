"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import TraceReader, TraceReaderRecord, hookimpl
from nodewise_traces.formats.chakra import ChakraReader
from nodewise_traces.formats.chrome import ChromeReader
from nodewise_traces.formats.dpro import DproReader
from nodewise_traces.formats.flight_recorder import FlightRecorderReader
from nodewise_traces.formats.kineto import KinetoReader
from nodewise_traces.formats.nsight import NsightReader
from nodewise_traces.formats.perfetto import PerfettoReader
from nodewise_traces.formats.rocprof_csv import RocprofCsvReader
from nodewise_traces.formats.rocprof_json import RocprofJsonReader
from nodewise_traces.formats.xla_json import XlaJsonReader
from nodewise_traces.formats.xplane import XplaneReader

__all__ = ["nodewise_trace_readers"]

VERSION: Final = "1.3"
"""Of what is read: columns are kept by it, so a reader that finds something else in the same trace has another one."""


@hookimpl
def nodewise_trace_readers() -> list[TraceReaderRecord]:
    """Readers of what profilers write."""
    readers: tuple[tuple[str, str, TraceReader], ...] = (
        ("kineto", "Chrome traces of the PyTorch profiler (Kineto): CUDA, ROCm and CPU.", KinetoReader()),
        ("chakra", "Chakra execution traces: protobuf and JSON, and PyTorch's.", ChakraReader()),
        ("dpro", "dPRO's JSON traces.", DproReader()),
        ("flight-recorder", "Dumps of PyTorch's flight recorder: JSON and pickle.", FlightRecorderReader()),
        ("nsight", "Nsight Systems' exports to SQLite.", NsightReader()),
        ("perfetto", "Perfetto's traces: track events; rocprofv3's among them.", PerfettoReader()),
        ("rocprof-csv", "rocprofv3's and rocprof's tables.", RocprofCsvReader()),
        ("rocprof-json", "rocprofv3's JSON.", RocprofJsonReader()),
        ("xla-json", "JAX's and TensorFlow's profiles: JSON for the trace viewer.", XlaJsonReader()),
        ("xplane", "JAX's and TensorFlow's profiles: XPlane.", XplaneReader()),
        ("chrome", "Chrome traces of any recorder, with a mapping of names.", ChromeReader()),
    )
    return [
        TraceReaderRecord(name=name, version=VERSION, description=description, reader=reader)
        for name, description, reader in readers
    ]
