from __future__ import annotations

from pathlib import Path

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.selections import also_trained
from nodewise_cli.inputs.tables import Table, read_table

OPTION = "--also-train"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    path = tmp_path / "table.csv"
    rows = [f"a,K80,{sync},{n},{n},{n},test,{n},ns" for sync in ("async", "sync") for n in (1, 2, 4, 8)]
    path.write_text(
        "job,device,sync,nodes,workers,steps_per_s,split,batch_per_worker,framework\n"
        + "\n".join(rows)
        + '\n"x,y",K80,async,1,1,,test,,\n'
    )
    return read_table(path)


def selected(table: Table, *expressions: str) -> list[int]:
    changed, count = also_trained(table, expressions, OPTION)
    rows = [row for row, train in enumerate(changed.train) if train]
    assert len(rows) == count
    return rows


@pytest.mark.parametrize(
    ("expressions", "rows"),
    [
        (["workers=4"], [2, 6]),
        (["workers==4"], [2, 6]),
        (["workers = 4.0, sync = async"], [2]),
        (["workers!=4,sync=sync"], [4, 5, 7]),
        (["workers<4,sync=sync"], [4, 5]),
        (["workers<=4,workers>1,sync=sync"], [5, 6]),
        (["workers>=4,sync=sync"], [6, 7]),
        (["workers=4", "workers=8"], [2, 3, 6, 7]),
        (["batch_per_worker>=8"], [3, 7]),
        (["job=x"], []),
        (["tensors=3"], []),
        (["framework!=pytorch,workers=1,sync=async,job=a"], [0]),
        (["tensors!=3,workers=2"], [1, 5]),
    ],
)
def test_rows_that_are_selected(table: Table, expressions: list[str], rows: list[int]) -> None:
    assert selected(table, *expressions) == rows


def test_a_row_that_was_not_measured_cannot_be_learned_from(table: Table) -> None:
    with pytest.raises(InputError, match=r"table\.csv:10: column steps_per_s: must be given .*--also-train"):
        also_trained(table, ["job=x,y"], OPTION)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("workers", "must be conditions joined by commas"),
        ("workers=", "must be conditions joined by commas"),
        ("", "must be conditions joined by commas"),
        ("worker=4", "unknown column 'worker'; columns are: job, device"),
        ("workers=4,8", "workers must be a whole number of at least 1, found '4,8'"),
        ("sync=bsp", "sync must be async, sync, allreduce or hybrid, found 'bsp'"),
        ("sync<sync", "sync has no order: compare it with = or !=, found <"),
        ("sequence_parallel>true", "sequence_parallel has no order"),
        ("steps_per_s>4", "must not select by steps_per_s"),
    ],
)
def test_expressions_that_are_none(table: Table, expression: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        also_trained(table, [expression], OPTION)
    assert str(caught.value).startswith(f"{OPTION}: ")
    assert expected in str(caught.value)
