"""The space of a transformer's partitions: it holds what can run, its bounds hold, and pruning changes nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitions import partition_model, transformer

from nodewise.domain.configurations import Configurations, Recomputation, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.objective import FewestDevices, HighestThroughput, LeastCost, LeastTime, Objective, Offer, Rule
from nodewise.domain.planning import DIMENSIONS, PlanConstraints, PlanPool
from nodewise.domain.predictions import Options, RowStatus
from nodewise.domain.workload import Transformer, Workload
from nodewise.planning.goal import goal_of
from nodewise.planning.order import canonical
from nodewise.planning.search import How, SearchResult, search_space

DEVICES = ["A100-40GB", "A100-80GB", "H100-SXM5-80GB", "GB200"]
FRAMEWORKS = [None, "megatron-lm", "megatron-core", "pytorch", "megatron-core zero-bubble", "megatron-core dualpipe"]

transformers = st.builds(
    transformer,
    layers=st.sampled_from([4, 6, 12]),
    hidden_size=st.sampled_from([512, 1536, 4096]),
    attention_heads=st.sampled_from([8, 16]),
    sequence_length=st.sampled_from([512, 1000, 2048]),
    key_value_heads=st.sampled_from([0, 4]),
    head_size=st.sampled_from([0, 128]),
    gated_feed_forward=st.booleans(),
    untied_embeddings=st.booleans(),
    experts=st.sampled_from([0, 0, 4]),
    experts_per_token=st.just(2),
    expert_feed_forward_size=st.sampled_from([0, 512]),
    shared_expert_feed_forward_size=st.sampled_from([0, 1024]),
    expert_layers=st.sampled_from([0, 3]),
    attention_window=st.sampled_from([0, 256]),
    state_space_layers=st.sampled_from([0, 2]),
)


def some(values: list[Any]) -> st.SearchStrategy[Any]:
    """Every value, or a few that are listed."""
    listed = st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True).map(
        lambda each: tuple(sorted(each))
    )
    return st.one_of(st.none(), listed)


pools = st.builds(
    PlanPool,
    device=st.sampled_from(DEVICES),
    nodes=st.sampled_from([(1,), (1, 2), (2, 3), (4,)]),
    workers_per_node=st.sampled_from([1, 4, 8]),
    link_bytes_per_s=st.sampled_from([0.0, 25e9]),
)
constraints = st.builds(
    PlanConstraints,
    pools=st.lists(pools, min_size=1, max_size=2, unique_by=lambda pool: pool.device).map(tuple),
    global_batches=st.sampled_from([(8,), (12, 16), (64,)]),
    tensor_parallel=some([1, 2, 4, 3]),
    pipeline_parallel=some([1, 2, 4, 8]),
    expert_parallel=st.sampled_from([None, None, (1, 4)]),
    micro_batches=some([1, 2, 4, 8]),
    interleave=some([1, 2, 3]),
    recomputations=some([1, 2, 3]),
    zero_stages=some([0, 1, 2, 3]),
    sequence_parallel=some([0, 1]),
    precisions=st.sampled_from([("",), ("bf16", "fp16")]).filter(lambda _: True),
    memory_headroom_bytes=st.sampled_from([0.0, 8e9]),
    link_factor=st.sampled_from([1.0, 2.0]),
)
models = st.tuples(transformers, st.sampled_from(FRAMEWORKS), st.sampled_from([None, 50e9]))
RULES: list[Rule] = [
    HighestThroughput(),
    LeastTime(),
    LeastCost(),
    LeastCost(deadline_s=3e5),
    FewestDevices(deadline_s=3e5),
]


def model_of(drawn: tuple[Transformer, str | None, float | None]) -> Any:
    of, framework, link = drawn
    return partition_model(of, framework=framework, link_bytes_per_s=link)


OFFERS = (Offer(price_per_node_hour=1.0), Offer(device="H100-SXM5-80GB", price_per_node_hour=2.5))


@settings(max_examples=48, deadline=None)
@given(drawn=models, within=constraints)
def test_every_row_of_a_space_is_answered_as_it_is_evaluated(drawn: Any, within: PlanConstraints) -> None:
    model = model_of(drawn)
    space = model.space(within)
    if not space.total:
        assert space.exclusions
        return
    rows, values, _ = space.evaluate(np.arange(len(space.prefixes)))
    predictions = model._model.predict(rows, Options())
    assert not (predictions.status == RowStatus.REFUSED).any(), predictions.refusals
    fits = predictions.status == RowStatus.ANSWERED
    np.testing.assert_allclose(predictions.step_s[fits], values.step_s[fits], rtol=1e-12)
    np.testing.assert_allclose(predictions.memory_bytes, values.memory_bytes, rtol=1e-12)
    terms = model.memory_terms(rows)
    np.testing.assert_allclose(sum(terms.values()), values.memory_bytes, rtol=1e-9)
    if within.memory_headroom_bytes == 0.0:
        assert (fits == values.fits()).all()
    distinct = {tuple(row) for row in np.stack(canonical(rows), axis=1).tolist()}
    assert len(distinct) == len(rows) == space.total


@settings(max_examples=48, deadline=None)
@given(drawn=models, within=constraints, rule=st.sampled_from(RULES), chunk_rows=st.sampled_from([64, 100_000]))
@pytest.mark.long
def test_pruning_changes_nothing(drawn: Any, within: PlanConstraints, rule: Rule, chunk_rows: int) -> None:
    model = model_of(drawn)
    objective = Objective(
        rule=rule,
        remaining_samples=1e7,
        offers=OFFERS,
    )
    goal = goal_of(objective, Workload(), within)
    space = model.space(within)
    pruned = search_space(space, goal, How(chunk_rows=chunk_rows))
    every = search_space(space, goal, How(prune=False))
    best_alone = search_space(space, goal, How(frontier=False))
    assert told(pruned) == told(every)
    assert told(best_alone)[0] == told(every)[0]
    assert every.evaluated == space.total
    assert max(best_alone.evaluated, pruned.evaluated) <= every.evaluated


def told(found: SearchResult) -> tuple[list[Any], list[Any]]:
    frontier = (
        [] if found.frontier is None else list(map(tuple, np.stack(canonical(found.frontier.rows), axis=1).tolist()))
    )
    winners = found.winners
    return [(name, getattr(winners, name).tolist()) for name in DIMENSIONS if len(winners)], frontier


@settings(max_examples=10, deadline=None)
@given(
    of=transformers,
    workers=st.sampled_from([1, 2, 4, 6, 8]),
    nodes=st.sampled_from([1, 2]),
    batch=st.sampled_from([4, 6, 8]),
)
def test_the_space_is_all_that_is_answered(of: Transformer, workers: int, nodes: int, batch: int) -> None:
    """Against every combination of values, refused one by one: no partition that can run evenly is missing."""
    model = partition_model(of)
    total = workers * nodes
    within = PlanConstraints(
        pools=(PlanPool(device="A100-80GB", nodes=(nodes,), workers_per_node=workers),), global_batches=(batch,)
    )
    space = model.space(within)
    degrees = range(1, total + 1)
    grid = [
        (t, p, c, x, d, b, v, r, s, z)
        for t, p, c, d in product(degrees, repeat=4)
        if t * p * c * d == total and of.layers % p == 0 and of.hidden_size % t == 0
        for x in ((1,) if not of.experts else (1, 2, 4))
        for b in range(1, batch + 1)
        for v in ((1,) if p == 1 else range(1, of.layers // p + 1))
        if d * c % x == 0 and (v == 1 or (of.layers // p % v == 0 and batch % (d * b * p) == 0))
        for r, s, z in product((1, 2, 3), (0, 1), (0, 1, 2, 3) if p == 1 else (0, 1))
        # Of switches that change nothing one setting stands for all.
        if not (s and t == 1) and not (z and d * c == 1)
    ]
    columns = np.array(grid, dtype=np.int64).T
    names = (
        "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "data_parallel",
        "batch_per_worker", "interleave", "recomputation", "sequence_parallel", "zero_stage",
    )  # fmt: skip
    rows = Configurations.of(
        len(grid), nodes=nodes, workers=total, device="A100-80GB", sync_mode=SyncMode.ALLREDUCE, parameter_servers=0,
        global_batch=batch,
    ).replaced(**dict(zip(names, columns)))  # fmt: skip
    answered = model._model.predict(rows, Options()).status != RowStatus.REFUSED
    expected = {tuple(row) for row, kept in zip(grid, answered.tolist()) if kept}
    found = {
        tuple(row)
        for row in np.stack(
            [getattr(space.evaluate(np.arange(len(space.prefixes)))[0], name) for name in names], axis=1
        ).tolist()
    }
    assert found == expected


def test_listed_values_that_nothing_has_are_named() -> None:
    model = partition_model(transformer())
    within = PlanConstraints(
        pools=(PlanPool(device="A100-80GB", nodes=(1,), workers_per_node=8),),
        global_batches=(8, 7),
        tensor_parallel=(3, 4),
        interleave=(1, 5),
        recomputations=(int(Recomputation.FULL),),
    )
    found = {each.constraint: each.message for each in model.space(within).exclusions}
    assert "tensor_parallel 3" in found["tensor_parallel"]
    assert "16 attention heads" in found["tensor_parallel"]
    assert "interleave 5" in found["interleave"]
    assert set(found) == {"tensor_parallel", "interleave"}
    nothing = model.space(PlanConstraints(pools=within.pools, global_batches=(8,), tensor_parallel=(3,)))
    assert nothing.total == 0
    assert {"tensor_parallel", "space"} <= {each.constraint for each in nothing.exclusions}


def test_a_zero_bubble_schedule_leaves_no_interleaving() -> None:
    within = PlanConstraints(
        pools=(PlanPool(device="A100-80GB", nodes=(1,), workers_per_node=8),), global_batches=(8,), interleave=(1, 2)
    )
    space = partition_model(transformer(), framework="megatron-lm zero-bubble").space(within)
    rows, _, _ = space.evaluate(np.arange(len(space.prefixes)))
    assert set(rows.interleave.tolist()) == {1}
    (told,) = space.exclusions
    assert told.message == "interleave 2: must be 1 with the zero-bubble schedule that the framework declares"


def test_a_space_that_is_too_large_is_refused() -> None:
    within = PlanConstraints(
        pools=(PlanPool(device="A100-80GB", nodes=tuple(range(1, 129)), workers_per_node=8),),
        global_batches=tuple(range(64, 64_001, 64)),
    )
    with pytest.raises(NodewiseError) as caught:
        partition_model(transformer()).space(within)
    assert caught.value.reason == Reason.LIMIT_EXCEEDED
    assert "list fewer values" in caught.value.message


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_a_stated_link_is_multiplied(factor: float) -> None:
    model = partition_model(transformer())
    within = PlanConstraints(
        pools=(PlanPool(device="A100-80GB", nodes=(2,), workers_per_node=4, link_bytes_per_s=10e9),),
        global_batches=(8,),
        link_factor=factor,
    )
    assert (model.space(within).prefixes.link_bytes_per_s == factor * 10e9).all()
