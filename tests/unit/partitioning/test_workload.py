"""Counts from dimensions alone, against published totals."""

from __future__ import annotations

import numpy as np
import pytest
from partitioned_transformers import GPT3, dimensions

from nodewise.plugin import Transformer
from nodewise_partitioning.workload import Dimensions

ONE, FOUR = np.ones(1), np.full(1, 4.0)


def test_gpt_3_has_175_billion_parameters() -> None:
    assert dimensions(GPT3).parameters() == pytest.approx(174.6e9, rel=2e-3)


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


def test_a_gated_layer_has_a_third_matrix() -> None:
    plain = dimensions()
    gated = Dimensions(
        layers=plain.layers,
        hidden=plain.hidden,
        heads=plain.heads,
        key_value_heads=plain.key_value_heads,
        sequence=plain.sequence,
        vocabulary=plain.vocabulary,
        feed_forward=plain.feed_forward,
        gated=True,
    )
    assert gated.feed_forward_parameters == 1.5 * plain.feed_forward_parameters


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
    scores = found.layers * 4.0 * found.sequence**2 * found.hidden
    words = 2.0 * found.sequence * found.hidden * found.vocabulary
    active = found.layers * 2.0 * found.sequence * 2.0 * found.feed_forward_parameters
    assert found.forward_flops() == dense + scores + words + active


def test_the_vocabulary_is_padded_to_aligned_shards() -> None:
    odd = Transformer(layers=1, hidden_size=64, attention_heads=8, sequence_length=16, vocabulary_size=50257)
    np.testing.assert_array_equal(
        Dimensions.of(odd).padded_vocabulary(np.array([1.0, 2.0, 8.0])), [50304, 50432, 51200]
    )
