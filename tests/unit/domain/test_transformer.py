"""Dimensions of transformers: what no model has together."""

from __future__ import annotations

from typing import Any

import pytest

from nodewise.domain.workload import Encoder, Transformer, Workload

LLAMA: dict[str, Any] = {
    "layers": 32,
    "hidden_size": 4096,
    "attention_heads": 32,
    "sequence_length": 8192,
    "vocabulary_size": 128_256,
    "key_value_heads": 8,
    "feed_forward_size": 14_336,
    "gated_feed_forward": True,
    "untied_embeddings": True,
}


def test_a_model_that_exists_contradicts_nothing() -> None:
    mixture = LLAMA | {"experts": 128, "experts_per_token": 8, "expert_feed_forward_size": 1536, "expert_layers": 30}
    for dimensions in (LLAMA, mixture):
        assert Workload(transformer=Transformer(**dimensions)).violations("workload") == []


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        ({"attention_heads": 30, "key_value_heads": 0}, "attention_heads_count", "must divide hidden_size (4096)"),
        ({"key_value_heads": 5}, "key_value_heads_count", "must divide attention_heads_count (32), found 5"),
        ({"experts": 8}, "experts_per_token_count", "must be 1 to experts_count (8), found 0"),
        ({"experts": 8, "experts_per_token": 9}, "experts_per_token_count", "must be 1 to experts_count (8), found 9"),
        ({"expert_feed_forward_size": 64}, "expert_feed_forward_size", "must be 0 where there are no experts"),
        (
            {"experts": 8, "experts_per_token": 2, "expert_layers": 33},
            "expert_layers_count",
            "must be at most layers_count (32), found 33",
        ),
        (
            {"attention_window": 128, "windowed_layers": 33},
            "windowed_layers_count",
            "must be at most layers_count (32), found 33",
        ),
        ({"windowed_layers": 16}, "windowed_layers_count", "must be 0 where attention_window_tokens is not stated"),
        ({"query_latent_size": 512}, "query_latent_size", "must be 0 where key_value_latent_size is not stated"),
        (
            {"key_value_latent_size": 512, "rotary_head_size": 128},
            "rotary_head_size",
            "must be below head_size, of which it is a part, found 128",
        ),
        ({"state_size": 128}, "state_size", "must be 0 where state_space_layers_count is not stated"),
    ],
)
def test_what_no_model_has_together_is_named(change: dict[str, Any], field: str, text: str) -> None:
    (violation,) = Workload(transformer=Transformer(**(LLAMA | change))).violations("workload")
    assert violation.field == f"workload.transformer.{field}"
    assert text in violation.description


@pytest.mark.parametrize(
    ("facts", "field", "text"),
    [
        ({"stage_layers": (15, 16)}, "stage_layers", "must add up to layers_count (32), but add up to 31"),
        ({"pipeline_schedule": "2f2b"}, "pipeline_schedule", "must be one of 1f1b, gpipe, zero-bubble, dualpipe"),
        ({"execution": "fast"}, "execution", "must be one of eager, compiled, graphs, found 'fast'"),
        (
            {"encoder": Encoder(layers=2, hidden_size=100, attention_heads=3, tokens_per_sample=16)},
            "encoder.attention_heads_count",
            "must divide hidden_size (100), found 3",
        ),
    ],
)
def test_what_no_job_does_is_named(facts: dict[str, Any], field: str, text: str) -> None:
    (violation,) = Workload(transformer=Transformer(**LLAMA), **facts).violations("workload")
    assert violation.field == f"workload.{field}"
    assert text in violation.description


def test_the_busiest_expert_gets_at_least_its_share() -> None:
    mixture = Transformer(**LLAMA | {"experts": 8, "experts_per_token": 2})
    (violation,) = Workload(transformer=mixture, busiest_expert_share=0.1).violations("workload")
    assert "must be at least 1 / experts_count (0.125), found 0.1" in violation.description


def test_a_stated_head_size_needs_no_division() -> None:
    assert Transformer(**(LLAMA | {"attention_heads": 48, "head_size": 128})).violations("t") == []
