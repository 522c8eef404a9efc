"""Small traces in the formats of other recorders: one rank, four steps of 10 ms, each with ten launches of 0.9 ms.

Each is written field by field as the recorder's documentation says, and holds the same job: a step marked on the host,
in it a launch every millisecond, 8 us later its kernel, every third of which reduces over ranks; 50 us between steps.
"""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "COMPUTE",
    "LAUNCHES",
    "REDUCE",
    "STEPS",
    "STEP_NS",
    "Launch",
    "as_json",
    "chakra_ring",
    "execution_trace",
    "field",
    "flight_recorder",
    "launches",
    "message",
    "nsight",
    "packet",
    "perfetto",
    "pickled",
    "rocprof_json",
    "rocprof_tables",
]

STEPS = 4
LAUNCHES = 10
STEP_NS = 10_000_000
BEGIN_NS = 1_614_963_487_781_917
COMPUTE = "gemm_kernel<float, 3>(int, int)"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True)
class Launch:
    """A call and its kernel; times in ns."""

    step: int
    number: int
    call_ns: tuple[int, int]
    kernel_ns: tuple[int, int]
    kernel: str


def step_ns(step: int) -> tuple[int, int]:
    """When a step begins and ends."""
    begin = BEGIN_NS + step * (STEP_NS + 50_000)
    return begin, begin + STEP_NS


def launches() -> Iterator[Launch]:
    """All launches of all steps."""
    for step in range(STEPS):
        for place in range(LAUNCHES):
            begin = step_ns(step)[0] + place * 1_000_000
            yield Launch(
                step=step,
                number=step * LAUNCHES + place + 1,
                call_ns=(begin + 1_000, begin + 6_000),
                kernel_ns=(begin + 8_000, begin + 908_000),
                kernel=COMPUTE if place % 3 else REDUCE,
            )


# NVIDIA's Nsight Systems, `nsys export --type sqlite`; tables and columns of its documentation, releases 2023 to 2025.

_TABLES = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, text TEXT, globalTid INTEGER,
    endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
"""


def nsight(processes: int = 1, extra: str = "") -> bytes:
    """An export of one or several processes; ``extra`` is SQL to run at the end."""
    texts = {
        COMPUTE: 1,
        REDUCE: 2,
        "gemm_kernel": 3,
        "cudaLaunchKernel_v7000": 4,
        "cudaMemcpyAsync_v3020": 5,
        "main": 6,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.sqlite"
        with sqlite3.connect(path) as database:
            database.executescript(_TABLES)
            insert = _inserter(database)
            insert("TARGET_INFO_GPU", (0, 0, "NVIDIA A100-SXM4-40GB"))
            insert("TARGET_INFO_SESSION_START_TIME", (1_700_000_000_000_000_000, "", ""))
            for text, number in texts.items():
                insert("StringIds", (number, text))
            for process in range(processes):
                pid = (100 + process) << 24
                _process(insert, pid, texts)
            database.executescript(extra)
        database.close()
        return path.read_bytes()


def _inserter(database: sqlite3.Connection) -> Any:
    def insert(table: str, values: tuple[Any, ...]) -> None:
        database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    return insert


def _process(insert: Any, pid: int, texts: dict[str, int]) -> None:
    thread = pid | 7
    insert("ThreadNames", (6, None, thread))
    for step in range(STEPS):
        begin, end = step_ns(step)
        text, number = (f"iteration {step}", None) if step % 2 else (None, 100 + step)
        if number is not None and pid == 100 << 24:
            insert("StringIds", (number, f"iteration {step}"))
        insert("NVTX_EVENTS", (begin, end, 59, None, text, thread, None, number, 0))
        insert("NVTX_EVENTS", (begin, None, 34, None, "a mark", thread, None, None, 0))
    for one in launches():
        insert("CUPTI_ACTIVITY_KIND_RUNTIME", (*one.call_ns, 0, thread, one.number, 4, 0, None))
        row = (*one.kernel_ns, 0, 1, 0, 7, one.number, pid, texts[one.kernel], 3)
        insert("CUPTI_ACTIVITY_KIND_KERNEL", row)
    begin = step_ns(0)[0] + 920_000
    insert("CUPTI_ACTIVITY_KIND_RUNTIME", (begin, begin + 5_000, 0, thread, 999, 5, 0, None))
    insert("CUPTI_ACTIVITY_KIND_MEMCPY", (begin + 6_000, begin + 9_000, 0, 1, 7, 999, pid, 4096, 1))


# PyTorch's flight recorder, version 2.9 of its dumps.


def flight_recorder(**changes: Any) -> dict[str, Any]:
    """Three all-reduces of rank 0 of 2, the last of which never began, and one message."""
    entries = [
        {
            "frames": [{"name": "main", "filename": "/home/ann/train.py", "line": 3}],
            "record_id": number,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number + 1,
            "p2p_seq_id": 0,
            "op_id": number + 1,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 10**18 + number * 10**8,
            "duration_ms": 10.5 if number < 2 else None,
            "input_sizes": ((1_000_000,),),
            "input_dtypes": ["Float"],
            "output_sizes": ((1_000_000,),),
            "output_dtypes": ["Float"],
            "state": "completed" if number < 2 else "scheduled",
            "time_discovered_started_ns": 10**18 + number * 10**8 + 20_000 if number < 2 else None,
            "time_discovered_completed_ns": 10**18 + number * 10**8 + 10_520_000 if number < 2 else None,
            "retired": number < 2,
            "timeout_ms": 600_000,
            "is_p2p": False,
        }
        for number in range(3)
    ]
    message = entries[0] | {
        "profiling_name": "nccl:send 0->1",
        "is_p2p": True,
        "p2p_seq_id": 1,
        "duration_ms": None,
        "time_discovered_started_ns": 10**18 + 3 * 10**7,
        "time_discovered_completed_ns": 10**18 + 3 * 10**7 + 5_000,
    }
    return {
        "version": "2.9",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "pg_status": {"0": {"last_enqueued_collective": 3, "last_completed_collective": 2}},
        "entries": [*entries[:1], message, *entries[1:]],
    } | changes


def pickled(value: Any) -> bytes:
    """As PyTorch's own pickler writes: protocol 2."""
    return pickle.dumps(value, protocol=2)


# PyTorch's ExecutionTraceObserver, schemas 1.1.1 and 1.0.1.


def execution_trace(*, old: bool = False) -> dict[str, Any]:
    """Two operators, the second of which all-reduces 1,024 floats."""
    comms = {"collective_name": "allreduce", "in_msg_nelems": 1024, "dtype": "Float", "pg_name": "0"}
    nodes: list[dict[str, Any]] = []
    for number, name in ((1, "[pytorch|profiler|execution_trace|process]"), (2, "aten::mm"), (3, "record_param_comms")):
        told = {"rf_id": number, "seq_id": -1, "tid": 1, "fw_tid": 0, **(comms if number == 3 else {})}
        if old:
            nodes.append({"name": name, "id": number, "parent": 1, "fw_parent": 0, **told})
        else:
            attrs = [{"name": key, "type": "string", "value": value} for key, value in told.items()]
            nodes.append({"id": number, "name": name, "ctrl_deps": 1, "attrs": attrs})
    return {"schema": "1.0.1" if old else "1.1.1-chakra.0.0.4", "pid": 1, "start_ts": 1, "nodes": nodes, "finish_ts": 2}


# Protocol buffers: Chakra and Perfetto.


def varint(number: int) -> bytes:
    """A number of seven bits a byte."""
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


def field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(content: bytes) -> bytes:
    """A message of a Chakra file: its length before it."""
    return varint(len(content)) + content


def chakra_ring(rank: int, ranks: int, *, receive_first: bool = False) -> bytes:
    """Two rounds of a ring: every rank sends to the next one, and then receives from the one before; 100 us each."""
    parts = [message(field(1, "0.0.4"))]
    for round_ in range(2):
        for place, receives in enumerate((receive_first, not receive_first)):
            number = 2 * round_ + place
            ends = ((rank - 1) % ranks, rank) if receives else (rank, (rank + 1) % ranks)
            attributes = {"comm_src": ends[0], "comm_dst": ends[1], "comm_size": 1 << 20, "comm_tag": round_}
            content = field(1, number) if number else b""  # protocol buffers leave zeros out
            content += field(2, "RECV" if receives else "SEND") + field(3, 6 if receives else 5)
            content += field(5, varint(number - 1)) if number else b""
            content += field(7, 100) + field(10, field(1, "is_cpu_op") + field(27, 0))
            parts.append(
                message(
                    content + b"".join(field(10, field(1, key) + field(9, told)) for key, told in attributes.items())
                )
            )
    return b"".join(parts)


def packet(content: bytes, *, sequence: int = 7) -> bytes:
    """A packet of a Perfetto trace."""
    return field(1, content + field(10, sequence))


def perfetto(*, incremental: bool = False) -> bytes:
    """As rocprofv3 writes: names interned; times as they are, or as differences on a clock of the writer's own."""
    process = field(60, field(1, 1) + field(3, field(1, 42) + field(6, "python")))
    thread = field(60, field(1, 2) + field(5, 1) + field(4, field(1, 42) + field(2, 43) + field(5, "main")))
    queue = field(60, field(1, 3) + field(5, 1) + field(2, "COMPUTE AGENT [4] QUEUE [1] (GPU)"))
    defaults = field(11, field(11, 2)) + (field(58, 64) if incremental else b"")
    parts = [packet(process), packet(thread), packet(queue), packet(field(59, defaults) + field(13, 1))]
    if incremental:
        parts.append(packet(field(6, field(1, field(1, 64) + field(2, BEGIN_NS) + field(3, 1)))))
    events: list[tuple[int, int, int, str, str, int]] = []
    for step in range(STEPS):
        begin, end = step_ns(step)
        events += [(begin, 1, 2, f"step {step}", "marker_api", 0), (end, 2, 2, "", "", 0)]
    for one in launches():
        for track, (begin, end), name, category in (
            (2, one.call_ns, "hipLaunchKernel", "hip_api"),
            (3, one.kernel_ns, one.kernel, "kernel_dispatch"),
        ):
            events += [(begin, 1, track, name, category, one.number), (end, 2, track, "", "", 0)]
    names: dict[str, int] = {}
    last = BEGIN_NS
    for time_ns, kind, track, name, category, correlation in sorted(events, key=lambda event: event[0]):
        interned = event = b""
        if name:
            for key, text in ((1, category), (2, name), (3, "corr_id")):
                if text not in names:
                    names[text] = len(names) + 1
                    interned += field(key, field(1, names[text]) + field(2, text))
            event = field(3, names[category]) + field(10, names[name])
            event += field(4, field(1, names["corr_id"]) + field(3, correlation))
        event += field(9, kind) + (field(11, track) if track != 2 else b"")
        stated = time_ns - last if incremental else time_ns
        last = time_ns
        parts.append(packet(field(8, stated) + (field(12, interned) if interned else b"") + field(11, event)))
    return b"".join(parts)


# AMD's rocprofv3: tables and JSON, columns and members of its documentation, ROCm 6.2 to 7.


def rocprof_tables(*, only_kernels: bool = False) -> bytes:
    """Kernels, and joined to them calls and markers."""
    kernels = io.StringIO()
    kernels.write(
        '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp"\n'
    )
    calls = io.StringIO()
    calls.write('"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n')
    for step in range(STEPS):
        begin, end = step_ns(step)
        calls.write(f'"MARKER_CORE_RANGE_API","step {step}",70,71,{900 + step},{begin},{end}\n')
    for one in launches():
        begin, end = one.kernel_ns
        kernels.write(f'"KERNEL_DISPATCH","Agent 4",1,0,71,{one.number},2,"{one.kernel}",{one.number},{begin},{end}\n')
        begin, end = one.call_ns
        calls.write(f'"HIP_RUNTIME_API","hipLaunchKernel",70,71,{one.number},{begin},{end}\n')
    return (kernels.getvalue() + ("" if only_kernels else calls.getvalue())).encode()


def rocprof_json() -> dict[str, Any]:
    """The document of one process."""

    def record(kind: int, number: int, times: tuple[int, int], **more: Any) -> dict[str, Any]:
        times_told = {"start_timestamp": times[0], "end_timestamp": times[1]}
        correlation = {"internal": number, "external": 0}
        return {"kind": kind, "operation": 1, "thread_id": 71, "correlation_id": correlation, **times_told, **more}

    kernels, calls = [], []
    for one in launches():
        info = {"agent_id": {"handle": 777}, "queue_id": {"handle": 5}, "kernel_id": 1 + (one.kernel == REDUCE)}
        kernels.append(record(0, one.number, one.kernel_ns, dispatch_info=info))
        calls.append(record(1, one.number, one.call_ns))
    process = {
        "metadata": {"pid": 70},
        "strings": {
            "buffer_records": [
                {"kind": "KERNEL_DISPATCH", "operations": ["NONE", "COMPLETE"]},
                {"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipLaunchKernel"]},
                {"kind": "MARKER_CORE_RANGE_API", "operations": ["NONE", "roctxRangePushA"]},
            ],
            "marker_api": [{"key": 900 + step, "value": f"step {step}"} for step in range(STEPS)],
        },
        "kernel_symbols": [
            {"kernel_id": 1, "formatted_kernel_name": COMPUTE},
            {"kernel_id": 2, "formatted_kernel_name": REDUCE},
        ],
        "buffer_records": {
            "kernel_dispatch": kernels,
            "hip_api": calls,
            "marker_api": [record(2, 900 + step, step_ns(step)) for step in range(STEPS)],
        },
    }
    return {"rocprofiler-sdk-tool": [process]}


def as_json(value: Any) -> bytes:
    """A document as bytes."""
    return json.dumps(value).encode()
