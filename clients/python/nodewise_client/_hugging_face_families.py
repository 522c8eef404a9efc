"""How the families of Hugging Face transformers write their dimensions, and what a key that is left out means there.

A saved `config.json` leaves out what equals the default of its class, so the same absence means different things in
different families. The defaults are those of the configuration classes of the library `transformers`, version 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

AFTER_DENSE: Final = "after dense"
EVERY_OTHER: Final = "every other"
PERIOD: Final = "period"
LISTED: Final = "listed"

STATED: Final = "stated"
"""Key-value heads of a family whose class has a number of its own for them: the key must be there."""


@dataclass(frozen=True, slots=True)
class Experts:
    """How a family writes its experts."""

    count: str
    """Key of their number in a layer."""
    width: str = "moe_intermediate_size"
    """Key of the width of one."""
    shared_count: str = ""
    """Key of how many of that width every token visits; "" = it has none."""
    shared_width: str = ""
    """Key of the width of those that every token visits, together; "" = it has none."""
    layers: str = ""
    """Which layers have them: after the first dense ones, by steps, by a period, as listed by kind; "" = all."""


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
    experts: Experts | None = None
    """None = dense."""
    latent: bool = False
    """Its attention is latent (MLA)."""


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
_MAMBA: Final = MappingProxyType({"attention_heads": ("num_heads",), "feed_forward_size": ("num_heads",)})
"""A model of mixers alone: their heads are what tensor parallelism splits; a feed-forward part so narrow is none."""
_LLAMA: Final = Family(tied=False, gated=True, grouped=True)
_QWEN: Final = Family(tied=False, gated=True, grouped=True, key_value_heads=STATED)
_DEEPSEEK: Final = Experts("n_routed_experts", shared_count="n_shared_experts", layers=AFTER_DENSE)
_LATENT: Final = Family(tied=False, gated=True, experts=_DEEPSEEK, latent=True)
_GEMMA: Final = Family(tied=True, gated=True, grouped=True, key_value_heads=STATED, head_size=256)
_QWEN_MOE: Final = Experts("num_experts", layers=EVERY_OTHER)
_QWEN_SHARED: Final = Experts("num_experts", shared_width="shared_expert_intermediate_size", layers=EVERY_OTHER)
_ALIKE: Final = Experts("num_local_experts", "intermediate_size")
_BERT: Final = Family(tied=True, gated=False)
_ROBERTA: Final = Family(tied=True, gated=False, positions_unused=2)

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "bamba": _LLAMA,
        "bert": _BERT,
        "bloom": Family(tied=True, gated=False, names=_BLOOM, feed_forward_default=True),
        "codegen": Family(tied=False, gated=False, names=_GPT2, feed_forward_default=True),
        "cohere": Family(tied=True, gated=True, grouped=True),
        "cohere2": Family(tied=True, gated=True, grouped=True),
        "deepseek": Family(tied=False, gated=True, grouped=True, experts=_DEEPSEEK),
        "deepseek_v2": _LATENT,
        "deepseek_v3": _LATENT,
        "distilbert": Family(tied=True, gated=False, names=_DISTILBERT),
        "falcon": Family(tied=True, gated=False, names=_FALCON, feed_forward_default=True),
        "falcon_h1": _LLAMA,
        "gemma": _GEMMA,
        "gemma2": _GEMMA,
        "gemma3_text": _GEMMA,
        "gpt2": Family(tied=True, gated=False, names=_GPT2, feed_forward_default=True),
        "gpt_bigcode": Family(tied=True, gated=False, names=_GPT2, feed_forward_default=True),
        "gpt_neo": Family(tied=True, gated=False, names=_GPT_NEO, feed_forward_default=True),
        "gpt_neox": Family(tied=False, gated=False),
        "gpt_oss": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, head_size=64, experts=_ALIKE),
        "gptj": Family(tied=False, gated=False, names=_GPT2, feed_forward_default=True),
        "granite": Family(tied=False, gated=True, grouped=True),
        "granitemoehybrid": Family(
            tied=False,
            gated=True,
            grouped=True,
            names=MappingProxyType({"feed_forward_size": ("shared_intermediate_size",)}),
            experts=Experts("num_local_experts", "intermediate_size", shared_width="shared_intermediate_size"),
        ),
        "internlm2": Family(tied=False, gated=True, grouped=True),
        "jamba": Family(
            tied=False,
            gated=True,
            grouped=True,
            key_value_heads=STATED,
            experts=Experts("num_experts", "intermediate_size", layers=PERIOD),
        ),
        "llama": _LLAMA,
        "mamba2": Family(tied=False, gated=False, names=_MAMBA),
        "mistral": _QWEN,
        "mixtral": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts=_ALIKE),
        "mpt": Family(tied=True, gated=False, names=_MPT, feed_forward_default=True),
        "nemotron_h": Family(
            tied=False,
            gated=False,
            grouped=True,
            key_value_heads=STATED,
            experts=Experts("n_routed_experts", shared_width="moe_shared_expert_intermediate_size", layers=LISTED),
        ),
        "olmo": _LLAMA,
        "olmo2": _LLAMA,
        "olmo3": _LLAMA,
        "opt": Family(tied=True, gated=False, names=MappingProxyType({"feed_forward_size": ("ffn_dim",)})),
        "phi": Family(tied=False, gated=False, grouped=True),
        "phi3": _LLAMA,
        "qwen": Family(tied=False, gated=True, names=_QWEN_1, halved_feed_forward=True),
        "qwen2": _QWEN,
        "qwen2_moe": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts=_QWEN_SHARED),
        "qwen3": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, head_size=128),
        "qwen3_moe": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts=_QWEN_MOE),
        "qwen3_next": Family(tied=False, gated=True, grouped=True, key_value_heads=STATED, experts=_QWEN_SHARED),
        "roberta": _ROBERTA,
        "stablelm": _LLAMA,
        "starcoder2": Family(tied=True, gated=False, grouped=True, key_value_heads=STATED),
        "zamba2": Family(tied=True, gated=True, grouped=True, feed_forward_default=True),
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
