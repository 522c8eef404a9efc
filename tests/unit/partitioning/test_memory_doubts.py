"""What a job leaves unsaid is in the interval of its memory, which is no reason to call it too large."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from partitioned_transformers import KnownContext, profile, rows

from nodewise.plugin import (
    Configurations,
    Observations,
    Options,
    PlanConstraints,
    PlanPool,
    Predictions,
    Profile,
    Transformer,
    as_floats,
    as_ints,
)
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.memory_doubts import UNKNOWN, Change, memory_reach
from nodewise_partitioning.model import PartitioningModel
from nodewise_partitioning.software import LOG_SPREAD

MODEL = Transformer(
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    sequence_length=4096,
    vocabulary_size=32000,
    gated_feed_forward=True,
    feed_forward_size=14336,
    untied_embeddings=True,
)
TORCH = "pytorch flash-attention"


def job(framework: str | None = TORCH, **facts: Any) -> Profile:
    of = profile(MODEL, framework=framework, precision="bf16")
    return replace(of, workload=replace(of.workload, **facts), digest=f"{framework}{facts}")


def asked(**columns: Any) -> Configurations:
    plain = {"nodes": 1, "workers": 8, "data_parallel": 8, "global_batch": 64, "zero_stage": 3, "batch_per_worker": 1}
    return rows(1, **(plain | {"recomputation": 3} | columns))


def answered(of: Profile, configurations: Configurations) -> Predictions:
    return PartitioningEstimator().fit(of, KnownContext()).predict(configurations, Options())


def bounds(found: Predictions) -> tuple[float, float]:
    return float(found.extra["memory_lower_bytes"][0]), float(found.extra["memory_upper_bytes"][0])


def held(found: Predictions) -> float:
    assert found.memory_bytes is not None
    return float(found.memory_bytes[0])


@pytest.mark.parametrize("masters", [True, False])
def test_the_interval_holds_states_with_and_without_32_bit_weights(masters: bool) -> None:
    lower, upper = bounds(answered(job(), asked()))
    stated = answered(job(master_weights=masters), asked())
    assert lower <= held(stated) <= upper
    assert np.diff(np.log(bounds(stated))) < np.log(upper / lower)


def test_the_interval_holds_a_fused_loss() -> None:
    lower, upper = bounds(answered(job(), asked(batch_per_worker=4)))
    assert lower <= held(answered(job(fused_loss=True), asked(batch_per_worker=4))) <= upper


@pytest.mark.parametrize("way", [1, 2, 3])
def test_the_interval_holds_each_way_to_recompute(way: int) -> None:
    lower, upper = bounds(answered(job(), asked(recomputation=0)))
    assert lower <= held(answered(job(), asked(recomputation=way))) <= upper


@pytest.mark.parametrize("micro_batch", [1, 2, 4, 8])
def test_the_interval_holds_micro_batches_around_the_quickest(micro_batch: int) -> None:
    lower, upper = bounds(answered(job(), asked(batch_per_worker=0)))
    stated = answered(job(), asked(batch_per_worker=micro_batch))
    assert stated.all_answered
    assert lower <= held(stated) <= upper


@pytest.mark.parametrize("columns", [{"recomputation": 0}, {"batch_per_worker": 0}])
def test_what_is_unsaid_calls_nothing_too_large(columns: dict[str, int]) -> None:
    """The bound that must fit is that of what is taken: other values count as far as there is room."""
    found = answered(job(), asked(**columns))
    assert "MEMORY_TIGHT" not in {each.reason for each in found.notices}
    assert held(found) < bounds(found)[1] <= 80.0 * 2.0**30


def test_runs_whose_bytes_are_known_settle_it() -> None:
    ran = replace(Observations.of(asked(), as_floats([0.0])), measured_memory_bytes=as_floats([30e9]))
    lower, upper = bounds(answered(replace(job(), memory_runs=ran), asked(batch_per_worker=2)))
    assert upper / lower < np.divide(*bounds(answered(job(), asked(batch_per_worker=2)))[::-1])


def test_a_framework_that_is_not_known_may_hold_otherwise() -> None:
    known, unknown = (bounds(answered(job(framework=name), asked())) for name in ("megatron-core", "oneflow"))
    assert unknown[1] / unknown[0] > known[1] / known[0] * np.exp(UNKNOWN)


def test_the_answer_names_the_fact_that_would_narrow_memory_most() -> None:
    found = {each.reason: each.message for each in answered(job(), asked()).notices}["MEMORY_UNSAID"]
    assert "master_weights (" in found
    assert found.endswith("Stating master_weights would narrow it most")
    stated = answered(job(master_weights=True, fused_loss=False), asked())
    assert "MEMORY_UNSAID" not in {each.reason for each in stated.notices}


def test_bounds_reach_to_values_in_their_direction_alone() -> None:
    spread = np.full(2, LOG_SPREAD)
    own = 1.645 * LOG_SPREAD
    found = memory_reach({"fact": [Change(0.5, as_ints([1]), np.array([-0.4]))]}, spread, 0.0)
    assert found.down[0] == found.up[0] == found.up[1] == pytest.approx(own)
    assert found.down[1] == pytest.approx(0.4 + 1.2816 * LOG_SPREAD, rel=1e-3)


def test_facts_add_up_as_independent_ones_and_rare_values_count_for_nothing() -> None:
    change = Change(0.5, as_ints([0]), np.array([0.3]))
    spread = np.full(1, LOG_SPREAD)
    one, two = (memory_reach({fact: [change] for fact in facts}, spread, 0.0).up[0] for facts in ("a", "ab"))
    own = 1.645 * LOG_SPREAD
    assert two**2 - own**2 == pytest.approx(2.0 * (one**2 - own**2))
    assert memory_reach({"a": [replace(change, weight=0.05)]}, spread, 0.0).up[0] == pytest.approx(own)


@pytest.mark.parametrize("framework", ["megatron-core flash-attention", TORCH])
def test_stated_16_bit_states_bound_a_space_as_they_bound_its_rows(framework: str) -> None:
    model = PartitioningEstimator().fit(job(framework, master_weights=False), KnownContext())
    assert isinstance(model, PartitioningModel)
    pool = PlanPool(device="A100-80GB", nodes=(1,), workers_per_node=8)
    space = model.space(PlanConstraints(pools=(pool,), global_batches=(64,)))
    prefixes = as_ints(np.arange(len(space.prefixes)))
    found = model.evaluate(space.completed(prefixes), ("memory_bytes",))["memory_bytes"]
    bounds_of_rows = np.repeat(space.lower_bound()["memory_bytes"], space.sizes)
    assert (bounds_of_rows <= found).all()
