"""Errors on measured tables, as `nodewise backtest` tells them: the train rows are seen, the test rows predicted."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parameter_server_tables import jobs_of, table_path
from queueing_profiles import answered
from typer.testing import CliRunner

from learn_async_prior import jobs_of as jobs_to_learn_from
from learn_async_prior import learned_of
from learn_async_prior import scored as scored_by
from nodewise.plugin import Observations
from nodewise_cli.app import app
from nodewise_queueing.servers_share import LEARNED

pytestmark = pytest.mark.data

OWN_JOBS = Path(__file__).parents[3] / "research" / "queueing_own.csv"
TABLES = ("testbed_ps.csv", "cmdare_async_ps.csv", "tf_ec2_sync_ps.csv")


@lru_cache
def scored(path: str, *also_train: str) -> dict[str, Any]:
    """What the command prints."""
    learned = [argument for each in also_train for argument in ("--also-train", each)]
    result = CliRunner().invoke(app, ["backtest", path, "--estimator", "queueing", "--json", *learned])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert not any(found["refusals"].values())
    return found


def backtest(table: str, *also_train: str) -> dict[str, Any]:
    return scored(str(table_path(table)), *also_train)


def mape(table: str, mode: str, *also_train: str) -> float:
    return float(backtest(table, *also_train)["by_sync"][mode]["queueing"]["mape"])


def test_async_jobs_of_the_testbed_from_one_workers_phases() -> None:
    assert mape("testbed_ps.csv", "async") <= 0.08


def test_sync_jobs_of_the_testbed_from_one_workers_phases() -> None:
    assert mape("testbed_ps.csv", "sync") <= 0.06


@pytest.mark.parametrize("workers", [2, 3, 4, 6, 8, 12])
def test_async_jobs_of_the_testbed_with_one_run_of_several_workers(workers: int) -> None:
    assert mape("testbed_ps.csv", "async", f"workers={workers},sync=async") <= 0.065


def test_cm_dare_from_throughputs_alone() -> None:
    assert mape("cmdare_async_ps.csv", "async") <= 0.06


def test_cm_dare_from_what_the_testbed_alone_taught() -> None:
    jobs = jobs_to_learn_from(table_path("testbed_ps.csv")) + jobs_to_learn_from(OWN_JOBS)
    errors, inside = scored_by(jobs_to_learn_from(table_path("cmdare_async_ps.csv")), learned_of(jobs))
    assert np.abs(np.expm1(errors)).mean() <= 0.06
    assert inside >= 0.85


def test_what_is_shipped_is_what_all_sources_teach() -> None:
    tables = [table_path("testbed_ps.csv"), table_path("cmdare_async_ps.csv"), OWN_JOBS]
    learned = learned_of([job for table in tables for job in jobs_to_learn_from(table)])
    for name, shipped in asdict(LEARNED).items():
        assert getattr(learned, name) == pytest.approx(shipped, rel=0.02)


def test_cm_dare_with_a_saturated_run() -> None:
    assert mape("cmdare_async_ps.csv", "async", "workers=8") <= 0.06


def test_tensorflow_on_ec2_from_one_and_eight_workers() -> None:
    assert mape("tf_ec2_sync_ps.csv", "sync") <= 0.038


def test_intervals_hold_what_they_promise() -> None:
    jobs = [metrics["queueing"] for table in TABLES for metrics in backtest(table)["jobs"].values()]
    inside = sum(metrics["n"] * metrics["coverage90"] for metrics in jobs)
    assert inside / sum(metrics["n"] for metrics in jobs) >= 0.85
    assert min(metrics["coverage90"] for metrics in jobs) >= 0.6


def test_a_run_makes_synchronous_predictions_no_worse() -> None:
    with_run, without = [], []
    for workers in (2, 3, 4, 6, 8, 12):
        for told, found in ((True, with_run), (False, without)):
            errors = []
            for job in jobs_of(table_path("testbed_ps.csv"), (workers,), ("sync",)):
                profile = job.profile if told else replace(job.profile, observations=Observations.none())
                errors.append(np.abs(job.ratios(answered(profile, job.asked).step_s) - 1.0))
            found.append(float(np.concatenate(errors).mean()))
    assert np.mean(with_run) <= np.mean(without)
    assert np.max(np.subtract(with_run, without)) <= 0.005
