"""Logs of managers with entries that cannot be read: the text by file, line and column."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import pytest

from nodewise_job_traces import JobsFileError
from nodewise_job_traces.philly import read_philly
from nodewise_job_traces.pollux import pollux_curves
from nodewise_job_traces.slurm import read_sacct

Read = Callable[[TextIO], Iterator[Any]]

SACCT = "JobID|Submit|Start|End|Elapsed|AllocTRES|State\n1|{submit}|{submit}|{submit}|{elapsed}|{tres}|COMPLETED\n"


def sacct(submit: str = "2017-10-09T07:01:55", elapsed: str = "01:00:00", tres: str = "gres/gpu=1") -> str:
    return SACCT.format(submit=submit, elapsed=elapsed, tres=tres)


def philly(**changes: object) -> str:
    attempt = {"start_time": "2017-10-09 07:01:55", "end_time": "2017-10-09 08:01:55", "detail": [{"gpus": ["gpu0"]}]}
    return json.dumps([{"submitted_time": "2017-10-09 07:01:55", "attempts": [attempt | changes]}])


@pytest.mark.parametrize(
    ("read", "text", "fault"),
    [
        (read_sacct, sacct(submit="soon"), "must be such as 2017-10-09 07:01:55, found 'soon'"),
        (read_sacct, sacct(submit="inf"), "must be a time, found 'inf'"),
        (read_sacct, sacct(elapsed="an hour"), "must be such as 1-02:00:00, 02:00:00 or 30:00, found 'an hour'"),
        (read_sacct, sacct(tres="gres/gpu=two"), "must have a number of GPUs, found 'gres/gpu=two'"),
        (read_philly, "[1", "is not valid JSON"),
        (read_philly, "[1]", "must be a JSON list of jobs with submitted_time and attempts, as Philly's log is"),
        (read_philly, philly(detail=[1]), "must be a list of machines, each with a list of gpus"),
    ],
)
def test_the_text_says_what_is_right(read: Read, text: str, fault: str) -> None:
    try:
        entries = list(read(io.StringIO(text)))
    except JobsFileError as error:
        entries = [error]
    assert [fault in str(entry) for entry in entries if isinstance(entry, JobsFileError)] == [True]


def test_step_times_of_an_unknown_application() -> None:
    with pytest.raises(JobsFileError, match="found 'mine'"):
        pollux_curves({"mine": lambda devices, batch: 1.0}, 4, {})
