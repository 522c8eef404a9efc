"""Alibaba's GPU clusters: tasks of 2020 and pods of 2023, of alibaba/clusterdata.

2020 (Weng et al., NSDI'22): ``pai_task_table``, published without a header. A job's tasks are its roles; ``plan_gpu``
is in percent of a GPU, for each of ``inst_num`` instances. A job holds the GPUs of all its tasks from the first start
to the last end of those that have GPUs; the table has no time of submission, so that it arrives when it starts.
``pai_job_table`` names no GPUs.

2023 (Weng et al., ATC'23): ``openb_pod_list``, a pod per row; ``gpu_milli`` is the share of its one GPU in thousandths.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TextIO

from nodewise_job_traces.faults import JobsFileError, Row, readable, rows_of
from nodewise_job_traces.logs import LoggedJob, merge_parts, number_of, span_s, time_of

__all__ = ["POD_COLUMNS", "TASK_COLUMNS", "is_job_table", "is_task_table", "read_alibaba_pods", "read_alibaba_tasks"]

TASK_COLUMNS: Final = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
_JOB_COLUMNS: Final = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
_STATES: Final = frozenset({"terminated", "failed", "running", "waiting", "interrupted", "cancelled", "ready"})
POD_COLUMNS: Final = ("num_gpu", "gpu_milli", "creation_time", "deletion_time")
_WHOLE_MILLI: Final = 1000


def is_task_table(line: str) -> bool:
    """Whether a file's first line is one of ``pai_task_table``, or its header."""
    return _is_of(line, TASK_COLUMNS, ("inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"))


def is_job_table(line: str) -> bool:
    """Whether a file's first line is one of ``pai_job_table``, or its header."""
    return _is_of(line, _JOB_COLUMNS, ("start_time", "end_time"))


def _is_of(line: str, columns: tuple[str, ...], numbers: tuple[str, ...]) -> bool:
    cells = _cells(line)
    if set(columns) <= {cell.lower() for cell in cells}:
        return True
    cells_by_column = dict(zip(columns, cells))
    return (
        len(cells) == len(columns)
        and cells_by_column["status"].lower() in _STATES
        and all(_is_number(cells_by_column[column]) for column in numbers)
    )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line]), [])]


def _is_number(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return True


def read_alibaba_tasks(stream: TextIO, *, file: str = "alibaba-2020") -> Iterator[LoggedJob | JobsFileError]:
    """Jobs of ``pai_task_table``, with or without a header, and what is wrong in rows that cannot be read.

    Raises
    ------
    JobsFileError
        For a header that lacks a column.
    """
    has_header = "job_name" in (cell.lower() for cell in _cells(stream.readline()))
    stream.seek(0)
    names = None if has_header else TASK_COLUMNS
    jobs: dict[str, list[_Task]] = {}
    for row in readable(_task, rows_of(stream, file, TASK_COLUMNS[:-1], names=names, any_case=True)):
        if isinstance(row, JobsFileError):
            yield row
        else:
            jobs.setdefault(row[0].job_id, []).append(row)
    for tasks in jobs.values():
        yield _job(tasks)


_Task = tuple[LoggedJob, float | None]
"""A task, and its end."""


def _task(row: Row) -> _Task:
    start_s, end_s = time_of(row, "start_time"), time_of(row, "end_time")
    percent = number_of(row, "plan_gpu") or 0.0
    return LoggedJob(
        job_id=row.text("job_name"),
        submit_s=start_s,
        duration_s=span_s(start_s, end_s),
        gpus=percent / 100 * row.whole("inst_num") if percent else 0.0,
        started=start_s is not None,
        shares_gpu=percent % 100 != 0,
    ), end_s


def _job(tasks: list[_Task]) -> LoggedJob:
    """Its tasks need not start and end together."""
    holders = [(task, end_s) for task, end_s in tasks if task.gpus] or tasks
    intervals = [(task, end_s) for task, end_s in holders if task.started]
    job = merge_parts([task for task, _ in intervals or holders])
    ends = [end_s for _, end_s in intervals if end_s is not None]
    last_s = max(ends) if ends and len(ends) == len(intervals) else None
    return replace(job, duration_s=span_s(job.submit_s, last_s))


def read_alibaba_pods(stream: TextIO, *, file: str = "alibaba-2023") -> Iterator[LoggedJob | JobsFileError]:
    """Jobs of an ``openb_pod_list``, and what is wrong in rows that cannot be read.

    Raises
    ------
    JobsFileError
        For a header that lacks a column.
    """
    return readable(_pod, rows_of(stream, file, POD_COLUMNS, any_case=True))


def _pod(row: Row) -> LoggedJob:
    start_s = time_of(row, "scheduled_time", "creation_time")
    milli = number_of(row, "gpu_milli") or 0.0
    return LoggedJob(
        job_id=row.text("name", f"{row.line:06d}"),
        submit_s=time_of(row, "creation_time"),
        duration_s=span_s(start_s, time_of(row, "deletion_time")),
        gpus=row.number("num_gpu"),
        started=start_s is not None,
        shares_gpu=milli % _WHOLE_MILLI != 0,
    )
