"""Tables of operations: what stragglers cost, by answers that can be worked out by hand, and by published ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from measurements import data_path
from typer.testing import CliRunner

from nodewise_cli.app import app
from nodewise_job_traces import JobsFileError
from nodewise_job_traces.operations import is_operation_table, read_operations
from nodewise_job_traces.stragglers import StragglerAnalysis, analyse_stragglers

HEADER = "step,rank,stage,data_parallel_index,micro_batch,operation,start,end"
ORDERS = {0: "F0 F1 B0 B1", 1: "F0 B0 F1 B1"}
"""1F1B of two stages and two micro-batches. Starts matter by their order alone, as exchanges last no time in them."""


def table(
    path: Path,
    factor: Callable[[int, int, int], float] = lambda data, stage, batch: 1.0,
    pause: Callable[[int, int], float] = lambda data, stage: 0.0,
    steps: int = 2,
) -> Path:
    """Forward passes of 1 s and backward ones of 2 s by a factor, then 0.5 s of exchange and of the optimizer."""
    lines = [HEADER]
    for step in range(steps):
        for data, stage in ((0, 0), (1, 0), (0, 1), (1, 1)):
            worker = f"{step},{2 * stage + data},{stage},{data}"
            for place, name in enumerate(ORDERS[stage].split()):
                way, seconds = ("forward", 1.0) if name[0] == "F" else ("backward", 2.0)
                batch, start = int(name[1]), 100.0 * step + 10 * place
                lines.append(f"{worker},{batch},{way},{start},{start + seconds * factor(data, stage, batch)}")
                message = "send" if (stage == 0) == (way == "forward") else "recv"
                at = 100.0 * step + 10 * batch
                lines.append(f"{worker},{batch},{way}-{message},{at},{at}")
            end = 100.0 * step + 50
            lines.append(f"{worker},-1,gc,{end},{end + pause(data, stage)}")
            lines.append(f"{worker},-1,grads-reduce-scatter,{end + 20},{end + 20.5}")
            lines.append(f"{worker},-1,optimizer,{end + 21},{end + 21.5}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "operations.csv"


def analysed(path: Path) -> StragglerAnalysis:
    return analyse_stragglers(read_operations(path))


def test_equal_workers_have_no_straggler(path: Path) -> None:
    found = analysed(table(path))
    # (micro-batches + stages - 1) * (1 + 2), then the exchange and the optimizer.
    assert found.step_seconds == pytest.approx(10.0)
    assert found.slowdown_ratio == pytest.approx(1.0)
    assert found.verdict.startswith("Nothing stands out")
    assert found.forward_backward_correlation is None


@pytest.mark.parametrize("data", [0, 1])
@pytest.mark.parametrize("stage", [0, 1])
def test_a_worker_at_half_speed_is_first(path: Path, data: int, stage: int) -> None:
    found = analysed(table(path, lambda d, s, batch: 2.0 if (d, s) == (data, stage) else 1.0))
    # A mean forward pass takes 1.25 s and a backward one 2.5 s.
    assert found.ideal_step_seconds == pytest.approx(3 * 3.75 + 1)
    # The slow stage computes without a gap for 12 s and waits for the other one's 1 s, or 1 s and 2 s.
    assert found.step_seconds == pytest.approx(14.0 if stage == 0 else 16.0)
    assert found.workers[0].rank == 2 * stage + data
    assert found.slowest_workers_share > 0.5
    assert f"rank {2 * stage + data} first" in found.verdict or (stage == 1 and "last stage" in found.verdict)


def test_garbage_collection(path: Path) -> None:
    found = analysed(table(path, pause=lambda data, stage: 3.0 if (data, stage) == (1, 0) else 0.0))
    assert found.step_seconds == pytest.approx(13.0)
    assert found.ideal_step_seconds == pytest.approx(10.75)
    assert found.garbage_collection_share == pytest.approx(3 / 2.25)
    assert found.operations[0].what == "gc"


def test_lengths_of_sequences(path: Path) -> None:
    found = analysed(table(path, lambda data, stage, batch: 1.0 + (data == batch)))
    assert found.forward_backward_correlation == pytest.approx(1.0)
    assert found.sequence_length_share > 0.5
    assert "sequences of different lengths" in found.verdict


def test_an_incomplete_step_is_left_out(path: Path) -> None:
    lines = table(path, steps=3).read_text().splitlines()
    path.write_text("\n".join(lines[:-1]))
    found = analysed(path)
    assert (found.steps, found.steps_left_out) == (2, 1)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("optimizer", "dance", "unknown operations dance"),
        (",end", ",finish", "no column end or duration"),
        (",0,0,0,forward,0.0", ",0,0,0,forward,later", "must be a number is not"),
        ("1,3,1,1", "1,7,1,1", "several ranks have the same"),
        (",0,0,0,forward,0.0", ",0,0,0,forward,9.0", "an operation must end after its start"),
        ("0,0,0,0,0,", "0,0,-1,0,0,", "stages and data-parallel indices must count from 0"),
        ("0,0,0,0,0,forward", "0,0,0,0,0", "cannot be read as a table"),
        ("0,3,1,1,0,forward", "0,3,1,2,0,forward", "no step has the same operations"),
        (",forward,", ",optimizer,", "0 has no forward"),
        ("0,forward-send", "0,optimizer", "1 forward-send for 2 forward"),
    ],
)
def test_what_is_wrong_is_said(path: Path, old: str, new: str, why: str) -> None:
    path.write_text(table(path).read_text().replace(old, new))
    with pytest.raises(JobsFileError, match=why):
        analysed(path)


def test_parquet_without_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(JobsFileError, match="needs pyarrow"):
        read_operations(tmp_path / "operations.parquet")


def test_the_command(path: Path) -> None:
    table(path, lambda data, stage, batch: 2.0 if (data, stage) == (1, 0) else 1.0)
    answer = json.loads(CliRunner().invoke(app, ["diagnose", str(path), "--json"]).stdout)
    assert answer["slowdown"] == pytest.approx(14 / 12.25)
    assert answer["workers"][0]["rank"] == 1
    text = CliRunner().invoke(app, ["diagnose", str(path)], env={"COLUMNS": "80"}).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "0   █|" in text
    refused = CliRunner().invoke(app, ["diagnose", str(path), "--steps", "1"])
    assert refused.exit_code == 2


def test_other_tables_are_none_of_operations(path: Path) -> None:
    assert is_operation_table(table(path))
    path.write_text("batch_size,seconds\n1,2\n")
    assert not is_operation_table(path)


def test_steps_are_foreseen_from_the_others(path: Path) -> None:
    alike = analysed(table(path, steps=3))
    assert alike.foreseen_error_ratio == pytest.approx(0.0, abs=1e-9)
    assert alike.persistence_error_ratio == pytest.approx(0.0, abs=1e-9)
    alone = analysed(table(path, steps=1))
    assert alone.foreseen_error_ratio is None
    assert alone.persistence_error_ratio is None


@pytest.mark.data
@pytest.mark.parametrize("job", ["AR", "ST"])
def test_steps_of_published_jobs_are_foreseen_as_well_as_by_their_mean(job: str) -> None:
    pytest.importorskip("pyarrow", reason="the published tables are Parquet")
    found = analysed(data_path("stragglers", f"trace-{job}.parquet"))
    assert found.foreseen_error_ratio is not None
    assert found.persistence_error_ratio is not None
    assert found.foreseen_error_ratio <= found.persistence_error_ratio + 0.01


@pytest.mark.data
@pytest.mark.parametrize("job", ["AR", "ST"])
def test_published_jobs(job: str) -> None:
    """Lin et al. publish both jobs' operations and results (StragglerAnalysis, OSDI'25)."""
    pytest.importorskip("pyarrow", reason="the published tables are Parquet")
    found = analysed(data_path("stragglers", f"trace-{job}.parquet"))
    published = json.loads(data_path("stragglers", f"result-{job}.json").read_text())
    assert found.slowdown_ratio == pytest.approx(published["blocking_slowdown"], rel=1e-4)
    assert found.launch_slowdown_ratio == pytest.approx(published["launch_slowdown"], rel=1e-4)
    for scores, by in ((found.operations, "optype"), (found.stages, "stage"), (found.data_parallel, "dp_rank")):
        assert {one.what: one.slowdown_ratio for one in scores} == pytest.approx(
            published[f"blocking_decompose_by_{by}"], rel=1e-4
        )
    for share, metric in ((found.slowest_workers_share, "mw"), (found.last_stage_share, "ms")):
        rem = json.loads(data_path("stragglers", f"{metric}-{job}.json").read_text())["rem"]
        assert share == pytest.approx(rem, abs=1e-4)


@pytest.mark.data
@pytest.mark.parametrize("worker", [(0, 0), (1, 1), (0, 2), (1, 3)])
def test_a_worker_planted_in_a_published_job(worker: tuple[int, int]) -> None:
    """Its stages are unequal, so that the published score of a worker alone does not tell."""
    pytest.importorskip("pyarrow", reason="the published tables are Parquet")
    operations = read_operations(data_path("stragglers", "trace-ST.parquet"))
    index, stage = worker
    for place, end in operations.end.items():
        if place[0].endswith("-compute") and place[2] == stage:
            end[:, index] += 0.1 * (end - operations.start[place])[:, index]
    first = analyse_stragglers(operations).workers[0]
    assert (first.data_parallel_index, first.stage) == worker
