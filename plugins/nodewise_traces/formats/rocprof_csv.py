"""Tables of rocprofv3 (``--output-format csv``) and of rocprof: dispatched kernels, copies, calls and markers.

rocprofv3 writes a table of each kind; joined into one file they are one trace. Columns are those of ROCm's
documentation: https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.header import header_of
from nodewise_traces.events.names import KeyNumbers
from nodewise_traces.events.rows import NO_TIME, STEP_NAMES, Rows
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = ["RocprofCsvReader"]

NAME: Final = "rocprof-csv"
_MARKS: Final = (b"Start_Timestamp", b"End_Timestamp"), (b"KernelName", b"BeginNs", b"EndNs")
_LONGEST_LINE_BYTES: Final = 1 << 16
_MISSING: Final = (
    "the table holds no row with a begin and an end; record with rocprofv3 --runtime-trace --output-format csv "
    "and join kernel_trace.csv, hip_api_trace.csv and memory_copy_trace.csv into one file"
)


class RocprofCsvReader:
    """Reads rows by the names in the header before them."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A first line with the columns of times."""
        del source
        first = head.partition(b"\n")[0]
        return 0.9 if any(all(mark in first for mark in marks) for marks in _MARKS) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read the rows of one process. See TraceReader."""
        rows = Rows()
        queues: KeyNumbers[tuple[str, str]] = KeyNumbers()
        header: list[str] = []
        for values in csv.reader(_lines(stream, rows)):
            if _is_header(values):
                header = [value.strip().lower().replace("-", "_") for value in values]
            elif values and not header:
                raise unusable_error(source, "the first line must name the columns, as rocprof writes them")
            elif len(values) == len(header):
                _take(dict(zip(header, values)), rows, queues)
            elif values:
                rows.table.counts["malformed"] += 1
        return [rows.trace(header_of({}, source), source, NAME, missing=_MISSING, steps=STEP_NAMES)]


def _lines(stream: BinaryIO, rows: Rows) -> Iterator[str]:
    """Lines without the rest of those that are longer than any name."""
    buffer = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream
    whole = True
    while line := buffer.readline(_LONGEST_LINE_BYTES):
        is_whole = line.endswith(b"\n")
        if whole and len(line) < _LONGEST_LINE_BYTES:
            # A quote that is never closed would swallow all other lines.
            if line.count(b'"') % 2:
                rows.table.counts["malformed"] += 1
            else:
                yield line.decode("utf-8", errors="replace").replace("\0", "").replace("\r", " ").rstrip()
        elif whole:
            rows.table.counts["malformed"] += 1
        whole = is_whole


def _is_header(values: list[str]) -> bool:
    return "Start_Timestamp" in values or "BeginNs" in values


def _take(row: Mapping[str, str], rows: Rows, queues: KeyNumbers[tuple[str, str]]) -> None:
    begin = integer_or(row.get("start_timestamp", row.get("beginns")), NO_TIME)
    duration = integer_or(row.get("end_timestamp", row.get("endns")), -1) - begin
    # What has no correlation (rocprof before ROCm 6) has 0 on every row.
    correlation = integer_or(row.get("correlation_id"), 0) or -1
    kernel = row.get("kernel_name", row.get("kernelname"))
    if kernel is not None:
        agent = row.get("agent_id", row.get("gpu_id", ""))
        lane = rows.lane(_agent(agent), queues[agent, row.get("queue_id", "")])
        rows.add(kernel, lane, EventKind.KERNEL, begin, duration, correlation=correlation)
    elif "direction" in row:
        name = f"Memcpy {row['direction']}"
        lane = rows.lane(0, queues["copy", row.get("stream_id", "")])
        rows.add(name, lane, EventKind.COPY, begin, duration, correlation=correlation)
    elif "function" in row:
        lane = rows.lane(-1, small_or(row.get("thread_id"), 0), small_or(row.get("process_id"), 0))
        kind = EventKind.ANNOTATION if row.get("domain", "").startswith("MARKER") else EventKind.CALL
        rows.add(row["function"], lane, kind, begin, duration, correlation=correlation)
    else:
        rows.table.counts["dropped_other_tables"] += 1


def _agent(text: str) -> int:
    """A device's number: newer releases write "Agent 4"."""
    return small_or(text.rpartition(" ")[2], 0)
