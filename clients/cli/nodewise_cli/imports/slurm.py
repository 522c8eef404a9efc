"""Slurm's accounting, by `sacct --parsable2` or `sacct --json`: nodes, GPUs and durations, without throughput."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError, text_of
from nodewise_cli.imports.logged_runs import LoggedRun, Options, number_of

__all__ = ["read_sacct"]

_DONE: Final = "COMPLETED"
_DURATION: Final = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", re.ASCII)


def read_sacct(path: Path, _options: Options) -> Iterator[LoggedRun]:
    """Completed jobs with GPUs, one run each; steps of jobs are passed over."""
    text = text_of(path, "output of sacct")
    rows = _json_rows(path, text) if text.lstrip().startswith("{") else _table_rows(path, text)
    found_any = False
    for row in rows:
        found_any = True
        gpus, device = _gpus(row["tres"])
        if "." in row["job_id"] or not row["state"].startswith(_DONE) or not gpus:
            continue
        run = LoggedRun(f"{path}: job {row['job_id']}", row["name"])
        run.settings = {"nodes": row["nodes"], "workers": gpus, **({"device": device} if device else {})}
        run.elapsed_s = row["elapsed_s"]
        yield run
    if not found_any:
        raise InputError(f"{path}: holds no job")


def _table_rows(path: Path, text: str) -> Iterator[dict[str, Any]]:
    rows = list(csv.DictReader(text.splitlines(), delimiter="|"))
    needed = {"JobID", "JobName", "State", "NNodes", "AllocTRES"}
    missing = needed - set(rows[0] if rows else ())
    if missing or not {"Elapsed", "ElapsedRaw"} & set(rows[0]):
        columns = "JobID,JobName,State,NNodes,ElapsedRaw,AllocTRES"
        raise InputError(f"{path}: must have the columns that `sacct --parsable2 --allocations -o {columns}` prints")
    for row in rows:
        yield {
            "job_id": row["JobID"],
            "name": row["JobName"],
            "state": row["State"],
            "nodes": row["NNodes"],
            "elapsed_s": number_of(row.get("ElapsedRaw")) or _duration_s(row.get("Elapsed", "")),
            "tres": dict(part.partition("=")[::2] for part in row["AllocTRES"].split(",") if part),
        }


def _json_rows(path: Path, text: str) -> Iterator[dict[str, Any]]:
    try:
        jobs = json.loads(text)["jobs"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: must be what `sacct --json` prints, with jobs") from None
    for job in jobs:
        state = job.get("state", {}).get("current", "")
        yield {
            "job_id": str(job.get("job_id", "")),
            "name": job.get("name", ""),
            "state": state if isinstance(state, str) else next(iter(state), ""),
            "nodes": job.get("allocation_nodes"),
            "elapsed_s": number_of(job.get("time", {}).get("elapsed")),
            "tres": _tres(job.get("tres", {}).get("allocated", ())),
        }


def _tres(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {
        f"{entry['type']}/{entry['name']}" if entry.get("name") else str(entry["type"]): str(entry["count"])
        for entry in entries
    }


def _gpus(tres: Mapping[str, str]) -> tuple[int, str]:
    """How many GPUs a job had, and of which kind where it had one."""
    kinds = {name.removeprefix("gres/gpu:"): int(count) for name, count in tres.items() if name.startswith("gres/gpu:")}
    total = int(tres.get("gres/gpu", sum(kinds.values())))
    return total, next(iter(kinds)) if len(kinds) == 1 else ""


def _duration_s(text: str) -> float | None:
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
