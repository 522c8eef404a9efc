"""The configurations of published models, written by hand with the keys that matter, and their published sizes."""

from __future__ import annotations

from typing import Any

LLAMA3_8B: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
}  # fmt: skip
LLAMA3_70B: dict[str, Any] = LLAMA3_8B | {
    "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672,
}  # fmt: skip
LLAMA31_405B: dict[str, Any] = LLAMA3_8B | {
    "num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128, "intermediate_size": 53248,
}  # fmt: skip
GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "n_layer": 12,
    "n_embd": 768,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
BERT: dict[str, Any] = {
    "model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
    "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512, "hidden_act": "gelu",
}  # fmt: skip
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768,
    "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16", "sliding_window": None,
}  # fmt: skip
QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936,
    "max_position_embeddings": 40960, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN15_MOE: dict[str, Any] = {
    "model_type": "qwen2_moe", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 5632, "vocab_size": 151936, "max_position_embeddings": 8192,
    "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1,
}  # fmt: skip
QWEN2_05B: dict[str, Any] = {
    "model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14,
    "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "max_position_embeddings": 131072,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_06B: dict[str, Any] = {
    "model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
    "max_position_embeddings": 40960, "tie_word_embeddings": True,
}  # fmt: skip
GEMMA_7B: dict[str, Any] = {
    "model_type": "gemma", "num_hidden_layers": 28, "hidden_size": 3072, "num_attention_heads": 16,
    "num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 24576, "vocab_size": 256000,
    "max_position_embeddings": 8192, "hidden_activation": "gelu_pytorch_tanh",
}  # fmt: skip
MISTRAL_7B: dict[str, Any] = {
    "model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768,
    "sliding_window": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
OPT_67B: dict[str, Any] = {
    "model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "ffn_dim": 16384,
    "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096, "torch_dtype": "float16",
}  # fmt: skip
FALCON_7B: dict[str, Any] = {
    "model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
    "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024, "torch_dtype": "bfloat16",
}  # fmt: skip
FALCON_40B: dict[str, Any] = {
    "model_type": "RefinedWeb", "n_layer": 60, "hidden_size": 8192, "n_head": 128, "num_kv_heads": 8,
    "new_decoder_architecture": True, "vocab_size": 65024, "torch_dtype": "bfloat16",
}  # fmt: skip
NEOX_20B: dict[str, Any] = {
    "model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144, "num_attention_heads": 64,
    "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048, "torch_dtype": "float16",
}  # fmt: skip
DEEPSEEK_MOE: dict[str, Any] = {
    "model_type": "deepseek", "num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 10944, "vocab_size": 102400, "max_position_embeddings": 4096,
    "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "max_position_embeddings": 163840,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "v_head_dim": 128,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
GPT_OSS_120B: dict[str, Any] = {
    "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
    "max_position_embeddings": 131072, "num_local_experts": 128, "num_experts_per_tok": 4,
}  # fmt: skip

QWEN_14B: dict[str, Any] = {
    "model_type": "qwen", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
    "intermediate_size": 27392, "vocab_size": 152064, "seq_length": 2048, "max_position_embeddings": 8192,
    "kv_channels": 128, "tie_word_embeddings": False, "bf16": False, "fp16": True,
}  # fmt: skip
QWEN_72B: dict[str, Any] = QWEN_14B | {
    "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 49152,
    "bf16": True, "fp16": False,
}  # fmt: skip
MPT_125M: dict[str, Any] = {
    "model_type": "mpt", "d_model": 768, "n_heads": 12, "n_layers": 12, "expansion_ratio": 4, "max_seq_len": 2048,
    "vocab_size": 50368, "attn_config": {"attn_impl": "flash"},
}  # fmt: skip
MPT_7B: dict[str, Any] = MPT_125M | {
    "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432, "torch_dtype": "bfloat16",
}  # fmt: skip
PHI_2: dict[str, Any] = {
    "model_type": "phi", "num_hidden_layers": 32, "hidden_size": 2560, "num_attention_heads": 32,
    "num_key_value_heads": 32, "intermediate_size": 10240, "vocab_size": 51200, "max_position_embeddings": 2048,
    "tie_word_embeddings": False, "torch_dtype": "float16", "partial_rotary_factor": 0.4,
}  # fmt: skip
BLOOM_7B: dict[str, Any] = {
    "model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32, "vocab_size": 250880, "seq_length": 2048,
}  # fmt: skip
GPT_NEO_27B: dict[str, Any] = {
    "model_type": "gpt_neo", "num_layers": 32, "hidden_size": 2560, "num_heads": 20, "intermediate_size": None,
    "vocab_size": 50257, "max_position_embeddings": 2048,
}  # fmt: skip
STARCODER2_3B: dict[str, Any] = {
    "model_type": "starcoder2", "num_hidden_layers": 30, "hidden_size": 3072, "num_attention_heads": 24,
    "num_key_value_heads": 2, "intermediate_size": 12288, "vocab_size": 49152, "max_position_embeddings": 16384,
}  # fmt: skip
INTERNLM2_7B: dict[str, Any] = {
    "model_type": "internlm2", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 92544, "max_position_embeddings": 32768,
}  # fmt: skip
DISTILBERT: dict[str, Any] = {
    "model_type": "distilbert", "n_layers": 6, "dim": 768, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522,
    "max_position_embeddings": 512,
}  # fmt: skip
ROBERTA: dict[str, Any] = BERT | {
    "model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514,
}  # fmt: skip

DEEPSEEK_V2: dict[str, Any] = DEEPSEEK_V3 | {
    "model_type": "deepseek_v2", "num_hidden_layers": 60, "hidden_size": 5120, "intermediate_size": 12288,
    "vocab_size": 102400, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6,
    "moe_intermediate_size": 1536, "first_k_dense_replace": 1, "num_nextn_predict_layers": None,
}  # fmt: skip
DEEPSEEK_V2_LITE: dict[str, Any] = DEEPSEEK_V2 | {
    "num_hidden_layers": 27, "hidden_size": 2048, "intermediate_size": 10944, "num_attention_heads": 16,
    "n_routed_experts": 64, "moe_intermediate_size": 1408, "q_lora_rank": None,
}  # fmt: skip
KIMI_K2: dict[str, Any] = DEEPSEEK_V3 | {
    "model_type": "kimi_k2", "num_attention_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1,
    "vocab_size": 163840, "num_nextn_predict_layers": 0,
}  # fmt: skip
GEMMA2_9B: dict[str, Any] = GEMMA_7B | {
    "model_type": "gemma2", "num_hidden_layers": 42, "hidden_size": 3584, "num_key_value_heads": 8,
    "intermediate_size": 14336, "sliding_window": 4096,
}  # fmt: skip
GEMMA3_1B: dict[str, Any] = GEMMA_7B | {
    "model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152, "num_attention_heads": 4,
    "num_key_value_heads": 1, "intermediate_size": 6912, "vocab_size": 262144, "sliding_window": 512,
    "sliding_window_pattern": 6,
}  # fmt: skip
COHERE2_7B: dict[str, Any] = {
    "model_type": "cohere2", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 256000,
    "max_position_embeddings": 132096, "sliding_window": 4096, "sliding_window_pattern": 4,
}  # fmt: skip
OLMO3_7B: dict[str, Any] = {
    "model_type": "olmo3", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 100278, "max_position_embeddings": 65536,
}  # fmt: skip
NEMOTRON_H_8B: dict[str, Any] = {
    "model_type": "nemotron_h", "num_hidden_layers": 52, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504, "vocab_size": 131072,
    "max_position_embeddings": 8192, "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128,
    "n_groups": 8, "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
}  # fmt: skip
NEMOTRON_3_NANO: dict[str, Any] = NEMOTRON_H_8B | {
    "hidden_size": 2688, "num_key_value_heads": 2, "mamba_num_heads": 64, "n_routed_experts": 128,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
}  # fmt: skip
JAMBA: dict[str, Any] = {
    "model_type": "jamba", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 65536, "max_position_embeddings": 262144,
    "num_experts": 16, "num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1,
    "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_expand": 2,
}  # fmt: skip
BAMBA_9B: dict[str, Any] = {
    "model_type": "bamba", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 262144,
    "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 128,
    "mamba_n_groups": 1, "mamba_expand": 2,
}  # fmt: skip
GRANITE4_TINY: dict[str, Any] = {
    "model_type": "granitemoehybrid", "num_hidden_layers": 40, "hidden_size": 1536, "num_attention_heads": 12,
    "num_key_value_heads": 4, "intermediate_size": 512, "shared_intermediate_size": 1024, "vocab_size": 100352,
    "max_position_embeddings": 131072, "num_local_experts": 64, "num_experts_per_tok": 6, "mamba_n_heads": 48,
    "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "tie_word_embeddings": True,
    "layer_types": ["attention" if layer in {5, 15, 25, 35} else "mamba" for layer in range(40)],
}  # fmt: skip
GRANITE4_MICRO: dict[str, Any] = GRANITE4_TINY | {
    "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8, "shared_intermediate_size": 8192,
    "num_local_experts": 0, "num_experts_per_tok": 0, "mamba_n_heads": 64,
}  # fmt: skip
FALCON_H1_34B: dict[str, Any] = {
    "model_type": "falcon_h1", "num_hidden_layers": 72, "hidden_size": 5120, "num_attention_heads": 20,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 21504, "vocab_size": 261120,
    "max_position_embeddings": 262144, "mamba_d_ssm": 4096, "mamba_n_heads": 32, "mamba_d_head": 128,
    "mamba_d_state": 256, "mamba_n_groups": 2,
}  # fmt: skip
QWEN3_NEXT: dict[str, Any] = {
    "model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "vocab_size": 151936,
    "max_position_embeddings": 262144, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "full_attention_interval": 4, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
}  # fmt: skip
ZAMBA2_7B: dict[str, Any] = {
    "model_type": "zamba2", "num_hidden_layers": 81, "hidden_size": 3584, "num_attention_heads": 32,
    "num_key_value_heads": 32, "attention_head_dim": 224, "intermediate_size": 14336, "vocab_size": 32000,
    "max_position_embeddings": 4096, "mamba_d_state": 64, "mamba_expand": 2, "mamba_ngroups": 2, "num_mem_blocks": 2,
    "hybrid_layer_ids": [6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77],
}  # fmt: skip
MAMBA_CODESTRAL: dict[str, Any] = {
    "model_type": "mamba2", "num_hidden_layers": 64, "hidden_size": 4096, "num_heads": 128, "head_dim": 64,
    "state_size": 128, "n_groups": 8, "expand": 2, "vocab_size": 32768, "tie_word_embeddings": False,
}  # fmt: skip
_CLIP: dict[str, Any] = {
    "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
}  # fmt: skip
LLAVA_7B: dict[str, Any] = {
    "model_type": "llava", "torch_dtype": "float16", "vision_config": _CLIP,
    "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064},
}  # fmt: skip
QWEN2_VL_7B: dict[str, Any] = {
    "model_type": "qwen2_vl", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
    "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 32768,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "hidden_size": 3584},
}  # fmt: skip
QWEN25_VL_7B: dict[str, Any] = QWEN2_VL_7B | {
    "model_type": "qwen2_5_vl",
    "vision_config": {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31],
    },
}  # fmt: skip
GEMMA3_4B: dict[str, Any] = {
    "model_type": "gemma3", "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
        "num_attention_heads": 16, "num_hidden_layers": 27, "image_size": 896, "patch_size": 14,
    },
}  # fmt: skip
INTERNVL3_8B: dict[str, Any] = {
    "model_type": "internvl", "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28,
        "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 151674, "max_position_embeddings": 32768,
    },
    "vision_config": {
        "model_type": "internvl_vision", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
        "num_hidden_layers": 24, "image_size": [448, 448], "patch_size": [14, 14],
    },
}  # fmt: skip
MISTRAL3_24B: dict[str, Any] = {
    "model_type": "mistral3", "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
        "head_dim": 128, "vocab_size": 131072, "sliding_window": None,
    },
    "vision_config": {"model_type": "pixtral", "image_size": 1540, "patch_size": 14},
}  # fmt: skip

PUBLISHED: list[tuple[dict[str, Any], float]] = [
    (LLAMA3_8B, 8.030e9),
    (LLAMA3_70B, 70.55e9),
    (LLAMA31_405B, 405.9e9),
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
    (QWEN_14B, 14.17e9),
    (QWEN_72B, 72.29e9),
    (MPT_7B, 6.65e9),
    (PHI_2, 2.78e9),
    (BLOOM_7B, 7.07e9),
    (GPT_NEO_27B, 2.65e9),
    (STARCODER2_3B, 3.03e9),
    (INTERNLM2_7B, 7.74e9),
    (DISTILBERT, 66.4e6),
    (DEEPSEEK_V2, 235.7e9),
    (DEEPSEEK_V2_LITE, 15.71e9),
    (DEEPSEEK_V3, 671e9),
    (KIMI_K2, 1.03e12),
    (GEMMA2_9B, 9.24e9),
    (GEMMA3_1B, 1.00e9),
    (COHERE2_7B, 8.03e9),
    (OLMO3_7B, 7.30e9),
    (JAMBA, 51.6e9),
    (BAMBA_9B, 9.78e9),
    (GRANITE4_TINY, 6.94e9),
    (GRANITE4_MICRO, 3.19e9),
    (FALCON_H1_34B, 33.6e9),
    (QWEN3_NEXT, 79.7e9),
    (NEMOTRON_3_NANO, 31.6e9),
    (LLAVA_7B, 7.06e9),
    (QWEN2_VL_7B, 8.29e9),
    (QWEN25_VL_7B, 8.29e9),
    (GEMMA3_4B, 4.30e9),
    (INTERNVL3_8B, 7.94e9),
    (MISTRAL3_24B, 24.0e9),
]
"""All parameters of a model, as published."""
