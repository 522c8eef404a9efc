"""Memory against what devices were measured to hold, from facts alone, and whether jobs ran or not.

The share of the cache is the one number that these tables (A100) chose; the V100 runs took no part in it.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parameter_server_tables import table_path
from partitioned_transformers import KnownContext, profile, rows
from typer.testing import CliRunner

from nodewise.plugin import Configurations, Observations, Options, RowStatus, Transformer, as_floats
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app
from nodewise_cli.inputs.table_content import configurations_of, profile_content
from nodewise_cli.inputs.tables import read_table
from nodewise_client import Client, ModelOptions, PredictOptions, PredictRequest, profile_source
from nodewise_partitioning.estimator import PartitioningEstimator

pytestmark = pytest.mark.data

DIMENSIONS = ("layers", "hidden_size", "attention_heads", "sequence_length", "vocabulary_size")
WHOLE = ("nodes", "workers", "global_batch", "tensor_parallel", "pipeline_parallel", "data_parallel", "zero_stage")


def configuration(row: dict[str, str]) -> Configurations:
    columns: dict[str, Any] = {name: int(row[name]) for name in WHOLE}
    found = rows(1, row["device"], **columns, batch_per_worker=int(row["micro_batch"]))
    return found.replaced(precisions=(row["precision"],))


def predicted(row: dict[str, str], run: dict[str, str] | None = None) -> tuple[float, bool]:
    """Bytes of one row's device, and whether it is said to fit; ``run`` is one of its job whose memory is known."""
    of = profile(Transformer(**{name: int(row[name]) for name in DIMENSIONS}), framework=row["framework"])
    if run is not None:
        held = replace(
            Observations.of(configuration(run), as_floats([0.0])),
            measured_memory_bytes=as_floats([float(run["measured_memory_bytes"])]),
        )
        of = replace(of, memory_runs=held)
    found = PartitioningEstimator().fit(of, KnownContext()).predict(configuration(row), Options())
    assert found.memory_bytes is not None
    return float(found.memory_bytes[0]), found.status[0] == RowStatus.ANSWERED


@pytest.mark.parametrize(
    ("name", "mean"), [("bigscience_memory_dev.csv", 0.04), ("bigscience_v100_memory_dev.csv", 0.07)]
)
def test_bytes_held_and_verdicts(name: str, mean: float) -> None:
    with table_path(f"partitioning_modern/{name}").open() as file:
        table = list(csv.DictReader(file))
    answers = [predicted(row) for row in table]
    assert [fits for _, fits in answers] == [row["fitted"] == "1" for row in table]
    pairs = [(held, float(row["measured_memory_bytes"])) for (held, fits), row in zip(answers, table) if fits]
    held, measured = np.array(pairs).T
    assert np.mean(np.abs(held / measured - 1.0)) <= mean


def test_one_run_of_a_job_tells_of_its_others() -> None:
    """V100, where the equations see too much: the first run, known by its memory alone, brings the others nearer."""
    with table_path("partitioning_modern/bigscience_v100_memory_dev.csv").open() as file:
        first, *others = (row for row in csv.DictReader(file) if row["framework"] == "megatron-deepspeed")
    measured = np.array([float(row["measured_memory_bytes"]) for row in others])
    without, told = (np.array([predicted(row, run)[0] for row in others]) for run in (None, first))
    assert np.mean(np.abs(told / measured - 1.0)) < 0.8 * np.mean(np.abs(without / measured - 1.0))


@pytest.mark.parametrize(("name", "mean", "false_fits"), [("fms", 0.105, 0.05), ("torchtitan", 0.08, None)])
def test_bytes_held_under_pytorch_and_verdicts(name: str, mean: float, false_fits: float | None) -> None:
    """Fully sharded and single-device runs, of adapters too; nothing was fitted to them but the context's bytes."""
    path = table_path(f"abroad/{name}_dev.csv")
    result = CliRunner().invoke(app, ["backtest", str(path), "--estimator", "partitioning", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["estimators"]["partitioning"]
    assert found["memory_mape"] <= mean
    assert found["false_refusals"] == 0.0
    assert false_fits is None or found["false_fits"] <= false_fits


@pytest.mark.parametrize("unsaid", ["", "recompute", "framework", "micro_batch", "precision"])
@pytest.mark.parametrize("name", ["partitioning_modern/bigscience_memory", "abroad/fms"])
def test_the_interval_holds_what_was_measured_whatever_is_unsaid(name: str, unsaid: str, tmp_path: Path) -> None:
    with table_path(f"{name}_dev.csv").open() as file:
        cells = [
            {column: "" if column == unsaid else cell for column, cell in row.items()} for row in csv.DictReader(file)
        ]
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, cells[0].keys())
        writer.writeheader()
        writer.writerows(cells)
    table, within = read_table(path), []
    with EmbeddedServer() as server, Client(server.target, timeout_s=60) as client:
        for job, rows in table.rows_by_job.items():
            found = client.predict(
                PredictRequest(
                    profile=profile_source(profile_content(table, job)),
                    configurations=configurations_of(table, rows),
                    options=PredictOptions(model=ModelOptions(estimator="partitioning")),
                )
            )
            for row, predicted in zip(rows, found):
                measured = float(cells[row]["measured_memory_bytes"] or 0.0)
                if measured and "memory_upper_bytes" in predicted.extra:
                    bounds = predicted.extra["memory_lower_bytes"], predicted.extra["memory_upper_bytes"]
                    within.append(bounds[0] <= measured <= bounds[1])
    assert np.mean(within) >= 0.85
