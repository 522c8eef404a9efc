"""What a job does not say of its software: the stack is of the device's and the model's time, and told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import GPT3, SMALL, KnownContext, profile, rows

from nodewise.plugin import Configurations, Options, Predictions, Profile, Recomputation, Transformer
from nodewise_partitioning.estimator import PartitioningEstimator

LLAMA = Transformer(
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    key_value_heads=8,
    sequence_length=8192,
    vocabulary_size=128256,
    feed_forward_size=14336,
    gated_feed_forward=True,
)
MODERN = "megatron-core flash-attention"
ONE_NODE = {"nodes": 1, "workers": 8, "batch_per_worker": 1}


def answered(asked: Configurations, of: Profile) -> Predictions:
    return PartitioningEstimator().fit(of, KnownContext()).predict(asked, Options())


def notices(found: Predictions) -> dict[str, str]:
    return {notice.reason: notice.message for notice in found.notices}


@pytest.mark.parametrize(
    ("device", "transformer", "why"),
    [
        ("H100", SMALL, "H100 was announced in 2022"),
        ("A100-80GB", LLAMA, "its rows have 8192 tokens"),
        ("B200", LLAMA, "B200 was announced in 2024"),
    ],
)
def test_a_modern_job_runs_the_stack_of_its_time(device: str, transformer: Transformer, why: str) -> None:
    asked = rows(1, device, **ONE_NODE, tensor_parallel=4, recomputation=int(Recomputation.NONE))
    unsaid = answered(asked, profile(transformer))
    assert notices(unsaid)["STACK_ASSUMED"] == (f"the software stack is not stated: {MODERN!r} is assumed, as {why}")
    said = answered(asked, profile(transformer, framework=MODERN))
    assert "STACK_ASSUMED" not in notices(said)
    np.testing.assert_array_equal(unsaid.step_s, said.step_s)
    np.testing.assert_array_equal(unsaid.memory_bytes, said.memory_bytes)


def test_a_job_that_nothing_tells_modern_runs_the_stack_of_2021_with_all_recomputed() -> None:
    unsaid = answered(rows(1, **ONE_NODE), profile())
    full = rows(1, **ONE_NODE, recomputation=int(Recomputation.FULL))
    said = answered(full, profile(framework="megatron"))
    np.testing.assert_array_equal(unsaid.step_s, said.step_s)
    assert "'megatron' is assumed" in notices(unsaid)["STACK_ASSUMED"]
    assert "full recomputation is assumed" in notices(unsaid)["RECOMPUTATION_ASSUMED"]
    assert not {"STACK_ASSUMED", "RECOMPUTATION_ASSUMED"} & set(notices(said))


def test_a_known_framework_leaves_its_attention_kernel_to_the_device_unless_it_says_it() -> None:
    asked = rows(1, "H100", **ONE_NODE, recomputation=int(Recomputation.FULL))
    names = ("megatron-lm", "megatron-lm flash-attention", "megatron-lm no-flash-attention")
    open_name, flash, stored = (answered(asked, profile(framework=name)) for name in names)
    np.testing.assert_array_equal(open_name.step_s, flash.step_s)
    assert "attention kernel is not stated" in notices(open_name)["STACK_ASSUMED"]
    assert np.asarray(stored.memory_bytes) > np.asarray(flash.memory_bytes)
    assert "STACK_ASSUMED" not in notices(stored)


def test_rows_that_say_nothing_and_do_not_fit_are_split_as_little_as_fits() -> None:
    large = replace(LLAMA, layers=80, hidden_size=8192, attention_heads=64, feed_forward_size=28672)
    asked = rows(2, "H100", nodes=8, workers=64, batch_per_worker=1, tensor_parallel=[1, 8])
    found = answered(asked, profile(large))
    split = asked.replaced(zero_stage=np.array([3, 1]), sequence_parallel=np.array([0, 1]))
    np.testing.assert_array_equal(found.step_s, answered(split, profile(large)).step_s)
    assert "do not fit" in notices(found)["SPLIT_ASSUMED"]
    said = answered(asked, profile(large, framework=MODERN))
    assert "SPLIT_ASSUMED" not in notices(said)
    assert np.all(np.asarray(said.memory_bytes) > np.asarray(found.memory_bytes))


def named(found: Predictions) -> str:
    return notices(found)["STACK_ASSUMED"].split("'")[1]


@pytest.mark.parametrize(
    ("tensor", "framework", "stack"),
    [
        (4, None, "megatron"),
        (1, None, "pytorch flash-attention"),
        (4, "ownframework", "megatron-core flash-attention ownframework"),
    ],
)
def test_bf16_makes_modern_what_2021_did_not_train_in_it(tensor: int, framework: str | None, stack: str) -> None:
    asked = rows(1, **ONE_NODE, tensor_parallel=tensor).replaced(precisions=("bf16",))
    assert named(answered(asked, profile(framework=framework))) == stack


def test_a_stage_of_zero_that_room_asks_for_is_deepspeeds_and_brings_no_sequence_parallelism() -> None:
    blank = rows(2, nodes=8, workers=64, batch_per_worker=1, tensor_parallel=4, pipeline_parallel=[4, 2])
    small = replace(GPT3, layers=40, hidden_size=8192, attention_heads=64)
    found = answered(blank, profile(small))
    needed = blank.replaced(zero_stage=np.array([0, 1]), recomputation=np.full(2, int(Recomputation.FULL)))
    without, split = (answered(needed, profile(small, framework=name)) for name in ("megatron", "megatron-deepspeed"))
    np.testing.assert_array_equal(found.step_s, [without.step_s[0], split.step_s[1]])
    told = {notice.message: notice.rows for notice in found.notices if notice.reason == "SPLIT_ASSUMED"}
    assert list(told.values()) == [(1,)]
    stacks = [notice.message for notice in found.notices if notice.reason == "STACK_ASSUMED"]
    assert [text.split("'")[1] for text in stacks] == ["megatron", "megatron-deepspeed"]
    everything = blank.replaced(recomputation=np.full(2, int(Recomputation.FULL)))
    assert "SPLIT_ASSUMED" not in notices(answered(everything, profile(small)))


def test_recomputation_is_the_least_that_fits_with_flash_attention() -> None:
    asked = rows(4, "H100", nodes=1, workers=8, tensor_parallel=8, batch_per_worker=[1, 4, 16, 64])
    unsaid = answered(asked, profile(LLAMA))
    said = {
        way: answered(asked.replaced(recomputation=np.full(4, int(way))), profile(LLAMA))
        for way in (Recomputation.NONE, Recomputation.FULL)
    }
    needed = np.asarray(said[Recomputation.NONE].memory_bytes) - said[Recomputation.NONE].extra["memory_cache_bytes"]
    fits = needed <= 80e9
    assert 0 < fits.sum() < 4
    expected = np.where(fits, said[Recomputation.NONE].step_s, said[Recomputation.FULL].step_s)
    np.testing.assert_array_equal(unsaid.step_s, expected)
    told = [notice.rows for notice in unsaid.notices if notice.reason == "RECOMPUTATION_ASSUMED"]
    assert told == [tuple(np.flatnonzero(fits).tolist()), tuple(np.flatnonzero(~fits).tolist())]


def test_a_loss_in_16_bits_is_tried_before_recomputation() -> None:
    """18 samples a device: 32-bit logits leave no room, 16-bit ones leave room for all activations."""
    asked = rows(1, "H100", nodes=1, workers=8, batch_per_worker=18, zero_stage=3)
    small = replace(SMALL, sequence_length=2048, vocabulary_size=50_368)
    found = answered(asked, profile(small, framework="pytorch flash-attention", precision="bf16"))
    assert "none is assumed" in notices(found)["RECOMPUTATION_ASSUMED"]
    assert "16-bit" in notices(found)["LOSS_ASSUMED"]


def test_an_unknown_name_in_fp8_is_none_of_megatrons_where_parameters_are_gathered() -> None:
    asked = rows(1, "H100", **ONE_NODE, zero_stage=3, recomputation=int(Recomputation.NONE))
    found = answered(asked, profile(framework="paxml", precision="fp8"))
    assert "'pytorch flash-attention" in notices(found)["STACK_ASSUMED"]
    replicated = answered(asked.replaced(zero_stage=np.array([1])), profile(framework="paxml", precision="fp8"))
    assert f"'{MODERN}" in notices(replicated)["STACK_ASSUMED"]
