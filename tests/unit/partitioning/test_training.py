"""How a model is trained: what is frozen, offloaded, masked, reduced, sharded and recomputed, by time and memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from partitioned_transformers import GPT3, SMALL, KnownContext, profile, rows

from nodewise.plugin import Configurations, Floats, Options, Predictions, Recomputation, RowStatus, Transformer
from nodewise_partitioning.estimator import PartitioningEstimator

ONE_NODE: dict[str, Any] = {"nodes": 1, "workers": 8, "batch_per_worker": 4, "recomputation": int(Recomputation.NONE)}
TWO_NODES = ONE_NODE | {"nodes": 2, "workers": 16}
FULL = int(Recomputation.FULL)
CORE, FSDP = "megatron-core flash-attention", "pytorch flash-attention"


def answered(asked: Configurations, framework: str = CORE, of: Transformer = SMALL, **facts: Any) -> Predictions:
    job = profile(of, framework=framework)
    job = replace(job, workload=replace(job.workload, **facts))
    return PartitioningEstimator().fit(job, KnownContext()).predict(asked, Options())


def term(found: Predictions, name: str) -> Floats:
    return found.extra[f"memory_{name}_bytes"]


def step_s(found: Predictions) -> float:
    assert found.status.tolist() == [RowStatus.ANSWERED]
    return float(found.step_s[0])


def test_frozen_weights_have_no_gradients_states_or_exchange() -> None:
    asked = rows(1, **TWO_NODES, zero_stage=1)
    whole, adapters = (answered(asked, frozen_weights_share=share) for share in (0.0, 0.99))
    for name in ("gradients", "optimizer"):
        np.testing.assert_allclose(term(adapters, name), 0.01 * term(whole, name), rtol=1e-12)
    np.testing.assert_array_equal(term(adapters, "weights"), term(whole, "weights"))
    assert 2.0 / 3.0 < adapters.breakdown_s["compute"][0] / whole.breakdown_s["compute"][0] < 0.85
    np.testing.assert_allclose(adapters.breakdown_s["optimizer"], 0.01 * whole.breakdown_s["optimizer"])
    assert adapters.breakdown_s["data_parallel"][0] < 0.5 * whole.breakdown_s["data_parallel"][0]


def test_frozen_weights_of_four_bits_are_small_and_unpacked_before_each_use() -> None:
    asked = rows(1, **ONE_NODE)
    plain, packed = (answered(asked, frozen_weights_share=1.0, frozen_weight_bits=bits) for bits in (None, 4.0))
    # Half a byte, and 32 bits for 64 weights; both ends' matrix and the positions stay as they were.
    ends = 2.0 * SMALL.hidden_size * (SMALL.vocabulary_size + SMALL.sequence_length)
    layers = term(plain, "weights") - ends
    np.testing.assert_allclose(term(packed, "weights"), ends + layers * (0.5 + 4.0 / 64.0) / 2.0, rtol=1e-5)
    assert 1.0 < step_s(packed) / step_s(plain) < 1.3


def test_dropout_keeps_masks() -> None:
    asked = rows(1, **ONE_NODE)
    silent, masked = (term(answered(asked, dropout=said), "activations")[0] for said in (False, True))
    tokens = 4 * SMALL.sequence_length
    assert masked - silent == pytest.approx(SMALL.layers * tokens * 2.0 * SMALL.hidden_size)
    assert term(answered(asked), "activations")[0] == silent
    assert term(answered(asked, "megatron-lm"), "activations")[0] > masked


def test_states_on_the_host_leave_the_device_and_take_its_link() -> None:
    asked = rows(1, **ONE_NODE, zero_stage=1)
    here, states, weights = (answered(asked, offload=what) for what in ("none", "optimizer", "parameters"))
    assert term(here, "optimizer")[0] > 0.0 == term(states, "optimizer")[0]
    np.testing.assert_array_equal(term(states, "weights"), term(here, "weights"))
    assert term(weights, "weights")[0] == term(weights, "gradients")[0] == 0.0
    parameters = term(here, "optimizer")[0] / 12.0
    least_s = 4.0 * parameters / 31.5e9
    assert states.breakdown_s["optimizer"][0] > max(least_s, 5.0 * here.breakdown_s["optimizer"][0])
    assert step_s(here) < step_s(states) < step_s(weights)


@pytest.mark.parametrize(("framework", "stage", "held"), [("deepspeed", 1, 1), ("deepspeed", 3, 0), (CORE, 3, 1)])
def test_gradients_leave_the_device_with_the_states_under_deepspeed_alone(
    framework: str, stage: int, held: int
) -> None:
    asked = rows(1, **ONE_NODE, zero_stage=stage)
    assert (term(answered(asked, framework, offload="optimizer"), "gradients")[0] > 0.0) == held


def test_sixteen_bit_reductions_move_fewer_bytes() -> None:
    # Two micro-batches: gradients of one are gone by the moment of most memory.
    asked = rows(1, **TWO_NODES, zero_stage=3, accumulation=2).replaced(precisions=("bf16",))
    for framework in (CORE, FSDP):
        wide, narrow = (answered(asked, framework, reduction_precision=name) for name in ("fp32", "bf16"))
        assert step_s(narrow) < step_s(wide)
        held = term(narrow, "gradients")[0] / term(wide, "gradients")[0]
        assert held == pytest.approx(0.5 if framework == CORE else 1.0)


def test_hybrid_sharding_splits_over_its_group_and_keeps_gathers_inside() -> None:
    asked = rows(1, **TWO_NODES, zero_stage=3).replaced(link_bytes_per_s=np.array([10e9]))
    every, node = (answered(asked, FSDP, sharding_devices=size) for size in (None, 8))
    for name in ("weights", "gradients", "optimizer"):
        np.testing.assert_allclose(term(node, name), 2.0 * term(every, name))
    assert node.breakdown_s["data_parallel"][0] < every.breakdown_s["data_parallel"][0]
    whole = answered(asked, FSDP, sharding_devices=16)
    np.testing.assert_array_equal(whole.step_s, every.step_s)


def test_partial_recomputation_lies_between_none_and_full_in_proportion() -> None:
    none, full = (rows(1, **ONE_NODE | {"recomputation": way}) for way in (int(Recomputation.NONE), FULL))
    half = answered(full, recomputed_share=0.5)
    ends = answered(none), answered(full)
    assert half.breakdown_s["compute"][0] == pytest.approx(np.mean([each.breakdown_s["compute"][0] for each in ends]))
    kept = [term(each, "activations")[0] for each in (*ends, half)]
    assert kept[1] < kept[2] < kept[0]
    assert kept[2] == pytest.approx((kept[0] + kept[1]) / 2.0, rel=0.05)


@pytest.mark.parametrize(("name", "narrow"), [("fp8", 1.0), ("nvfp4", 0.5625)])
def test_inputs_of_narrow_products_are_kept_narrow(name: str, narrow: float) -> None:
    asked = rows(2, "B200", nodes=8, workers=64, batch_per_worker=1, tensor_parallel=8, pipeline_parallel=8)
    asked = asked.replaced(recomputation=np.array([1, 1]), precisions=("bf16", name), precision_index=np.array([0, 1]))
    found = answered(asked, of=GPT3)
    kept = term(found, "activations")
    wide = 8.0 + (8.0 + 16.0) / 8.0
    assert kept[1] / kept[0] == pytest.approx((4.0 + 2.0 * narrow + (8.0 + narrow + 8.0 + 4.0 * narrow) / 8.0) / wide)
    assert found.step_s[1] < found.step_s[0]


def test_what_is_taken_of_states_and_losses_is_said() -> None:
    """One device that recomputes everything; three copies of logits that do not fit; neither under Megatron."""
    alone = rows(1, nodes=1, workers=1, batch_per_worker=1, recomputation=FULL)
    many = rows(1, **TWO_NODES | {"batch_per_worker": 128, "recomputation": FULL}, zero_stage=3)
    for asked, reason in ((alone, "STATES_ASSUMED"), (many, "LOSS_ASSUMED")):
        assert reason in {notice.reason for notice in answered(asked, FSDP).notices}
        assert reason not in {notice.reason for notice in answered(asked, CORE).notices}
