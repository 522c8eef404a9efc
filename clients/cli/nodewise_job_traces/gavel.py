"""Gavel's job traces and throughput tables.

A trace is tab-separated without a header, of 10 columns (job type, command, directory, steps argument, needs data,
total steps, scale factor, priority, SLO, arrival in s) or of 7 (job type, command, steps argument, needs data, total
steps, arrival in s, scale factor). A table is a JSON object {worker type: {"('JOB TYPE', SCALE FACTOR)": {"null":
iterations/s, OTHER JOB: [..]}}}; a throughput of 0 means out of memory. Pairs that share a device are not read.

A job is rigid: it runs on as many devices of one type as its scale factor says. Its unit of work is the iteration.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from nodewise_job_traces.faults import JobsFileError, Row, wrong
from nodewise_job_traces.jobs import Curve, Job
from nodewise_job_traces.logs import LeftOut

__all__ = ["PARAMETERS", "SETTINGS", "GavelTable", "read_gavel_table", "read_gavel_trace"]

SETTINGS: Final[Mapping[str, Any]] = {
    "clock": "drained-rounds",
    "round_s": 360.0,
    "on_changes_only": True,
    "minimum_decision_interval_s": 1920.0,
}
"""How Gavel's simulator tells time, and how often it decides; no costs and no failures."""

PARAMETERS: Final[Mapping[str, Mapping[str, float]]] = {"fifo": {"over_commit": 1.0}}
"""By policy: parameters other than the defaults with which it does what Gavel's program of that name does."""

_SHORT: Final = ("job_type", "command", "steps_argument", "needs_data", "total_steps", "arrival_s", "scale_factor")
_LONG: Final = (
    *("job_type", "command", "directory", "steps_argument", "needs_data"),
    *("total_steps", "scale_factor", "priority", "slo", "arrival_s"),
)

GavelTable = Mapping[str, Mapping[tuple[str, int], float]]
"""Iterations/s by worker type, then by (job type, scale factor)."""


def read_gavel_table(stream: TextIO, file: str = "throughputs") -> GavelTable:
    """Read a throughput table.

    Raises
    ------
    JobsFileError
        A fault, saying where the file stops making sense.
    """
    try:
        document = json.load(stream)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        column = getattr(error, "colno", 1)
        raise wrong(file, line, str(column), "is not valid JSON") from None
    if not isinstance(document, dict) or not all(isinstance(entries, dict) for entries in document.values()):
        raise JobsFileError(file, "must be an object of worker types, each an object of jobs")
    return {
        worker: {_key(f"{file}.{worker}", key): _rate(f"{file}.{worker}[{key}]", entry) for key, entry in jobs.items()}
        for worker, jobs in document.items()
    }


def _key(path: str, key: str) -> tuple[str, int]:
    try:
        name, scale = ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError):
        name = scale = None
    if not isinstance(name, str) or not isinstance(scale, int):
        raise JobsFileError(path, f"must have keys such as \"('ResNet-50 (batch size 64)', 2)\", found {key!r}")
    return name, scale


def _rate(path: str, entry: object) -> float:
    rate = entry.get("null") if isinstance(entry, dict) else None
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < float("inf"):
        raise JobsFileError(f"{path}.null", f"must be iterations/s of the job alone, 0 or more; found {rate!r}")
    return float(rate)


def read_gavel_trace(
    stream: TextIO,
    table: GavelTable,
    pools: Sequence[str],
    *,
    left_out: LeftOut | None = None,
    file: str = "trace",
) -> list[Job]:
    """Jobs by arrival; ``pools`` are worker types of the table, in the cluster's order.

    A job without a throughput in any of the pools gets an empty curve: it can never run, and the result says so. The
    priority becomes the weight; SLOs are not read. Jobs without steps or devices are counted in ``left_out``; None =
    they are faults.

    Raises
    ------
    JobsFileError
        A fault, with line and column.
    """
    for pool in pools:
        if pool not in table:
            raise JobsFileError("pools", f"must be worker types of the table: {', '.join(table)}; found {pool!r}")
    curves: dict[tuple[str, int], Curve] = {}
    jobs = []
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        cells = text.rstrip("\n").split("\t")
        names = {len(_LONG): _LONG, len(_SHORT): _SHORT}.get(len(cells))
        if names is None:
            raise wrong(
                file, line, str(len(cells)), f"must have {len(_LONG)} or {len(_SHORT)} columns separated by tabs"
            )
        row = Row(file, line, dict(zip(names, cells)))
        least = 1 if left_out is None else 0
        key, steps = (row.text("job_type"), row.whole("scale_factor", least)), row.whole("total_steps", least)
        if left_out is not None and left_out.add_empty(steps, key[1]):
            continue
        if key not in curves:
            rates = {(pool, key[1]): table[name].get(key, 0.0) for pool, name in enumerate(pools)}
            curves[key] = Curve.of(rates)
        jobs.append(
            Job(
                job_id=f"{line - 1:06d}",
                arrival_s=row.number("arrival_s"),
                samples=steps,
                curve=curves[key],
                requested_devices=key[1],
                rigid=True,
                samples_per_step=1.0,
                weight=row.number("priority", 0.0, 1.0, above=True) if "priority" in names else 1.0,
            )
        )
    return sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))
