from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimators import predictions_of

from nodewise.domain.columns import as_floats, as_ints, constant_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.objective import FewestDevices, HighestThroughput, Knee, LeastCost, LeastTime, Objective, Offer
from nodewise.domain.predictions import Predictions, RowRefusal
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.objectives import Verdict, verdict_of

BATCH = 10
EUROS = (Offer(device="V100", price_per_node_hour=3.6, currency="EUR"),)


def verdict(
    objective: Objective,
    nodes: list[int],
    samples_per_s: list[float],
    *,
    workers: list[int] | None = None,
    servers: int = 0,
    batch: int = BATCH,
    devices: tuple[str, ...] = ("V100",),
    workload: Workload | None = None,
    **changes: Any,
) -> Verdict:
    """Judge rows with these throughputs; a rate of 0 is a refused row."""
    rate = as_floats(samples_per_s)
    configurations = Configurations.of(
        len(nodes), nodes=nodes, workers=workers or nodes, batch_per_worker=batch, parameter_servers=servers
    ).replaced(devices=devices, device_index=as_ints(np.arange(len(nodes)) % len(devices)))
    answered = rate > 0
    values: dict[str, Any] = {
        "status": np.where(answered, 1, 2),
        "bottleneck_index": np.where(answered, 0, -1),
        "refusals": (RowRefusal(tuple(np.flatnonzero(~answered).tolist()), Refusal(Reason.EVIDENCE_MISSING, "no")),),
    }
    predictions: Predictions = predictions_of(
        np.divide(1.0, rate, out=np.zeros(len(rate)), where=answered), **(values | changes)
    )
    known = rate if batch else as_floats(np.zeros(len(rate)))
    return verdict_of(objective, configurations, predictions, known, rate, workload or Workload())


def chosen(objective: Objective, nodes: list[int], rates: list[float], **options: Any) -> int:
    found = verdict(objective, nodes, rates, **options)
    assert found.recommendation is not None, found.notice
    return found.recommendation.row


def refused(objective: Objective, **options: Any) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        verdict(objective, [1, 2], [1.0, 2.0], **options)
    assert caught.value.reason == Reason.INVALID_FIELD
    return caught.value


# --- highest throughput


def test_highest_throughput_among_equals_the_fewest_nodes_then_the_first_row() -> None:
    rule = Objective(rule=HighestThroughput())
    assert chosen(rule, [1, 4, 2, 2], [5.0, 9.0, 9.0, 9.0]) == 2
    recommendation = verdict(rule, [1, 4, 2], [5.0, 9.0, 9.0]).recommendation
    assert recommendation is not None
    assert (recommendation.rule, recommendation.nodes, recommendation.workers) == ("highest_throughput", 2, 2)
    assert recommendation.numbers == {"samples_per_s": 9.0}
    assert recommendation.why == "9 samples/s on 2 nodes is the highest of 3 configurations"


def test_rows_that_are_not_answered_are_not_recommended() -> None:
    found = verdict(Objective(rule=HighestThroughput()), [1, 2, 3], [5.0, 0.0, 4.0])
    assert found.recommendation is not None
    assert (found.recommendation.row, found.recommendation.nodes) == (0, 1)
    assert found.recommendation.why.endswith("of 2 configurations")


def test_no_answered_row_is_a_notice() -> None:
    found = verdict(Objective(rule=Knee()), [1, 2], [0.0, 0.0])
    assert found.recommendation is None
    assert found.notice is not None
    assert (found.notice.reason, found.notice.message) == (Reason.OBJECTIVE_UNREACHABLE, "no row was answered")


def test_an_unknown_batch_compares_steps_of_one_size_and_says_so() -> None:
    found = verdict(Objective(rule=HighestThroughput()), [1, 2], [3.0, 5.0], batch=0)
    assert found.recommendation is not None
    assert "5 steps/s of 1 worker on 2 nodes" in found.recommendation.why
    assert found.recommendation.numbers == {"steps_per_s_of_1_worker": 5.0}


def test_confidence_judges_by_the_bound() -> None:
    spread = as_floats([0.01, 0.5])
    safe = Objective(rule=HighestThroughput(), confidence=0.95)
    assert chosen(Objective(rule=HighestThroughput()), [1, 2], [9.0, 10.0], log_spread=spread) == 1
    found = verdict(safe, [1, 2], [9.0, 10.0], log_spread=spread)
    assert found.recommendation is not None
    assert found.recommendation.row == 0
    assert found.recommendation.numbers["samples_per_s"] == pytest.approx(9.0 * np.exp(-1.6448536 * 0.01))
    assert found.recommendation.why.endswith("judged by what is reached with probability 0.95")


# --- knee


@pytest.mark.parametrize(
    ("nodes", "rates", "share", "best"),
    [
        ([1, 2, 3, 4], [10.0, 20.0, 30.0, 40.0], 1.0, 3),
        ([1, 2, 3, 4], [10.0, 18.0, 23.0, 24.0], 0.5, 2),
        ([1, 2, 3, 4], [10.0, 18.0, 22.9, 24.0], 0.5, 1),
        ([1, 2, 3, 4], [10.0, 12.0, 13.0, 30.0], 0.5, 3),  # the largest n that pays, past others that do not
        ([1, 2], [10.0, 9.0], 0.5, 0),
        ([4], [10.0], 0.5, 0),
        ([4, 2], [19.0, 10.0], 0.9, 0),  # order of rows is nothing; steps are between neighbours in n
        ([2, 4, 8], [10.0, 18.0, 28.0], 0.5, 2),  # 10 over 4 nodes = 2.5 each = half of 10 / 2
        ([1, 2, 3], [0.1, 0.2, 0.30000000000000004], 1.0, 2),
        ([1, 2, 3], [0.1, 0.2, 0.3], 1.0, 2),  # 0.3 - 0.2 < 0.1 in floating point
    ],
)
def test_knee(nodes: list[int], rates: list[float], share: float, best: int) -> None:
    assert chosen(Objective(rule=Knee(share)), nodes, rates) == best


def test_the_knee_names_its_numbers() -> None:
    recommendation = verdict(Objective(rule=Knee()), [1, 2, 4], [10.0, 18.0, 20.0]).recommendation
    assert recommendation is not None
    assert recommendation.rule == "knee"
    assert recommendation.numbers == {
        "samples_per_s": 18.0,
        "share": 0.5,
        "samples_per_s_per_node": 10.0,
        "gain_per_node": 8.0,
    }
    smallest = verdict(Objective(rule=Knee()), [1, 2], [10.0, 10.0]).recommendation
    assert smallest is not None
    assert "no larger step brings 0.5 of the 10" in smallest.why


def test_the_best_row_of_each_count_stands_for_it() -> None:
    assert chosen(Objective(rule=Knee()), [1, 2, 2, 1], [5.0, 6.0, 16.0, 10.0]) == 2


def test_rows_that_differ_in_workers_alone_are_compared_by_workers() -> None:
    recommendation = verdict(Objective(rule=Knee()), [1, 1, 1], [10.0, 19.0, 20.0], workers=[1, 2, 3]).recommendation
    assert recommendation is not None
    assert (recommendation.row, recommendation.workers) == (1, 2)
    assert "gain_per_worker" in recommendation.numbers


# --- least time


def test_least_time_without_limits_is_the_highest_throughput() -> None:
    found = verdict(Objective(rule=LeastTime()), [1, 2], [1.0, 2.0])
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert (found.finish_s, found.costs) == (None, None)
    assert found.recommendation.why == (
        "2 samples/s on 2 nodes is the least time; the range asked about ends here, and no run of the job was measured"
    )


def test_least_time_within_a_budget_of_nodes() -> None:
    rule = Objective(rule=LeastTime(max_nodes=2), remaining_samples=100.0)
    found = verdict(rule, [1, 2, 4], [1.0, 2.0, 4.0])
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert found.recommendation.numbers == {"samples_per_s": 2.0, "finish_s": 50.0}
    assert found.finish_s is not None
    assert found.finish_s.tolist() == [100.0, 50.0, 25.0]
    nothing = verdict(rule, [3, 4], [3.0, 4.0])
    assert nothing.recommendation is None
    assert nothing.notice is not None
    assert nothing.notice.reason == Reason.OBJECTIVE_UNREACHABLE
    assert nothing.notice.message == "no row stays within 2 nodes: the smallest has 3 nodes"


def test_least_time_within_a_budget_of_cost() -> None:
    # 3600 samples at 1, 1.5 and 1.8 samples/s on 1, 2, 4 nodes of 3.6 an hour.
    found = verdict(
        Objective(rule=LeastTime(max_cost=5.0), remaining_samples=3600.0, offers=EUROS), [1, 2, 4], [1.0, 1.5, 1.8]
    )
    assert found.costs is not None
    np.testing.assert_allclose(found.costs, [3.6, 4.8, 8.0])
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert found.recommendation.numbers["cost"] == pytest.approx(4.8)
    poor = verdict(
        Objective(rule=LeastTime(max_nodes=9, max_cost=1.0), remaining_samples=3600.0, offers=EUROS), [1, 2], [1.0, 1.5]
    )
    assert poor.notice is not None
    assert poor.notice.message == (
        "no row stays within 9 nodes and a cost of 1 EUR: the smallest has 1 nodes; the cheapest row costs 3.6"
    )


# --- least cost


def test_least_cost_takes_the_fewest_nodes_among_equals() -> None:
    linear = verdict(
        Objective(rule=LeastCost(), remaining_samples=3600.0, offers=EUROS), [2, 1, 4], [2.0, 1.0, 4.0]
    ).recommendation
    assert linear is not None
    assert (linear.row, linear.rule, linear.why) == (
        1,
        "least_cost",
        "3.6 EUR on 1 nodes is the least cost without a deadline",
    )


def test_least_cost_within_a_deadline() -> None:
    rule = LeastCost(deadline_s=2500.0)
    objective = Objective(rule=rule, remaining_samples=3600.0, offers=EUROS)
    found = verdict(objective, [1, 2, 4], [1.0, 1.5, 1.8])
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert found.recommendation.numbers["finish_s"] == pytest.approx(2400.0)
    late = verdict(objective, [1, 2], [1.0, 1.2])
    assert late.recommendation is None
    assert late.notice is not None
    assert late.notice.message == "no row finishes within 2,500 s: the fastest takes 3,000 s on 2 nodes"


def test_the_nodes_of_parameter_servers_are_charged_alike() -> None:
    objective = Objective(rule=LeastCost(), remaining_samples=3600.0, offers=EUROS)
    found = verdict(objective, [1, 3], [1.0, 2.0], servers=1)
    assert found.costs is not None
    np.testing.assert_allclose(found.costs, [7.2, 7.2])


def test_devices_have_their_prices_and_an_empty_name_is_any_other() -> None:
    offers = (Offer(device="V100", price_per_node_hour=3.6), Offer(price_per_node_hour=1.8))
    objective = Objective(rule=LeastCost(), remaining_samples=3600.0, offers=offers)
    found = verdict(objective, [1, 1], [1.0, 0.8], devices=("V100", "T4"))
    assert found.costs is not None
    np.testing.assert_allclose(found.costs, [3.6, 2.25])


def test_epochs_are_counted_in_samples() -> None:
    objective = Objective(rule=LeastTime(), remaining_epochs=2.0)
    found = verdict(objective, [1], [4.0], workload=Workload(samples_per_epoch=50))
    assert found.finish_s is not None
    assert found.finish_s.tolist() == [25.0]


def test_times_and_costs_of_rows_that_are_not_answered_are_zero() -> None:
    objective = Objective(rule=LeastCost(), remaining_samples=10.0, offers=EUROS)
    found = verdict(objective, [1, 2], [0.0, 1.0])
    assert found.finish_s is not None
    assert found.costs is not None
    assert (found.finish_s[0], found.costs[0]) == (0.0, 0.0)
    assert found.recommendation is not None
    assert found.recommendation.row == 1


# --- what is missing


@pytest.mark.parametrize(
    ("objective", "field"),
    [
        (Objective(rule=LeastTime(max_cost=1.0), offers=EUROS), "work"),
        (Objective(rule=LeastTime(max_cost=1.0), remaining_samples=1.0), "offers"),
        (Objective(rule=LeastCost(), offers=EUROS), "work"),
        (Objective(rule=LeastCost(deadline_s=1.0), offers=EUROS), "work"),
        (Objective(rule=LeastCost(), remaining_samples=1.0), "offers"),
        (Objective(rule=Knee(), remaining_epochs=1.0), "work.epochs"),
        (
            Objective(rule=LeastCost(), remaining_samples=1.0, offers=(Offer(device="T4", price_per_node_hour=1.0),)),
            "offers",
        ),
    ],
)
def test_what_a_rule_needs_is_named(objective: Objective, field: str) -> None:
    error = refused(objective)
    assert [violation.field for violation in error.violations] == [field]


def test_a_missing_price_names_the_device() -> None:
    objective = Objective(
        rule=LeastCost(), remaining_samples=1.0, offers=(Offer(device="T4", price_per_node_hour=1.0),)
    )
    assert "'V100'" in refused(objective).message


def test_work_in_samples_is_not_divided_by_mini_batches() -> None:
    error = refused(Objective(rule=HighestThroughput(), remaining_samples=100.0), batch=0)
    assert [violation.field for violation in error.violations] == ["configurations.batch_per_worker_samples"]


def test_prices_without_work_cost_nothing_that_could_be_told() -> None:
    found = verdict(Objective(rule=HighestThroughput(), offers=EUROS), [1, 2], [1.0, 2.0])
    assert found.costs is None
    assert found.recommendation is not None


def test_no_rows_are_no_recommendation() -> None:
    found = verdict(Objective(rule=HighestThroughput()), [], [], status=constant_ints(0, 1))
    assert found.recommendation is None


# --- confidence without spread, nodes that servers hold


def test_a_row_without_a_spread_is_not_recommended_at_a_confidence() -> None:
    safe = Objective(rule=HighestThroughput(), confidence=0.95)
    found = verdict(safe, [1, 2, 4], [5.0, 6.0, 9.0], log_spread=as_floats([0.1, 0.1, 0.0]))
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert [(notice.reason, notice.rows) for notice in found.remarks] == [("NO_SPREAD", (2,))]


def test_without_any_spread_the_point_judges_and_says_so() -> None:
    safe = Objective(rule=HighestThroughput(), confidence=0.95)
    found = verdict(safe, [1, 2], [5.0, 6.0], log_spread=as_floats([0.0, 0.0]))
    assert found.recommendation is not None
    assert found.recommendation.row == 1
    assert "judged by the point: the model states no spread" in found.recommendation.why
    assert [(notice.reason, notice.rows) for notice in found.remarks] == [("NO_SPREAD", ())]


def test_a_limit_of_nodes_counts_those_of_parameter_servers() -> None:
    assert chosen(Objective(rule=LeastTime(max_nodes=4)), [1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], servers=2) == 1
    found = verdict(Objective(rule=LeastTime(max_nodes=2)), [1, 2], [1.0, 2.0], servers=2)
    assert found.notice is not None
    assert "the smallest has 3 nodes" in found.notice.message


def test_fewest_devices_are_the_fewest_that_finish_in_time() -> None:
    rule = FewestDevices(deadline_s=500.0)
    objective = Objective(rule=rule, remaining_samples=1000.0)
    # 4 devices take 1000 s; 8 take 500 s on one node and 400 s on two.
    found = verdict(objective, [1, 1, 2, 4], [1.0, 2.0, 2.5, 4.0], workers=[4, 8, 8, 16])
    assert found.recommendation is not None
    assert found.recommendation.row == 2
    assert found.recommendation.numbers["finish_s"] == 400.0
    assert "8 devices" in found.recommendation.why
    late = verdict(replace(objective, rule=FewestDevices(deadline_s=10.0)), [1, 2], [1.0, 2.0])
    assert late.recommendation is None
    assert late.notice is not None
    assert "the fastest takes 500 s on 2 devices" in late.notice.message


def test_fewest_devices_need_work() -> None:
    assert "work" in str(refused(Objective(rule=FewestDevices(deadline_s=10.0))))
