"""Memory against what devices were measured to hold, from facts alone, and whether jobs ran or not.

The share of the cache is the one number that these tables (A100) chose; the V100 runs took no part in it.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
from parameter_server_tables import table_path
from partitioned_transformers import KnownContext, profile, rows

from nodewise.plugin import Options, RowStatus, Transformer
from nodewise_partitioning.estimator import PartitioningEstimator

DIMENSIONS = ("layers", "hidden_size", "attention_heads", "sequence_length", "vocabulary_size")
WHOLE = ("nodes", "workers", "global_batch", "tensor_parallel", "pipeline_parallel", "data_parallel", "zero_stage")


def predicted(row: dict[str, str]) -> tuple[float, bool]:
    """Bytes of one row's device, and whether it is said to fit."""
    of = profile(Transformer(**{name: int(row[name]) for name in DIMENSIONS}), framework=row["framework"])
    columns: dict[str, Any] = {name: int(row[name]) for name in WHOLE}
    asked = rows(1, row["device"], **columns, batch_per_worker=int(row["micro_batch"]))
    asked = asked.replaced(precisions=(row["precision"],))
    found = PartitioningEstimator().fit(of, KnownContext()).predict(asked, Options())
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
