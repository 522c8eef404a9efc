"""What the estimator answers, refuses and says beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from partitioned_transformers import CATALOGUE, FABRIC, GPT3, SMALL, KnownContext, profile, rows

from nodewise.plugin import (
    Catalogue,
    Configurations,
    Network,
    NodewiseError,
    Options,
    Placement,
    PlanningModel,
    Predictions,
    Profile,
    Query,
    Reason,
    RowStatus,
    SyncMode,
    constant_ints,
)
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.hardware import Device, device_of, node_link_of
from nodewise_partitioning.model import COLUMNS, PartitioningModel
from nodewise_partitioning.software import LOG_SPREAD
from nodewise_partitioning.step import PARTS

ONE_NODE = {"nodes": 1, "workers": 8, "global_batch": 32}


def model(of: Profile | None = None, catalogue: Catalogue | None = None) -> PartitioningModel:
    context = KnownContext() if catalogue is None else KnownContext(catalogue=catalogue)
    found = PartitioningEstimator().fit(of or profile(), context)
    assert isinstance(found, PartitioningModel)
    return found


def answered(configurations: Configurations, of: Profile | None = None) -> Predictions:
    return model(of).predict(configurations, Options())


def test_it_is_a_planning_model() -> None:
    assert isinstance(model(), PlanningModel)


def test_parts_add_up_and_the_largest_is_the_bottleneck() -> None:
    found = answered(rows(3, **ONE_NODE, tensor_parallel=[1, 2, 8], batch_per_worker=4))
    assert found.all_answered
    np.testing.assert_allclose(sum(found.breakdown_s.values()), found.step_s, rtol=1e-12)
    assert found.bottlenecks == PARTS
    assert PARTS[found.bottleneck_index[0]] == "compute"
    assert found.memory_bytes is not None
    terms = [found.extra[name] for name in model().memory_terms]
    np.testing.assert_allclose(sum(terms), found.memory_bytes, rtol=1e-12)
    assert (found.extra["memory_lower_bytes"] < found.memory_bytes).all()
    assert (found.extra["memory_upper_bytes"] > found.memory_bytes).all()


def test_evaluate_is_predict() -> None:
    asked = rows(2, **ONE_NODE, tensor_parallel=[2, 4], pipeline_parallel=[2, 1], batch_per_worker=2)
    found, whole = model().evaluate(asked, COLUMNS), answered(asked)
    assert set(found) == set(COLUMNS)
    np.testing.assert_array_equal(found["step_s"], whole.step_s)
    np.testing.assert_array_equal(found["memory_bytes"], whole.memory_bytes)
    for part in PARTS:
        np.testing.assert_array_equal(found[part], whole.breakdown_s[part])
    alone = model().evaluate(asked, ("memory_bytes",))
    assert set(alone) == {"memory_bytes"}
    np.testing.assert_array_equal(alone["memory_bytes"], whole.memory_bytes)


def test_evaluate_names_what_it_cannot_tell() -> None:
    with pytest.raises(ValueError, match="column 'price' is not known"):
        model().evaluate(rows(1, **ONE_NODE, batch_per_worker=1), ("price",))


def test_many_rows_are_computed_by_kinds_with_the_same_result() -> None:
    degrees = np.tile([1, 2, 4, 8], 64)
    asked = rows(256, **ONE_NODE, tensor_parallel=degrees, batch_per_worker=np.repeat([1, 2, 4, 4], 64))
    found = answered(asked)
    alone = np.concatenate([answered(asked.take(np.array([row]))).step_s for row in range(0, 256, 17)])
    np.testing.assert_allclose(found.step_s[::17], alone, rtol=1e-12)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "product": ({"workers": 8, "tensor_parallel": 3}, "must be the number of workers"),
    "heads": ({"workers": 32, "nodes": 4, "tensor_parallel": 32}, "divide the 16 attention heads"),
    "layers": ({"workers": 32, "nodes": 4, "pipeline_parallel": 32}, "at most the 24 layers"),
    "interleaved alone": ({"workers": 1, "interleave": 2}, "needs pipeline_parallel above 1"),
    "interleaved layers": (
        {"workers": 4, "pipeline_parallel": 4, "interleave": 7, "global_batch": 8},
        "at most the 24 layers",
    ),
    "context": ({"workers": 3, "context_parallel": 3}, "must divide the sequence of 1024 tokens"),
    "experts": ({"workers": 8, "expert_parallel": 8}, "must divide the number of experts"),
    "batch": ({"workers": 8, "data_parallel": 8, "global_batch": 12}, "must divide the global batch"),
    "workers": ({"workers": 0}, "workers must be at least 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_partition_is_refused_with_the_reason(case: str) -> None:
    columns, reason = REFUSED[case]
    found = answered(rows(2, **{"nodes": 1, "batch_per_worker": 1, **columns}))
    assert (found.status == RowStatus.REFUSED).all()
    assert found.refusals[0].rows == (0, 1)
    assert reason in found.refusals[0].refusal.message
    assert not found.step_s.any()


ANSWERED: dict[str, dict[str, Any]] = {
    "stages that do not divide": {"workers": 7, "pipeline_parallel": 7, "global_batch": 14},
    "more stages than layers": {"workers": 26, "pipeline_parallel": 26, "global_batch": 26},
    "chunks that do not divide": {"workers": 4, "pipeline_parallel": 4, "interleave": 5, "global_batch": 8},
    "a remainder of micro-batches": {"workers": 4, "pipeline_parallel": 4, "interleave": 2, "global_batch": 6},
    "fewer micro-batches than stages": {"workers": 4, "pipeline_parallel": 4, "interleave": 2, "global_batch": 2},
    "parameters split in stages": {"workers": 8, "pipeline_parallel": 2, "zero_stage": 3, "global_batch": 8},
    "gradients split in stages": {"workers": 8, "pipeline_parallel": 2, "zero_stage": 2, "global_batch": 8},
}


@pytest.mark.parametrize("case", ANSWERED)
def test_what_runs_is_answered(case: str) -> None:
    found = answered(rows(1, **{"nodes": 1, "batch_per_worker": 1, **ANSWERED[case]}))
    assert found.status.tolist() == [RowStatus.ANSWERED], found.refusals


def test_expert_parallelism_may_take_tensor_ranks_where_replicas_are_too_few() -> None:
    mixture = profile(replace(SMALL, experts=8, experts_per_token=2))
    columns = {"nodes": 1, "workers": 8, "tensor_parallel": [1, 4, 4], "expert_parallel": [8, 8, 16]}
    found = answered(rows(3, batch_per_worker=1, global_batch=8, **columns), mixture)
    assert found.status.tolist() == [RowStatus.ANSWERED, RowStatus.ANSWERED, RowStatus.REFUSED]
    assert "or that x tensor_parallel" in found.refusals[0].refusal.message


def test_hybrid_sharding_splits_the_stages_of_a_pipeline() -> None:
    columns = {"nodes": 4, "workers": 32, "pipeline_parallel": 2, "zero_stage": 3, "batch_per_worker": 1}
    plain = profile()
    whole, hybrid = (
        answered(rows(1, global_batch=64, **columns), replace(plain, workload=replace(plain.workload, **facts)))
        for facts in ({}, {"sharding_devices": 4})
    )
    assert whole.status.tolist() == hybrid.status.tolist() == [RowStatus.ANSWERED]
    assert hybrid.extra["memory_optimizer_bytes"][0] == pytest.approx(4.0 * whole.extra["memory_optimizer_bytes"][0])
    assert hybrid.breakdown_s["data_parallel"][0] < whole.breakdown_s["data_parallel"][0]


def test_other_ways_to_synchronise_are_refused() -> None:
    asked = rows(1, **ONE_NODE, batch_per_worker=1).replaced(sync_mode=constant_ints(1, int(SyncMode.ASYNC)))
    assert "must be ALLREDUCE" in answered(asked).refusals[0].refusal.message


def test_a_batch_that_nobody_knows_is_missing() -> None:
    refusal = answered(rows(1, nodes=1, workers=8)).refusals[0].refusal
    assert refusal.reason == Reason.EVIDENCE_MISSING
    assert refusal.missing_fields == ("batch_per_worker", "global_batch")


def test_a_batch_is_a_replicas_share_where_only_the_whole_is_known() -> None:
    alone = answered(rows(1, **ONE_NODE)).step_s
    np.testing.assert_array_equal(alone, answered(rows(1, **ONE_NODE, batch_per_worker=4)).step_s)
    accumulated = rows(1, nodes=1, workers=8, batch_per_worker=2, accumulation=2)
    stated = rows(1, nodes=1, workers=8, batch_per_worker=2, global_batch=32)
    np.testing.assert_array_equal(answered(accumulated).step_s, answered(stated).step_s)


def test_rows_of_an_unknown_device_or_format_are_refused_beside_answered_ones() -> None:
    parts = [
        rows(1, **ONE_NODE, batch_per_worker=1),
        rows(1, device="Abacus", **ONE_NODE, batch_per_worker=1),
        rows(1, **ONE_NODE, batch_per_worker=1).replaced(precisions=("int4",)),
        rows(1, device="V100", **ONE_NODE, batch_per_worker=1).replaced(precisions=("bf16",)),
        rows(1, device="V100", **ONE_NODE, batch_per_worker=1),
    ]
    found = answered(Configurations.concatenated(parts))
    assert found.status.tolist() == [1, 2, 2, 2, 1]
    messages = [refusal.refusal.message for refusal in found.refusals]
    assert "knows no device 'Abacus'" in messages[0]
    assert "precision must be one of" in messages[1]
    assert "lacks bf16_flops_per_s" in messages[2]
    assert found.log_spread[4] > found.log_spread[0] > 0.0


def test_what_does_not_fit_says_by_how_many_bytes_and_why() -> None:
    asked = rows(2, nodes=2, workers=16, tensor_parallel=[1, 8], batch_per_worker=1, global_batch=16)
    found = answered(asked, profile(GPT3))
    assert (found.status == RowStatus.INFEASIBLE_MEMORY).all()
    assert found.memory_bytes is not None
    assert found.excess_memory_bytes is not None
    np.testing.assert_allclose(found.excess_memory_bytes, found.memory_bytes - 80e9)
    assert not found.step_s.any()
    assert (found.bottleneck_index == -1).all()
    # Told of the nearest to fitting: with a stage of ZeRO over the 16 replicas, which nothing says against.
    assert found.extra["memory_optimizer_bytes"][0] > 1e11
    assert "ZeRO stage" in next(notice.message for notice in found.notices if notice.reason == "NEAREST_TRIED")
    assert not found.extra["memory_cache_bytes"].any()


def test_tight_memory_and_ambiguous_boards_are_told() -> None:
    # 24 layers of 3072: 46 GB of states on one device, 1.7 GB of activations and logits for every three samples.
    larger = profile(
        SMALL.__class__(layers=24, hidden_size=3072, attention_heads=16, sequence_length=1024, vocabulary_size=51200)
    )
    batches = np.array([1, 8, 32, 56, 64])
    asked = rows(5, device="A100", nodes=1, workers=1, batch_per_worker=batches)
    found = answered(asked, larger)
    notices = {notice.reason: notice.rows for notice in found.notices}
    assert "DEVICE_MEMORY_ASSUMED" in notices
    needed = np.asarray(found.memory_bytes) - found.extra["memory_cache_bytes"]
    tight = np.flatnonzero((np.exp(1.645 * LOG_SPREAD) * needed > 80e9) & (needed <= 80e9)).tolist()
    assert tight
    assert list(notices.get("MEMORY_TIGHT", ())) == tight


def test_a_link_that_nobody_states_is_assumed_and_told() -> None:
    asked = rows(2, nodes=[1, 2], workers=[8, 16], batch_per_worker=1)
    told = answered(asked, profile(network=Network()))
    assert [notice.rows for notice in told.notices if notice.reason == "LINK_ASSUMED"] == [(1,)]
    assert "LINK_ASSUMED" not in {notice.reason for notice in answered(asked, profile(network=FABRIC)).notices}


@pytest.mark.parametrize(
    ("device", "per_node", "told"), [("A100-80GB", 8, "100 GB/s"), ("T4", 4, "6.25 GB/s"), ("B300", 8, "800 GB/s")]
)
def test_an_assumed_link_is_that_of_the_devices_machines(device: str, per_node: int, told: str) -> None:
    asked = rows(1, device=device, nodes=2, workers=2 * per_node, batch_per_worker=1)
    found = answered(asked, profile(network=Network()))
    (notice,) = [notice for notice in found.notices if notice.reason == "LINK_ASSUMED"]
    assert told in notice.message
    assert device in notice.message
    stated = asked.replaced(link_bytes_per_s=np.array([node_link_of(CATALOGUE, device)[0]]))
    assert found.step_s[0] == answered(stated, profile(network=Network())).step_s[0]


def test_nothing_is_assumed_of_adapters_that_no_row_needs() -> None:
    asked = rows(2, device="GB200", nodes=[16, 32], workers=[64, 128], batch_per_worker=1)
    found = answered(asked, profile(network=Network()))
    assert [notice.rows for notice in found.notices if notice.reason == "LINK_ASSUMED"] == [(1,)]


def test_a_rare_board_is_not_what_a_name_without_a_size_means() -> None:
    boards = {name: device_of(CATALOGUE, name, "bf16") for name in ("A100", "H100", "H100-96GB")}
    memory = {name: board.memory_bytes for name, board in boards.items() if isinstance(board, Device)}
    assert memory == {"A100": 80e9, "H100": 80e9, "H100-96GB": 96e9}


def test_a_stated_link_counts_before_the_jobs_own() -> None:
    asked = rows(2, nodes=2, workers=16, batch_per_worker=1)
    slow = asked.replaced(link_bytes_per_s=np.array([0.0, 1e9]))
    found = answered(slow).breakdown_s["data_parallel"]
    assert found[1] > 10.0 * found[0]


def test_an_explicit_placement_counts() -> None:
    packed = rows(1, nodes=2, workers=8, batch_per_worker=1)
    uneven = packed.replaced(placement=Placement.of([(7, 1)]))
    assert answered(uneven).breakdown_s["data_parallel"] != answered(packed).breakdown_s["data_parallel"]


def test_a_zero_bubble_schedule_is_declared_and_not_interleaved() -> None:
    asked = rows(2, workers=4, pipeline_parallel=4, global_batch=32, batch_per_worker=1, interleave=[1, 2])
    plain = answered(asked, profile(framework="megatron-core"))
    filled = answered(asked, profile(framework="megatron-core zero-bubble"))
    assert filled.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED]
    assert "zero-bubble schedule" in filled.refusals[0].refusal.message
    assert 0.8 * plain.step_s[0] < filled.step_s[0] < plain.step_s[0]
    assert filled.memory_bytes[0] == plain.memory_bytes[0]


def test_an_unknown_framework_is_told_and_less_sure() -> None:
    asked = rows(1, **ONE_NODE, batch_per_worker=1)
    found = answered(asked, profile(framework="home-made"))
    assert [notice.reason for notice in found.notices][:2] == ["FRAMEWORK_ASSUMED", "STACK_ASSUMED"]
    assert found.log_spread[0] > answered(asked).log_spread[0]


def test_more_devices_than_were_ever_measured_extrapolate() -> None:
    asked = rows(2, nodes=[64, 256], workers=[512, 2048], tensor_parallel=8, pipeline_parallel=16, batch_per_worker=1)
    assert answered(asked, profile(GPT3)).extrapolation.tolist() == [1.0, 4.0]


def test_assessing_says_what_it_rests_on() -> None:
    estimator = PartitioningEstimator()
    asked = rows(1, **ONE_NODE, batch_per_worker=1)
    found = estimator.assess(profile(), Query(configurations=asked, catalogue=CATALOGUE))
    assert found.refusal is None
    assert found.evidence == ("dimensions of a transformer (24 layers of 2048)",)
    measured = estimator.assess(profile(runs=(asked, np.ones(1))), Query(configurations=asked, catalogue=CATALOGUE))
    assert measured.evidence[1] == "1 measured run"
    assert measured.strength > found.strength
    unknown = estimator.assess(profile(None), Query(configurations=asked, catalogue=CATALOGUE))
    assert unknown.refusal is not None
    assert unknown.refusal.missing_fields == ("transformer", "layers")
    impossible = estimator.assess(
        profile(), Query(configurations=rows(1, workers=7, tensor_parallel=2), catalogue=CATALOGUE)
    )
    assert impossible.refusal is not None
    unknown_device = estimator.assess(profile(), Query(configurations=asked))
    assert unknown_device.refusal is not None
    assert unknown_device.refusal.missing_fields == ("device",)
    nothing = estimator.assess(profile(), Query(configurations=rows(0), catalogue=CATALOGUE))
    assert nothing.refusal is not None
    with pytest.raises(NodewiseError, match="dimensions"):
        estimator.fit(profile(None), KnownContext())


def test_no_rows_are_no_trouble() -> None:
    assert len(answered(rows(0))) == 0


def test_contexts_share_a_sample_where_there_are_fewer_samples_than_devices() -> None:
    stated = rows(2, nodes=1, workers=8, context_parallel=4, batch_per_worker=[1, 0], global_batch=2)
    found = answered(stated)
    assert not found.refusals
    assert found.step_s[0] == found.step_s[1] > 0.0
    whole = answered(rows(1, nodes=1, workers=2, batch_per_worker=1, global_batch=2))
    assert found.breakdown_s["compute"][0] < whole.breakdown_s["compute"][0]
    (refused,) = answered(rows(1, nodes=1, workers=8, data_parallel=8, global_batch=2)).refusals
    assert "must divide the global batch" in refused.refusal.message
