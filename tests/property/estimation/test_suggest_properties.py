"""Falls are never below 0, and what a measurement leaves is still a covariance."""

from __future__ import annotations

import numpy as np
from estimators import Fake as Plain
from estimators import asked, predictions_of, profile_of, registry_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import HighestThroughput, Knee, LeastTime, Objective
from nodewise.domain.predictions import Options, Predictions
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question, Terms
from nodewise.estimation.suggestion.covariance import assumed_covariance, measure
from nodewise.estimation.suggestion.search import Wish
from nodewise.estimation.suggestion.suggest import suggest

spreads = st.sampled_from([0.0, 0.003, 0.05, 0.2, 0.8])
tables = st.lists(
    st.tuples(st.integers(1, 64), st.floats(0.01, 10.0), spreads), min_size=1, max_size=8, unique_by=lambda row: row[0]
)
objectives = st.sampled_from(
    [
        Objective(rule=HighestThroughput()),
        Objective(rule=HighestThroughput(), confidence=0.9),
        Objective(rule=Knee()),
        Objective(rule=LeastTime(max_nodes=16)),
    ]
)


@settings(max_examples=10, deadline=None)
@given(tables, objectives, st.integers(-(2**63), 2**63 - 1), st.integers(1, 3))
def test_falls_are_not_negative_and_suggestions_differ(
    table: list[tuple[int, float, float]], objective: Objective, seed: int, count: int
) -> None:
    nodes, steps, log_spread = (np.array(column) for column in zip(*table, strict=True))

    def predict(_: Configurations, __: Options) -> Predictions:
        return predictions_of(steps, log_spread=log_spread)

    engine = Answers(registry_of({"fake": Plain(predict)}))
    question = Question(
        profile=profile_of(workers=(512,)),
        configurations=asked(*nodes.tolist()),
        objective=objective,
        terms=Terms(options=Options(seed=seed)),
    )
    found = suggest(engine, question, Wish(count=count, start_up_s=1.0))
    assert found.expected_regret >= 0.0
    assert len(found.suggestions) <= count
    assert len({each.row for each in found.suggestions}) == len(found.suggestions)
    assert found.suggestions or found.notices
    for each in found.suggestions:
        assert each.expected_regret_fall >= 0.0
        assert each.expected_width_fall > 0.0
        assert each.cost_node_seconds > 0.0
        assert each.nodes == nodes[each.row]
        assert log_spread[each.row] > 0.04 * np.sqrt(0.1)


@given(
    st.lists(st.tuples(st.integers(1, 4096), st.floats(0.0, 2.0)), min_size=1, max_size=12),
    st.data(),
    st.sampled_from([0.0, 1e-6, 0.04, 1.0]),
)
def test_measurements_leave_a_covariance(rows: list[tuple[int, float]], data: st.DataObject, noise: float) -> None:
    workers, log_spread = zip(*rows, strict=True)
    covariance = assumed_covariance(asked(*workers), np.array(log_spread)).values
    scale = max(float(covariance.max()), 1e-300)
    for _ in range(3):
        assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * scale
        row = data.draw(st.integers(0, len(rows) - 1))
        left = measure(covariance, row, noise)
        assert (left == left.T).all()
        assert (left.diagonal() >= 0.0).all()
        assert (left.diagonal() <= covariance.diagonal() + 1e-9 * scale).all()
        covariance = left
