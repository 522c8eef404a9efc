"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import TraceReaderRecord, hookimpl, lazy_object

__all__ = ["nodewise_trace_readers"]

VERSION: Final = "1.3"
"""Of what is read: columns are kept by it, so a reader that finds something else in the same trace has another one."""


@hookimpl
def nodewise_trace_readers() -> list[TraceReaderRecord]:
    """Readers of what profilers write."""
    readers = (
        ("kineto", "Chrome traces of the PyTorch profiler (Kineto): CUDA, ROCm and CPU.", "kineto:KinetoReader"),
        ("chakra", "Chakra execution traces: protobuf and JSON, and PyTorch's.", "chakra:ChakraReader"),
        ("dpro", "dPRO's JSON traces.", "dpro:DproReader"),
        (
            "flight-recorder",
            "Dumps of PyTorch's flight recorder: JSON and pickle.",
            "flight_recorder:FlightRecorderReader",
        ),
        ("nsight", "Nsight Systems' exports to SQLite.", "nsight:NsightReader"),
        ("perfetto", "Perfetto's traces: track events; rocprofv3's among them.", "perfetto:PerfettoReader"),
        ("rocprof-csv", "rocprofv3's and rocprof's tables.", "rocprof_csv:RocprofCsvReader"),
        ("rocprof-json", "rocprofv3's JSON.", "rocprof_json:RocprofJsonReader"),
        ("xla-json", "JAX's and TensorFlow's profiles: JSON for the trace viewer.", "xla_json:XlaJsonReader"),
        ("xplane", "JAX's and TensorFlow's profiles: XPlane.", "xplane:XplaneReader"),
        ("chrome", "Chrome traces of any recorder, with a mapping of names.", "chrome:ChromeReader"),
    )
    return [
        TraceReaderRecord(
            name=name,
            version=VERSION,
            description=description,
            reader=lazy_object(f"nodewise_traces.formats.{place}", "recognises", "read"),
        )
        for name, description, place in readers
    ]
