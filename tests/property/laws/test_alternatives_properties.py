"""Intervals over likely values hold for each of them."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodewise_laws.alternatives import BEYOND, DEVIATIONS, deviation_of, mean_square

effects = st.lists(st.tuples(st.floats(-2.0, 2.0), st.floats(0.01, 0.5)), min_size=1, max_size=4)
spreads = st.floats(0.01, 1.0)


@given(effects=effects, spread=spreads)
def test_what_a_value_leaves_beyond_the_bound_is_five_percent_at_most(
    effects: list[tuple[float, float]], spread: float
) -> None:
    columns = [(np.array([effect]), weight) for effect, weight in effects]
    deviation = deviation_of(columns, np.array([spread]))[0]
    bound = DEVIATIONS * np.hypot(spread, deviation)
    for effect, weight in effects:
        if effect:
            beyond = weight * (1.0 - NormalDist(abs(effect), spread).cdf(bound))
            assert beyond <= BEYOND * (1.0 + 1e-9)
    assert deviation >= np.sqrt(mean_square(columns))[0] * (1.0 - 1e-12)


@given(effects=effects, spread=spreads)
def test_rows_that_no_value_moves_are_not_in_doubt(effects: list[tuple[float, float]], spread: float) -> None:
    columns = [(np.array([effect, 0.0]), weight) for effect, weight in effects]
    assert deviation_of(columns, np.full(2, spread))[1] == 0.0
