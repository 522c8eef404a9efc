"""The meter of training loops apart from frameworks: what counts as a step, what is left out, and what is written."""

from __future__ import annotations

import csv
import json
import logging
import threading

import pytest

from nodewise_client.callbacks import StepMeter


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def single_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)


def run(meter, clock, seconds):
    for each in seconds:
        clock.now += each
        meter.step()


def rows(path):
    with path.open(newline="") as table:
        return list(csv.DictReader(table))


def test_the_steady_rate_leaves_out_the_warm_up(tmp_path):
    clock, path = Clock(), tmp_path / "runs" / "own.csv"
    with StepMeter("job", file=path, clock=clock, device="A100", batch_per_worker=32, accumulation=2) as meter:
        run(meter, clock, [9.0] * 10 + [0.25] * 40)
    (row,) = rows(path)
    assert (row["job"], row["device"], row["nodes"], row["workers"]) == ("job", "A100", "1", "1")
    assert (row["batch_per_worker"], row["accumulation"], row["steps"]) == ("32", "2", "40")
    assert float(row["steps_per_s"]) == pytest.approx(4.0)
    assert float(row["step_cv"]) == pytest.approx(0.0, abs=1e-6)


def test_pauses_and_the_step_behind_them_are_left_out(tmp_path):
    clock, path = Clock(), tmp_path / "own.jsonl"
    with StepMeter("job", file=path, clock=clock) as meter:
        run(meter, clock, [1.0] * 30)
        meter.pause()
        clock.now += 600.0
        run(meter, clock, [5.0] + [1.0] * 20)
        meter.pause()
        meter.pause()
    (row,) = map(json.loads, path.read_text().splitlines())
    assert row["steps_per_s"] == pytest.approx(1.0)
    assert row["steps"] == 40
    assert row["step_cv"] == 0.0


def test_a_late_pause_discards_the_open_window(tmp_path):
    clock, path = Clock(), tmp_path / "own.jsonl"
    with StepMeter("job", file=path, clock=clock) as meter:
        run(meter, clock, [1.0] * 25)
        clock.now += 600.0
        meter.pause(late=True)
        run(meter, clock, [1.0] * 11)
    assert json.loads(path.read_text())["steps"] == 20


def test_a_stall_does_not_move_the_rate(tmp_path):
    clock, path = Clock(), tmp_path / "own.jsonl"
    with StepMeter("job", file=path, clock=clock) as meter:
        run(meter, clock, [1.0] * 40 + [90.0] + [1.0] * 39)
    row = json.loads(path.read_text())
    assert row["steps_per_s"] == pytest.approx(1.0)
    assert row["step_cv"] > 1


def test_windows_of_short_steps_grow(tmp_path):
    clock, path = Clock(), tmp_path / "own.jsonl"
    with StepMeter("job", file=path, clock=clock) as meter:
        run(meter, clock, [0.001] * 5000)
    row = json.loads(path.read_text())
    assert row["steps_per_s"] == pytest.approx(1000.0)
    assert 3000 < row["steps"] <= 4990


def test_rows_of_several_runs_share_a_table_but_not_with_other_columns(tmp_path, caplog):
    clock, path = Clock(), tmp_path / "own.csv"
    for nodes in (1, 2):
        with StepMeter("job", file=path, clock=clock, nodes=nodes, workers=8 * nodes) as meter:
            run(meter, clock, [1.0] * 20)
    assert [(row["nodes"], row["workers"]) for row in rows(path)] == [("1", "8"), ("2", "16")]
    with StepMeter("job", file=path, clock=clock, tensor_parallel=2) as meter:
        run(meter, clock, [1.0] * 20)
    assert "has no column tensor_parallel" in caplog.text
    assert len(rows(path)) == 2


def test_a_row_is_written_every_so_often(tmp_path):
    clock, path = Clock(), tmp_path / "own.jsonl"
    meter = StepMeter("job", file=path, clock=clock, every_minutes=1.0)
    for _ in range(3):
        run(meter, clock, [1.0] * 70)
        for thread in threading.enumerate():
            if thread.name == "nodewise-meter":
                thread.join()
    meter.close()
    counts = [json.loads(line)["steps"] for line in path.read_text().splitlines()]
    assert len(counts) == 4
    assert sum(counts) == 200


def test_a_meter_measures_a_second_training_after_a_warm_up(tmp_path):
    clock, path = Clock(), tmp_path / "own.jsonl"
    meter = StepMeter("job", file=path, clock=clock)
    for seconds in (1.0, 2.0):
        run(meter, clock, [50.0] * 10 + [seconds] * 20)
        meter.close()
    meter.close()
    assert [json.loads(line)["steps_per_s"] for line in path.read_text().splitlines()] == [1.0, 0.5]


def test_other_ranks_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    clock = Clock()
    with StepMeter("job", file=tmp_path / "own.csv", clock=clock) as meter:
        run(meter, clock, [1.0] * 30)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("RANK", "0")
    with StepMeter("job", file=tmp_path / "own.csv", clock=clock) as meter:
        run(meter, clock, [1.0] * 30)
    (row,) = rows(tmp_path / "own.csv")
    assert (row["nodes"], row["workers"]) == ("2", "4")


@pytest.mark.parametrize("count", [0, 5, 12])
def test_too_few_steps_give_a_warning_and_no_row(tmp_path, caplog, count):
    clock = Clock()
    with StepMeter("job", file=tmp_path / "own.csv", clock=clock) as meter:
        run(meter, clock, [1.0] * count)
    assert list(tmp_path.iterdir()) == []
    assert ("fewer than 3 steps" in caplog.text) == bool(count)


def test_what_cannot_be_written_ends_nothing(tmp_path, caplog):
    (tmp_path / "file").touch()
    clock = Clock()
    with (
        caplog.at_level(logging.WARNING),
        StepMeter("job", file=tmp_path / "file" / "own.csv", server="127.0.0.1:1", clock=clock, timeout_s=5.0) as meter,
    ):
        run(meter, clock, [1.0] * 30)
    assert [record.message.endswith("training goes on") for record in caplog.records] == [True, True]


def test_a_clock_that_fails_ends_the_measurement_alone(tmp_path, caplog, monkeypatch):
    clock = Clock()
    meter = StepMeter("job", file=tmp_path / "own.csv", clock=clock)
    monkeypatch.setattr("nodewise_client.callbacks._meter.synchronise", lambda: 1 / 0)
    run(meter, clock, [1.0] * 30)
    assert "division by zero; training goes on" in caplog.text
    assert len(caplog.records) == 1
    meter.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "file and server are both None"),
        ({"file": "own.txt"}, "must end in .csv or .jsonl"),
        ({"file": "own.csv", "batch": 3}, "has no batch"),
        ({"file": "own.csv", "warm_up_steps": 0}, "at least 1"),
    ],
)
def test_what_cannot_work_is_an_error_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        StepMeter("job", **options)
