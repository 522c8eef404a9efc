"""Import of config.json files: dimensions that add up to the published sizes, and errors that name the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hugging_face_configs import (
    BAMBA_9B,
    BERT,
    COHERE2_7B,
    DEEPSEEK_MOE,
    DEEPSEEK_V2_LITE,
    DEEPSEEK_V3,
    FALCON_7B,
    FALCON_H1_34B,
    GEMMA2_9B,
    GEMMA3_1B,
    GEMMA3_4B,
    GEMMA_7B,
    GPT2,
    GPT_OSS_120B,
    GRANITE4_TINY,
    JAMBA,
    LLAMA3_8B,
    LLAVA_7B,
    MAMBA_CODESTRAL,
    MISTRAL3_24B,
    MISTRAL_7B,
    MIXTRAL,
    MPT_7B,
    NEMOTRON_3_NANO,
    NEMOTRON_H_8B,
    NEOX_20B,
    OLMO3_7B,
    OPT_67B,
    PUBLISHED,
    QWEN2_05B,
    QWEN2_VL_7B,
    QWEN3_30B,
    QWEN3_NEXT,
    QWEN15_MOE,
    QWEN25_VL_7B,
    QWEN_14B,
    QWEN_72B,
    ROBERTA,
    ZAMBA2_7B,
)

from nodewise_client import Encoder, ImportedModelError, Transformer, Workload, model_from_hugging_face


def attention(shape: Transformer) -> float:
    """Parameters of one layer's attention."""
    hidden, heads = shape.hidden_size, shape.attention_heads_count
    head = shape.head_size or hidden // heads
    value = shape.value_head_size or head
    if shape.key_value_latent_size is None:
        keys = shape.key_value_heads_count or heads
        return float(hidden * (heads + keys) * (head + value))
    latent, rotary = shape.key_value_latent_size, shape.rotary_head_size or 0
    queries = heads * head * hidden
    if shape.query_latent_size:
        queries = shape.query_latent_size * (hidden + heads * head)
    keys_values = hidden * (latent + rotary) + latent * heads * (head - rotary + value)
    return float(queries + keys_values + heads * value * hidden)


def decoder(shape: Transformer) -> float:
    """Parameters of the matrices that the dimensions say: no norms, biases or learned positions, below 1 % together."""
    matrices = 3 if shape.gated_feed_forward else 2
    width = shape.feed_forward_size or 4 * shape.hidden_size
    dense, sparse, sparse_layers = matrices * shape.hidden_size * width, 0, 0
    feeding = shape.feed_forward_layers_count or shape.layers_count
    if shape.experts_count:
        sparse_layers = shape.expert_layers_count or feeding
        expert = shape.experts_count * (shape.expert_feed_forward_size or width) + (
            shape.shared_expert_feed_forward_size or 0
        )
        sparse = matrices * shape.hidden_size * expert + shape.hidden_size * shape.experts_count
    mixers = shape.state_space_layers_count or 0
    attending = shape.attention_layers_count or shape.layers_count - mixers
    channels = shape.state_space_size or 2 * shape.hidden_size
    mixer = shape.hidden_size * (3 * channels + 2 * (shape.state_size or 128))
    embeddings = shape.vocabulary_size * shape.hidden_size * (2 if shape.untied_embeddings else 1)
    feed_forward = (feeding - sparse_layers) * dense + sparse_layers * sparse
    return attending * attention(shape) + mixers * mixer + feed_forward + embeddings


def parameters(workload: Workload) -> float:
    shape, encoder = workload.transformer, workload.encoder
    assert shape is not None
    tower = 0
    if encoder is not None:
        width = encoder.feed_forward_size or 4 * encoder.hidden_size
        tower = encoder.layers_count * encoder.hidden_size * (4 * encoder.hidden_size + 2 * width)
    return decoder(shape) + tower


@pytest.mark.parametrize(
    ("config", "published"),
    PUBLISHED,
    ids=lambda value: str(value["model_type"]) if isinstance(value, dict) else "",
)
def test_dimensions_add_up_to_the_published_size(config: dict[str, Any], published: float) -> None:
    workload = model_from_hugging_face(config, sequence_length=1024).workload
    assert parameters(workload) == pytest.approx(published, rel=0.015)


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


@pytest.mark.parametrize(
    ("config", "note"),
    [
        (
            {**GEMMA_7B, "head_dim": None},
            "head_dim is missing and assumed to be 256, the default of gemma",
        ),
        (
            {**OPT_67B, "word_embed_proj_dim": 512},
            "word_embed_proj_dim 512 is not supported: embeddings are assumed to have hidden_size",
        ),
        (
            {**LLAMA3_8B, "quantization_config": {"bits": 4}},
            "quantization_config is ignored: the precision is that of the unquantized weights",
        ),
    ],
)
def test_what_is_assumed_or_ignored_is_noted(config: dict[str, Any], note: str) -> None:
    assert note in model_from_hugging_face(config, sequence_length=1024).notes


def test_latent_attention_is_told_by_its_projections() -> None:
    found = model_from_hugging_face(DEEPSEEK_V3, sequence_length=4096)
    shape = found.workload.transformer
    assert shape is not None
    assert (shape.key_value_latent_size, shape.query_latent_size, shape.rotary_head_size) == (512, 1536, 64)
    assert (shape.head_size, shape.value_head_size) == (192, 128)
    assert [note.partition(":")[0] for note in found.notes[:1]] == ["num_nextn_predict_layers"]
    shape = model_from_hugging_face(DEEPSEEK_V2_LITE, sequence_length=4096).workload.transformer
    assert shape is not None
    assert (shape.key_value_latent_size, shape.query_latent_size) == (512, None)


@pytest.mark.parametrize(
    ("config", "window", "layers"),
    [
        (MISTRAL_7B, 4096, None),
        (GEMMA2_9B, 4096, 21),
        (GEMMA3_1B, 512, 22),
        (COHERE2_7B, 4096, 24),
        (OLMO3_7B, 4096, 24),
        (GPT_OSS_120B, 128, 18),
        (GEMMA3_4B, 1024, 29),
        (MISTRAL3_24B, None, None),
        ({**MISTRAL_7B, "sliding_window": None}, None, None),
        ({**QWEN2_05B, "sliding_window": 32768, "max_window_layers": 21}, None, None),
        ({**QWEN2_05B, "sliding_window": 32768, "max_window_layers": 21, "use_sliding_window": True}, 32768, 3),
        ({**LLAMA3_8B, "model_type": "phi3", "sliding_window": 2047}, 2047, None),
        ({**GPT_OSS_120B, "layer_types": ["full_attention"] * 35 + ["sliding_attention"]}, 128, 1),
    ],
)
def test_sliding_windows_and_their_layers(config: dict[str, Any], window: int | None, layers: int | None) -> None:
    found = model_from_hugging_face(config, sequence_length=8192).workload.transformer
    assert found is not None
    assert (found.attention_window_tokens, found.windowed_layers_count) == (window, layers)


@pytest.mark.parametrize(
    ("config", "attention", "state_space", "feed_forward", "sizes"),
    [
        (NEMOTRON_H_8B, 4, 24, 24, (8192, 128)),
        (NEMOTRON_3_NANO, 6, 23, 23, (4096, 128)),
        (JAMBA, 4, 28, None, (8192, 16)),
        (BAMBA_9B, 3, 29, None, (8192, 128)),
        (GRANITE4_TINY, 4, 36, None, (3072, 128)),
        (FALCON_H1_34B, 72, 72, None, (4096, 256)),
        (QWEN3_NEXT, 12, 36, None, (4096, 128)),
        (ZAMBA2_7B, 13, 81, 13, (7168, 64)),
        (MAMBA_CODESTRAL, None, 64, 1, (8192, 128)),
        ({**BAMBA_9B, "mamba_d_head": "auto"}, 3, 29, None, (8192, 128)),
    ],
    ids=lambda value: str(value["model_type"]) if isinstance(value, dict) else "",
)
def test_layers_of_hybrids_are_counted_by_kind(
    config: dict[str, Any], attention: int | None, state_space: int, feed_forward: int | None, sizes: tuple[int, int]
) -> None:
    shape = model_from_hugging_face(config, sequence_length=4096).workload.transformer
    assert shape is not None
    counts = (shape.attention_layers_count, shape.state_space_layers_count, shape.feed_forward_layers_count)
    assert counts == (attention, state_space, feed_forward)
    assert (shape.state_space_size, shape.state_size) == sizes


@pytest.mark.parametrize(
    ("config", "published", "key", "share"),
    [(NEMOTRON_H_8B, 8.10e9, "n_groups: 8", 0.023), (MAMBA_CODESTRAL, 7.285e9, "n_groups: 8", 0.065)],
)
def test_groups_of_a_mixer_are_said(config: dict[str, Any], published: float, key: str, share: float) -> None:
    found = model_from_hugging_face(config, sequence_length=4096)
    assert parameters(found.workload) == pytest.approx(published * (1 - share), rel=0.005)
    assert key in found.notes[0]
    assert "a mixer is assumed to have one, with 7% fewer parameters" in found.notes[0]


def test_weights_that_layers_share_are_said() -> None:
    found = model_from_hugging_face(ZAMBA2_7B, sequence_length=4096)
    assert any("the 13 attention layers share the weights of 2" in note for note in found.notes)


def test_an_encoder_stands_before_the_language_model() -> None:
    found = model_from_hugging_face(LLAVA_7B, sequence_length=2048)
    assert found.workload.model_name == "llava"
    assert found.workload.encoder == Encoder(
        layers_count=24, hidden_size=1024, attention_heads_count=16, tokens_per_sample=576, feed_forward_size=4096,
    )  # fmt: skip
    assert found.notes == (
        (
            "one image of 336 x 336 pixels (576 patches) per sample and a trained encoder are assumed: "
            "state workload.encoder if that is wrong"
        ),
    )
    windowed = model_from_hugging_face(QWEN25_VL_7B, sequence_length=2048).workload.encoder
    assert windowed is not None
    # 28 of 32 layers attend within 8 x 8 patches.
    assert (windowed.tokens_per_sample, windowed.attended_tokens_count) == (1024, (4 * 1024 + 28 * 64) // 32)
    nested = {"model_type": "qwen2_vl", "text_config": {**QWEN2_05B, "model_type": "qwen2_vl_text"}}
    nested["vision_config"] = QWEN2_VL_7B["vision_config"]
    assert model_from_hugging_face(nested, sequence_length=16).workload.transformer == (
        model_from_hugging_face(QWEN2_05B, sequence_length=16).workload.transformer
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "config: model_type: is missing"),
        (
            {**LLAMA3_8B, "model_type": "mamba"},
            "config: model_type: 'mamba' is not supported (supported: bamba, bert, ",
        ),
        (
            {"model_type": "own", "num_hidden_layers": 9, "hidden_size": 64},
            "of a profile or specification: layers_count (9), hidden_size (64), attention_heads_count, sequence_length",
        ),
        ({**QWEN_14B, "intermediate_size": 27391}, "intermediate_size: must be even, because it includes the gate"),
        ({**MPT_7B, "expansion_ratio": "four"}, "expansion_ratio: must be a number above 0, found 'four'"),
        ({**MPT_7B, "attn_config": 5}, "attn_config: must be an object, found 5"),
        ({**LLAMA3_8B, "is_encoder_decoder": True}, "is_encoder_decoder: must be false"),
        ({"model_type": "fuyu", "text_config": GEMMA_7B}, "text_config: is one of several parts"),
        ({"model_type": "gemma3", "text_config": GEMMA3_1B}, "vision_config: must be an object, found None"),
        (
            {**LLAVA_7B, "vision_config": {"model_type": "own"}},
            "vision_config: depth (or num_hidden_layers): is missing",
        ),
        ({**NEMOTRON_H_8B, "hybrid_override_pattern": "MX"}, "must be one of the letters M, *, - and E for each layer"),
        ({**NEMOTRON_H_8B, "hybrid_override_pattern": "M-"}, "hybrid_override_pattern: must have 52 letters, found 2"),
        ({**BAMBA_9B, "attn_layer_indices": 9}, "attn_layer_indices: must be a list of layers, found 9"),
        ({**GEMMA2_9B, "layer_types": ["round"]}, "layer_types: must be a list of attention, full_attention, hybrid"),
        ({**GEMMA2_9B, "layer_types": ["full_attention"]}, "layer_types: must name 42 layers, found 1"),
        ({**LLAMA3_8B, "hidden_size": None}, "hidden_size: is missing; must be a whole number of at least 1"),
        ({**GPT2, "n_layer": None}, "n_layer (or num_hidden_layers): is missing"),
        ({**GPT2, "n_head": "12"}, "n_head: must be a whole number of at least 1, found '12'"),
        ({**GPT2, "n_head": True}, "n_head: must be a whole number of at least 1, found True"),
        ({**MISTRAL_7B, "num_key_value_heads": None}, "num_key_value_heads: is missing"),
        ({**LLAMA3_8B, "tie_word_embeddings": "no"}, "tie_word_embeddings: must be true or false"),
        ({**LLAMA3_8B, "torch_dtype": "int4"}, "torch_dtype: must be one of bfloat16, "),
        ({**LLAMA3_8B, "attention_dropout": 2}, "attention_dropout: must be a rate from 0 to 1, found 2"),
        ({**LLAMA3_8B, "num_attention_heads": 7}, "head_dim: must be given: 7 heads do not divide"),
        ({**MIXTRAL, "num_experts_per_tok": None}, "num_experts_per_tok (or experts_per_token): is missing"),
        ({**QWEN3_30B, "moe_intermediate_size": None}, "moe_intermediate_size: is missing"),
        ({**QWEN3_30B, "mlp_only_layers": "all"}, "mlp_only_layers: must be a list of layers"),
        ({**QWEN3_30B, "decoder_sparse_step": 99}, "num_experts: must be 0 if no layer has experts"),
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
    with pytest.raises(ImportedModelError, match="must contain a JSON object"):
        model_from_hugging_face(str(tmp_path / "list.json"))
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(ImportedModelError, match="is not valid JSON"):
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
