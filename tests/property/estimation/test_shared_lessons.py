"""Whatever one owner states, it moves others within the bounds."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats
from nodewise.domain.predictions import Predictions
from nodewise.estimation.answer.bounded_influence import GROUPS, MOST_POINT, MOST_WIDTH, agree, move_by_others

HALF = 0.5 * math.log(MOST_POINT)
LOGS = st.one_of(st.floats(-50.0, 50.0), st.just(0.0))
EVERY = st.lists(LOGS, min_size=1, max_size=GROUPS)


def told(log_step: float, log_spread: float) -> Predictions:
    return Predictions.of(as_floats([math.exp(log_step)]), log_spread=as_floats([math.exp(log_spread)]))


@given(EVERY, LOGS, st.integers(0, GROUPS - 1))
def test_a_group_that_says_something_else_moves_an_answer_within_the_bound(
    differences: list[float], other: float, place: int
) -> None:
    changed = list(differences)
    changed[place % len(changed)] = other
    before, after = (float(agree(np.array(each)[:, None], HALF)[0]) for each in (differences, changed))
    assert abs(after - before) <= 2.0 * HALF + 1e-12


@given(EVERY)
def test_groups_move_an_answer_towards_what_they_say_and_no_further(differences: list[float]) -> None:
    found = float(agree(np.array(differences)[:, None], HALF)[0])
    assert min(0.0, *differences) - 1e-12 <= found <= max(0.0, *differences) + 1e-12
    assert abs(found) <= len(differences) * HALF + 1e-12


@given(
    st.floats(-3.0, 3.0), st.floats(-4.0, 0.0), st.lists(st.tuples(LOGS, LOGS), min_size=1, max_size=GROUPS), LOGS, LOGS
)
def test_points_and_widths_are_both_bounded(
    step: float, spread: float, groups: list[tuple[float, float]], log_step: float, log_spread: float
) -> None:
    own = told(step, spread)
    before = move_by_others(own, [told(*each) for each in groups])
    after = move_by_others(own, [told(*each) for each in (*groups[1:], (log_step, log_spread))])
    for column, most in (("step_s", MOST_POINT), ("log_spread", MOST_WIDTH)):
        ratio = float(getattr(after, column)[0] / getattr(before, column)[0])
        assert 1.0 / most - 1e-9 <= ratio <= most + 1e-9
    assert float(sum(after.breakdown_s.values())[0]) == float(after.step_s[0])
