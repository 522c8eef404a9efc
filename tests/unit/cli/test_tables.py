from __future__ import annotations

from pathlib import Path

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.columns import COLUMNS
from nodewise_cli.inputs.tables import read_table

REQUIRED = "job,device,nodes,workers,steps_per_s,split"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path)
    return str(caught.value)


def cell(folder: Path, column: str, value: str) -> str:
    """What is said of one cell of an otherwise right row."""
    cells = dict(zip(REQUIRED.split(","), ["a", "V100", "1", "1", "2.5", "train"], strict=True)) | {column: value}
    return message(write(folder, f"{','.join(cells)}\n{','.join(cells.values())}\n"))


def test_absent_columns_and_empty_cells_hold_their_defaults(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, f"{REQUIRED},sync,accumulation\na,V100,1,1,2.5,train,,\n"))
    assert set(table.columns) == set(COLUMNS)
    assert table.columns["sync"] == ("allreduce",)
    assert table.columns["parameter_servers"] == (0,)
    assert table.columns["accumulation"] == (1,)
    assert table.columns["placement"] == (None,)
    assert table.train == (True,)


def test_every_column_is_read(tmp_path: Path) -> None:
    values = {
        "job": "a",
        "device": "A100",
        "nodes": "2",
        "workers": "8.0",
        "steps_per_s": "1e-1",
        "split": "test",
        "sync": "sync",
        "parameter_servers": "2",
        "placement": "4+4",
        "batch_per_worker": "4",
        "micro_batch": "4",
        "sequence_parallel": "True",
        "measured_at": "2026-03-01T12:00:00Z",
        "zero_stage": "3",
        "recompute": "selective",
    }
    table = read_table(write(tmp_path, f"{','.join(values)}\n{','.join(values.values())}\n"))
    row = {name: column[0] for name, column in table.columns.items()}
    assert (row["workers"], row["steps_per_s"], row["placement"]) == (8, 0.1, (4, 4))
    assert (row["sequence_parallel"], row["zero_stage"], row["recompute"]) == (True, 3, "selective")
    assert row["measured_at"].isoformat() == "2026-03-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("cells", "batches"),
    [
        ({"workers": "16", "batch_per_worker": "0.5"}, (None, None, 8)),
        ({"workers": "9", "batch_per_worker": "0.333"}, (None, None, 3)),
        ({"workers": "16", "batch_per_worker": "1.5", "accumulation": "2"}, (None, None, 48)),
        ({"workers": "16", "batch_per_worker": "0.25", "global_batch": "64"}, (None, None, 64)),
        ({"workers": "16", "batch_per_worker": "0.25", "tensor_parallel": "4"}, (1, None, None)),
        ({"workers": "16", "micro_batch": "0.5", "context_parallel": "2", "global_batch": "64"}, (None, 1, 64)),
        ({"workers": "16", "batch_per_worker": "2.0"}, (2, None, None)),
    ],
)
def test_samples_that_workers_share(tmp_path: Path, cells: dict[str, str], batches: tuple[int | None, ...]) -> None:
    row = {"job": "a", "device": "H100", "nodes": "2", "steps_per_s": "1", "split": "train"} | cells
    table = read_table(write(tmp_path, f"{','.join(row)}\n{','.join(row.values())}\n"))
    assert tuple(table.columns[name][0] for name in ("batch_per_worker", "micro_batch", "global_batch")) == batches


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"batch_per_worker": "0.3"}, "column batch_per_worker: times workers and accumulation must be whole"),
        ({"batch_per_worker": "0.5", "global_batch": "4"}, "times workers must be at most global_batch (4)"),
        (
            {"micro_batch": "0.5"},
            "column micro_batch: times context_parallel must be a whole number of samples, found 0.5",
        ),
        ({"batch_per_worker": "0"}, "column batch_per_worker: must be above 0"),
    ],
)
def test_fractions_that_make_no_samples(tmp_path: Path, cells: dict[str, str], said: str) -> None:
    row = {"job": "a", "device": "H100", "nodes": "2", "workers": "16", "steps_per_s": "1", "split": "train"} | cells
    assert said in message(write(tmp_path, f"{','.join(row)}\n{','.join(row.values())}\n"))


@pytest.mark.parametrize("cell", ["1772366400", "2026-03-01T12:00:00", "2026-03-01T14:00:00+02:00"])
def test_moments_are_utc_unless_they_say_otherwise(tmp_path: Path, cell: str) -> None:
    table = read_table(write(tmp_path, f"{REQUIRED},measured_at\na,V100,1,1,2.5,train,{cell}\n"))
    assert table.columns["measured_at"][0].timestamp() == 1772366400


def test_utf8_with_mark_windows_lines_and_blank_lines(tmp_path: Path) -> None:
    text = f"\ufeff{REQUIRED}\r\n\r\na,V100,1,1,2.5,train\r\n,,,,,\r\nb,V100,1,1,2.5,test\r\n"
    table = read_table(write(tmp_path, text))
    assert table.jobs == ("a", "b")
    assert table.lines == (3, 5)


def test_lines_count_quoted_newlines(tmp_path: Path) -> None:
    text = f'{REQUIRED}\n"a\nb",V100,1,1,2.5,train\n"c\u2028d",V100,1,1,2.5,train\ne,V100,1,1,x,train\n'
    assert message(write(tmp_path, text)).startswith(f"{tmp_path / 'table.csv'}:5: column steps_per_s: must be")


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("steps_per_s", "nan", "must be a finite number of at least 1e-07 and at most 1e+09 (steps/s), found 'nan'"),
        ("steps_per_s", "-inf", "must be a finite number of at least 1e-07"),
        ("steps_per_s", "0", "must be a finite number of at least 1e-07"),
        ("steps_per_s", "1_0", "must be a finite number of at least 1e-07"),
        ("steps_per_s", "fast", "found 'fast'"),
        ("link_bytes_per_s", "0", "must be a finite number of at least 1 (bytes/s), found '0'"),
        ("link_bytes_per_s", "inf", "must be a finite number of at least 1"),
        ("compute_s", "-0.1", "must be a finite number of at least 0 and at most 1e+07 (s), found '-0.1'"),
        ("compute_cv", "NaN", "must be a finite number of at least 0 and at most 100, found 'NaN'"),
        ("nodes", "0", "must be at least 1, found '0'"),
        ("nodes", "1.5", "must be a whole number of at least 1, found '1.5'"),
        ("nodes", "", "must be given"),
        ("nodes", "99999999999", "must be at most 2147483647"),
        ("workers", "-2", "must be at least 1"),
        ("split", "validate", "must be train or test, found 'validate'"),
        ("sync", "bsp", "must be async, sync, allreduce or hybrid, found 'bsp'"),
        ("recompute", "some", "must be none, selective or full"),
        ("placement", "4,4", "has 8 cells"),
        ("placement", "4+0", "must be the workers on each node joined by +"),
        ("sequence_parallel", "maybe", "must be true or false"),
        ("zero_stage", "4", "must be at most 3"),
        ("groups", "4x", "must be groups of workers joined by +"),
        ("groups", "4+V100", "must be groups of workers joined by +"),
        ("groups", "4*0", "must be groups of workers joined by +"),
        ("groups", "0x V100", "must be groups of workers joined by +"),
        ("half_duplex", "both", "must be true or false"),
        ("hybrid_sync_fraction", "1.5", "must be a finite number of at least 0 and at most 1, found '1.5'"),
        ("round_trip_s", "-1", "must be a finite number of at least 0 and at most 1e+07 (s)"),
        ("phase_steps", "0", "must be at least 1"),
        ("measured_at", "yesterday", "must be a time as 2026-03-01T12:00:00Z"),
        ("measured_at", "0", "must be a time after 1970"),
        ("device", "V" * 65, "must be at most 64 characters"),
        ("job", "", "must be given"),
        ("job", "j" * 257, "must be at most 256 characters"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path: Path, column: str, value: str, expected: str) -> None:
    found = cell(tmp_path, column, value)
    assert found.startswith(f"{tmp_path / 'table.csv'}:2: ")
    assert expected in found
    if "cells" not in expected:
        assert f"column {column}: " in found


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"nodes": "2"}, "column workers: must be at least nodes (2)"),
        ({"workers": "4", "nodes": "2", "placement": "2+1"}, "column placement: must add up to workers (4), found 3"),
        ({"workers": "4", "nodes": "2", "placement": "4"}, "column placement: must have one number for each"),
        ({"steps_per_s": ""}, "column steps_per_s: must be given in a train row"),
        ({"parameter_servers": "1"}, "column parameter_servers: must be 0 if sync is allreduce"),
        ({"batch_per_worker": "4", "micro_batch": "2"}, "column micro_batch: must equal batch_per_worker (4)"),
        ({"workers": "4", "data_parallel": "2"}, "column data_parallel: must be such that the parallel degrees"),
        ({"sync": "async", "compute_s": "0.1"}, "column download_s: must be given if compute_s is"),
        ({"compute_cv": "0.1"}, "column compute_s: must be given if compute_cv is"),
        ({"hidden_s": "0.1"}, "column compute_s: must be given if hidden_s is"),
        ({"compute_s": "1", "hidden_s": "1"}, "column hidden_s: must be at most download_s + upload_s (0), found 1"),
        ({"workers": "4", "groups": "2+1"}, "column groups: must add up to workers (4), found 3"),
        ({"backup_workers": "1"}, "column backup_workers: must be below workers (1)"),
        ({"sync": "async", "hybrid_switch_s": "2"}, "column hybrid_switch_s: must be empty or 0 if sync is async"),
        ({"compute_s": "0"}, "column compute_s: must be above 0 in at least one phase"),
        ({"layers": "12"}, "column hidden_size: must be given if layers is"),
    ],
)  # fmt: skip
def test_cells_that_contradict_each_other(tmp_path: Path, row: dict[str, str], expected: str) -> None:
    cells = {"job": "a", "device": "V", "nodes": "1", "workers": "1", "steps_per_s": "2", "split": "train"} | row
    found = message(write(tmp_path, f"{','.join(cells)}\n{','.join(cells.values())}\n"))
    assert found.startswith(f"{tmp_path / 'table.csv'}:2: {expected}")


def test_a_fact_that_differs_within_a_job_names_both_lines(tmp_path: Path) -> None:
    text = f"{REQUIRED},tensors\na,V100,1,1,2,train,5\nb,V100,1,1,2,train,6\na,V100,1,1,2,test,\na,V100,1,1,2,test,6\n"
    assert message(write(tmp_path, text)) == (
        f"{tmp_path / 'table.csv'}:5: column tensors: must be 5 as in line 2: a job has one value of it ('a'), found 6"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty; the first line must name the columns, such as job, device, nodes, workers, steps_per_s"),
        (f"{REQUIRED}\n", "has no rows below the header"),
        (f"{REQUIRED},zzzz\n", ":1: unknown column 'zzzz'; columns are: job, device, nodes"),
        (
            "model,gpus,nodes,zzzz,tensor_paralel\n",
            ":1: unknown columns 'zzzz', 'tensor_paralel' (did you mean tensor_parallel?); columns are: job",
        ),
        ("model,job,gpus\n", ":1: columns model and job both state job: keep one of them"),
        (
            "model,gpus,img/s\n",
            ":1: the required columns device, nodes must be given; or state gpus_per_node instead of nodes; device",
        ),
        (f"{REQUIRED},job\n", ":1: column job is there 2 times in the header; keep one"),
        ("job,device,nodes,workers\n", ":1: the required column steps_per_s must be given"),
        ("job,device,nodes,workers,split\n", ":1: the required column steps_per_s must be given"),
        ("job;device;nodes\n", ":1: the columns must be separated by commas"),
        (f"{REQUIRED}\na,V100\n", ":2: has 2 cells, but the header has 6"),
        (f'{REQUIRED}\na,"V100,1,1,2,train\n', ":2: is not valid CSV: unexpected end of data"),
        (f"{REQUIRED}\na,V100,1,1,2,train\0\n", ":2: contains a NUL byte"),
        (f"{REQUIRED}\na,V100,1,1,2,train\n\xe9,V100,1,1,2,train\n".encode("latin-1"), ":3: byte 0xe9 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_table(tmp_path: Path, text: str | bytes, expected: str) -> None:
    assert message(write(tmp_path, text)).startswith(str(tmp_path / "table.csv"))
    assert expected in message(tmp_path / "table.csv")


def test_a_file_that_is_not_there_and_a_directory(tmp_path: Path) -> None:
    assert message(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: no such file"
    assert message(tmp_path) == f"{tmp_path}: is a directory, not a file"


def test_jobs_are_in_order_and_know_their_rows(tmp_path: Path) -> None:
    rows = "".join(f"job{number % 3},V100,1,4,{number + 1},train\n" for number in range(8))
    table = read_table(write(tmp_path, f"{REQUIRED}\n{rows}"))
    assert table.jobs == ("job0", "job1", "job2")
    assert table.rows_by_job["job1"] == (1, 4, 7)
    assert len(table) == 8


def test_rows_may_be_known_by_their_memory_alone(tmp_path: Path) -> None:
    header = "job,device,nodes,workers,steps_per_s,measured_memory_bytes,fitted"
    table = read_table(write(tmp_path, f"{header}\na,V100,1,1,2.5,7e9,1\na,V100,1,2,,8e9,\na,V100,1,4,,,0\n"))
    assert table.columns["measured_memory_bytes"] == (7e9, 8e9, None)
    assert table.columns["fitted"] == (1, None, 0)
    assert table.columns["split"] == ("train", "test", "test")
    without = read_table(write(tmp_path, "job,device,nodes,workers,fitted,split\na,V100,1,1,0,train\n"))
    assert (without.columns["steps_per_s"], without.train) == ((None,), (True,))
