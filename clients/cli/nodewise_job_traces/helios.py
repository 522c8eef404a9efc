"""SenseTime's Helios clusters: ``cluster_log.csv`` of S-Lab's HeliosData; cite Hu et al., SC'21."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TextIO

from nodewise_job_traces.faults import JobsFileError, Row, readable, rows_of
from nodewise_job_traces.logs import LoggedJob, number_of, span_s, time_of

__all__ = ["COLUMNS", "read_helios"]

COLUMNS: Final = ("job_id", "gpu_num", "submit_time", "duration")


def read_helios(stream: TextIO, *, file: str = "helios") -> Iterator[LoggedJob | JobsFileError]:
    """Jobs, and what is wrong in rows that cannot be read.

    Raises
    ------
    JobsFileError
        For a header that lacks a column.
    """
    return readable(_logged_job, rows_of(stream, file, COLUMNS, any_case=True))


def _logged_job(row: Row) -> LoggedJob:
    duration_s = number_of(row, "duration")
    start_s = time_of(row, "start_time")
    return LoggedJob(
        job_id=row.text("job_id"),
        submit_s=time_of(row, "submit_time"),
        duration_s=span_s(start_s, time_of(row, "end_time")) if duration_s is None else duration_s,
        gpus=row.number("gpu_num"),
        started=start_s is not None or not row.has("start_time"),
        queue=row.text("vc", ""),
    )
