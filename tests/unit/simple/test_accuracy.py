"""Errors on measured tables: what rules reach is kept from getting lost, and `auto` keeps up with the best of them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest
from parameter_server_tables import table_path
from typer.testing import CliRunner

from nodewise_cli.app import app

pytestmark = pytest.mark.data

MLPERF, INTERNEVO = "mlperf_scaling_dev.csv", "internevo_dev.csv"

NAMES = ("auto", "batch-line", "last-known", "power-law")

NOISE = 0.01
"""Mean |ln| by which `auto` may be above the best rule: on MLPerf a paired bootstrap over jobs deviates by 0.012."""


@lru_cache
def scored(table: str) -> dict[str, Any]:
    named = [argument for name in NAMES for argument in ("--estimator", name)]
    result = CliRunner().invoke(app, ["backtest", str(table_path(table)), *named, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)["estimators"]
    return found


@pytest.mark.parametrize(
    ("table", "name", "bound", "refused"), [(MLPERF, "batch-line", 0.13, 9), (INTERNEVO, "last-known", 0.08, 0)]
)
def test_rules_err_as_little_as_they_did(table: str, name: str, bound: float, refused: int) -> None:
    found = scored(table)[name]
    # Rows on several nodes, or on several devices, of jobs whose runs were on one.
    assert found["refused"] == refused
    assert found["macro_abs_ln"] <= bound


@pytest.mark.parametrize("table", [MLPERF, INTERNEVO])
def test_auto_is_no_worse_than_the_best_rule(table: str) -> None:
    found = scored(table)
    assert found["auto"]["macro_abs_ln"] <= min(found[name]["macro_abs_ln"] for name in NAMES[1:]) + NOISE
    assert found["auto"]["coverage90"] >= 0.85
    assert not found["auto"]["regret"]
