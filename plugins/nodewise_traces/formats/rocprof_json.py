"""rocprofv3's JSON (``--output-format json``): dispatched kernels, copies, calls of HIP, markers.

Fields are those of ROCm's documentation, one object a process, with numbers for what its tables of texts name:
https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html#json-output-schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

import orjson

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.header import header_of
from nodewise_traces.events.names import KeyNumbers
from nodewise_traces.events.rows import NO_TIME, STEP_NAMES, Rows
from nodewise_traces.refusals import contradiction_error, unusable_error
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = ["RocprofJsonReader"]

NAME: Final = "rocprof-json"
_KEY: Final = "rocprofiler-sdk-tool"
_LARGEST_BYTES: Final = 1 << 28
"""The document is one value and is decoded as a whole, which takes some ten times its size."""
_CALLS: Final = (("hip_api", EventKind.CALL), ("rccl_api", EventKind.OPERATOR), ("marker_api", EventKind.ANNOTATION))
_MISSING: Final = "the document holds no kernel, copy or call with times; record with rocprofv3 --runtime-trace"


class RocprofJsonReader:
    """Reads one trace for each process."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """The tool's name, which is the first member."""
        del source
        return 0.9 if f'"{_KEY}"'.encode() in head[:4096] else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read the records of all processes. See TraceReader."""
        processes = _processes(stream, source)
        if len(processes) > 1 and source.rank >= 0:
            raise contradiction_error(source, f"was sent as rank {source.rank}, but holds {len(processes)} processes")
        traces = []
        for rank, process in enumerate(processes):
            rows = Rows()
            _take_work(process, rows)
            _take_calls(process, rows)
            distributed = {"rank": rank, "world_size": len(processes)} if len(processes) > 1 else {}
            header = header_of({"distributedInfo": distributed}, source)
            traces.append(rows.trace(header, source, NAME, missing=_MISSING, steps=STEP_NAMES))
        return traces


def _processes(stream: BinaryIO, source: TraceSource) -> list[Mapping[str, Any]]:
    parts: list[bytes] = []
    left = _LARGEST_BYTES + 1
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if not left:
        raise unusable_error(
            source, f"rocprofv3's JSON is at most {_LARGEST_BYTES >> 20} MiB; use --output-format pftrace"
        )
    try:
        document = orjson.loads(b"".join(parts))
    except orjson.JSONDecodeError as error:
        raise unusable_error(source, f"the JSON is damaged or truncated (at character {error.pos})") from None
    entries = document.get(_KEY) if isinstance(document, dict) else None
    processes: list[Mapping[str, Any]] = [
        one for one in (entries if isinstance(entries, list) else [entries]) if isinstance(one, dict)
    ]
    if not processes:
        raise unusable_error(
            source, f'the document must have "{_KEY}" with one object a process, as rocprofv3 writes it'
        )
    return processes


def _records(process: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    records = _inner(process, "buffer_records").get(kind)
    return (one for one in (records if isinstance(records, list) else ()) if isinstance(one, dict))


def _inner(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = value.get(key)
        value = inner if isinstance(inner, dict) else {}
    return value


def _times(record: Mapping[str, Any]) -> tuple[int, int, int]:
    """Begin, duration, correlation."""
    begin = integer_or(record.get("start_timestamp"), NO_TIME)
    correlation = integer_or(_inner(record, "correlation_id").get("internal"), -1)
    return begin, integer_or(record.get("end_timestamp"), -1) - begin, correlation


def _take_work(process: Mapping[str, Any], rows: Rows) -> None:
    symbols = {
        integer_or(one.get("kernel_id"), -1): str(one.get("formatted_kernel_name") or one.get("kernel_name") or "")
        for one in _objects(process.get("kernel_symbols"))
    }
    agents: KeyNumbers[int] = KeyNumbers()
    queues: KeyNumbers[tuple[int, int]] = KeyNumbers()
    for record in _records(process, "kernel_dispatch"):
        begin, duration, correlation = _times(record)
        info = _inner(record, "dispatch_info")
        agent = integer_or(_inner(info, "agent_id").get("handle"), 0)
        queue = integer_or(_inner(info, "queue_id").get("handle"), 0)
        name = symbols.get(integer_or(info.get("kernel_id"), -1)) or "(kernel)"
        lane = rows.lane(agents[agent], queues[agent, queue])
        rows.add(name, lane, EventKind.KERNEL, begin, duration, correlation=correlation)
    for record in _records(process, "memory_copy"):
        begin, duration, correlation = _times(record)
        name = _operation(process, record).replace("MEMORY_COPY_", "Memcpy ")
        lane = rows.lane(0, queues[-1, 0])
        moved_bytes = small_or(record.get("bytes"), -1)
        rows.add(name, lane, EventKind.COPY, begin, duration, correlation=correlation, moved_bytes=moved_bytes)


def _take_calls(process: Mapping[str, Any], rows: Rows) -> None:
    pid = small_or(_inner(process, "metadata").get("pid"), 0)
    messages = {
        integer_or(one.get("key"), -1): str(one.get("value", ""))
        for one in _objects(_inner(process, "strings").get("marker_api"))
    }
    for table, kind in _CALLS:
        for record in _records(process, table):
            begin, duration, correlation = _times(record)
            name = messages.get(correlation, "") if kind == EventKind.ANNOTATION else ""
            lane = rows.lane(-1, small_or(record.get("thread_id"), 0), pid)
            rows.add(name or _operation(process, record), lane, kind, begin, duration, correlation=correlation)


def _operation(process: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """What a record's numbers of kind and operation are called."""
    kinds = _inner(process, "strings").get("buffer_records")
    kind = _at(kinds, integer_or(record.get("kind"), -1))
    operations = kind.get("operations") if isinstance(kind, dict) else None
    name = _at(operations, integer_or(record.get("operation"), -1))
    return name if isinstance(name, str) else "(call)"


def _at(values: Any, place: int) -> Any:
    return values[place] if isinstance(values, Sequence) and 0 <= place < len(values) else None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))
