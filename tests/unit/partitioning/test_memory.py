"""Memory, against the closed forms of V. Korthikanti et al., MLSys 2023, at their four models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import GPT3, a100, dimensions

from nodewise.plugin import Transformer
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import TERMS, activation_bytes_per_layer, in_flight, memory_of
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
    kept = activation_bytes_per_layer(model, layout, Software()) * layers / p * in_flight(layout) / GIB
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
