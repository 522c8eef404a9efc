"""Jobs and curves from two tables of our own.

Jobs, one per line: ``job``, ``arrival_s``, ``samples`` and ``curve`` (a name) are required; there may be
``requested_devices`` (default 1), ``rigid`` (0 or 1), ``stop_samples``, ``samples_per_step``, ``restart_cost_s``,
``weight``, ``queue``, ``deadline_s``, ``minimum_run_s`` and ``server_devices``.

Curves, one row per line: ``curve``, ``pool``, ``devices`` and ``samples_per_s`` are required. Where there is a column
``predicted_samples_per_s`` the policy sees that instead (empty = it does not know this row). ``nodes`` may note what a
row was measured on: a simulation packs devices on the nodes of its own cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from nodewise_job_traces.faults import rows_of
from nodewise_job_traces.jobs import Curve, Job
from nodewise_job_traces.logs import LeftOut

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

TableCurve = tuple[Curve, Curve | None]
"""True throughput, and what the policy sees (None = the same)."""


def read_curve_table(stream: TextIO, pools: Sequence[str], *, file: str = "curves") -> dict[str, TableCurve]:
    """Curves by name; rows of pools that the cluster does not have are an error.

    Raises
    ------
    JobsFileError
        A fault, with line and column.
    """
    true: dict[str, dict[tuple[int, int], float]] = {}
    rates_by_curve: dict[str, dict[tuple[int, int], float]] = {}
    differs = False
    for row in rows_of(stream, file, _CURVE_REQUIRED, _CURVE_OPTIONAL):
        pool = row.text("pool")
        if pool not in pools:
            raise row.fault("pool", f"must be one of {', '.join(pools)}; found {pool!r}")
        name, key = row.text("curve"), (pools.index(pool), row.whole("devices", 1))
        rates = true.setdefault(name, {})
        if key in rates:
            raise row.fault("devices", f"has {key[1]} devices of pool {pool!r} twice")
        rates[key] = row.number("samples_per_s", above=True)
        row.whole("nodes", 1, 1)
        if row.has("predicted_samples_per_s"):
            differs = True
            rates_by_curve.setdefault(name, {})[key] = row.number("predicted_samples_per_s", 0.0, 0.0)
    return {
        name: (Curve.of(rates), Curve.of(rates_by_curve[name]) if differs else None) for name, rates in true.items()
    }


def read_job_table(
    stream: TextIO, curves: Mapping[str, TableCurve], *, left_out: LeftOut | None = None, file: str = "jobs"
) -> list[Job]:
    """Jobs by arrival; those without work or devices are counted in ``left_out``; None = they are faults.

    Raises
    ------
    JobsFileError
        A fault, with line and column.
    """
    jobs: list[Job] = []
    names: set[str] = set()
    for row in rows_of(stream, file, _JOB_REQUIRED, _JOB_OPTIONAL):
        name, curve = row.text("job"), row.text("curve")
        if name in names:
            raise row.fault("job", f"must be unique, found {name!r} twice")
        names.add(name)
        if curve not in curves:
            raise row.fault("curve", f"must be one of the table of curves, found {curve!r}")
        rigid = row.whole("rigid", 0, 0)
        if rigid not in (0, 1):
            raise row.fault("rigid", f"must be 0 or 1, found {rigid}")
        samples = row.number("samples", above=left_out is None)
        requested = row.whole("requested_devices", 1 if left_out is None else 0, 1)
        if left_out is not None and left_out.add_empty(samples, requested):
            continue
        jobs.append(
            Job(
                job_id=name,
                arrival_s=row.number("arrival_s"),
                samples=samples,
                curve=curves[curve][0],
                predicted=curves[curve][1],
                stop_samples=row.number("stop_samples") if row.has("stop_samples", filled=True) else None,
                requested_devices=requested,
                rigid=bool(rigid),
                samples_per_step=row.number("samples_per_step", 0.0, 0.0),
                restart_cost_s=row.number("restart_cost_s") if row.has("restart_cost_s", filled=True) else None,
                weight=row.number("weight", 0.0, 1.0, above=True),
                queue=row.text("queue", ""),
                deadline_s=row.number("deadline_s") if row.has("deadline_s", filled=True) else None,
                minimum_run_s=row.number("minimum_run_s", 0.0, 0.0),
                server_devices=row.whole("server_devices", 0, 0),
            )
        )
    return sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))
