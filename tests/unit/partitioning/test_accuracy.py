"""Errors on measured tables through the command, held to what was reached. The tables took part in choosing the
defaults; research/score_partitioning.py scores with shapes left out."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest
from parameter_server_tables import table_path
from typer.testing import CliRunner

from nodewise_cli.app import app

pytestmark = pytest.mark.data


@lru_cache
def scored(name: str, calibration: str = "") -> dict[str, Any]:
    """Metrics that the command prints."""
    extra = ["--calibrate", str(table_path(calibration))] if calibration else []
    arguments = ["backtest", str(table_path(name)), "--estimator", "partitioning", "--json", *extra]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)["estimators"]["partitioning"]
    assert found["refused"] == 0
    return found


def test_many_nodes_from_facts_alone() -> None:
    found = scored("vtrain_a100_multi_node.csv")
    assert found["n"] == 73
    assert found["step_mape"] <= 0.08
    assert found["regret"] <= 0.0127


def test_one_node_from_facts_alone() -> None:
    found = scored("vtrain_a100_single_node.csv")
    assert found["n"] == 720
    assert found["step_mape"] <= 0.06
    assert found["regret"] <= 0.035
    assert found["coverage90"] >= 0.85


def test_one_node_after_eight_runs() -> None:
    found = scored("vtrain_a100_single_node.csv", "vtrain_a100_calibration_8_rows.csv")
    assert found["step_mape"] <= 0.06
    assert found["regret"] <= 0.035


def test_stacks_of_others_from_facts_alone() -> None:
    for name, most, refused in (("bigscience", 0.10, 0), ("foundry", 0.10, 0), ("mlperf", 0.12, 1)):
        path = table_path(f"partitioning_modern/{name}.csv")
        result = CliRunner().invoke(app, ["backtest", str(path), "--estimator", "partitioning", "--json"])
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)["estimators"]["partitioning"]
        assert found["step_mape"] <= most, name
        assert found["refused"] <= refused, name
