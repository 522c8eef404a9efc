"""Every rule against a brute-force reading of its definition, on exact rates."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from estimators import asked, predictions_of
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats
from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import HighestThroughput, Knee, LeastCost, LeastTime, Objective, Offer, Rule
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.objectives import Verdict, verdict_of

# Whole numbers keep every comparison of the brute-force reading exact.
Curve = list[tuple[int, int]]
curves = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 1000)), min_size=1, max_size=12)
distinct = curves.map(lambda rows: sorted(dict(rows).items()))
shares = st.sampled_from([0.0625, 0.125, 0.25, 0.5, 0.75, 1.0])


def verdict(rule: Rule, curve: Curve, **objective: object) -> Verdict:
    nodes, rates = [n for n, _ in curve], as_floats([float(rate) for _, rate in curve])
    configurations = Configurations.of(len(curve), nodes=nodes, workers=nodes, batch_per_worker=1, parameter_servers=0)
    return verdict_of(
        Objective(rule=rule, **objective),  # type: ignore[arg-type]  # given by name
        configurations,
        predictions_of(1.0 / rates),
        rates,
        rates,
        Workload(),
    )


def row(rule: Rule, curve: Curve, **objective: object) -> int | None:
    recommendation = verdict(rule, curve, **objective).recommendation
    return None if recommendation is None else recommendation.row


def knee_by_definition(curve: Curve, share: Fraction) -> int:
    """Largest n with X(n) - X(previous n) >= share x (n - previous n) x X(n_min) / n_min; n_min where no step pays."""
    best_of: dict[int, int] = {}
    for n, rate in curve:
        best_of[n] = max(rate, best_of.get(n, 0))
    counts = sorted(best_of)
    base = Fraction(best_of[counts[0]], counts[0])
    knee = counts[0]
    for previous, n in pairwise(counts):
        if best_of[n] - best_of[previous] >= share * (n - previous) * base:
            knee = n
    return next(index for index, pair in enumerate(curve) if pair == (knee, best_of[knee]))


@given(curves, shares)
def test_the_knee_is_the_definitions(curve: Curve, share: float) -> None:
    # One node count: rows are compared by workers, which are the nodes here.
    assert row(Knee(share), curve) == knee_by_definition(curve, Fraction(share))


@given(distinct, shares)
def test_a_higher_share_never_recommends_more(curve: Curve, share: float) -> None:
    generous, strict = row(Knee(share / 2), curve), row(Knee(share), curve)
    assert generous is not None
    assert strict is not None
    assert curve[strict][0] <= curve[generous][0]


@given(curves, st.permutations(range(12)))
def test_the_order_of_rows_changes_no_recommended_count(curve: Curve, order: list[int]) -> None:
    shuffled = [curve[index] for index in order if index < len(curve)]
    for rule in (HighestThroughput(), Knee(), LeastTime()):
        first, second = row(rule, curve), row(rule, shuffled)
        assert first is not None
        assert second is not None
        assert curve[first] == shuffled[second]


@given(curves)
def test_highest_throughput_then_fewest_nodes_then_first(curve: Curve) -> None:
    expected = min(range(len(curve)), key=lambda index: (-curve[index][1], curve[index][0], index))
    assert row(HighestThroughput(), curve) == expected


@given(curves, st.integers(1, 50), st.integers(1, 2000))
def test_least_time_within_budgets(curve: Curve, max_nodes: int, max_cost: int) -> None:
    # 3600 samples at 1 per node-hour: a row costs nodes / rate.
    offers = (Offer(price_per_node_hour=1.0),)
    budget = max_cost / 64
    allowed = [
        index
        for index, (n, rate) in enumerate(curve)
        if n <= max_nodes and 3600.0 / rate * (1.0 / 3600.0) * n <= budget
    ]
    expected = min(allowed, key=lambda index: (-curve[index][1], curve[index][0], index), default=None)
    assert row(LeastTime(max_nodes, budget), curve, remaining_samples=3600.0, offers=offers) == expected


@given(curves, st.integers(1, 1000))
def test_least_cost_within_a_deadline(curve: Curve, slowest: int) -> None:
    # 1000 samples at 3600 per node-hour: a row takes 1000 / rate and costs that times its nodes.
    offers, deadline = (Offer(price_per_node_hour=3600.0),), 1000.0 / slowest
    found = verdict(LeastCost(deadline), curve, remaining_samples=1000.0, offers=offers)
    allowed = [index for index, (_, rate) in enumerate(curve) if rate >= slowest]
    assert (found.recommendation is None) == (not allowed)
    assert (found.notice is None) == bool(allowed)
    if found.recommendation is not None:
        least = min(Fraction(n, rate) for n, rate in (curve[index] for index in allowed))
        n, rate = curve[found.recommendation.row]
        assert found.recommendation.row in allowed
        assert float(Fraction(n, rate)) <= float(least) * (1 + 1e-12)


@given(curves, st.floats(0.51, 0.99))
def test_equal_spreads_change_no_choice_between_rows_by_confidence(curve: Curve, confidence: float) -> None:
    assert row(HighestThroughput(), curve, confidence=confidence) is not None
    sure = verdict(HighestThroughput(), curve, confidence=confidence).recommendation
    assert sure is not None
    assert sure.numbers["samples_per_s"] < curve[sure.row][1]


@given(st.lists(st.integers(1, 64), min_size=1, max_size=8))
def test_asked_rows_keep_their_order(workers: list[int]) -> None:
    assert asked(*workers).workers.tolist() == workers
    assert np.all(asked(*workers).nodes == np.array(workers))
