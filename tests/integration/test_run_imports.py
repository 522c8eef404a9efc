"""Runs that real tools logged, imported.

tests/fixtures/runs was written by tests/support/write_run_samples.py and, the logs, by trainings with torchtitan 0.3.0,
DeepSpeed 0.19.8 and transformers 5.24.0.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import Client

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"
STATED = ("--set", "device=A100", "--set", "nodes=2", "--set", "workers=8", "--set", "batch_per_worker=32")


def ran(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["ingest", *map(str, arguments)], env={"COLUMNS": "200"})


def imported(tmp_path: Path, *arguments: str | Path) -> list[dict[str, Any]]:
    result = ran("--json", "--table", tmp_path / "own.csv", *arguments)
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)["imported"]
    return rows


@pytest.mark.parametrize(
    ("format_", "path", "column", "rate", "left_out"),
    [
        ("tensorboard", "tensorboard/times", "steps_per_s", 2.0, 20),
        ("tensorboard", "tensorboard/rates", "samples_per_s", 64.0, 20),
        ("mlflow", "mlflow/mlruns", "steps_per_s", 2.0, 20),
        ("mlflow", "mlflow/runs.csv", "samples_per_s", 64.0, 0),
        ("wandb", "wandb/run-sample.wandb", "samples_per_s", 128.0, 10),
        ("wandb", "wandb/history.csv", "steps_per_s", 2.0, 20),
    ],
)
def test_the_steady_rate_of_a_run(
    tmp_path: Path, format_: str, path: str, column: str, rate: float, left_out: int
) -> None:
    (run,) = imported(tmp_path, "--from", format_, RUNS / path, *STATED)
    assert run["row"][column] == pytest.approx(rate, rel=0.02)
    assert run["left_out"] == left_out
    assert (run["row"]["device"], run["row"]["nodes"], run["row"]["workers"]) == ("A100", 2, 8)


@pytest.mark.parametrize("path", ["tensorboard/times", "mlflow/mlruns", "wandb/run-sample.wandb"])
def test_what_a_run_states_of_itself_is_taken(tmp_path: Path, path: str) -> None:
    (run,) = imported(tmp_path, "--from", path.partition("/")[0], RUNS / path, *STATED[:6])
    assert (run["row"]["batch_per_worker"], run["row"]["accumulation"], run["row"]["precision"]) == (32, 2, "bf16")


@pytest.mark.parametrize(
    ("name", "column"),
    [("torchtitan", "tokens_per_s"), ("deepspeed", "samples_per_s"), ("transformers", "it_per_s")],
)
def test_logs_of_frameworks_need_no_pattern(tmp_path: Path, name: str, column: str) -> None:
    stated = (*STATED, "--set", "sequence_length=32")
    (run,) = imported(tmp_path, "--from", "log", RUNS / "logs" / f"{name}.log", *stated)
    assert run["row"][column] > 0
    assert run["points"] >= 3
    (same,) = imported(tmp_path, "--from", "log", RUNS / "logs" / f"{name}.log", "--pattern", name, *stated)
    assert same == run


def test_tokens_of_one_device_are_counted_for_all(tmp_path: Path) -> None:
    log = tmp_path / "own.log"
    log.write_text(
        "".join(f"step: {step:2}  loss:  8.0  memory: 1GiB  tps: 1,250  tflops: 1\n" for step in range(1, 31))
    )
    stated = (*STATED, "--set", "sequence_length=50")
    (run,) = imported(tmp_path, "--from", "log", log, *stated)
    assert run["row"]["tokens_per_s"] == 10_000


def test_the_log_of_megatron(tmp_path: Path) -> None:
    log = tmp_path / "own.log"  # as training_log of Megatron-LM formats it
    log.write_text(
        "".join(
            f" [2026-01-01 00:00:{step:02}] iteration {step:8d}/    100 | consumed samples: {64 * step:12d} | "
            f"elapsed time per iteration (ms): {9000.0 if step <= 10 else 250.0:.1f} | learning rate: 1.0E-04 | "
            "global batch size:    64 | lm loss: 1.0E+00 |\n"
            for step in range(1, 31)
        )
    )
    (run,) = imported(tmp_path, "--from", "log", log, *STATED[:6])
    assert (run["row"]["ms_per_step"], run["row"]["global_batch"], run["points"]) == (250.0, 64, 20)


@pytest.mark.parametrize(
    ("name", "column", "rate", "batch"),
    [("megatron_lm", "ms_per_step", 89_075.2, 1024), ("megatron_deepspeed", "step_s", 5.342, 96)],
)
def test_published_logs_of_megatron(tmp_path: Path, name: str, column: str, rate: float, batch: int) -> None:
    """Lines that were published: of epfLLM/Megatron-LLM (issue 11), and of FZJ-JSC/jubench-megatron-lm (README)."""
    log = RUNS / "logs" / f"{name}.log"
    (run,) = imported(tmp_path, "--from", "log", log, *STATED[:6], "--warm-up-steps", "0")
    assert (run["row"][column], run["row"]["global_batch"]) == (pytest.approx(rate, rel=0.01), batch)


def test_a_pattern_of_ones_own(tmp_path: Path) -> None:
    log = tmp_path / "own.log"
    log.write_text("".join(f"it {step} took {3.0 if step < 10 else 0.25}s\n" for step in range(30)))
    pattern = r"it (?P<step>\d+) took (?P<step_s>[\d.]+)s"
    (run,) = imported(tmp_path, "--from", "log", log, "--pattern", pattern, *STATED)
    assert run["row"]["step_s"] == 0.25
    result = ran("--from", "log", log, *STATED, "--table", tmp_path / "own.csv")
    assert result.exit_code == 2
    assert "state --pattern" in result.stderr


def test_json_lines_of_steps_and_of_runs(tmp_path: Path) -> None:
    steps = tmp_path / "steps.jsonl"
    lines: list[dict[str, Any]] = [{"num_nodes": 2, "world_size": 8}]
    lines += [{"step": step, "samples_per_second": 1.0 if step < 10 else 40.0} for step in range(30)]
    steps.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,) = imported(tmp_path, "--from", "jsonl", steps, *STATED[:2], *STATED[6:])
    assert (run["row"]["samples_per_s"], run["row"]["workers"], run["points"]) == (40.0, 8, 20)
    runs = tmp_path / "runs.jsonl"  # as StepMeter writes them
    row = {"job": "own", "device": "A100", "nodes": 1, "workers": 4, "steps_per_s": 3.5, "steps": 700}
    runs.write_text(json.dumps(row) + "\n" + json.dumps(row | {"nodes": 2, "workers": 8}) + "\n")
    assert [each["row"]["workers"] for each in imported(tmp_path, "--from", "jsonl", runs)] == [4, 8]


SACCT = """\
JobID|JobName|State|NNodes|ElapsedRaw|AllocTRES
41|resnet|COMPLETED|2|500|billing=8,cpu=8,gres/gpu:a100=8,gres/gpu=8,mem=1000M,node=2
41.batch|batch|COMPLETED|1|500|cpu=4,gres/gpu:a100=4,gres/gpu=4,mem=500M,node=1
42|resnet|FAILED|1|5|billing=4,cpu=4,gres/gpu:a100=4,gres/gpu=4,mem=500M,node=1
"""


def test_accounting_gives_the_configuration_and_with_steps_the_rate(tmp_path: Path) -> None:
    table = tmp_path / "jobs.txt"
    table.write_text(SACCT)
    result = ran("--from", "sacct", table, "--table", tmp_path / "own.csv")
    assert result.exit_code == 2
    assert "--set steps=N" in result.stderr
    (run,) = imported(tmp_path, "--from", "sacct", table, "--set", "steps=1000")
    cells = {name: run["row"][name] for name in ("job", "device", "nodes", "workers", "steps_per_s")}
    assert cells == {"job": "resnet", "device": "a100", "nodes": 2, "workers": 8, "steps_per_s": 2.0}
    job = {"job_id": 41, "name": "resnet", "allocation_nodes": 2, "state": {"current": "COMPLETED"}}
    tres = [{"type": "gres", "name": "gpu", "count": 8}, {"type": "gres", "name": "gpu:a100", "count": 8}]
    document = tmp_path / "jobs.json"
    document.write_text(json.dumps({"jobs": [job | {"time": {"elapsed": 500}, "tres": {"allocated": tres}}]}))
    (same,) = imported(tmp_path, "--from", "sacct", document, "--set", "steps=1000")
    assert same["row"] == run["row"]


def test_what_is_missing_is_named_at_once() -> None:
    result = ran("--from", "mlflow", RUNS / "mlflow" / "mlruns", "--table", "own.csv", "--json")
    assert result.exit_code == 2
    error = json.loads(result.stderr)["error"]
    assert {each["field"] for each in error["violations"]} == {"nodes", "workers", "device"}
    assert "--set nodes=... --set workers=... --set device=..." in error["message"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "excel", "own.csv"), "--from: must be one of tensorboard"),
        (("--set", "nodes=2", "own.csv"), "--set: needs --from"),
        (("--from", "jsonl", "own.jsonl", "--set", "nods=2"), "did you mean nodes"),
        (("--from", "jsonl", "own.jsonl", "--set", "nodes=two"), "--set: nodes must be a whole number"),
        (("--from", "mlflow", str(RUNS / "logs")), "holds no run of MLflow"),
        (("--from", "wandb", str(RUNS / "logs" / "torchtitan.log")), "is not a file of W&B"),
        (("--from", "tensorboard", str(RUNS / "wandb" / "history.csv")), "is not a TensorBoard event file"),
        (
            ("--from", "tensorboard", str(RUNS / "tensorboard" / "times"), "--metric", "speed"),
            "it has no metric 'speed'; it has: train/loss",
        ),
    ],
)
def test_what_cannot_be_imported(arguments: tuple[str, ...], message: str) -> None:
    result = ran(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_imported_runs_are_stored_and_their_table_is_one(tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    imported(tmp_path, "--from", "tensorboard", RUNS / "tensorboard", "--set", "job=own", *STATED)
    with table.open(newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 2
    with EmbeddedServer() as server:
        stated = (*STATED, "--set", "job=own", "--server", server.target)
        result = ran("--from", "tensorboard", RUNS / "tensorboard", *stated)
        assert result.exit_code == 0, result.output
        assert "perf/samples_per_sec" in result.stdout
        assert ran(table, "--server", server.target).exit_code == 0
        with Client(server.target) as client:
            assert client.get_profile("own").observations_count >= 2
