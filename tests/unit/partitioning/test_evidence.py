"""Levels: what runs share reaches other models and scales as far as it is shared, and narrows what rests on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitioned_transformers import SMALL, a100, dimensions

from nodewise.plugin import Transformer
from nodewise_partitioning.calibration import Job, Runs
from nodewise_partitioning.evidence import Levels, fitted_of, levels_of
from nodewise_partitioning.layout import Layout

DOUBLED = Layout.of(4, data=2.0 ** np.arange(3.0, 7.0), devices=2.0 ** np.arange(3.0, 7.0))
OTHER = Layout.of(4, tensor=8.0, devices=8.0)
DEEPER = replace(SMALL, layers=2 * SMALL.layers)


def learned(log_level: float | np.ndarray, layout: Layout = DOUBLED, asked: Transformer = SMALL) -> Levels:
    """From runs of the small model."""
    runs = Runs(dimensions(SMALL), layout, a100(), np.ones(len(layout)))
    return levels_of(dimensions(asked), [runs], -np.broadcast_to(log_level, len(layout)), known_framework=True)


def told(levels: Levels, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    factor = levels.factor_of(a100(), layout)
    return np.broadcast_to(factor, len(layout)), levels.log_spread_of(a100(), layout)


def facts(*, known: bool = True) -> Levels:
    return levels_of(dimensions(SMALL), (), np.zeros(0), known_framework=known)


def test_without_runs_the_equations_hold_and_an_unknown_stack_is_less_sure() -> None:
    known, unknown = (told(facts(known=each), OTHER) for each in (True, False))
    np.testing.assert_array_equal(known[0], 1.0)
    np.testing.assert_array_equal(unknown[0], 1.0)
    assert (unknown[1] > known[1]).all()


def test_a_level_reaches_other_replicas_less_and_other_models_least() -> None:
    levels = learned(0.2)
    own, spread = told(levels, DOUBLED)
    replica, wider = told(levels, OTHER)
    model, widest = told(learned(0.2, asked=DEEPER), OTHER)
    assert np.exp(0.2) > own.min() > replica.max() > model.max() > 1.05
    assert spread.max() < wider.min() < widest.min()


@given(
    wider=st.floats(1.0, 8.0),
    longer=st.floats(1.0, 8.0),
    further=st.floats(1.01, 4.0),
    log_level=st.floats(0.02, 0.3),
)
def test_a_level_reaches_models_as_far_as_their_work_is_alike(
    wider: float, longer: float, further: float, log_level: float
) -> None:
    """The more the work of a layer's products differs, the less is taken over, and the less sure is the answer."""

    def asked(hidden: float, tokens: float) -> tuple[float, float]:
        small = dimensions(DEEPER)
        model = replace(small, hidden_size=small.hidden_size * hidden, sequence=small.sequence * tokens)
        runs = Runs(dimensions(SMALL), DOUBLED, a100(), np.ones(len(DOUBLED)), job=Job("another", "other software"))
        levels = levels_of(model, [runs], np.full(len(DOUBLED), -log_level), known_framework=True)
        return float(np.log(levels.factor_of(a100(), OTHER))), float(levels.log_spread_of(a100(), OTHER)[0])

    alike, narrow = asked(1.0, 1.0)
    level, spread = asked(wider, longer)
    ratio = wider**2 * longer
    assert level == pytest.approx(alike / ratio, rel=1e-9)
    for unlike, unsure in (asked(wider * further, longer), asked(wider, longer * further)):
        assert unlike < level
        assert unsure > spread >= narrow
    assert asked(1.0 / wider, 1.0 / longer) == pytest.approx((level, spread))


def test_runs_of_unlike_models_change_little() -> None:
    """What runs of a model of 8 times the hidden size ask for is none of a small model's affair."""
    small = dimensions(SMALL)
    large = replace(small, hidden_size=8.0 * small.hidden_size)
    ones, asked = np.ones(len(DOUBLED)), dimensions(DEEPER)
    like, unlike = (
        Runs(each, DOUBLED, a100(), ones, job=Job(name, name)) for name, each in (("like", small), ("unlike", large))
    )
    alone = levels_of(asked, [like], -0.1 * ones, known_framework=True)
    beside = levels_of(asked, [like, unlike], np.concatenate([-0.1 * ones, 0.4 * ones]), known_framework=True)
    levels = [float(np.log(each.factor_of(a100(), OTHER))) for each in (alone, beside)]
    assert levels[1] == pytest.approx(levels[0], abs=0.01)


def test_runs_inside_one_node_narrow_nothing_across_nodes() -> None:
    """What a run does not identify stays as unsure as from facts alone."""
    inside = Layout.of(2, data=np.array([4.0, 8.0]), devices=np.array([4.0, 8.0]))
    before = told(facts(), DOUBLED)[1]
    spread = told(learned(0.2, inside), DOUBLED)[1]
    nodes = DOUBLED.devices / DOUBLED.devices_per_node
    assert (spread[nodes > 1.0] >= before[nodes > 1.0]).all()
    assert spread[0] < before[0]
    assert (told(learned(0.2), DOUBLED)[1] < before).all()


def test_no_runs_ask_for_nothing() -> None:
    assert len(fitted_of((), np.zeros(0), known_framework=True)) == 0


def test_growth_with_nodes_goes_on() -> None:
    grown = 0.03 * np.log(DOUBLED.devices / 8.0)
    factors = told(learned(grown), DOUBLED)[0]
    assert (np.diff(factors) > 0.0).all()
    assert factors[-1] / factors[0] == pytest.approx(np.exp(grown[-1]), rel=0.05)


def test_runs_of_the_job_itself_count_more_than_those_of_another_job() -> None:
    """Two jobs of one model and split, of other software: each is answered near its own runs."""
    jobs = (Job("first", "plain"), Job("second", "fused"))
    runs = [Runs(dimensions(SMALL), DOUBLED, a100(), np.ones(len(DOUBLED)), job=each) for each in jobs]
    residuals = np.repeat([-0.1, 0.1], len(DOUBLED))
    for job, level in zip(jobs, (0.1, -0.1), strict=True):
        factor = told(levels_of(dimensions(SMALL), runs, residuals, known_framework=True, job=job), DOUBLED)[0]
        np.testing.assert_allclose(np.log(factor), level, atol=0.03)


def test_one_disturbed_run_pulls_little() -> None:
    level = np.array([0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(told(learned(level), DOUBLED)[0][:3], 1.0, atol=0.05)


def test_no_factor_is_below_its_bound() -> None:
    for level in (-0.3, 0.0, 0.3):
        levels = learned(level)
        for layout in (DOUBLED, OTHER):
            least = levels.least_of(a100(), layout)
            assert (told(levels, layout)[0] >= least * (1.0 - 1e-12)).all()
