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
from typing import Final, TextIO

from nodewise.domain.columns import as_ints
from nodewise.domain.errors import invalid_field
from nodewise.domain.schedule import NodePool
from nodewise.scheduling.simulation.inputs.faults import Row, wrong
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings

__all__ = ["GavelTable", "gavel_parameters", "gavel_pools", "gavel_settings", "read_gavel_table", "read_gavel_trace"]

ROUND_S: Final = 360.0
HOLD_S: Final = 1920.0
"""Seconds between two decisions of Gavel's simulator at least."""

_SHORT: Final = ("job_type", "command", "steps_argument", "needs_data", "total_steps", "arrival_s", "scale_factor")
_LONG: Final = (
    *("job_type", "command", "directory", "steps_argument", "needs_data"),
    *("total_steps", "scale_factor", "priority", "slo", "arrival_s"),
)

_AS_PUBLISHED: Final[Mapping[str, Mapping[str, float]]] = {"fifo": {"over_commit": 1.0}}

GavelTable = Mapping[str, Mapping[tuple[str, int], float]]
"""Iterations/s by worker type, then by (job type, scale factor)."""


def gavel_parameters(policy: str) -> Mapping[str, float]:
    """Parameters with which a policy does what Gavel's program of that name does, where that is not the default."""
    return _AS_PUBLISHED.get(policy, {})


def gavel_settings(
    round_s: float = ROUND_S, seed: int = 0, parameters: Mapping[str, float] | None = None
) -> SimulationSettings:
    """How Gavel's simulator tells time, and how often it decides; no costs and no failures."""
    return SimulationSettings(
        clock=Clock.DRAINED_ROUNDS,
        round_s=round_s,
        on_changes_only=True,
        minimum_decision_interval_s=HOLD_S,
        seed=seed,
        parameters=parameters or {},
    )


def gavel_pools(devices: Mapping[str, int]) -> list[NodePool]:
    """One pool per worker type, each device on a node of its own (Gavel's default), in the order given."""
    return [NodePool(name=name, device=name, available_devices=as_ints([1] * count)) for name, count in devices.items()]


def read_gavel_table(stream: TextIO, file: str = "throughputs") -> GavelTable:
    """Read a throughput table.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, saying where the file stops making sense.
    """
    try:
        document = json.load(stream)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        column = getattr(error, "colno", 1)
        raise wrong(file, line, str(column), "is no JSON") from None
    if not isinstance(document, dict) or not all(isinstance(entries, dict) for entries in document.values()):
        raise invalid_field(file, "must be an object of worker types, each an object of jobs")
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
        raise invalid_field(path, f"must have keys such as \"('ResNet-50 (batch size 64)', 2)\", found {key!r}")
    return name, scale


def _rate(path: str, entry: object) -> float:
    rate = entry.get("null") if isinstance(entry, dict) else None
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < float("inf"):
        raise invalid_field(f"{path}.null", f"must be iterations/s of the job alone, 0 or more; found {rate!r}")
    return float(rate)


def read_gavel_trace(
    stream: TextIO,
    table: GavelTable,
    pools: Sequence[str],
    *,
    devices_per_node: Sequence[int] = (),
    file: str = "trace",
) -> list[SimulatedJob]:
    """Jobs by arrival; ``pools`` are worker types of the table, in the cluster's order.

    A job without a throughput in any of the pools gets an empty curve: it can never run, and the result says so. The
    priority becomes the weight; SLOs are not read.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, with line and column.
    """
    for pool in pools:
        if pool not in table:
            raise invalid_field("pools", f"must be worker types of the table: {', '.join(table)}; found {pool!r}")
    curves: dict[tuple[str, int], JobCurve] = {}
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
        key = (row.text("job_type"), row.whole("scale_factor", 1))
        if key not in curves:
            rates = {(pool, key[1]): table[name].get(key, 0.0) for pool, name in enumerate(pools)}
            curves[key] = JobCurve.of(rates, devices_per_node)
        jobs.append(
            SimulatedJob(
                job_id=f"{line - 1:06d}",
                arrival_s=row.number("arrival_s"),
                samples=row.whole("total_steps", 1),
                curve=curves[key],
                requested_devices=key[1],
                rigid=True,
                samples_per_step=1.0,
                weight=row.number("priority", 0.0, 1.0, above=True) if "priority" in names else 1.0,
            )
        )
    return sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))
