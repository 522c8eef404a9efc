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
_LLAMA: Final = Family(tied=False, gated=True, grouped=True)
_QWEN: Final = Family(tied=False, gated=True, grouped=True, key_value_heads=STATED)
_BERT: Final = Family(tied=True, gated=False)

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "bert": _BERT,
        "deepseek": Family(tied=False, gated=True, grouped=True, experts="n_routed_experts"),
        "deepseek_v2": Family(tied=False, gated=True, experts="n_routed_experts"),
        "deepseek_v3": Family(tied=False, gated=True, experts="n_routed_experts"),
        "falcon": Family(tied=True, gated=False, names=_FALCON, feed_forward_default=True),
        "gemma": Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256),
        "gemma2": Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256),
        "gemma3_text": Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256),
        "gpt2": Family(tied=True, gated=False, names=_GPT2, feed_forward_default=True),
        "gpt_bigcode": Family(tied=True, gated=False, names=_GPT2, feed_forward_default=True),
        "gpt_neox": Family(tied=False, gated=False),
        "gpt_oss": Family(
            tied=False, gated=True, grouped=True, key_value_heads=STATED, head_size=64, experts="num_local_experts"
        ),
        "gptj": Family(tied=False, gated=False, names=_GPT2, feed_forward_default=True),
        "llama": _LLAMA,
        "mistral": _QWEN,
        "mixtral": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts="num_local_experts"),
        "opt": Family(tied=True, gated=False, names=MappingProxyType({"feed_forward_size": ("ffn_dim",)})),
        "phi3": _LLAMA,
        "qwen2": _QWEN,
        "qwen2_moe": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts="num_experts"),
        "qwen3": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, head_size=128),
        "qwen3_moe": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts="num_experts"),
        "roberta": _BERT,
    }
)
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"RefinedWebModel": "falcon", "RefinedWeb": "falcon", "xlm-roberta": "roberta", "kimi_k2": "deepseek_v3"}
)
"""Other names that a family goes by."""
