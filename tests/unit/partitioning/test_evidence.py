"""Levels: what runs share reaches other models and scales as far as it is shared, and narrows what rests on it."""

from __future__ import annotations

import numpy as np
import pytest
from partitioned_transformers import GPT3, SMALL, a100, dimensions

from nodewise_partitioning.calibration import Job, Runs
from nodewise_partitioning.evidence import Levels, levels_of
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.workload import Dimensions

DOUBLED = Layout.of(4, data=2.0 ** np.arange(3.0, 7.0), devices=2.0 ** np.arange(3.0, 7.0))
OTHER = Layout.of(4, tensor=8.0, devices=8.0)


def learned(log_level: float | np.ndarray, layout: Layout = DOUBLED) -> Levels:
    runs = Runs(dimensions(SMALL), layout, a100(), np.ones(len(layout)))
    return levels_of([runs], -np.broadcast_to(log_level, len(layout)), known=True)


def told(levels: Levels, model: Dimensions, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    factor = levels.factor_of(a100(), model, layout)
    return np.broadcast_to(factor, len(layout)), levels.log_spread_of(a100(), model, layout)


def test_without_runs_the_equations_hold_and_an_unknown_stack_is_less_sure() -> None:
    known, unknown = (told(levels_of((), np.zeros(0), known=each), dimensions(SMALL), OTHER) for each in (True, False))
    np.testing.assert_array_equal(known[0], 1.0)
    np.testing.assert_array_equal(unknown[0], 1.0)
    assert (unknown[1] > known[1]).all()


def test_a_level_reaches_other_replicas_less_and_other_models_least() -> None:
    levels = learned(0.2)
    own, spread = told(levels, dimensions(SMALL), DOUBLED)
    replica, wider = told(levels, dimensions(SMALL), OTHER)
    model, widest = told(levels, dimensions(GPT3), OTHER)
    assert np.exp(0.2) > own.min() > replica.max() > model.max() > 1.05
    assert spread.max() < wider.min() < widest.min()


def test_runs_inside_one_node_narrow_nothing_across_nodes() -> None:
    """What a run does not identify stays as unsure as from facts alone."""
    inside = Layout.of(2, data=np.array([4.0, 8.0]), devices=np.array([4.0, 8.0]))
    facts = told(levels_of((), np.zeros(0), known=True), dimensions(SMALL), DOUBLED)[1]
    spread = told(learned(0.2, inside), dimensions(SMALL), DOUBLED)[1]
    nodes = DOUBLED.devices / DOUBLED.devices_per_node
    assert (spread[nodes > 1.0] >= facts[nodes > 1.0]).all()
    assert spread[0] < facts[0]
    assert (told(learned(0.2), dimensions(SMALL), DOUBLED)[1] < facts).all()


def test_growth_with_nodes_goes_on() -> None:
    grown = 0.03 * np.log(DOUBLED.devices / 8.0)
    factors = told(learned(grown), dimensions(SMALL), DOUBLED)[0]
    assert (np.diff(factors) > 0.0).all()
    assert factors[-1] / factors[0] == pytest.approx(np.exp(grown[-1]), rel=0.05)


def test_runs_of_the_job_itself_count_more_than_those_of_another_job() -> None:
    """Two jobs of one model and split, of other software: each is answered near its own runs."""
    jobs = (Job("first", "plain"), Job("second", "fused"))
    runs = [Runs(dimensions(SMALL), DOUBLED, a100(), np.ones(len(DOUBLED)), job=each) for each in jobs]
    residuals = np.repeat([-0.1, 0.1], len(DOUBLED))
    for job, level in zip(jobs, (0.1, -0.1), strict=True):
        factor = told(levels_of(runs, residuals, known=True, job=job), dimensions(SMALL), DOUBLED)[0]
        np.testing.assert_allclose(np.log(factor), level, atol=0.03)


def test_one_disturbed_run_pulls_little() -> None:
    level = np.array([0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(told(learned(level), dimensions(SMALL), DOUBLED)[0][:3], 1.0, atol=0.05)


def test_no_factor_is_below_its_bound() -> None:
    for level in (-0.3, 0.0, 0.3):
        levels = learned(level)
        for layout in (DOUBLED, OTHER):
            least = levels.least_of(a100(), dimensions(SMALL), layout)
            assert (told(levels, dimensions(SMALL), layout)[0] >= least * (1.0 - 1e-12)).all()
