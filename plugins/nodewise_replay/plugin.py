"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import DiagnoserRecord, EstimatorRecord, TraceReader, TraceReaderRecord, hookimpl
from nodewise_replay.diagnoser import Replayer
from nodewise_replay.estimator import ReplayEstimator
from nodewise_replay.readers.chakra import ChakraReader
from nodewise_replay.readers.chrome import ChromeReader
from nodewise_replay.readers.dpro import DproReader
from nodewise_replay.readers.kineto import KinetoReader

__all__ = ["nodewise_diagnosers", "nodewise_estimators", "nodewise_trace_readers"]

VERSION: Final = "1.0"
"""Of readers and rules: another version may find something else in the same trace."""


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


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    """Step times of other worlds and links, from the traces of one."""
    return [
        EstimatorRecord(
            name="replay",
            version=VERSION,
            description="Recorded steps replayed with other numbers of ranks and over other links.",
            estimator=ReplayEstimator(),
            capabilities=frozenset({"traces"}),
        )
    ]


@hookimpl
def nodewise_diagnosers() -> list[DiagnoserRecord]:
    """Where the time of recorded steps goes."""
    return [
        DiagnoserRecord(
            name="replay",
            version=VERSION,
            description="Executes recorded steps again, as they were and without what costs time.",
            diagnoser=Replayer(),
        )
    ]
