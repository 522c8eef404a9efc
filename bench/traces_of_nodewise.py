"""Loading a trace and the graph of all of its steps, in a process of its own. Prints JSON."""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path

from nodewise.plugin import Trace, TraceSource
from nodewise_replay.building.assembly import build_graph
from nodewise_traces.formats.kineto import KinetoReader


def load(path: str) -> Trace:
    with gzip.open(path) as stream:
        (trace,) = KinetoReader().read(stream, TraceSource())  # type: ignore[arg-type]
    return trace


def memory_bytes(field: str) -> int:
    """Resident memory of this process: VmRSS now, VmHWM at most since the mark was reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    path, with_graph, warm_up = sys.argv[1], sys.argv[2] == "graph", sys.argv[3]
    # Machine code is loaded (or compiled, once per machine) by a small trace: a server does so at its start.
    small = load(warm_up)
    if with_graph:
        build_graph([small])
    del small
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    before_bytes = memory_bytes("VmRSS")
    started = time.perf_counter()
    trace = load(path)
    loaded = time.perf_counter()
    if with_graph:
        build_graph([trace])
    graphed = time.perf_counter()
    peak_bytes = memory_bytes("VmHWM")
    told = {"load_s": loaded - started, "graph_s": graphed - loaded, "events": trace.report.counts["events"]}
    print(json.dumps({**told, "peak_bytes": peak_bytes, "growth_bytes": peak_bytes - before_bytes}))


if __name__ == "__main__":
    main()
