"""Slurm's accounting: ``sacct -P`` with any columns in any order.

Needed are ``JobID``, a time of submission (``Submit``, ``Eligible`` or ``Start``), a duration (``ElapsedRaw``,
``Elapsed``, or ``Start`` and ``End``) and GPUs (``AllocTRES``, else ``ReqTRES``). Steps (``8117657.batch``) are parts
of their jobs and are passed over. The components of a heterogeneous job (``8117657+1``) are one job. A slice of a GPU
(MIG) counts as a device, as Slurm counts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TextIO

from nodewise_job_traces.faults import JobsFileError, Row, readable, rows_of, wrong
from nodewise_job_traces.logs import LoggedJob, merge_parts, number_of, span_s, time_of

__all__ = ["is_sacct", "read_sacct"]

_IDS: Final = ("jobid", "jobidraw")
_COLUMNS_NEEDED: Final = (
    _IDS,
    ("submit", "eligible", "start"),
    ("elapsedraw", "elapsed", "end"),
    ("alloctres", "reqtres"),
)
_STATE_NAMES: Final = {
    name.lower(): name
    for name in (
        *("JobID", "JobIDRaw", "Submit", "Eligible", "Start", "End"),
        *("Elapsed", "ElapsedRaw", "AllocTRES", "ReqTRES"),
    )
}
_DURATION: Final = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", re.ASCII)
_RUNNING_STATES: Final = (
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "RESIZING",
    "STOPPED",
    "SIGNALING",
    "STAGE_OUT",
    "R",
    "S",
)
_WAITING: Final = ("PENDING", "REQUEUED", "CONFIGURING", "REQUEUE_HOLD", "PD")


def is_sacct(line: str) -> bool:
    """Whether a file's first line is a header of ``sacct -P``."""
    return "|" in line and any(name in _IDS for name in _names(line))


def _names(line: str) -> list[str]:
    return [name.strip().lower() for name in line.split("|")]


def read_sacct(stream: TextIO, *, file: str = "sacct") -> Iterator[LoggedJob | JobsFileError]:
    """Jobs, and what is wrong in rows that cannot be read.

    Raises
    ------
    JobsFileError
        For a header that lacks a column.
    """
    header = _names(stream.readline())
    stream.seek(0)
    for columns in _COLUMNS_NEEDED:
        if not any(name in header for name in columns):
            right = " or ".join(_STATE_NAMES[name] for name in columns)
            hint = "print it by sacct -P -o JobID,Submit,Start,End,Elapsed,AllocTRES,State"
            raise wrong(file, 1, right, f"is missing in the header row; {hint}")
    return _jobs(rows_of(stream, file, (), delimiter="|", any_case=True))


def _jobs(rows: Iterator[Row]) -> Iterator[LoggedJob | JobsFileError]:
    components: dict[str, list[LoggedJob]] = {}
    for entry in readable(_logged_job, rows):
        if isinstance(entry, LoggedJob) and "+" in entry.job_id:
            components.setdefault(entry.job_id.partition("+")[0], []).append(entry)
        elif entry is not None:
            yield entry
    for job_id, parts in components.items():
        yield replace(merge_parts(parts), job_id=job_id)


def _logged_job(row: Row) -> LoggedJob | None:
    """A job; None for a step of one."""
    job_id = row.text(next(name for name in _IDS if row.has(name)))
    if "." in job_id:
        return None
    state = (row.text("state", "").upper().split() or [""])[0].rstrip("+")
    start_s, end_s = time_of(row, "start"), time_of(row, "end")
    duration_s = _duration_s(row, span_s(start_s, end_s))
    has_ended = state not in _RUNNING_STATES if state else end_s is not None or not row.has("end")
    gpus, shares = _gpus(row)
    held_nothing = row.has("alloctres") and not row.has("alloctres", filled=True)
    return LoggedJob(
        job_id=job_id,
        submit_s=time_of(row, "submit", "eligible", "start"),
        duration_s=duration_s if has_ended else None,
        gpus=gpus,
        started=state not in _WAITING
        and (start_s is not None or not row.has("start"))
        and not (held_nothing and not duration_s and has_ended),
        shares_gpu=shares,
        queue=row.text("partition", ""),
    )


def _duration_s(row: Row, span: float | None) -> float | None:
    if row.has("elapsedraw", filled=True):
        return number_of(row, "elapsedraw")
    text = row.text("elapsed", "")
    if text.upper() in ("", "UNKNOWN", "INVALID"):
        return span
    match = _DURATION.fullmatch(text)
    if match is None:
        raise row.fault("Elapsed", f"must be such as 1-02:00:00, 02:00:00 or 30:00, found {text!r}")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _gpus(row: Row) -> tuple[float | None, bool]:
    """GPUs that the job held, or else asked for, and whether these are shares of one; None if not stated."""
    text = next((row.text(name) for name in ("alloctres", "reqtres") if row.has(name, filled=True)), None)
    if text is None:
        return None, False
    counts: dict[str, float] = {}
    for part in text.split(","):
        name, _, count = part.strip().rpartition("=")
        if name == "gres/gpu" or name.startswith(("gres/gpu:", "gres/shard", "gres/mps")):
            try:
                counts[name] = float(count)
            except ValueError:
                raise row.fault("TRES", f"must have a number of GPUs, found {part.strip()!r}") from None
    gpus_by_type = sum(count for name, count in counts.items() if name.startswith("gres/gpu:"))
    gpus = counts.get("gres/gpu", gpus_by_type)
    return gpus, not gpus and any(counts.values())
