"""Import of config.json files: dimensions that add up to the published sizes, and errors that name the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hugging_face_configs import (
    BERT,
    DEEPSEEK_MOE,
    DEEPSEEK_V3,
    FALCON_7B,
    GEMMA_7B,
    GPT2,
    LLAMA3_8B,
    MISTRAL_7B,
    MIXTRAL,
    MPT_7B,
    NEOX_20B,
    OPT_67B,
    PUBLISHED,
    QWEN3_30B,
    QWEN15_MOE,
    QWEN_14B,
    QWEN_72B,
    ROBERTA,
)

from nodewise_client import ImportedModelError, Transformer, model_from_hugging_face


def parameters(shape: Transformer) -> float:
    """Of the matrices that the dimensions say: no norms, biases or learned positions, below 1 % together."""
    head = shape.head_size or shape.hidden_size // shape.attention_heads_count
    keys = shape.key_value_heads_count or shape.attention_heads_count
    attention = 2 * shape.hidden_size * head * (shape.attention_heads_count + keys)
    matrices = 3 if shape.gated_feed_forward else 2
    width = shape.feed_forward_size or 4 * shape.hidden_size
    dense, sparse = matrices * shape.hidden_size * width, 0
    sparse_layers = (shape.expert_layers_count or shape.layers_count) if shape.experts_count else 0
    if shape.experts_count:
        expert = shape.experts_count * (shape.expert_feed_forward_size or width) + (
            shape.shared_expert_feed_forward_size or 0
        )
        sparse = matrices * shape.hidden_size * expert + shape.hidden_size * shape.experts_count
    embeddings = shape.vocabulary_size * shape.hidden_size * (2 if shape.untied_embeddings else 1)
    layers = shape.layers_count * attention + (shape.layers_count - sparse_layers) * dense + sparse_layers * sparse
    return float(layers + embeddings)


@pytest.mark.parametrize(
    ("config", "published"),
    PUBLISHED,
    ids=lambda value: str(value["model_type"]) if isinstance(value, dict) else "",
)
def test_dimensions_add_up_to_the_published_size(config: dict[str, Any], published: float) -> None:
    shape = model_from_hugging_face(config, sequence_length=1024).workload.transformer
    assert shape is not None
    assert parameters(shape) == pytest.approx(published, rel=0.015)


def test_what_is_imported_and_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA3_8B, "_name_or_path": "meta-llama/Meta-Llama-3-8B"}))
    found = model_from_hugging_face(tmp_path / "config.json", sequence_length=4096)
    assert found.notes == ()
    assert (found.workload.model_name, found.workload.precision) == ("meta-llama/Meta-Llama-3-8B", "bf16")
    assert found.workload.transformer == Transformer(
        layers_count=32, hidden_size=4096, attention_heads_count=32, sequence_length_tokens=4096,
        vocabulary_size=128256, key_value_heads_count=8,
        feed_forward_size=14336, head_size=128, gated_feed_forward=True,
        untied_embeddings=True,
    )  # fmt: skip


def test_a_length_that_is_not_given_is_the_longest_and_said() -> None:
    found = model_from_hugging_face(MISTRAL_7B)
    assert found.workload.transformer is not None
    assert found.workload.transformer.sequence_length_tokens == 32768
    assert "max_position_embeddings" in found.notes[0]
    assert "sliding_window 4096 is not represented" in found.notes[1]
    assert not model_from_hugging_face(MISTRAL_7B, sequence_length=4096).notes


def test_ties_that_are_left_out_follow_the_family() -> None:
    def untied(config: dict[str, Any]) -> bool:
        shape = model_from_hugging_face(config, sequence_length=16).workload.transformer
        assert shape is not None
        return shape.untied_embeddings

    assert [untied(config) for config in (GPT2, GEMMA_7B, BERT, OPT_67B, FALCON_7B)] == [False] * 5
    assert [untied(config) for config in (MISTRAL_7B, MIXTRAL, NEOX_20B, DEEPSEEK_MOE)] == [True] * 4
    assert untied({**GPT2, "tie_word_embeddings": False})


def test_layers_with_experts_are_counted() -> None:
    every_other = {**QWEN15_MOE, "decoder_sparse_step": 2, "mlp_only_layers": [1, 2]}
    shape = model_from_hugging_face(every_other, sequence_length=16).workload.transformer
    assert shape is not None
    assert shape.expert_layers_count == 11
    assert shape.shared_expert_feed_forward_size == 5632
    shape = model_from_hugging_face(DEEPSEEK_MOE, sequence_length=16).workload.transformer
    assert shape is not None
    assert (shape.expert_layers_count, shape.shared_expert_feed_forward_size) == (27, 2816)


def test_latent_attention_is_never_imported_without_a_word() -> None:
    found = model_from_hugging_face(DEEPSEEK_V3, sequence_length=4096)
    shape = found.workload.transformer
    assert shape is not None
    latent, further = found.notes
    assert "multi-head latent attention (kv_lora_rank 512) is not represented" in latent
    assert "with 470 million attention parameters in a layer in the place of 187" in latent
    assert "num_nextn_predict_layers" in further
    # With what the note says taken away, it is the published size.
    assert parameters(shape) - 61 * (470e6 - 187e6) == pytest.approx(671e9, rel=0.005)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "config: model_type: is missing"),
        ({**LLAMA3_8B, "model_type": "mamba"}, "config: model_type: 'mamba' is not known (known are bert, "),
        (
            {"model_type": "own", "num_hidden_layers": 9, "hidden_size": 64},
            "of a profile or specification: layers_count (9), hidden_size (64), attention_heads_count, sequence_length",
        ),
        ({**QWEN_14B, "intermediate_size": 27391}, "intermediate_size: must be even: it counts the gate too"),
        ({**MPT_7B, "expansion_ratio": "four"}, "expansion_ratio: must be a number above 0, found 'four'"),
        ({**MPT_7B, "attn_config": 5}, "attn_config: must be an object, found 5"),
        ({**LLAMA3_8B, "is_encoder_decoder": True}, "is_encoder_decoder: must be false"),
        ({"model_type": "gemma3", "text_config": GEMMA_7B}, "text_config: is one part of several"),
        ({**LLAMA3_8B, "hidden_size": None}, "hidden_size: is missing; must be a whole number of at least 1"),
        ({**GPT2, "n_layer": None}, "n_layer (or num_hidden_layers): is missing"),
        ({**GPT2, "n_head": "12"}, "n_head: must be a whole number of at least 1, found '12'"),
        ({**GPT2, "n_head": True}, "n_head: must be a whole number of at least 1, found True"),
        ({**MISTRAL_7B, "num_key_value_heads": None}, "num_key_value_heads: is missing"),
        ({**LLAMA3_8B, "tie_word_embeddings": "no"}, "tie_word_embeddings: must be true or false"),
        ({**LLAMA3_8B, "torch_dtype": "int4"}, "torch_dtype: must be one of bfloat16, "),
        ({**LLAMA3_8B, "num_attention_heads": 7}, "head_dim: must be given: 7 heads do not divide"),
        ({**MIXTRAL, "num_experts_per_tok": None}, "num_experts_per_tok (or experts_per_token): is missing"),
        ({**QWEN3_30B, "moe_intermediate_size": None}, "moe_intermediate_size: is missing"),
        ({**QWEN3_30B, "mlp_only_layers": "all"}, "mlp_only_layers: must be a list of layers"),
        ({**QWEN3_30B, "decoder_sparse_step": 99}, "num_experts: must be 0 where no layer has experts"),
        ({**FALCON_7B}, "sequence_length must be given: max_position_embeddings"),
    ],
)
def test_what_cannot_be_imported_is_named(config: dict[str, Any], expected: str) -> None:
    with pytest.raises(ImportedModelError) as caught:
        model_from_hugging_face(config)
    assert expected in str(caught.value)


def test_files_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(ImportedModelError, match="cannot be read: No such file"):
        model_from_hugging_face(tmp_path / "none.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ImportedModelError, match="must hold a JSON object"):
        model_from_hugging_face(str(tmp_path / "list.json"))
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(ImportedModelError, match="is no JSON"):
        model_from_hugging_face(tmp_path / "text.json")
    with pytest.raises(ImportedModelError, match="must be at least 1 token, found 0"):
        model_from_hugging_face(GPT2, sequence_length=0)


def test_the_first_qwen_counts_the_gate_and_flags_its_precision() -> None:
    found = model_from_hugging_face(QWEN_14B)
    shape = found.workload.transformer
    assert shape is not None
    assert (shape.feed_forward_size, shape.head_size, shape.sequence_length_tokens) == (13696, 128, 2048)
    assert (found.workload.precision, model_from_hugging_face(QWEN_72B).workload.precision) == ("fp16", "bf16")


def test_mpt_says_how_wide_and_how_its_heads_share() -> None:
    def shape(**changed: Any) -> tuple[int | None, ...]:
        found = model_from_hugging_face(MPT_7B | changed).workload.transformer
        assert found is not None
        return found.feed_forward_size, found.key_value_heads_count, found.sequence_length_tokens

    assert shape() == (16384, 32, 2048)
    assert shape(expansion_ratio=3.5, max_seq_len=512) == (14336, 32, 512)
    assert shape(attn_config={"attn_type": "multiquery_attention"}) == (16384, 1, 2048)
    assert shape(attn_config={"attn_type": "grouped_query_attention", "kv_n_heads": 8}) == (16384, 8, 2048)


def test_two_positions_of_roberta_have_no_token() -> None:
    shape = model_from_hugging_face(ROBERTA).workload.transformer
    assert shape is not None
    assert shape.sequence_length_tokens == 512


def test_paths_are_no_names() -> None:
    for path in ("/home/somebody/model", "./model", "C:\\model", "a/b/c"):
        assert model_from_hugging_face({**GPT2, "_name_or_path": path}).workload.model_name == "gpt2"
