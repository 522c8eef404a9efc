"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import DiagnoserRecord, EstimatorRecord, TraceReaderRecord, hookimpl
from nodewise_replay.readers.kineto import KinetoReader

__all__ = ["nodewise_diagnosers", "nodewise_estimators", "nodewise_trace_readers"]

VERSION: Final = "1.0"
"""Of readers and rules: another version may find something else in the same trace."""


@hookimpl
def nodewise_trace_readers() -> list[TraceReaderRecord]:
    """Readers of what profilers write."""
    return [
        TraceReaderRecord(
            name="kineto",
            version=VERSION,
            description="Chrome traces of the PyTorch profiler (Kineto): CUDA, ROCm and CPU.",
            reader=KinetoReader(),
        )
    ]


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Step times of other worlds and links, from the traces of one."""
    return []


@hookimpl
def nodewise_diagnosers() -> list[DiagnoserRecord]:
    """Where the time of recorded steps goes."""
    return []
