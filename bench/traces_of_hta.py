"""Loading a trace and the graph of one of its steps with HTA: for an interpreter that has it. Prints JSON."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import time
import warnings
from pathlib import Path


def memory_bytes(field: str) -> int:
    """Resident memory of this process: VmRSS now, VmHWM at most since the mark was reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()):
        from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - only this interpreter has it

        path, with_graph = sys.argv[1], sys.argv[2] == "graph"
        before_bytes = memory_bytes("VmRSS")
        started = time.perf_counter()
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir="")
        loaded = time.perf_counter()
        if with_graph:
            analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
        graphed = time.perf_counter()
    peak_bytes = memory_bytes("VmHWM")
    times = {"load_s": loaded - started, "graph_s": graphed - loaded}
    print(json.dumps({**times, "peak_bytes": peak_bytes, "growth_bytes": peak_bytes - before_bytes}))


if __name__ == "__main__":
    main()
