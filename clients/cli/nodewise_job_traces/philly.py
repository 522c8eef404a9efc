"""Microsoft's Philly cluster: its own log, and the extract of its arrivals; cite Jeon et al., ATC'19.

The log (`cluster_job_log` of msr-fiddle/philly-traces) is a JSON list of jobs with ``submitted_time``, ``vc`` and
``attempts``; each attempt has ``start_time``, ``end_time`` and in ``detail`` the GPUs by machine. A job's GPUs are
those of its first attempt that has some, its duration is that of all attempts together: between them it held none.

The extract is a CSV with the columns timestamp (ISO), duration (s), num_gpus, gpu_time (s) and cluster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO

from nodewise_job_traces.faults import JobsFileError, Row, readable, rows_of, wrong
from nodewise_job_traces.logs import LoggedJob, number_of, seconds_of, span_s, time_of

__all__ = ["EXTRACT_COLUMNS", "read_philly"]

EXTRACT_COLUMNS: Final = ("timestamp", "duration", "num_gpus")


def read_philly(stream: TextIO, *, file: str = "philly") -> Iterator[LoggedJob | JobsFileError]:
    """Jobs of the log or of the extract, and what is wrong in rows that cannot be read.

    Raises
    ------
    JobsFileError
        Where the file as a whole is neither.
    """
    first = stream.read(1)
    while first.isspace():
        first = stream.read(1)
    stream.seek(0)
    if first == "[":
        return readable(_logged_job, _entries(stream, file))
    return readable(_extracted_job, rows_of(stream, file, EXTRACT_COLUMNS, any_case=True))


def _extracted_job(row: Row) -> LoggedJob:
    return LoggedJob(
        job_id=f"{row.line:06d}",
        submit_s=time_of(row, "timestamp"),
        duration_s=number_of(row, "duration"),
        gpus=row.number("num_gpus"),
        queue=row.text("cluster", ""),
    )


class _Entry(Row):
    """One job of the log; its line is its place in the list, from 1."""

    def __init__(self, file: str, line: int, job: Mapping[str, Any]) -> None:
        super().__init__(file, line, {})
        self.job = job


def _entries(stream: TextIO, file: str) -> Iterator[_Entry]:
    try:
        jobs = json.load(stream)
    except ValueError as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        raise wrong(file, line, str(column), "is not valid JSON") from None
    if not any(isinstance(job, dict) and "attempts" in job for job in jobs):
        raise JobsFileError(file, "must be a JSON list of jobs with submitted_time and attempts, as Philly's log is")
    return (_Entry(f"{file}:jobs", number, job) for number, job in enumerate(jobs, 1))


def _logged_job(entry: _Entry) -> LoggedJob:
    job, attempts = entry.job, entry.job.get("attempts") if isinstance(entry.job, dict) else None
    if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
        raise entry.fault("attempts", "must be a list of attempts, each with start_time, end_time and detail")
    spans = [(_time(entry, each, "start_time"), _time(entry, each, "end_time")) for each in attempts]
    intervals = [(start_s, end_s) for start_s, end_s in spans if start_s is not None or end_s is not None]
    lengths = [span_s(start_s, end_s) for start_s, end_s in intervals]
    known_lengths = [length for length in lengths if length is not None]
    counts = [_gpus(entry, attempt) for attempt in attempts]
    return LoggedJob(
        job_id=str(job.get("jobid") or f"{entry.line:06d}"),
        submit_s=_time(entry, job, "submitted_time"),
        duration_s=math.fsum(known_lengths) if len(known_lengths) == len(lengths) else None,
        gpus=next((count for count in counts if count), 0) if intervals else None,
        started=bool(intervals),
        queue=str(job.get("vc") or ""),
    )


def _time(entry: Row, holder: Mapping[str, Any], name: str) -> float | None:
    text = holder.get(name)
    return None if text is None else seconds_of(entry, name, str(text))


def _gpus(entry: Row, attempt: Mapping[str, Any]) -> int:
    """GPUs of all machines of an attempt."""
    try:
        return sum(len(machine.get("gpus") or ()) for machine in attempt.get("detail") or ())
    except (AttributeError, TypeError):
        raise entry.fault("detail", "must be a list of machines, each with a list of gpus") from None
