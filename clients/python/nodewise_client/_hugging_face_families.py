"""How the families of Hugging Face transformers write their dimensions, and what a key that is left out means there.

A saved `config.json` leaves out what equals the default of its class, so the same absence means different things in
different families. The defaults are those of the configuration classes of the library `transformers`, version 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

STATED: Final = "stated"
"""Key-value heads of a family whose class has a number of its own for them: the key must be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family of architectures."""

    tied: bool
    """Whether the output layer shares the embedding's matrix where `tie_word_embeddings` is left out."""
    gated: bool
    """Whether its feed-forward layer has a gate."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Keys that it has in the place of the usual ones."""
    key_value_heads: str = ""
    """`STATED`: must be there; "": as many as attention heads where left out."""
    head_size: int = 0
    """Where `head_dim` is left out; 0 = hidden size / attention heads."""
    feed_forward_default: bool = False
    """Four times the hidden size where left out or null."""
    halved_feed_forward: bool = False
    """Its `intermediate_size` counts the gate too: twice the width."""
    positions_unused: int = 0
    """Positions of `max_position_embeddings` that no token has."""
    grouped: bool = False
    """Has `num_key_value_heads`."""
    experts: str = ""
    """Key of the number of experts; "" = dense."""


USUAL: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "layers": ("num_hidden_layers",),
        "hidden_size": ("hidden_size",),
        "attention_heads": ("num_attention_heads",),
        "feed_forward_size": ("intermediate_size",),
        "vocabulary_size": ("vocab_size",),
        "sequence_length": ("max_position_embeddings",),
    }
)

_GPT2: Final = MappingProxyType(
    {
        "layers": ("n_layer", "num_hidden_layers"),
        "hidden_size": ("n_embd", "hidden_size"),
        "attention_heads": ("n_head", "num_attention_heads"),
        "feed_forward_size": ("n_inner",),
        "sequence_length": ("n_positions", "n_ctx", "max_position_embeddings"),
    }
)
_FALCON: Final = MappingProxyType(
    {
        "layers": ("num_hidden_layers", "n_layer"),
        "attention_heads": ("num_attention_heads", "n_head"),
        "feed_forward_size": ("ffn_hidden_size",),
    }
)
_BLOOM: Final = MappingProxyType(
    {
        "layers": ("n_layer", "num_hidden_layers"),
        "hidden_size": ("hidden_size", "n_embed"),
        "attention_heads": ("n_head", "num_attention_heads"),
        "sequence_length": ("seq_length",),
    }
)
_DISTILBERT: Final = MappingProxyType(
    {
        "layers": ("n_layers",),
        "hidden_size": ("dim",),
        "attention_heads": ("n_heads",),
        "feed_forward_size": ("hidden_dim",),
    }
)
_GPT_NEO: Final = MappingProxyType({"layers": ("num_layers",), "attention_heads": ("num_heads",)})
_MPT: Final = MappingProxyType(
    {
        "layers": ("n_layers",),
        "hidden_size": ("d_model",),
        "attention_heads": ("n_heads",),
        "feed_forward_size": ("expansion_ratio",),
        "sequence_length": ("max_seq_len",),
    }
)
_QWEN_1: Final = MappingProxyType(
    {
        "layers": ("num_hidden_layers", "n_layer"),
        "hidden_size": ("hidden_size", "n_embd"),
        "attention_heads": ("num_attention_heads", "n_head"),
        "feed_forward_size": ("intermediate_size", "ffn_hidden_size"),
        "sequence_length": ("seq_length", "max_position_embeddings"),
    }
)
_LLAMA: Final = Family(tied=False, gated=True, grouped=True)
_QWEN: Final = Family(tied=False, gated=True, grouped=True, key_value_heads=STATED)
_BERT: Final = Family(tied=True, gated=False)
_ROBERTA: Final = Family(tied=True, gated=False, positions_unused=2)

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "bert": _BERT,
        "bloom": Family(tied=True, gated=False, names=_BLOOM, feed_forward_default=True),
        "codegen": Family(tied=False, gated=False, names=_GPT2, feed_forward_default=True),
        "cohere": Family(tied=True, gated=True, grouped=True),
        "deepseek": Family(tied=False, gated=True, grouped=True, experts="n_routed_experts"),
        "deepseek_v2": Family(tied=False, gated=True, experts="n_routed_experts"),
        "deepseek_v3": Family(tied=False, gated=True, experts="n_routed_experts"),
        "distilbert": Family(tied=True, gated=False, names=_DISTILBERT),
        "falcon": Family(tied=True, gated=False, names=_FALCON, feed_forward_default=True),
        "gemma": Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256),
        "gemma2": Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256),
        "gemma3_text": Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256),
        "gpt2": Family(tied=True, gated=False, names=_GPT2, feed_forward_default=True),
        "gpt_bigcode": Family(tied=True, gated=False, names=_GPT2, feed_forward_default=True),
        "gpt_neo": Family(tied=True, gated=False, names=_GPT_NEO, feed_forward_default=True),
        "gpt_neox": Family(tied=False, gated=False),
        "gpt_oss": Family(
            tied=False, gated=True, grouped=True, key_value_heads=STATED, head_size=64, experts="num_local_experts"
        ),
        "gptj": Family(tied=False, gated=False, names=_GPT2, feed_forward_default=True),
        "granite": Family(tied=False, gated=True, grouped=True),
        "internlm2": Family(tied=False, gated=True, grouped=True),
        "llama": _LLAMA,
        "mistral": _QWEN,
        "mixtral": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts="num_local_experts"),
        "mpt": Family(tied=True, gated=False, names=_MPT, feed_forward_default=True),
        "olmo": _LLAMA,
        "olmo2": _LLAMA,
        "opt": Family(tied=True, gated=False, names=MappingProxyType({"feed_forward_size": ("ffn_dim",)})),
        "phi": Family(tied=False, gated=False, grouped=True),
        "phi3": _LLAMA,
        "qwen": Family(tied=False, gated=True, names=_QWEN_1, halved_feed_forward=True),
        "qwen2": _QWEN,
        "qwen2_moe": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts="num_experts"),
        "qwen3": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, head_size=128),
        "qwen3_moe": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts="num_experts"),
        "roberta": _ROBERTA,
        "stablelm": _LLAMA,
        "starcoder2": Family(tied=True, gated=False, grouped=True, key_value_heads=STATED),
    }
)
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RefinedWebModel": "falcon",
        "RefinedWeb": "falcon",
        "xlm-roberta": "roberta",
        "camembert": "roberta",
        "kimi_k2": "deepseek_v3",
    }
)
"""Other names that a family goes by."""
