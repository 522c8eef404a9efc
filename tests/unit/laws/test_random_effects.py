"""A linear model with random effects: what is planted is found, and what was never seen is in the spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise_laws import RandomEffects, fit_random_effects

WIDE = np.zeros(2), np.full(2, 10.0), np.array([0.3]), 0.1
"""Prior means and spreads of two weights, and what is expected of effects and of the rest."""


def grouped(groups: int, each: int, sd: float, noise: float, seed: int = 3) -> tuple[RandomEffects, np.ndarray]:
    """A fit of y = 1 + 2 x + effect of the group + noise, and the effects."""
    generator = np.random.default_rng(seed)
    member = np.repeat(np.arange(groups), each)
    effects = generator.normal(0.0, sd, groups)
    slope = generator.uniform(0.0, 1.0, member.size)
    x = np.column_stack([np.ones(member.size), slope, member[:, np.newaxis] == np.arange(groups)]).astype(np.float64)
    y = 1.0 + 2.0 * slope + effects[member] + generator.normal(0.0, noise, member.size)
    kinds = np.append([-1, -1], np.zeros(groups)).astype(np.int64)
    return fit_random_effects(x, y, kinds, *WIDE), effects


def test_weights_effects_and_variances_are_found() -> None:
    fit, effects = grouped(60, 8, 0.5, 0.1)
    assert fit.mean[1] == pytest.approx(2.0, abs=0.05)
    assert np.sqrt(fit.variances[0]) == pytest.approx(effects.std(), rel=0.1)
    assert np.sqrt(fit.rest) == pytest.approx(0.1, rel=0.1)
    np.testing.assert_allclose(fit.mean[0] + fit.mean[2:], 1.0 + effects, atol=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_a_group_never_seen_has_its_kinds_variance_and_few_degrees_of_freedom(seed: int) -> None:
    fit, _ = grouped(6, 30, 0.5, 0.05, seed)
    x = np.zeros((2, 8))
    x[:, 0] = 1.0
    x[0, 2] = 1.0
    _, variance, freedom = fit.predict(x, np.array([[0.0], [1.0]]))
    assert variance[1] > variance[0] + 0.9 * fit.variances[0]
    assert freedom[1] < 12 < freedom[0]


def test_without_rows_what_holds_before_them_is_answered() -> None:
    fit = fit_random_effects(np.zeros((0, 2)), np.zeros(0), np.array([-1, -1]), np.array([0.5, 0.25]), np.ones(2),
                             np.array([0.3]), 0.1)  # fmt: skip
    mean, variance, freedom = fit.predict(np.array([[1.0, 2.0]]), np.array([[1.0]]))
    assert mean.tolist() == [1.0]
    assert variance[0] == pytest.approx(1.0 + 4.0 + 0.09)
    assert freedom[0] > 0


@given(st.floats(0.1, 10.0))
def test_units_of_what_is_explained_do_not_matter(scale: float) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(20, 2)), generator.normal(size=20)
    plain = fit_random_effects(x, y, np.array([-1, -1]), *WIDE)
    scaled = fit_random_effects(
        x, scale * y, np.array([-1, -1]), np.zeros(2), np.full(2, 10.0 * scale), np.array([0.3]), 0.1 * scale
    )
    np.testing.assert_allclose(scaled.mean, scale * plain.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scaled.rest, scale**2 * plain.rest, rtol=1e-6)
