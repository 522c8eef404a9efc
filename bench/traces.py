"""Loading traces and building their graphs, beside HTA (HolisticTraceAnalysis) on the same files.

HTA needs an older pandas, so it has an environment of its own (``peers``). Its graph is of one step of a rank, ours
is of all steps of the file.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers import peers_python
from results import Result

ROOT = Path(__file__).parent.parent
REPEATS = 2
STEPS = 10
OPERATORS_PER_STEP = 10_000


def written(path: Path, steps: int, operators: int) -> Path:
    """A trace as the PyTorch profiler writes it: operators, each with a call, a flow and a kernel."""
    events: list[dict[str, Any]] = []
    step_us = 20 * operators
    for step in range(steps):
        begin = step_us * step
        host = {"ph": "X", "pid": 100, "tid": 100}
        events.append(
            {**host, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": step_us, "args": {}}
        )
        for number in range(operators):
            ts = begin + 20 * number
            correlation = step * operators + number + 1
            call = {"cbid": 211, "correlation": correlation, "External id": correlation}
            device = {"device": 0, "context": 1, "stream": 7, "correlation": correlation, "grid": [64, 1, 1]}
            name = f"aten::operator_{number % 50}"
            shapes = {"Input Dims": [[64, 64], [64]], "Input type": ["float", "float"], "External id": correlation}
            events += [
                {**host, "cat": "cpu_op", "name": name, "ts": ts, "dur": 18, "args": shapes},
                {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 4, "dur": 6, "args": call},
                {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": correlation, "pid": 100, "tid": 100, "ts": ts + 4},
                {
                    "ph": "X",
                    "cat": "kernel",
                    "pid": 0,
                    "tid": 7,
                    "ts": ts + 12,
                    "dur": 15,
                    "name": f"void kernel_{number % 50}<float>(float*, float const*)",
                    "args": device,
                },
            ]
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "device"}], "distributedInfo": {"rank": 0}}
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({**head, "traceEvents": events}, file, indent=1)
    return path


def measured(*command: str | Path) -> dict[str, float]:
    """The quickest of some processes, and the least memory."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=True, env=environment, timeout=600
        )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: min(run[key] for run in runs) for key in runs[0]}


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Traces by name: one that is made here, and a recorded one where the data is at hand."""
    yield "made", written(folder / "made.json.gz", STEPS, OPERATORS_PER_STEP)
    recorded = Path(os.environ.get("NODEWISE_DATA", "/nonexistent")) / "traces/ddp_one_rank/a100x8_recsys_rank3.json.gz"
    if recorded.is_file():
        yield "a100x8", recorded


def run() -> Iterator[Result]:
    """Each figure is of processes of their own, for memory is compared by its peak."""
    python = peers_python()
    if python is None:
        print("traces: skipped, no interpreter with HTA is at NODEWISE_PEERS_PYTHON or .venv-peers", file=sys.stderr)
        return
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        small = written(folder / "small.json.gz", 2, 50)
        for name, path in files(folder):
            for what in ("load", "graph"):
                ours = measured(sys.executable, here / "traces_of_nodewise.py", path, what, small)
                theirs = measured(python, here / "traces_of_hta.py", path, what)
                label = f"traces_{name}_{'load' if what == 'load' else 'load_and_graph'}"
                seconds, baseline = ours["load_s"] + ours["graph_s"], theirs["load_s"] + theirs["graph_s"]
                yield Result(label, ours["events"] / seconds, "events/s", ours["events"] / baseline)
                # What a trace adds to a process that is ready for it, and the whole of the process.
                yield Result(f"{label}_memory", ours["growth_bytes"] / 1e6, "MB", theirs["growth_bytes"] / 1e6)
                yield Result(f"{label}_process", ours["peak_bytes"] / 1e6, "MB", theirs["peak_bytes"] / 1e6)
