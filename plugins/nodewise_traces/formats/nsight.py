"""Nsight Systems' exports to SQLite: kernels, copies, calls of the runtime and NVTX ranges, of one process or several.

Tables and columns are those of the exporter's documentation, of releases from 2019 on; what a release does not have is
left out: https://docs.nvidia.com/nsight-systems/UserGuide/index.html#sqlite-schema-reference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.header import Header, header_of
from nodewise_traces.events.rows import NO_TIME, STEP_NAMES, Rows
from nodewise_traces.formats.database import MAGIC, Database, database_of
from nodewise_traces.refusals import contradiction_error, unusable_error
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = ["NsightReader"]

NAME: Final = "nsight"
_EXPORT: Final = "nsys export --type sqlite REPORT.nsys-rep"
_MARKS: Final = (b"CUPTI_ACTIVITY", b"NVTX_EVENTS", b"StringIds", b"META_DATA_EXPORT")
_WORK: Final = (
    ("CUPTI_ACTIVITY_KIND_KERNEL", EventKind.KERNEL),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", EventKind.COPY),
    ("CUPTI_ACTIVITY_KIND_MEMSET", EventKind.FILL),
    ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", EventKind.KERNEL),
)
_COPIES: Final = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 10: "PtoP"}
"""CUPTI's kinds of copies."""
_SYNCS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
"""CUPTI's types of synchronisations, as the PyTorch profiler names them."""
_OPERATOR: Final = re.compile(r"^(?:aten|autograd|c10d|torch)::|Backward\d*$|^record_param_comms$")
"""Ranges that PyTorch puts around its operators (``emit_nvtx``)."""
_EMITTED: Final = re.compile(r", (?:seq|op_id|sizes|input_op_ids) ?= ?.*$")
"""What it adds to their names, which then differ with every call."""
_PUSH_POP, _START_END = 59, 60
"""Types of NVTX events that last; others are marks and registrations."""
_ID_BITS: Final = 24
"""Processes and threads are parts of one number: 24 bits each, the thread's the lowest."""


@dataclass(slots=True)
class _Process:
    """One process of the report."""

    rows: Rows = field(default_factory=Rows)
    works: bool = False


class NsightReader:
    """Reads ``.sqlite`` files: one trace for each process that used a device."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A database; which tables it has stands on its first pages only if these are few."""
        del source
        if not head.startswith(MAGIC):
            return 0.0
        return 0.9 if any(mark in head for mark in _MARKS) else 0.2

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read the events of all processes. See TraceReader."""
        counts: Counter[str] = Counter()
        with database_of(stream, source, counts, _EXPORT) as database:
            if any(table.startswith("rocpd_") for table in database.tables):
                raise unusable_error(
                    source, "the database is rocprofv3's (rocpd): rocpd convert -i FILE.db --output-format pftrace"
                )
            if not any(table in database for table in (*(one for one, _ in _WORK), "CUPTI_ACTIVITY_KIND_RUNTIME")):
                raise unusable_error(
                    source,
                    "the database has none of the tables CUPTI_ACTIVITY_KIND_...: record with nsys profile "
                    f"--trace=cuda,nvtx and export with {_EXPORT}",
                )
            texts = {integer_or(key, -1): str(value) for key, value in database.rows("StringIds", ("id", "value"))}
            processes: dict[int, _Process] = {}
            _take_work(database, texts, processes)
            _take_calls(database, texts, processes)
            _take_ranges(database, texts, processes)
            _name_threads(database, texts, processes)
            ranks = {_pid(integer_or(pid, 0)): small_or(rank, -1) for pid, rank in _mpi_ranks(database)}
            base, devices = _base(database), _devices(database)
        pids = [pid for pid in sorted(processes) if processes[pid].works] or sorted(processes)[:1]
        if len(pids) > 1 and source.rank >= 0:
            raise contradiction_error(
                source, (f"was sent as rank {source.rank}, but {len(pids)} processes used devices")
            )
        numbers = [ranks.get(pid, -1) for pid in pids]
        if len(pids) > 1 and (min(numbers) < 0 or len(set(numbers)) < len(numbers)):
            numbers = list(range(len(pids)))
            processes[pids[0]].rows.table.counts["ranks_by_process"] = 1
        traces = []
        for pid, rank in zip(pids, numbers):
            rows = processes[pid].rows
            rows.table.counts["truncated"] += counts["truncated"]
            header = _header(rank, len(pids), base, devices, rows, source)
            traces.append(rows.trace(header, source, NAME, missing=f"no event has a time; {_EXPORT}", steps=STEP_NAMES))
        if not traces:
            raise unusable_error(
                source, "no process used a device or called the runtime; record with --trace=cuda,nvtx"
            )
        return traces


def _header(
    rank: int, processes: int, base: int, devices: list[dict[str, object]], rows: Rows, source: TraceSource
) -> Header:
    distributed: dict[str, object] = {"world_size": processes} if processes > 1 else {}
    if rank >= 0:
        distributed["rank"] = rank
    header = header_of(
        {"distributedInfo": distributed, "baseTimeNanoseconds": base, "deviceProperties": devices}, source
    )
    if not rows.table.counts["ranks_by_process"]:
        return header
    note = "the report does not state the ranks of processes: they are numbered in the order of their ids"
    return replace(header, warnings=(*header.warnings, note))


def _pid(number: int) -> int:
    return number >> _ID_BITS & (1 << _ID_BITS) - 1


def _process(number: object, processes: dict[int, _Process]) -> tuple[int, int, _Process]:
    """Process and thread of a global number, which releases before 2019 did not write."""
    value = integer_or(number, 0)
    pid = _pid(value)
    process = processes.get(pid)
    if process is None:
        process = processes[pid] = _Process()
    return pid, value & (1 << _ID_BITS) - 1, process


def _take_work(database: Database, texts: Mapping[int, str], processes: dict[int, _Process]) -> None:
    columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind")
    for table, kind in _WORK:
        for row in database.rows(table, (*columns, "demangledName", "shortName")):
            *numbers, demangled, short = row
            begin = integer_or(numbers[0], NO_TIME)
            end, device, stream, correlation = (integer_or(one, -1) for one in numbers[1:5])
            _, _, process = _process(numbers[5], processes)
            moved_bytes, copy_kind = small_or(numbers[6], -1), integer_or(numbers[7], 0)
            process.works = True
            if kind == EventKind.COPY:
                name = f"Memcpy {_COPIES.get(copy_kind, '')}".strip()
            elif kind == EventKind.FILL:
                name = "Memset"
            else:
                name = _text(demangled, texts) or _text(short, texts) or "(graph)"
            lane = process.rows.lane(max(device, 0), max(stream, 0))
            process.rows.add(name, lane, kind, begin, end - begin, correlation=correlation, moved_bytes=moved_bytes)


def _text(number: object, texts: Mapping[int, str]) -> str:
    """A name is a number into the texts; the first releases wrote the text itself."""
    return number if isinstance(number, str) else texts.get(integer_or(number, -1), "")


def _take_calls(database: Database, texts: Mapping[int, str], processes: dict[int, _Process]) -> None:
    columns = ("start", "end", "globalTid", "correlationId", "nameId")
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"):
        for begin, end, thread, correlation, name in database.rows(table, columns):
            pid, tid, process = _process(thread, processes)
            first = integer_or(begin, NO_TIME)
            text = (_text(name, texts) or "(call)").partition("_v")[0]  # cudaLaunchKernel_v7000
            process.rows.add(
                text,
                process.rows.lane(-1, tid, pid),
                EventKind.CALL,
                first,
                integer_or(end, -1) - first,
                correlation=integer_or(correlation, -1),
            )
    columns = ("correlationId", "deviceId", "streamId", "globalPid", "syncType")
    for correlation, device, stream, number, kind in database.rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", columns):
        _, _, process = _process(number, processes)
        arguments = {"cuda_sync_kind": _SYNCS.get(integer_or(kind, 0), ""), "correlation": correlation}
        process.rows.table.syncs.append({**arguments, "device": device, "stream": stream})


def _take_ranges(database: Database, texts: Mapping[int, str], processes: dict[int, _Process]) -> None:
    columns = ("start", "end", "eventType", "globalTid", "text", "textId")
    for begin, end, kind, thread, text, number in database.rows("NVTX_EVENTS", columns):
        if end is None or integer_or(kind, _PUSH_POP) not in {_PUSH_POP, _START_END}:
            continue
        pid, tid, process = _process(thread, processes)
        # Ranges that begin and end anywhere do not nest: they have a lane of their own.
        lane = process.rows.lane(-1, tid if integer_or(kind, _PUSH_POP) == _PUSH_POP else -1, pid)
        first = integer_or(begin, NO_TIME)
        name = text if isinstance(text, str) and text else _text(number, texts)
        name = _EMITTED.sub("", name) or "(range)"
        range_kind = EventKind.OPERATOR if _OPERATOR.search(name) else EventKind.ANNOTATION
        process.rows.add(name, lane, range_kind, first, integer_or(end, -1) - first)


def _name_threads(database: Database, texts: Mapping[int, str], processes: dict[int, _Process]) -> None:
    for name, thread in database.rows("ThreadNames", ("nameId", "globalTid")):
        value = integer_or(thread, 0)
        process = processes.get(_pid(value))
        if process is not None:
            process.rows.table.lanes.thread_names[_pid(value), value & (1 << _ID_BITS) - 1] = _text(name, texts)


def _mpi_ranks(database: Database) -> Iterator[tuple[object, ...]]:
    return database.rows("MPI_RANKS", ("globalPid", "rank"))


def _base(database: Database) -> int:
    """When the session began (ns since 1970), so that reports of several nodes have one clock; 0 = not stated."""
    starts_ns = [integer_or(row[0], 0) for row in database.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))]
    return starts_ns[0] if len(starts_ns) == 1 and 0 < starts_ns[0] < 1 << 61 else 0


def _devices(database: Database) -> list[dict[str, object]]:
    return [{"id": number, "name": name} for number, name in database.rows("TARGET_INFO_GPU", ("id", "name"))]
