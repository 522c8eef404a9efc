from __future__ import annotations

from pathlib import Path

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.job_sources import job_sources
from nodewise_cli.inputs.tables import Table, read_table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    path = tmp_path / "table.csv"
    path.write_text(
        "job,device,nodes,workers,steps_per_s,framework\n"
        "bert/Dell/v1,T4,1,1,2,pytorch\n"
        "alone,V100,1,1,2,\n"
        "bert/HPE/v1,T4,1,1,2,pytorch\n"
        "bert/Dell/v1,V100,1,2,3,pytorch\n"
    )
    return read_table(path)


@pytest.mark.parametrize(
    ("rule", "sources"),
    [
        pytest.param("job", ("bert/Dell/v1", "alone", "bert/HPE/v1"), id="every job"),
        pytest.param("job:1", ("bert", "alone", "bert"), id="first part"),
        pytest.param("job:2", ("Dell", "alone", "HPE"), id="second part, or the whole name"),
        pytest.param("device", ("T4 + V100", "V100", "T4"), id="a column of several values"),
        pytest.param("nodes", ("1", "1", "1"), id="a column of one value"),
        pytest.param("framework", ("pytorch", "not said", "pytorch"), id="a column that a job does not have"),
    ],
)
def test_a_source_is_a_part_of_a_name_or_what_a_column_says(table: Table, rule: str, sources: tuple[str, ...]) -> None:
    assert job_sources(table, rule, "--leave-out") == sources


@pytest.mark.parametrize("rule", ["", "campaign", "job:0", "job:x", "steps_per_s"])
def test_another_rule_is_wrong_input(table: Table, rule: str) -> None:
    with pytest.raises(InputError, match="--leave-out: must be job, job:N"):
        job_sources(table, rule, "--leave-out")
