"""Choosing among offers: dominated rows, what runs promise, the rules, and the sentence."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise.completion.choice import choose_offer, frontier_of, least_sure, pareto_mask
from nodewise.completion.questions import OfferResult
from nodewise.domain.completion_offers import CompletionGroup, CompletionOffer
from nodewise.domain.completions import Completion, CompletionSpread
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.objective import FewestDevices, LeastCost, LeastTime, Objective

RUNS = 10_000


def row(
    name: str, time_s: float, cost: float, *, in_time: float | None = None, never: float | None = 0.0, nodes: int = 4
) -> OfferResult:
    spread = CompletionSpread(mean=time_s, standard_error=1.0, p50=time_s, p90=1.1 * time_s, p99=1.2 * time_s)
    costs = CompletionSpread(mean=cost, standard_error=0.1, p50=cost, p90=1.5 * cost, p99=2.0 * cost)
    return OfferResult(
        name=name,
        offer=CompletionOffer(name=name, groups=(CompletionGroup(device="K80", nodes=nodes),)),
        completion=Completion(
            time_s=spread, cost=costs, ideal_s=time_s, deadline_probability=in_time, failure_probability=never
        ),
    )


def test_rows_that_are_dominated_are_not_on_the_frontier() -> None:
    costs = np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]])
    assert pareto_mask(costs).tolist() == [True, True, False, True]
    refused = OfferResult(name="none", error=NodewiseError(Reason.EVIDENCE_MISSING, "no lifetimes"))
    assert frontier_of([refused, row("a", 10.0, 2.0), row("b", 20.0, 3.0), row("c", 20.0, 1.0)]) == (1, 3)
    assert frontier_of([refused]) == ()


def test_few_runs_do_not_promise_much() -> None:
    assert least_sure(1.0, 50) == pytest.approx(0.94)
    assert least_sure(1.0, 10_000) == pytest.approx(0.9997)
    assert least_sure(0.955, 100) < 0.95 < least_sure(0.955, 10_000)


def test_the_cheapest_that_is_surely_done_in_time_is_taken() -> None:
    rows = [
        row("late", 90_000.0, 10.0, in_time=0.2),
        row("risky", 40_000.0, 20.0, in_time=0.9, never=0.01),
        row("sure", 39_000.0, 21.0, in_time=0.99),
        row("dear", 30_000.0, 50.0, in_time=1.0),
    ]
    found, why = choose_offer(rows, Objective(rule=LeastCost(deadline_s=43_200.0), confidence=0.95), RUNS)
    assert found is not None
    assert (found.row, found.rule, why) == (2, "least_cost", "")
    assert "99.00 % of the runs finish by 12 h" in found.why
    assert "of which 2 finish by 12 h with 95 %" in found.why
    on_average, _ = choose_offer(rows, Objective(rule=LeastCost(deadline_s=43_200.0)), RUNS)
    assert on_average is not None
    assert on_average.row == 1
    late = [row("late", 90_000.0, 10.0, in_time=0.2), row("dear", 30_000.0, 50.0, in_time=0.6)]
    nobody, why = choose_offer(late, Objective(rule=LeastCost(deadline_s=1000.0), confidence=0.95), RUNS)
    assert nobody is None
    assert why.startswith("none of 2 offers finishes by 0.2778 h with 95 %; the closest is 'dear'")


def test_least_time_and_fewest_devices_keep_their_limits() -> None:
    rows = [row("few", 40_000.0, 20.0, in_time=1.0, nodes=2), row("fast", 20_000.0, 60.0, in_time=1.0, nodes=8)]
    fastest, _ = choose_offer(rows, Objective(rule=LeastTime()), RUNS)
    within, _ = choose_offer(rows, Objective(rule=LeastTime(max_cost=40.0)), RUNS)
    surely, why = choose_offer(rows, Objective(rule=LeastTime(max_cost=25.0), confidence=0.9), RUNS)
    nodes, _ = choose_offer(rows, Objective(rule=LeastTime(max_nodes=4)), RUNS)
    fewest, _ = choose_offer(rows, Objective(rule=FewestDevices(deadline_s=50_000.0), confidence=0.9), RUNS)
    assert [each and each.row for each in (fastest, within, nodes, fewest)] == [1, 0, 0, 0]
    assert surely is None
    assert "costs at most 25 with 90 %" in why


def test_offers_that_are_never_done_are_not_taken() -> None:
    never = OfferResult(
        name="never",
        offer=CompletionOffer(groups=(CompletionGroup(nodes=1),)),
        completion=Completion(time_s=CompletionSpread(), cost=CompletionSpread(), ideal_s=1.0, failure_probability=1.0),
    )
    found, why = choose_offer([never], Objective(rule=LeastCost()), RUNS)
    assert found is None
    assert why == "none of 1 offers ever finishes the job; the closest is 'never', which never finishes"
    assert frontier_of([never]) == (0,)
    assert choose_offer([], Objective(), RUNS) == (None, "")
