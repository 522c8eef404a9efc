"""The search finds what looking at every configuration finds: any objective, order, chunk and pruning; ties too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import ANY, Table, TableModel, checked_model, random_table

from nodewise.domain.columns import as_ints
from nodewise.domain.objective import (
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    Objective,
    Offer,
    Rule,
)
from nodewise.domain.planning import PlanConstraints, PlanPool
from nodewise.domain.workload import Workload
from nodewise.planning.goal import Goal, goal_of
from nodewise.planning.search import How, SearchResult, search_space

POOLS = tuple(PlanPool(device=name, nodes=(1, 2, 3), workers_per_node=2) for name in "AB")
CONSTRAINTS = PlanConstraints(pools=POOLS, global_batches=(32, 64))
PRICES = {"A": 3600.0, "B": 1800.0}
OFFERS = tuple(Offer(device=device, price_per_node_hour=price) for device, price in PRICES.items())
START_UP = tuple(replace(offer, start_up_s=start_up_s) for offer, start_up_s in zip(OFFERS, (6.0, 0.25)))
RULES: list[Rule] = [
    HighestThroughput(),
    Knee(0.5),
    LeastTime(),
    LeastTime(max_nodes=2),
    LeastTime(max_cost=60.0),
    LeastCost(),
    LeastCost(deadline_s=20.0),
    FewestDevices(deadline_s=25.0),
]

tables = st.builds(
    random_table,
    seed=st.integers(0, 2**32 - 1),
    prefixes=st.integers(0, 40),
    most=st.integers(1, 8),
    values=st.integers(1, 9),
)


def goal(rule: Rule, offers: tuple[Offer, ...]) -> Goal:
    return goal_of(Objective(rule=rule, remaining_samples=1000.0, offers=offers), Workload(), CONSTRAINTS)


def found(table: Table, rule: Rule, offers: tuple[Offer, ...] = OFFERS, **how: Any) -> tuple[SearchResult, TableModel]:
    model = TableModel(table)
    space = checked_model(model).space(CONSTRAINTS)
    return search_space(space, goal(rule, offers), How(**how)), model


def by_hand(table: Table, rule: Rule, offers: tuple[Offer, ...]) -> dict[int, int]:
    """The number of the best completion of each scale, by comparing all of them one by one."""
    best: dict[int, tuple[Any, ...]] = {}
    start_up_s = {offer.device: offer.start_up_s for offer in offers}
    rows = table.rows
    for row in range(len(rows)):
        device = rows.devices[rows.device_index[row]]
        nodes, workers = int(rows.nodes[row]), int(rows.workers[row])
        rate = (1.0 / table.step_s[row]) * int(rows.global_batch[row])
        finish_s = 1000.0 / rate + start_up_s[device]
        cost = finish_s * (PRICES[device] / 3600.0 * nodes)
        if table.memory[row] > table.capacity[table.origin[row]]:
            continue
        if isinstance(rule, LeastTime) and (
            (rule.max_nodes or 99) < nodes or (rule.max_cost is not None and cost > rule.max_cost)
        ):
            continue
        if isinstance(rule, LeastCost | FewestDevices) and rule.deadline_s is not None and finish_s > rule.deadline_s:
            continue
        memory = table.memory[row]
        slowness = finish_s if offers is START_UP and isinstance(rule, LeastTime | FewestDevices) else -rate
        keys: tuple[float, ...] = (slowness, workers, memory)
        if isinstance(rule, LeastCost):
            keys = (cost, workers, memory)
        if isinstance(rule, FewestDevices):
            keys = (workers, slowness, memory)
        batch, tensor = int(rows.global_batch[row]), int(rows.tensor_parallel[row])
        mine = (*keys, device, nodes, workers, batch, tensor, row)
        scale = nodes if isinstance(rule, Knee) else 0
        if scale not in best or mine < best[scale]:
            best[scale] = mine
    return {scale: mine[-1] for scale, mine in best.items()}


def numbers(result: SearchResult) -> list[int]:
    return (result.winners.batch_per_worker - 1).tolist()


@settings(max_examples=240, deadline=None)
@given(
    table=tables,
    rule=st.sampled_from(RULES),
    offers=st.sampled_from([OFFERS, START_UP]),
    chunk_rows=st.sampled_from([1, 7, 64, 10_000]),
    frontier=st.booleans(),
)
def test_the_best_is_what_comparing_everything_finds(
    table: Table, rule: Rule, offers: tuple[Offer, ...], chunk_rows: int, frontier: bool
) -> None:
    wanted = by_hand(table, rule, offers)
    pruned, model = found(table, rule, offers, chunk_rows=chunk_rows, frontier=frontier)
    exhaustive, all_of_it = found(table, rule, offers, prune=False, frontier=frontier)
    one_scale = isinstance(rule, Knee) and len(set(table.prefixes.nodes.tolist())) < 2
    expected = [wanted[scale] for scale in sorted(wanted)]
    assert numbers(pruned) == numbers(exhaustive) == expected or one_scale
    assert numbers(pruned) == numbers(exhaustive)
    assert exhaustive.evaluated == exhaustive.space == all_of_it.evaluated == len(table.origin)
    assert pruned.evaluated == model.evaluated <= pruned.space
    assert pruned.feasible <= exhaustive.feasible
    assert pruned.complete
    assert exhaustive.feasible + sum(exhaustive.over.values()) == exhaustive.space


@settings(max_examples=160, deadline=None)
@given(table=tables, chunk_rows=st.sampled_from([1, 5, 64, 10_000]), prune=st.booleans())
def test_the_frontier_is_every_row_that_no_other_dominates(table: Table, chunk_rows: int, prune: bool) -> None:
    result, _ = found(table, FewestDevices(deadline_s=25.0), chunk_rows=chunk_rows, prune=prune)
    assert result.frontier is not None
    rows = table.rows
    fits = np.flatnonzero(table.memory <= table.capacity[table.origin])
    needs = {
        row: (table.step_s[row] / rows.global_batch[row], int(rows.workers[row]), table.memory[row])
        for row in fits.tolist()
    }
    expected = {
        need
        for need in needs.values()
        if not any(other != need and all(a <= b for a, b in zip(other, need)) for other in needs.values())
    }
    kept = (result.frontier.rows.batch_per_worker - 1).tolist()
    assert len(kept) == len(expected)
    assert {needs[row] for row in kept} == expected
    for row in kept:
        # Of those that need the same, the first in the canonical order.
        same = [other for other, need in needs.items() if need == needs[row]]
        assert row == min(
            same,
            key=lambda other: (
                rows.devices[rows.device_index[other]],
                int(rows.nodes[other]),
                int(rows.workers[other]),
                int(rows.global_batch[other]),
                int(rows.tensor_parallel[other]),
                other,
            ),
        )


@settings(max_examples=80, deadline=None)
@given(table=tables, seed=st.integers(0, 2**32 - 1), rule=st.sampled_from(RULES))
def test_the_order_of_prefixes_changes_nothing(table: Table, seed: int, rule: Rule) -> None:
    order = np.random.default_rng(seed).permutation(len(table.prefixes))
    place = np.argsort(order)
    shuffled = Table(
        table.prefixes.take(as_ints(order)),
        place[table.origin],
        table.step_s,
        table.memory,
        table.capacity[order],
        table.bound_s[order],
        table.bound_memory[order],
    )
    first, second = found(table, rule)[0], found(shuffled, rule)[0]
    assert numbers(first) == numbers(second)
    assert first.frontier is not None
    assert second.frontier is not None
    assert first.frontier.rows.batch_per_worker.tolist() == second.frontier.rows.batch_per_worker.tolist()


@pytest.mark.parametrize("rule", [HighestThroughput(), FewestDevices(deadline_s=25.0)])
def test_pruning_spares_work(rule: Rule) -> None:
    spared = [found(random_table(seed, 400, 8, 40), rule, chunk_rows=32, frontier=False)[0] for seed in range(5)]
    assert np.median([result.evaluated / result.space for result in spared]) < 0.4


def test_the_best_is_found_without_a_frontier_in_the_way() -> None:
    with_frontier = found(random_table(1, 100, 8), HighestThroughput())[0]
    without = found(random_table(1, 100, 8), HighestThroughput(), frontier=False)[0]
    assert numbers(with_frontier) == numbers(without)
    assert without.frontier is None
    assert without.evaluated <= with_frontier.evaluated


def test_an_empty_space_has_no_best() -> None:
    result = found(random_table(1, 0, 1), HighestThroughput())[0]
    assert (result.space, result.evaluated, len(result.winners), result.complete) == (0, 0, 0, True)
    assert ANY.allows("tensor_parallel", 3)
