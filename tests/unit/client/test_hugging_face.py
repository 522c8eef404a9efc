"""Import of config.json files: dimensions that add up to the published sizes, and errors that name the key.

The configurations are those of the published models, written by hand with the keys that matter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodewise_client import ImportedModelError, Transformer, model_from_hugging_face

LLAMA3_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
BERT = {
    "model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
    "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512, "hidden_act": "gelu",
}  # fmt: skip
MIXTRAL = {
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768,
    "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16", "sliding_window": None,
}  # fmt: skip
QWEN3_30B = {
    "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936,
    "max_position_embeddings": 40960, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN15_MOE = {
    "model_type": "qwen2_moe", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 5632, "vocab_size": 151936, "max_position_embeddings": 8192,
    "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1,
}  # fmt: skip
QWEN2_05B = {
    "model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14,
    "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "max_position_embeddings": 131072,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_06B = {
    "model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
    "max_position_embeddings": 40960, "tie_word_embeddings": True,
}  # fmt: skip
GEMMA_7B = {
    "model_type": "gemma", "num_hidden_layers": 28, "hidden_size": 3072, "num_attention_heads": 16,
    "num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 24576, "vocab_size": 256000,
    "max_position_embeddings": 8192, "hidden_activation": "gelu_pytorch_tanh",
}  # fmt: skip
MISTRAL_7B = {
    "model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768,
    "sliding_window": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
OPT_67B = {
    "model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "ffn_dim": 16384,
    "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096, "torch_dtype": "float16",
}  # fmt: skip
FALCON_7B = {
    "model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
    "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024, "torch_dtype": "bfloat16",
}  # fmt: skip
FALCON_40B = {
    "model_type": "RefinedWeb", "n_layer": 60, "hidden_size": 8192, "n_head": 128, "num_kv_heads": 8,
    "new_decoder_architecture": True, "vocab_size": 65024, "torch_dtype": "bfloat16",
}  # fmt: skip
NEOX_20B = {
    "model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144, "num_attention_heads": 64,
    "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048, "torch_dtype": "float16",
}  # fmt: skip
DEEPSEEK_MOE = {
    "model_type": "deepseek", "num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 10944, "vocab_size": 102400, "max_position_embeddings": 4096,
    "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "max_position_embeddings": 163840,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "v_head_dim": 128,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
GPT_OSS_120B = {
    "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
    "max_position_embeddings": 131072, "num_local_experts": 128, "num_experts_per_tok": 4,
}  # fmt: skip


def parameters(shape: Transformer) -> float:
    """Of the matrices that the dimensions say: no norms, biases or learned positions, below 1 % together."""
    head = shape.head_size or shape.hidden_size // shape.attention_heads
    keys = shape.key_value_heads or shape.attention_heads
    attention = 2 * shape.hidden_size * head * (shape.attention_heads + keys)
    matrices = 3 if shape.gated_feed_forward else 2
    width = shape.feed_forward_size or 4 * shape.hidden_size
    dense, sparse = matrices * shape.hidden_size * width, 0
    sparse_layers = (shape.expert_layers or shape.layers) if shape.experts else 0
    if shape.experts:
        expert = shape.experts * (shape.expert_feed_forward_size or width) + shape.shared_expert_feed_forward_size
        sparse = matrices * shape.hidden_size * expert + shape.hidden_size * shape.experts
    embeddings = shape.vocabulary_size * shape.hidden_size * (2 if shape.untied_embeddings else 1)
    layers = shape.layers * attention + (shape.layers - sparse_layers) * dense + sparse_layers * sparse
    return float(layers + embeddings)


@pytest.mark.parametrize(
    ("config", "published"),
    [
        (LLAMA3_8B, 8.030e9),
        (GPT2, 124.4e6),
        (BERT, 335e6),
        (MIXTRAL, 46.70e9),
        (QWEN3_30B, 30.53e9),
        (QWEN15_MOE, 14.32e9),
        (QWEN2_05B, 494e6),
        (QWEN3_06B, 596e6),
        (GEMMA_7B, 8.54e9),
        (MISTRAL_7B, 7.242e9),
        (OPT_67B, 6.66e9),
        (FALCON_7B, 6.92e9),
        (FALCON_40B, 41.3e9),
        (NEOX_20B, 20.55e9),
        (DEEPSEEK_MOE, 16.38e9),
        (GPT_OSS_120B, 116.8e9),
    ],
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
        layers=32, hidden_size=4096, attention_heads=32, sequence_length=4096, vocabulary_size=128256,
        key_value_heads=8, feed_forward_size=14336, head_size=128, gated_feed_forward=True, untied_embeddings=True,
    )  # fmt: skip


def test_a_length_that_is_not_given_is_the_longest_and_said() -> None:
    found = model_from_hugging_face(MISTRAL_7B)
    assert found.workload.transformer is not None
    assert found.workload.transformer.sequence_length == 32768
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
    assert shape.expert_layers == 11
    assert shape.shared_expert_feed_forward_size == 5632
    shape = model_from_hugging_face(DEEPSEEK_MOE, sequence_length=16).workload.transformer
    assert shape is not None
    assert (shape.expert_layers, shape.shared_expert_feed_forward_size) == (27, 2816)


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
        ({**LLAMA3_8B, "model_type": "mamba"}, "config: model_type: must be one of bert, "),
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


def test_paths_are_no_names() -> None:
    for path in ("/home/somebody/model", "./model", "C:\\model", "a/b/c"):
        assert model_from_hugging_face({**GPT2, "_name_or_path": path}).workload.model_name == "gpt2"
