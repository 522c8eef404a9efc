"""The example's networks as PyTorch counts them are those of its table."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: modules cannot be counted")
pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_table_is_what_its_script_counts():
    spec = importlib.util.spec_from_file_location("rank_modules", EXAMPLES / "rank_modules.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    with (EXAMPLES / "architectures.csv").open(newline="") as file:
        rows = {row["architecture"]: row for row in csv.DictReader(file)}
    for blocks, width, branches in ((2, 16, 1), (5, 32, 1), (4, 64, 2)):
        workload = example.facts(blocks, width, branches)
        row = rows[workload.model_name]
        assert workload.family == row["family"]
        assert workload.flops_per_sample == pytest.approx(float(row["flops_per_sample"]))
        assert (workload.parameter_bytes, workload.tensors_count) == (
            float(row["parameter_bytes"]),
            int(row["tensors"]),
        )
