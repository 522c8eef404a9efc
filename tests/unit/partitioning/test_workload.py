"""Counts from dimensions alone, against published totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hugging_face_configs import PUBLISHED
from partitioned_transformers import GPT3, SMALL, a100, dimensions

from nodewise.plugin import Encoder, Transformer, Workload
from nodewise_cli.agents.known_models import known_models
from nodewise_client import model_from_hugging_face
from nodewise_partitioning.block import block_of
from nodewise_partitioning.data_parallel import held_parameters
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions
from nodewise_values.facts import ENCODER, TRANSFORMER, Fact

ONE, FOUR = np.ones(1), np.full(1, 4.0)


def test_gpt_3_has_175_billion_parameters() -> None:
    assert dimensions(GPT3).parameters() == pytest.approx(174.6e9, rel=2e-3)


KNOWN = {each.name: (dict(each.config), each.parameters) for each in known_models().values()}


@pytest.mark.parametrize(
    ("config", "published"),
    [*PUBLISHED, *KNOWN.values()],
    ids=[*(str(each["model_type"]) for each, _ in PUBLISHED), *KNOWN],
)
def test_imported_models_have_their_published_size(config: dict[str, Any], published: float) -> None:
    imported = model_from_hugging_face(config, sequence_length=1024).workload
    assert imported.transformer is not None
    known = Transformer(**_stated(imported.transformer, TRANSFORMER))
    tower = None if imported.encoder is None else Encoder(**_stated(imported.encoder, ENCODER))
    found = Dimensions.of(known, workload=Workload(transformer=known, encoder=tower))
    encoder = 0.0 if found.encoder is None else found.encoder.parameters()
    assert found.parameters() + encoder == pytest.approx(published, rel=0.015)


def _stated(value: object, facts: Mapping[str, Fact]) -> dict[str, Any]:
    """Facts that are stated, by the names of the domain."""
    return {fact.row: stated for name, fact in facts.items() if (stated := getattr(value, name)) is not None}


def test_operations_are_those_of_the_published_closed_form() -> None:
    # D. Narayanan et al., SC 2021: 24 B s l h^2 (1 + s / 6h + V / 12 l h), forward.
    found = dimensions(GPT3)
    s, layers, h, words = 2048.0, 96.0, 12288.0, 51200.0
    published = 24.0 * s * layers * h**2 * (1.0 + s / (6.0 * h) + words / (12.0 * layers * h))
    assert found.forward_flops() == pytest.approx(published, rel=1e-12)


def test_shared_keys_shrink_their_projections_alone() -> None:
    shared = Transformer(
        layers=1, hidden_size=64, attention_heads=8, sequence_length=16, vocabulary_size=128, key_value_heads=2
    )
    assert Dimensions.of(shared).query_key_value == 64.0 * (1.0 + 2.0 / 4.0)
    assert Dimensions.of(shared).attention_parameters == 64.0 * (96.0 + 64.0)


def test_a_gated_layer_costs_half_as_much_again() -> None:
    """N. Shazeer, "GLU variants improve transformer": a third matrix, unless the layer is made narrower."""
    plain, gated = dimensions(), dimensions(replace(SMALL, gated_feed_forward=True))
    attention = plain.layers * (
        2.0 * plain.sequence * plain.attention_parameters + 4.0 * plain.sequence**2 * plain.hidden_size
    )
    rest = attention + 2.0 * plain.sequence * plain.hidden_size * plain.vocabulary
    assert gated.forward_flops() - rest == pytest.approx(1.5 * (plain.forward_flops() - rest))
    layout = Layout.of(1, micro_batch=64.0)
    times = [_feed_forward_s(each, layout) for each in (SMALL, replace(SMALL, gated_feed_forward=True))]
    assert times[1] / times[0] == pytest.approx(1.5, rel=1e-9)


def _feed_forward_s(transformer: Transformer, layout: Layout) -> float:
    """Kernels of a layer beyond those of one whose feed-forward layer is next to nothing."""
    software = replace(Software(), gemm_ramp_s=0.0)
    found, without = (
        block_of(dimensions(each), layout, a100(), software).compute_s[0]
        for each in (transformer, replace(transformer, feed_forward_size=1))
    )
    return float((found - without) / (4.0 * SMALL.hidden_size - 1.0))


def test_heads_may_be_wider_than_the_hidden_size_says() -> None:
    wide = dimensions(replace(SMALL, head_size=256))
    assert wide.attention_size == 16.0 * 256.0
    assert wide.attention_parameters == 2.0 * dimensions().attention_parameters
    scores = 4.0 * 24.0 * wide.sequence**2 * 2048.0
    matrices = 24.0 * 2.0 * wide.sequence * dimensions().attention_parameters
    assert wide.forward_flops() - dimensions().forward_flops() == pytest.approx(scores + matrices)


def test_an_output_matrix_of_its_own_is_on_the_last_stage() -> None:
    tied, own = dimensions(), dimensions(replace(SMALL, untied_embeddings=True))
    words = 51200.0 * 2048.0
    assert own.parameters() - tied.parameters() == words
    layout = Layout.of(2, pipeline=np.array([1.0, 4.0]), devices=np.array([1.0, 4.0]))
    more = held_parameters(own, layout)[0] - held_parameters(tied, layout)[0]
    np.testing.assert_array_equal(more, [words, 0.0])


def test_layers_with_and_without_experts_are_averaged() -> None:
    mixture = Transformer(
        layers=4, hidden_size=64, attention_heads=8, sequence_length=16, vocabulary_size=128, feed_forward_size=512,
        experts=8, experts_per_token=2, expert_feed_forward_size=32, shared_expert_feed_forward_size=96,
        expert_layers=3, gated_feed_forward=True,
    )  # fmt: skip
    found = Dimensions.of(mixture)
    shared, held = found.layer_parameters(ONE, FOUR)
    matrices = 3.0 * 64.0
    assert 4.0 * shared[0] == 4.0 * found.attention_parameters + matrices * (512.0 + 3.0 * 96.0)
    assert 4.0 * held[0] == matrices * 3.0 * 32.0 * 8.0 / 4.0
    assert 4.0 * found.active == 512.0 + 3.0 * (96.0 + 2.0 * 32.0)
    # Gate, up and down of one dense, of three shared and of three times two experts on this device.
    assert 4.0 * found.products(np.full(1, 2.0))[0] == 4.0 * 2.0 + 3.0 * (1.0 + 3.0 + 3.0 * 2.0)


def test_experts_hold_more_than_they_compute() -> None:
    mixture = Transformer(
        layers=2,
        hidden_size=64,
        attention_heads=8,
        sequence_length=16,
        vocabulary_size=128,
        experts=8,
        experts_per_token=2,
    )
    found = Dimensions.of(mixture)
    shared, held = found.layer_parameters(ONE, FOUR)
    assert shared[0] == 4.0 * 64.0**2
    assert held[0] == 2.0 * 8.0 * 64.0**2
    dense = found.layers * 2.0 * found.sequence * found.attention_parameters
    scores = found.layers * 4.0 * found.sequence**2 * found.hidden_size
    words = 2.0 * found.sequence * found.hidden_size * found.vocabulary
    active = found.layers * 2.0 * found.sequence * found.feed_forward_parameters(2.0 * found.feed_forward)
    assert found.forward_flops() == dense + scores + words + active


def test_the_vocabulary_is_padded_to_aligned_shards() -> None:
    odd = Transformer(layers=1, hidden_size=64, attention_heads=8, sequence_length=16, vocabulary_size=50257)
    np.testing.assert_array_equal(
        Dimensions.of(odd).padded_vocabulary(np.array([1.0, 2.0, 8.0])), [50304, 50432, 51200]
    )
