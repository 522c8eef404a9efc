"""Jobs and curves from two tables of our own.

Jobs, one per line: ``job``, ``arrival_s``, ``samples`` and ``curve`` (a name) are required; there may be
``requested_devices`` (default 1), ``rigid`` (0 or 1), ``stop_samples``, ``samples_per_step``, ``restart_cost_s``,
``weight``, ``queue``, ``deadline_s``, ``minimum_run_s`` and ``server_devices``.

Curves, one row per line: ``curve``, ``pool``, ``devices`` and ``samples_per_s`` are required. Where there is a column
``predicted_samples_per_s`` the policy sees that instead (empty = it does not know this row); ``nodes`` is what the row
is packed on.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

import numpy as np

from nodewise.domain.columns import as_floats, as_ints
from nodewise.scheduling.simulation.inputs.faults import Row, wrong
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob

__all__ = ["TableCurve", "read_curve_table", "read_job_table"]

_JOB_REQUIRED: Final = ("job", "arrival_s", "samples", "curve")
_JOB_OPTIONAL: Final = (
    "requested_devices",
    "rigid",
    "stop_samples",
    "samples_per_step",
    "restart_cost_s",
    "weight",
    "queue",
    "deadline_s",
    "minimum_run_s",
    "server_devices",
)
_CURVE_REQUIRED: Final = ("curve", "pool", "devices", "samples_per_s")
_CURVE_OPTIONAL: Final = ("predicted_samples_per_s", "nodes")

TableCurve = tuple[JobCurve, JobCurve | None]
"""True throughput, and what the policy sees (None = the same)."""


def _rows(stream: TextIO, file: str, required: Sequence[str], optional: Sequence[str]) -> list[Row]:
    reader = csv.DictReader(stream)
    header = [name.strip() for name in reader.fieldnames or ()]
    for name in required:
        if name not in header:
            raise wrong(file, 1, name, "is missing in the header row")
    for name in header:
        if name not in required and name not in optional:
            raise wrong(file, 1, name, f"is unknown; there may be: {', '.join((*required, *optional))}")
    rows = []
    for cells in reader:
        row = Row(file, reader.line_num, {name: text or "" for name, text in cells.items() if name is not None})
        if None in cells:
            raise row.fault(str(len(header) + 1), f"is one cell too many; the header names {len(header)}")
        rows.append(row)
    return rows


def read_curve_table(
    stream: TextIO, pools: Sequence[str], *, devices_per_node: Sequence[int] = (), file: str = "curves"
) -> dict[str, TableCurve]:
    """Curves by name; rows of pools that the cluster does not have are an error.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, with line and column.
    """
    found: dict[str, dict[tuple[int, int], tuple[float, float | None, int]]] = {}
    differs = False
    for row in _rows(stream, file, _CURVE_REQUIRED, _CURVE_OPTIONAL):
        pool = row.text("pool")
        if pool not in pools:
            raise row.fault("pool", f"must be one of {', '.join(pools)}; found {pool!r}")
        key = (pools.index(pool), row.whole("devices", 1))
        curve = found.setdefault(row.text("curve"), {})
        if key in curve:
            raise row.fault("devices", f"says {key[1]} devices of pool {pool!r} a second time")
        predicted = None
        if row.has("predicted_samples_per_s"):
            differs = True
            predicted = row.number("predicted_samples_per_s", 0.0, 0.0)
        size = devices_per_node[key[0]] if key[0] < len(devices_per_node) else 0
        nodes = row.whole("nodes", 1, -(-key[1] // size) if size else 1)
        curve[key] = (row.number("samples_per_s", above=True), predicted, nodes)
    return {name: _curves(rows, differs=differs) for name, rows in found.items()}


def _curves(rows: Mapping[tuple[int, int], tuple[float, float | None, int]], *, differs: bool) -> TableCurve:
    keys = sorted(rows)
    true = JobCurve(
        pool=as_ints([pool for pool, _ in keys]),
        devices=as_ints([devices for _, devices in keys]),
        nodes=as_ints([rows[key][2] for key in keys]),
        samples_per_s=as_floats([rows[key][0] for key in keys]),
    )
    if not differs:
        return true, None
    rates = np.array([rows[key][1] or 0.0 for key in keys])
    known = true.where((rates > 0).tolist())
    return true, JobCurve(known.pool, known.devices, known.nodes, as_floats(rates[rates > 0]))


def read_job_table(stream: TextIO, curves: Mapping[str, TableCurve], *, file: str = "jobs") -> list[SimulatedJob]:
    """Jobs by arrival.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, with line and column.
    """
    jobs: list[SimulatedJob] = []
    names: set[str] = set()
    for row in _rows(stream, file, _JOB_REQUIRED, _JOB_OPTIONAL):
        name, curve = row.text("job"), row.text("curve")
        if name in names:
            raise row.fault("job", f"must be unique, {name!r} is there already")
        names.add(name)
        if curve not in curves:
            raise row.fault("curve", f"must be one of the table of curves, found {curve!r}")
        rigid = row.whole("rigid", 0, 0)
        if rigid not in (0, 1):
            raise row.fault("rigid", f"must be 0 or 1, found {rigid}")
        jobs.append(
            SimulatedJob(
                job_id=name,
                arrival_s=row.number("arrival_s"),
                samples=row.number("samples", above=True),
                curve=curves[curve][0],
                predicted=curves[curve][1],
                stop_samples=row.number("stop_samples") if row.has("stop_samples", filled=True) else None,
                requested_devices=row.whole("requested_devices", 1, 1),
                rigid=bool(rigid),
                samples_per_step=row.number("samples_per_step", 0.0, 0.0),
                restart_cost_s=row.number("restart_cost_s") if row.has("restart_cost_s", filled=True) else None,
                weight=row.number("weight", 0.0, 1.0, above=True),
                queue=row.text("queue") if row.has("queue", filled=True) else "",
                deadline_s=row.number("deadline_s") if row.has("deadline_s", filled=True) else None,
                minimum_run_s=row.number("minimum_run_s", 0.0, 0.0),
                server_devices=row.whole("server_devices", 0, 0),
            )
        )
    return sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))
