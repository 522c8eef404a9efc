"""Memory, against the closed forms of V. Korthikanti et al., MLSys 2023, at their four models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from partitioned_transformers import GPT3, a100, dimensions

from nodewise.plugin import Floats, Transformer
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import (
    TERMS,
    activation_bytes_per_layer,
    board_of,
    in_flight,
    memory_of,
    settled_states,
)
from nodewise_partitioning.software import Software, stack_of
from nodewise_partitioning.training import Training

GIB = 2.0**30

# Layers, hidden size, heads, p, v, b, B; states at 18 bytes a parameter, activations with nothing recomputed, and with
# sequence parallelism and selective recomputation, in GiB.
GOLDEN = {
    "22B": (48, 6144, 64, 1, 1, 4, 4, 45.5625, 59.25, 9.5625),
    "175B": (96, 12288, 96, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625),
    "530B": (105, 20480, 128, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875),
    "1T": (128, 25600, 160, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_twelve_golden_values(name: str) -> None:
    layers, hidden, heads, p, v, b, batch, states, nothing, selective = GOLDEN[name]
    model = dimensions(
        Transformer(
            layers=layers,
            hidden_size=hidden,
            attention_heads=heads,
            sequence_length=2048,
            vocabulary_size=51200,
        )
    )
    layout = Layout.of(
        2,
        tensor=8.0,
        pipeline=p,
        interleave=v,
        micro_batch=b,
        micro_batches=batch / b,
        recomputation=np.array([1.0, 2.0]),
        sequence_parallel=np.array([0.0, 1.0]),
    )
    shared, _ = model.layer_parameters(layout.tensor, layout.expert)
    assert 18.0 * shared[0] * layers / p / GIB == pytest.approx(states, rel=1e-4)
    kept = activation_bytes_per_layer(model, layout, Software()) * layers / p * in_flight(layout, Software()) / GIB
    np.testing.assert_allclose(kept, [nothing, selective], rtol=1e-4)


def test_each_stage_of_zero_divides_one_more_term() -> None:
    layout = Layout.of(4, data=8.0, devices=8.0, zero_stage=np.array([0.0, 1.0, 2.0, 3.0]))
    found = memory_of(dimensions(), layout, a100(), Software())
    for term, stage in (("optimizer", 1), ("gradients", 2), ("weights", 3)):
        column = found[term]
        np.testing.assert_allclose(column[stage:], column[0] / 8.0, rtol=1e-12)
        np.testing.assert_allclose(column[:stage], column[0], rtol=1e-12)


def test_states_are_those_of_the_declared_stack_and_format() -> None:
    layout = Layout.of(1)
    parameters = memory_of(dimensions(), layout, a100(), Software())["weights"][0] / 2.0
    for framework, number_format, per_parameter in (
        ("megatron-deepspeed", "fp16", 20.0),
        ("megatron-deepspeed", "bf16", 20.0),
        ("megatron-deepspeed", "fp32", 16.0),
        ("megatron-lm", "fp16", 20.0),
        ("megatron-lm", "bf16", 18.0),
        ("megatron-lm", "fp32", 16.0),
    ):
        stack = stack_of(framework, number_format)[0]
        found = memory_of(dimensions(), layout, a100(number_format), stack)
        states = found["weights"] + found["gradients"] + found["optimizer"] + stack.update_bytes * parameters
        assert states[0] == pytest.approx(per_parameter * parameters, rel=1e-12)


def test_full_recomputation_keeps_the_inputs_and_one_layer() -> None:
    layout = Layout.of(3, micro_batch=4.0, recomputation=np.array([1.0, 2.0, 3.0]))
    nothing, selective, full = memory_of(dimensions(GPT3), layout, a100(), Software())["activations"]
    assert nothing > selective > full
    layer = nothing / 96.0
    assert full == pytest.approx(layer + 96.0 * 2.0 * 4.0 * 2048.0 * 12288.0)


def test_flash_attention_stores_no_scores() -> None:
    plain, flash = Software(), stack_of("megatron-lm flash-attention", "fp16")[0]
    layout = Layout.of(2, recomputation=np.array([1.0, 2.0]))
    masked = replace(dimensions(), training=Training(dropout=True))
    without = activation_bytes_per_layer(masked, layout, flash)
    np.testing.assert_allclose(without, activation_bytes_per_layer(dimensions(), layout, plain)[1])


def test_without_dropout_there_are_no_masks() -> None:
    """Two masks of a byte a layer; of scores a mask of a byte and 2 bytes behind it."""
    plain, none = Software(), stack_of("megatron-lm no-dropout", "fp16")[0]
    layout = Layout.of(2, recomputation=np.array([1.0, 2.0]))
    saved = activation_bytes_per_layer(dimensions(), layout, plain) - activation_bytes_per_layer(
        dimensions(), layout, none
    )
    masks = 1024.0 * 2048.0 * 2.0
    np.testing.assert_allclose(saved, [masks + 3.0 * 16.0 * 1024.0**2, masks])


def test_outputs_of_stages_stay_where_the_stack_keeps_them() -> None:
    layout = Layout.of(2, pipeline=np.array([1.0, 4.0]), micro_batches=8.0)
    kept, freed = (
        memory_of(dimensions(), layout, a100(), stack_of(name, "fp16")[0])["activations"]
        for name in ("megatron-lm", "megatron-core")
    )
    np.testing.assert_allclose(kept - freed, [0.0, 4.0 * 2.0 * 1024.0 * 2048.0])


def test_embedding_and_output_count_as_layers_where_only_so_stages_are_even() -> None:
    """22 layers on four stages: 5, 6, 6 and 5. The first stage has the embedding, the second a layer more."""
    odd = dimensions(
        Transformer(layers=22, hidden_size=2048, attention_heads=16, sequence_length=1024, vocabulary_size=1000)
    )
    layout = Layout.of(1, pipeline=4.0, micro_batches=8.0)
    per_layer = 2.0 * (odd.layer_parameters(layout.tensor, layout.expert)[0] + odd.replicated_parameters)
    second = memory_of(odd, layout, a100(), Software())["weights"]
    np.testing.assert_allclose(second, 6.0 * per_layer)


def test_the_update_counts_where_activations_do_not_hide_it() -> None:
    """Both are held while there is room; only the larger is needed."""
    layout = Layout.of(2, micro_batch=np.array([1.0, 64.0]))
    few, many = (memory_of(dimensions(), layout, a100(), Software())[term] for term in ("update", "cache"))
    assert few[0] > 0.0
    assert few[1] == 0.0
    assert many[1] > many[0]


def test_the_cache_yields_to_what_is_needed() -> None:
    layout = Layout.of(3, micro_batch=np.array([1.0, 250.0, 400.0]), recomputation=1.0)
    found = memory_of(dimensions(GPT3), replace(layout, pipeline=np.full(3, 96.0)), a100(), Software())
    total = sum(found.values())
    assert total[0] < 80e9
    assert total[2] > 80e9
    assert found["cache"][2] == 0.0


def test_terms_add_up() -> None:
    found = memory_of(dimensions(), Layout.of(2, tensor=np.array([1.0, 4.0])), a100(), Software())
    np.testing.assert_allclose(sum(found[term] for term in TERMS), sum(found.values()))


TORCH = "pytorch flash-attention"
MISTRAL = Transformer(
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    key_value_heads=8,
    feed_forward_size=14336,
    gated_feed_forward=True,
    untied_embeddings=True,
    sequence_length=4096,
    vocabulary_size=32000,
)


def under_torch(layout: Layout, framework: str = TORCH, **training: Any) -> dict[str, Floats]:
    of = replace(dimensions(MISTRAL), training=Training(**training))
    software = stack_of(framework, "bf16")[0]
    return memory_of(of, layout, board_of(a100("bf16"), software), software)


def test_terms_of_pytorch_add_up_and_fill_no_device() -> None:
    layout = Layout.of(4, micro_batch=np.array([1.0, 4.0, 8.0, 64.0]), data=8.0, devices=8.0, zero_stage=3.0)
    found = under_torch(layout)
    assert set(found) == set(TERMS)
    total = sum(found.values())
    assert (np.diff(total) > 0.0).all()
    assert total[2] < 85e9 < total[3]
    assert found["cache"][3] == 0.0


@pytest.mark.parametrize(("framework", "bytes_each"), [(TORCH, 12.0), (f"{TORCH} fused-kernels", 10.0)])
def test_logits_in_32_bits_are_there_three_times_or_twice(framework: str, bytes_each: float) -> None:
    tokens = 4.0 * 4096.0
    found = under_torch(Layout.of(1, micro_batch=4.0), framework)["logits"]
    np.testing.assert_allclose(found, tokens * (4.0 * 4096.0 + bytes_each * 32000.0))


def test_a_loss_in_chunks_keeps_no_logits() -> None:
    layout = Layout.of(1, micro_batch=4.0)
    np.testing.assert_allclose(
        under_torch(layout, f"{TORCH} fused-kernels liger")["logits"], 4.0 * 4096.0 * 4.0 * 4096.0
    )


def test_recomputation_by_operation_keeps_every_second_product() -> None:
    """Input, queries, values, attention's output, one inner matrix and the last, 16 bits each."""
    layout = Layout.of(1, recomputation=2.0)
    kept = 32.0 * 2.0 * 4096.0 * (4.25 * 4096.0 + 14336.0)
    assert under_torch(layout)["activations"][0] == pytest.approx(kept, rel=0.2)
    full, none = (under_torch(replace(layout, recomputation=np.array([way])))["activations"] for way in (3.0, 1.0))
    assert full[0] < kept < none[0]


def test_fsdp_splits_one_32_bit_copy_and_gathers_whole_layers_and_ends() -> None:
    layout = Layout.of(1, data=8.0, devices=8.0, zero_stage=3.0, micro_batches=2.0)
    found = under_torch(layout)
    parameters = found["weights"][0] * 8.0 / 4.0
    assert parameters == pytest.approx(7.24e9, rel=0.01)
    np.testing.assert_allclose(found["optimizer"], 8.0 * parameters / 8.0)
    np.testing.assert_allclose(found["gradients"], 4.0 * parameters / 8.0)
    layer, ends = 218.1e6, 2.0 * 131.1e6
    expected = 1.5e9 + layer * (2.0 * 2.0 + 2.0 + 4.0) + ends * 4.0
    assert found["buffers"][0] + found["gathered"][0] == pytest.approx(expected, rel=0.01)


def test_gradients_of_one_micro_batch_come_as_activations_go() -> None:
    once, twice = (under_torch(Layout.of(1, micro_batch=32.0, micro_batches=count)) for count in (1.0, 2.0))
    assert once["gradients"][0] < twice["gradients"][0]


def test_a_layer_is_there_twice_where_parameters_are_gathered() -> None:
    layout = Layout.of(2, micro_batch=8.0, data=8.0, devices=8.0, zero_stage=np.array([0.0, 3.0]))
    alone, gathered = under_torch(layout, f"{TORCH} fused-kernels", frozen_share=1.0 - 1e-6)["activations"]
    assert gathered > alone


def test_states_are_held_in_16_bits_where_nothing_else_leaves_room() -> None:
    """One device that recomputes everything; sharded states without room for one sample; not a batch too large."""
    of, software = dimensions(MISTRAL), stack_of(TORCH, "bf16")[0]
    board = board_of(a100("bf16"), software)
    layout = Layout.of(
        5,
        data=np.array([1.0, 2.0, 2.0, 1.0, 2.0]),
        devices=np.array([1.0, 2.0, 2.0, 1.0, 2.0]),
        zero_stage=np.array([0.0, 3.0, 3.0, 0.0, 0.0]),
        micro_batch=np.array([1.0, 1.0, 16.0, 1.0, 1.0]),
        recomputation=np.array([3.0, 3.0, 3.0, 1.0, 3.0]),
    )
    small = settled_states(layout, of, board, software)
    assert small.narrow_states.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]
    deep = replace(of, layers=64.0)
    assert settled_states(layout, deep, board, software).narrow_states[1] == 1.0
    held = memory_of(of, small, board, software)
    np.testing.assert_allclose(held["optimizer"][0], 2.0 * held["weights"][0])
    for name in ("megatron-core flash-attention", "deepspeed flash-attention"):
        stack = stack_of(name, "bf16")[0]
        assert not settled_states(layout, of, a100("bf16"), stack).narrow_states.any()
    wide = stack_of(TORCH, "fp32")[0]
    assert not settled_states(layout, of, a100("fp32"), wide).narrow_states.any()


def test_boards_have_binary_gigabytes_less_what_the_driver_keeps() -> None:
    torch, megatron = (board_of(a100(), stack_of(name, "fp16")[0]) for name in (TORCH, "megatron-lm"))
    assert 84e9 < torch.memory_bytes < 85.2e9
    assert megatron.memory_bytes == 80e9


def test_logits_are_held_in_16_bits_where_nothing_tells_and_three_copies_do_not_fit() -> None:
    wordy = dimensions(replace(MISTRAL, vocabulary_size=128000))
    layout = Layout.of(2, data=8.0, devices=8.0, zero_stage=3.0, micro_batch=np.array([2.0, 9.0]))
    for framework, expected in ((TORCH, [0.0, 1.0]), (f"{TORCH} fused-kernels", [0.0, 0.0])):
        software = stack_of(framework, "bf16")[0]
        board = board_of(a100("bf16"), software)
        assert settled_states(layout, wordy, board, software).narrow_loss.tolist() == expected
    adapters = replace(wordy, training=Training(frozen_share=1.0 - 1e-6))
    software = stack_of(TORCH, "bf16")[0]
    assert not settled_states(layout, adapters, board_of(a100("bf16"), software), software).narrow_loss.any()


def test_experts_keep_the_copies_of_tokens_that_they_take_and_give() -> None:
    mixture = replace(MISTRAL, experts=8, experts_per_token=2)
    kept = [
        activation_bytes_per_layer(dimensions(of), Layout.of(1), stack_of(TORCH, "bf16")[0])[0]
        for of in (mixture, replace(MISTRAL, feed_forward_size=2 * 14336))
    ]
    assert kept[0] - kept[1] == pytest.approx(2.0 * 4.0 * 4096.0 * 4096.0)
