"""Throughput of real trainings, by the callbacks of their frameworks, and on its way to a server."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from measured_trainings import ACCUMULATION, BATCH, FORWARD_S
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_client import Client
from nodewise_client.callbacks import StepMeter

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "support" / "measured_trainings.py"
PYTHON = Path(os.environ.get("NODEWISE_FRAMEWORKS_PYTHON", ROOT / ".venv-frameworks" / "bin" / "python"))


@pytest.fixture
def server() -> Iterator[str]:
    with EmbeddedServer() as embedded:
        yield embedded.target


def run_steps(meter: StepMeter, count: int = 40) -> None:
    for _ in range(count):
        meter.step()


def test_a_measured_loop_becomes_an_observation(server: str) -> None:
    with StepMeter("team/loop", server=server, device="A100", batch_per_worker=4, tensor_parallel=1) as meter:
        run_steps(meter)
    with Client(server) as client:
        content = client.get_profile("team/loop").content
    assert content is not None
    assert content.observations is not None
    ran = content.observations.configurations
    assert ran is not None
    assert (ran.nodes, ran.workers, ran.device_names, ran.batch_per_worker_samples) == ((1,), (1,), ("A100",), (4,))
    assert content.observations.steps_counts[0] >= 10


def test_the_table_of_measured_loops_is_one_that_ingest_takes(server: str, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    for nodes in (1, 2):
        with StepMeter(
            "team/table", file=table, nodes=nodes, workers=4 * nodes, device="A100", framework="own"
        ) as meter:
            run_steps(meter)
    result = CliRunner().invoke(app, ["ingest", str(table), "--server", server])
    assert result.exit_code == 0, result.output
    with Client(server) as client:
        assert client.get_profile("team/table").observations_count == 2


def train(framework: str, folder: Path, *launcher: str) -> dict[str, str]:
    """Run a training in the environment of the frameworks; the only row that it writes."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({framework!r}) is None)"
    if subprocess.run([PYTHON, "-c", code], check=False).returncode:
        pytest.skip(f"the environment has no {framework}")
    table = folder / "runs.csv"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    environment |= {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
    environment["PYTHONPATH"] = f"{ROOT / 'clients' / 'python'}:{ROOT / 'protos' / 'python'}"
    finished = subprocess.run(
        [PYTHON, *launcher, PROGRAM, framework, table],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert "training goes on" not in finished.stderr
    with table.open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    return row


@pytest.mark.torch
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `tools/environment.py frameworks`")
@pytest.mark.parametrize("framework", ["torch", "lightning", "transformers"])
def test_of_two_ranks_one_writes_the_row_of_both(framework: str, tmp_path: Path) -> None:
    row = train(framework, tmp_path, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert (row["job"], row["nodes"], row["workers"], row["batch_per_worker"]) == (framework, "1", "2", str(BATCH))
    assert float(row["steps_per_s"]) == 1 / (ACCUMULATION.get(framework, 1) * FORWARD_S)


@pytest.mark.torch
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `tools/environment.py frameworks`")
@pytest.mark.parametrize("framework", ACCUMULATION)
def test_a_real_training_is_measured(framework: str, tmp_path: Path) -> None:
    row = train(framework, tmp_path)
    assert (row["job"], row["framework"], row["precision"]) == (framework, framework, "fp32")
    assert (row["nodes"], row["workers"], row["batch_per_worker"]) == ("1", "1", str(BATCH))
    assert row["accumulation"] == str(ACCUMULATION[framework])
    # Evaluations and checkpoints take minutes of the measurement's clock, and count nothing.
    assert float(row["steps_per_s"]) == 1 / (ACCUMULATION[framework] * FORWARD_S)
    assert int(row["steps"]) >= 20
