"""What people see: numbers, bars, measured rows beside predicted ones, errors."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from nodewise_cli.console import complain, print_json
from nodewise_cli.errors import explain_error, status_of
from nodewise_cli.failures import ExitStatus, unreadable
from nodewise_cli.inputs.measured_points import at, measured_points
from nodewise_cli.inputs.questions import AskedJob
from nodewise_cli.inputs.table_errors import in_table
from nodewise_cli.inputs.tables import read_table
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.table import print_table, words
from nodewise_cli.waiting import waiting
from nodewise_client import (
    ConflictError,
    FieldViolation,
    InvalidArgumentError,
    LimitExceededError,
    NodewiseError,
    NotFoundError,
    Prediction,
    Predictions,
    RefusedError,
    UnavailableError,
)
from nodewise_client._row_kinds import prediction_rows


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "-"),
        (0.0, "0"),
        (1234567.0, "1,234,567"),
        (123.456, "123.5"),
        (12.3456, "12.35"),
        (0.05, "0.0500"),
        (0.000012345, "1.234e-05"),
        (-3.21987, "-3.220"),
    ],
)
def test_numbers_for_people(value: float | None, expected: str) -> None:
    assert format_number(value) == expected


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": float("nan"), "b": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1, None]}


def test_names_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([words("[bold]job")], [["[red]x"]], title="[b]t")
    complain("[red]wrong")
    printed = capsys.readouterr()
    assert "[bold]job" in printed.out
    assert "[red]x" in printed.out
    assert printed.err == "nodewise: [red]wrong\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_to_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with waiting("counting", patience_s=0.0) as progress:
        while "counting" not in terminal.getvalue():
            progress.tell(1, 2)
    assert "counting" in terminal.getvalue()


def test_no_bar_where_nobody_looks_or_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with waiting("counting", patience_s=0.0):
        pass
    assert not stream.getvalue()
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with waiting("counting", patience_s=60.0):
        pass
    assert "counting" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RefusedError("x"), ExitStatus.REFUSED),
        (InvalidArgumentError("x"), ExitStatus.BAD_INPUT),
        (LimitExceededError("x"), ExitStatus.BAD_INPUT),
        (NotFoundError("x"), ExitStatus.BAD_INPUT),
        (ConflictError("x"), ExitStatus.FAILURE),
        (UnavailableError("x"), ExitStatus.FAILURE),
    ],
)
def test_exit_statuses(error: NodewiseError, status: ExitStatus) -> None:
    assert status_of(error) is status


def test_a_refusal_names_what_is_missing() -> None:
    error = RefusedError("cannot", reason="EVIDENCE_MISSING", metadata={"missingFields": "phase_timings,workload"})
    assert explain_error(error) == "EVIDENCE_MISSING: cannot; missing: phase_timings, workload"


def test_errors_about_rows_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job,device,nodes,workers,steps_per_s,split\na,K,1,1,2,train\nb,K,1,1,2,train\na,K,2,2,3,train\n")
    table = read_table(path)
    error = InvalidArgumentError("x", violations=[FieldViolation(field="rows.nodes[1]", description="must be less")])
    assert str(in_table(error, table, [0, 2], "rows")) == f"{path}:4: column nodes: must be less"
    assert in_table(error, table, [0], "rows") is None
    assert in_table(error, table, [0, 2], "columns") is None


def test_a_file_that_cannot_be_read() -> None:
    assert (
        str(unreadable(Path("x"), PermissionError(13, "Permission denied"))) == "x: cannot be read: Permission denied"
    )


def prediction(workers: int, steps: float, per_step: int | None) -> Prediction:
    columns = Predictions(
        rows_count=1,
        nodes=(workers,),
        workers=(workers,),
        steps_per_second=(steps,),
        samples_per_second=() if per_step is None else (steps * per_step,),
    )
    (row,) = prediction_rows(columns)
    return row


MEASURED = """job,device,sync,nodes,workers,batch_per_worker,global_batch,steps_per_s,split
a,K80,allreduce,1,1,32,,10,train
a,K80,allreduce,2,2,32,,9,test
a,K80,allreduce,2,2,16,,12,test
a,K80,allreduce,4,4,32,,8,test
a,K80,allreduce,4,4,,,,test
a,V100,allreduce,2,2,,64,30,test
"""


@pytest.mark.parametrize(
    ("template", "answered", "steps"),
    [
        # On the device that was learned from, unless another one is asked for.
        ({}, [prediction(1, 10, None)], [10, 9, 12, 8]),
        ({"device": "V100"}, [prediction(1, 10, None)], [30]),
        ({"sync": "async"}, [prediction(1, 10, None)], []),
        ({"parameter_servers": 1}, [prediction(1, 10, None)], []),
        # Weak scaling: 32 on each worker, also where nothing was asked.
        ({"device": "K80"}, [prediction(1, 10, 32), prediction(2, 9, 64)], [10, 9, 8]),
        # Strong scaling: 64 in all.
        ({}, [prediction(1, 10, 64), prediction(2, 9, 64)], [9]),
        ({"device": "V100"}, [prediction(1, 10, 64), prediction(2, 9, 64)], [30]),
    ],
)
def test_measured_rows_that_ran_as_was_asked(
    tmp_path: Path, template: dict[str, Any], answered: list[Prediction], steps: list[float]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(MEASURED)
    table = read_table(path)
    asked = AskedJob("a", "a", table)
    assert [point.steps_per_second for point in measured_points(asked, template, answered)] == steps
    assert measured_points(AskedJob("a", "a"), template, answered) == []


def test_held_out_rows_stand_for_their_scale(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job,device,nodes,workers,steps_per_s,split\na,K,1,1,2,train\na,K,1,1,3,test\n")
    asked = AskedJob("a", "a", read_table(path))
    points = measured_points(asked, {}, [])
    found = at(points, prediction(1, 2.5, None))
    assert found is not None
    assert (found.steps_per_second, found.train) == (3.0, False)
    assert at(points, prediction(2, 2.5, None)) is None


def test_json_is_whole_where_the_system_writes_less_than_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    class Short(io.RawIOBase):
        """A stream without a buffer, as of PYTHONUNBUFFERED, that takes seven bytes at a time."""

        taken = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            some = bytes(data[:7])
            self.taken += some
            return len(some)

    raw = Short()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(cast("Any", raw), write_through=True))
    print_json({"values": list(range(100))})
    assert json.loads(raw.taken) == {"values": list(range(100))}
