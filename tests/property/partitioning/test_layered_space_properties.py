"""The space of a layered network: it holds what can run, its bounds hold, and pruning changes nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitions import layered_model

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
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
from nodewise.domain.planning import DIMENSIONS, PlanConstraints, PlanPool
from nodewise.domain.predictions import Options, RowStatus
from nodewise.domain.workload import Layer, Workload
from nodewise.planning.goal import goal_of
from nodewise.planning.order import canonical
from nodewise.planning.search import How, SearchResult, search_space

DEVICES = ["Xeon-E5-2450L", "V100-SXM2", "K80"]


@st.composite
def networks(draw: st.DrawFn) -> Any:
    """Small networks of every kind of layer, from what a cache holds to what a device does not."""
    layers = []
    for index in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["dense", "recurrent", "convolution"]))
        layers.append(
            Layer(
                name=str(index),
                kind=kind,
                forward_flops_per_sample=draw(st.sampled_from([1e6, 3e7, 1e9])),
                parameter_bytes=draw(st.sampled_from([0, 10**5, 3 * 10**7, 10**9])),
                activation_bytes_per_sample=draw(st.sampled_from([1e3, 1e5, 3e7])),
                halo_bytes_per_sample=draw(st.sampled_from([0.0, 1e3])) if kind == "convolution" else None,
            )
        )
    return layered_model(
        tuple(layers),
        round_trip_s=draw(st.sampled_from([None, 1e-4])),
        half_duplex=draw(st.sampled_from([None, True])),
    )


def some(values: list[int]) -> st.SearchStrategy[Any]:
    """Every value, or a few that are listed."""
    listed = st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True).map(
        lambda each: tuple(sorted(each))
    )
    return st.one_of(st.none(), listed)


pools = st.builds(
    PlanPool,
    device=st.sampled_from(DEVICES),
    nodes=st.sampled_from([(1,), (2, 3, 4), (1, 2, 4, 6), (12,)]),
    workers_per_node=st.sampled_from([1, 2]),
    link_bytes_per_s=st.sampled_from([1e8, 1.25e9]),
)


@st.composite
def constraints(draw: st.DrawFn) -> PlanConstraints:
    batches, micro = draw(st.sampled_from([((), (1, 16)), ((), (8,)), ((24,), None), ((12, 64), (4, 8)), ((7,), None)]))
    return PlanConstraints(
        pools=tuple(draw(st.lists(pools, min_size=1, max_size=2, unique_by=lambda pool: pool.device))),
        global_batches=batches,
        micro_batches=micro,
        tensor_parallel=draw(some([1, 2, 3, 4])),
        pipeline_parallel=draw(some([1, 2, 3])),
        data_parallel=draw(some([1, 2, 4])),
        parameter_servers=draw(st.sampled_from([(1,), (1, 2, 3), (2, 5), None])),
        sync_modes=draw(st.sampled_from([None, (1,), (2,), (1, 2), (3,), (2, 3)])),
        max_nodes=draw(st.sampled_from([4, 7, 13])),
        memory_headroom_bytes=draw(st.sampled_from([0.0, 4e9])),
        link_factor=draw(st.sampled_from([1.0, 2.0])),
    )


RULES: list[Rule] = [
    HighestThroughput(),
    LeastTime(),
    LeastTime(max_nodes=3),
    LeastCost(),
    LeastCost(deadline_s=1e4),
    FewestDevices(deadline_s=1e4),
    Knee(share=0.5),
]


def space_of(model: Any, within: PlanConstraints) -> Any:
    """The space; None where all that is allowed is all-reduce in a node whose link nobody knows."""
    try:
        return model.space(within)
    except NodewiseError as error:
        if within.sync_modes != (3,) or "no link between devices" not in error.message:
            raise
        return None


@settings(max_examples=40, deadline=None)
@given(model=networks(), within=constraints())
def test_every_row_of_a_space_is_answered_as_it_is_evaluated(model: Any, within: PlanConstraints) -> None:
    space = space_of(model, within)
    if space is None:
        return
    if not space.total:
        assert space.exclusions
        return
    # Raises where a completion is below the bound of its prefix.
    rows, values, _ = space.evaluate(np.arange(len(space.prefixes)))
    predictions = model._model.predict(rows, Options())
    assert not (predictions.status == RowStatus.REFUSED).any(), predictions.refusals
    fits = predictions.status == RowStatus.ANSWERED
    np.testing.assert_array_equal(predictions.step_s[fits], values.step_s[fits])
    np.testing.assert_array_equal(predictions.memory_bytes, values.memory_bytes)
    np.testing.assert_allclose(sum(model.memory_terms(rows).values()), values.memory_bytes, rtol=1e-9)
    if within.memory_headroom_bytes == 0.0:
        assert (fits == values.fits()).all()
    assert (rows.nodes_held() <= within.max_nodes).all()
    distinct = {tuple(row) for row in np.stack(canonical(rows), axis=1).tolist()}
    assert len(distinct) == len(rows) == space.total


@settings(max_examples=40, deadline=None)
@given(
    model=networks(), within=constraints(), rule=st.sampled_from(RULES), chunk_rows=st.sampled_from([16, 256, 100_000])
)
@pytest.mark.long
def test_pruning_changes_nothing(model: Any, within: PlanConstraints, rule: Rule, chunk_rows: int) -> None:
    objective = Objective(
        rule=rule,
        remaining_samples=1e6,
        offers=(Offer(price_per_node_hour=1.0), Offer(device="K80", price_per_node_hour=0.5)),
    )
    goal = goal_of(objective, Workload(), within)
    space = space_of(model, within)
    if space is None:
        return
    pruned = search_space(space, goal, How(chunk_rows=chunk_rows))
    every = search_space(space, goal, How(prune=False))
    best_alone = search_space(space, goal, How(frontier=False, chunk_rows=chunk_rows))
    assert told(pruned) == told(every)
    assert told(best_alone)[0] == told(every)[0]
    assert every.evaluated == space.total


def told(found: SearchResult) -> tuple[list[Any], list[Any]]:
    frontier = (
        [] if found.frontier is None else list(map(tuple, np.stack(canonical(found.frontier.rows), axis=1).tolist()))
    )
    winners = found.winners
    return [(name, getattr(winners, name).tolist()) for name in DIMENSIONS if len(winners)], frontier


@settings(max_examples=10, deadline=None)
@given(
    layers=st.integers(1, 4),
    nodes=st.sampled_from([1, 2, 4, 6]),
    per_node=st.sampled_from([1, 2]),
    batch=st.sampled_from([4, 6, 12]),
)
def test_the_space_is_all_that_is_answered(layers: int, nodes: int, per_node: int, batch: int) -> None:
    """Against every combination of values, refused one by one: no division that can run is missing."""
    layer = Layer(
        name="l",
        kind="dense",
        forward_flops_per_sample=1e6,
        parameter_bytes=10**6,
        activation_bytes_per_sample=1e4,
    )
    model = layered_model((layer,) * layers)
    workers, most = nodes * per_node, nodes + 3
    pool = PlanPool(device="Xeon-E5-2450L", nodes=(nodes,), workers_per_node=per_node, link_bytes_per_s=1e9)
    space = model.space(PlanConstraints(pools=(pool,), global_batches=(batch,), max_nodes=most))
    degrees = range(1, workers + 1)
    grid = [
        (t, p, d, b, batch // d // b, mode, servers)
        for t, p, d in product(degrees, repeat=3)
        if t * p * d == workers and batch % d == 0
        for b in range(1, batch // d + 1)
        if batch // d % b == 0
        for mode in (SyncMode.ASYNC, SyncMode.SYNC, SyncMode.ALLREDUCE)
        for servers in ((0,) if mode == SyncMode.ALLREDUCE else range(1, most - nodes + 1))
    ]
    names = (
        "tensor_parallel", "pipeline_parallel", "data_parallel", "batch_per_worker", "accumulation", "sync_mode",
        "parameter_servers",
    )  # fmt: skip
    columns = np.array(grid, dtype=np.int64).reshape(-1, len(names)).T
    rows = Configurations.of(
        len(grid), nodes=nodes, workers=workers, device="Xeon-E5-2450L", global_batch=batch, link_bytes_per_s=1e9
    ).replaced(**dict(zip(names, columns)))
    status = model._model.predict(rows, Options()).status
    expected = {tuple(row) for row, found in zip(grid, status.tolist()) if found != RowStatus.REFUSED}
    found, _, _ = space.evaluate(np.arange(len(space.prefixes)))
    assert {tuple(row) for row in np.stack([getattr(found, name) for name in names], axis=1).tolist()} == expected


XEON = PlanPool(device="Xeon-E5-2450L", nodes=(2, 3), workers_per_node=1, link_bytes_per_s=1e9)
DENSE = Layer(
    name="fc", kind="dense", forward_flops_per_sample=1e6, parameter_bytes=10**6, activation_bytes_per_sample=1e4
)


def test_listed_values_that_nothing_has_are_named() -> None:
    within = PlanConstraints(
        pools=(XEON,),
        global_batches=(),
        micro_batches=(8,),
        tensor_parallel=(1, 5),
        pipeline_parallel=(1, 4),
        parameter_servers=(2, 9),
        zero_stages=(0, 1),
        max_nodes=6,
    )
    found = {each.constraint: each.message for each in layered_model((DENSE,) * 3).space(within).exclusions}
    assert "tensor_parallel 5" in found["tensor_parallel"]
    assert "3 layers" in found["pipeline_parallel"]
    assert "parameter_servers 9" in found["parameter_servers"]
    assert "zero_stages 1" in found["zero_stages"]
    assert set(found) == {"tensor_parallel", "pipeline_parallel", "parameter_servers", "zero_stages"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"global_batches": (7,)}, "global_batches 7"),
        ({"zero_stages": (2,)}, "zero_stages 2"),
        ({"max_nodes": 1}, "space"),
    ],
)
def test_an_empty_space_says_why(changed: dict[str, Any], said: str) -> None:
    plain: dict[str, Any] = {"pools": (XEON,), "global_batches": (12,), "micro_batches": (2,), "max_nodes": 5}
    space = layered_model((DENSE,)).space(PlanConstraints(**plain | changed))
    assert space.total == 0
    assert any(said in each.message or each.constraint == said for each in space.exclusions)
    assert any(each.constraint == "space" for each in space.exclusions)


def test_what_must_be_stated_is_named() -> None:
    model = layered_model((DENSE,))
    with pytest.raises(NodewiseError) as caught:
        model.space(PlanConstraints(pools=(XEON,), global_batches=(12,)))
    assert (caught.value.reason, caught.value.violations[0].field) == (
        Reason.INVALID_FIELD,
        "constraints.parameter_servers",
    )
    unlinked = PlanPool(device="Xeon-E5-2450L", nodes=(2,), workers_per_node=1)
    with pytest.raises(NodewiseError) as caught:
        model.space(PlanConstraints(pools=(unlinked,), global_batches=(12,), parameter_servers=(1,)))
    assert (caught.value.reason, "network.link_bytes_per_second" in caught.value.metadata["missing_fields"]) == (
        Reason.EVIDENCE_MISSING,
        True,
    )
    alone = PlanPool(device="V100-SXM2", nodes=(1,), workers_per_node=1)
    reduced = PlanConstraints(pools=(alone,), global_batches=(12,), sync_modes=(int(SyncMode.ALLREDUCE),))
    assert model.space(reduced).total == 6
    large = PlanConstraints(
        pools=(PlanPool(device="Xeon-E5-2450L", nodes=tuple(range(1, 400)), workers_per_node=1, link_bytes_per_s=1e9),),
        global_batches=(),
        micro_batches=(1, 2, 4),
        max_nodes=4000,
    )
    with pytest.raises(NodewiseError) as caught:
        model.space(large)
    assert caught.value.reason == Reason.LIMIT_EXCEEDED
