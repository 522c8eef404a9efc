"""Small documents as the PyTorch profiler writes them, and how they are read."""

from __future__ import annotations

import io
import json
from typing import Any

from nodewise.plugin import Trace, TraceSource
from nodewise_traces.formats.kineto import KinetoReader

Event = dict[str, Any]


def span(name: str, cat: str, ts: float, dur: float, tid: Any = 7, pid: Any = 100, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def document(events: list[Event], **members: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **members, "traceEvents": events}).encode()


def one_step(kernels: int = 4) -> list[Event]:
    events = [span("ProfilerStep#3", "user_annotation", 0, 1000)]
    for number in range(kernels):
        begin = 10 + 100 * number
        events += [
            span(f"aten::op{number}", "cpu_op", begin, 50),
            span("cudaLaunchKernel", "cuda_runtime", begin + 10, 5, correlation=number + 1),
            span(f"kernel{number}", "kernel", begin + 20, 40, pid=0, device=0, stream=7, correlation=number + 1),
        ]
    return events


def read(text: bytes, **source: Any) -> Trace:
    (trace,) = KinetoReader().read(io.BytesIO(text), TraceSource(**source))
    return trace


def names_of(trace: Trace) -> list[str]:
    return [trace.names[number] for number in trace.name.tolist()]
