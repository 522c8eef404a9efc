"""Vision-language models of Hugging Face transformers: which part is the language model, and what the encoder is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from nodewise_client._hugging_face_reader import Reader
from nodewise_values import Encoder

TEXT_FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gemma3": "gemma3_text",
        "internvl": "qwen2",
        "internvl_chat": "internlm2",
        "llava": "llama",
        "llava_next": "llama",
        "mistral3": "mistral",
        "paligemma": "gemma",
        "qwen2_5_vl": "qwen2",
        "qwen2_vl": "qwen2",
    }
)
"""Vision-language models, and the family of their text where that does not say its own."""
_TEXT_KEYS: Final = ("text_config", "llm_config")
_MISTRAL: Final = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
}  # fmt: skip
_TEXT_DEFAULTS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "gemma3_text": {
            "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
            "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
        },
        "llama": {
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "max_position_embeddings": 2048,
        },
        "mistral": _MISTRAL,
    }
)  # fmt: skip
"""What a part that is saved within another leaves out: all that its class has by itself."""
_ENCODERS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "clip_vision_model": {
            "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
            "image_size": 224, "patch_size": 32,
        },
        "siglip_vision_model": {
            "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
            "image_size": 224, "patch_size": 16,
        },
        "pixtral": {
            "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096,
            "image_size": 1024, "patch_size": 16,
        },
        "qwen2_vl": {"depth": 32, "embed_dim": 1280, "num_heads": 16, "patch_size": 14, "mlp_ratio": 4},
        "qwen2_5_vl": {
            "depth": 32, "hidden_size": 1280, "num_heads": 16, "patch_size": 14, "intermediate_size": 3420,
            "window_size": 112,
        },
    }
)  # fmt: skip
"""Sizes that a tower leaves out, by its kind; other kinds must say theirs."""
_GATED_FAMILIES: Final = frozenset({"pixtral", "qwen2_5_vl"})
_ANY_SIZE: Final = 448
"""Pixels of an image's edge where the model takes any size and names none: that of Qwen-VL and InternVL."""


def text_of(reader: Reader, kind: str) -> dict[str, Any]:
    """The configuration of the language model, with what its class has by itself."""
    text_config = next((part for key in _TEXT_KEYS if isinstance(part := reader.config.get(key), Mapping)), None)
    # Qwen2-VL keeps the dimensions of its text at the top.
    outer = {key: value for key, value in reader.config.items() if key not in {*_TEXT_KEYS, "vision_config"}}
    text_family = TEXT_FAMILIES[kind]
    family = str((text_config or {}).get("model_type") or text_family).removesuffix("_text")
    family = text_family if family in TEXT_FAMILIES or f"{family}_text" == text_family else family
    common = {
        key: outer[key] for key in ("torch_dtype", "dtype", "tie_word_embeddings", "_name_or_path") if key in outer
    }
    return {
        **_TEXT_DEFAULTS.get(family, {}),
        **(common | dict(text_config) if text_config else outer),
        "model_type": family,
    }


def encoder_of(reader: Reader, kind: str) -> Encoder:
    """The encoder that `vision_config` describes, over one image a sample, with a note that says so."""
    vision = reader.config.get("vision_config")
    if not isinstance(vision, Mapping):
        raise reader.wrong("vision_config", f"must be an object, found {vision!r}")
    tower = str(vision.get("model_type") or kind)
    tower = kind if kind in _ENCODERS else tower
    parts = Reader({**_ENCODERS.get(tower, {}), **vision}, f"{reader.source}: vision_config")
    layers = parts.count(("depth", "num_hidden_layers"))
    # Qwen2-VL calls the width of the language model its hidden_size.
    hidden_size = parts.count(("embed_dim", "hidden_size"))
    patch = _edge(parts, "patch_size")
    edge = _edge(parts, "image_size", otherwise=_ANY_SIZE)
    tokens = (edge // patch) ** 2
    width = parts.count(("intermediate_size",), otherwise=parts.count(("mlp_ratio",), otherwise=4) * hidden_size)
    reader.notes.append(
        f"one image of {edge} x {edge} pixels ({tokens} patches) per sample and a trained encoder are assumed: "
        "state workload.encoder if that is wrong"
    )
    return Encoder(
        layers_count=layers,
        hidden_size=hidden_size,
        attention_heads_count=parts.count(("num_heads", "num_attention_heads")),
        tokens_per_sample=tokens,
        attended_tokens_count=_attended_patches(parts, layers, patch, tokens),
        # Three matrices of a gated layer are as many values as two of half as much again.
        feed_forward_size=width * 3 // 2 if tower in _GATED_FAMILIES else width,
    )


def _edge(parts: Reader, key: str, *, otherwise: int | None = None) -> int:
    value = parts.config.get(key)
    if isinstance(value, list) and value:
        parts = Reader({key: value[0]}, parts.source)
    return parts.count((key,), otherwise=otherwise)


def _attended_patches(parts: Reader, layers: int, patch: int, tokens: int) -> int | None:
    """Mean over layers of the patches that one attends to; None = all."""
    full = parts.config.get("fullatt_block_indexes")
    if not isinstance(full, list):
        return None
    window = min(tokens, (parts.count(("window_size",)) // patch) ** 2)
    return round((len(full) * tokens + (layers - len(full)) * window) / layers)
