"""The split of rows that state none: a plan's, where the model does not fit unsplit."""

from __future__ import annotations

import numpy as np
import pytest
from partitioned_transformers import GPT3, SMALL, KnownContext, profile, rows

from nodewise.plugin import (
    Configurations,
    Options,
    PlanConstraints,
    PlanningModel,
    PlanPool,
    Predictions,
    Profile,
    Query,
    RowStatus,
    as_ints,
)
from nodewise_partitioning.estimator import PartitioningEstimator


def answered(configurations: Configurations, of: Profile) -> Predictions:
    return PartitioningEstimator().fit(of, KnownContext()).predict(configurations, Options())


def quickest_of_plan(of: Profile, nodes: int, batch: int) -> float:
    """By evaluating every configuration of the space."""
    model = PartitioningEstimator().fit(of, KnownContext())
    assert isinstance(model, PlanningModel)
    pool = PlanPool(device="A100-80GB", nodes=(nodes,), workers_per_node=8)
    space = model.space(PlanConstraints(pools=(pool,), global_batches=(batch,)))
    every = space.completed(as_ints(np.arange(len(space.prefixes))))
    names = ("step_s", "memory_upper_bytes", "memory_capacity_bytes")
    step_s, upper, there = model.evaluate(every, names).values()
    return float(step_s[upper <= there].min())


@pytest.mark.parametrize(("nodes", "batch"), [(16, 256), (32, 256), (32, 96)])
def test_what_does_not_fit_unsplit_is_split_as_planned(nodes: int, batch: int) -> None:
    asked = rows(1, "A100-80GB", nodes=nodes, workers=8 * nodes, global_batch=batch)
    found = answered(asked, profile(GPT3))
    assert found.status.tolist() == [RowStatus.ANSWERED]
    np.testing.assert_allclose(found.step_s, quickest_of_plan(profile(GPT3), nodes, batch))
    (told,) = (each.message for each in found.notices if each.reason == "PARTITION_CHOSEN")
    assert f"over {8 * nodes} devices" in told
    assert "tensor parallelism of" in told


def test_what_fits_unsplit_is_not_split() -> None:
    asked = rows(1, "A100-80GB", nodes=2, workers=16, global_batch=256)
    assert "PARTITION_CHOSEN" not in [each.reason for each in answered(asked, profile(SMALL)).notices]


@pytest.mark.parametrize("stated", [{"tensor_parallel": 2}, {"data_parallel": 128}, {"zero_stage": 1}])
def test_a_stated_split_stays(stated: dict[str, int]) -> None:
    asked = rows(1, "A100-80GB", nodes=16, workers=128, global_batch=256, **stated)
    assert "PARTITION_CHOSEN" not in [each.reason for each in answered(asked, profile(GPT3)).notices]


def test_each_row_is_split_by_itself() -> None:
    mixed = rows(3, "A100-80GB", nodes=[16, 16, 32], workers=[128, 128, 256], global_batch=[256, 128, 96])
    together = answered(mixed, profile(GPT3))
    for row in range(3):
        alone = answered(mixed.take(as_ints([row])), profile(GPT3))
        np.testing.assert_array_equal(alone.step_s, together.step_s[row : row + 1])


def test_a_batch_that_replicas_alone_cannot_share_is_answered_where_a_split_can() -> None:
    asked = rows(2, "A100-80GB", nodes=[32, 1], workers=[256, 31], global_batch=96)
    estimator = PartitioningEstimator()
    found = estimator.assess(profile(GPT3), Query(configurations=asked, catalogue=KnownContext().catalogue))
    assert np.isfinite(np.broadcast_to(found.expected_log_error, 2)).tolist() == [True, False]
    assert answered(asked, profile(GPT3)).status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED]


def test_what_fits_with_no_split_is_told_by_the_smallest_lack() -> None:
    found = answered(rows(1, "A100-80GB", nodes=1, workers=8, global_batch=8), profile(GPT3))
    assert found.status.tolist() == [RowStatus.INFEASIBLE_MEMORY]
    told = next(each.message for each in found.notices if each.reason == "NEAREST_TRIED")
    assert "parallelism of" in told
