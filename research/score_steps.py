"""Say how far off steps are that are foreseen from the others: `python research/score_steps.py PATH [PATH...]`.

A path is a trace, a directory of the traces of one job, or a table of operations (Parquet needs pyarrow). A line for
each: steps, the error, that of taking each step as the mean of the others (persistence), by how many points the first
is larger, and for traces the step that a replay and a diagnosis of the same steps measure, ms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.domain.replay import ReplayQuestion
from nodewise.domain.trace import Trace
from nodewise_diagnosis.diagnosing import diagnose_traces
from nodewise_job_traces.operations import is_operation_table, read_operations
from nodewise_job_traces.stragglers import analyse_stragglers
from nodewise_replay.replaying.replayer import replay_steps

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

recorded_jobs: Any = import_module("recorded_jobs")
recorded_traces: Any = import_module("recorded_traces")


def main() -> None:
    """Measure every path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    print(f"{'what':40}{'steps':>6}{'error':>9}{'persist.':>9}{'points':>8}{'replay ms':>12}{'diagnose ms':>12}")
    for path in parser.parse_args().paths:
        name = path.name.split(".")[0][:38]
        try:
            print(f"{name:40}{_table(path) if is_operation_table(path) else _traces(path)}")
        except NodewiseError as error:
            print(f"{name:40}{error.message}")


def _table(path: Path) -> str:
    found = analyse_stragglers(read_operations(path))
    if found.foreseen_error_ratio is None or found.persistence_error_ratio is None:
        return "one step"
    return _line(found.steps, found.foreseen_error_ratio, found.persistence_error_ratio)


def _traces(path: Path) -> str:
    folder, pattern = (path, "*.json.gz") if path.is_dir() else (path.parent, path.name)
    traces: Sequence[Trace] = recorded_jobs.job_of(folder, pattern)
    if len({trace.rank for trace in traces}) < len(traces):
        traces = [replace(trace, rank=rank) for rank, trace in enumerate(traces)]
    across = replay_steps(traces, ReplayQuestion(), recorded_traces.NobodyWaits())
    steps = tuple(step.step for step in across.steps)
    question = DiagnosisQuestion(steps=steps, strategies=0, bottlenecks=1)
    told = diagnose_traces(traces, Profile(), question, recorded_traces.NobodyWaits()).step_s
    if across.host_error is None or across.persistence_error is None:
        return "one step"
    measured = float(np.mean([step.measured_host_s for step in across.steps]))
    return _line(len(steps), across.host_error, across.persistence_error) + f"{measured * 1e3:12.2f}{told * 1e3:12.2f}"


def _line(steps: int, error: float, persistence: float) -> str:
    return f"{steps:6}{error:9.2%}{persistence:9.2%}{100 * (error - persistence):+8.2f}"


if __name__ == "__main__":
    main()
