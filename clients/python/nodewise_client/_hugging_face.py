"""Import of a model's dimensions from the `config.json` of Hugging Face transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nodewise_client._hugging_face_families import (
    AFTER_DENSE,
    ALIASES,
    EVERY_OTHER,
    FAMILIES,
    LISTED,
    PERIOD,
    STATED,
    USUAL,
    Experts,
    Family,
)
from nodewise_client._hugging_face_layers import MOE, facts_of_layers, kinds_of_layers
from nodewise_client._hugging_face_reader import ImportedModelError, Reader
from nodewise_client._hugging_face_vision import TEXT_FAMILIES, encoder_of, text_of
from nodewise_values import Transformer, Workload

__all__ = ["ImportedModel", "ImportedModelError", "model_from_hugging_face"]

_PRECISIONS: Final = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float": "fp32",
}
_HEAD_SIZES: Final = {"qwen": "kv_channels", "zamba2": "attention_head_dim"}
"""Keys of a head's width other than `head_dim`."""
_MOST_LAYERS: Final = 4096
"""Each layer is an entry of a list; the deepest models have a few hundred."""
_MUST_BE_STATED: Final = {
    "layers_count": "layers",
    "hidden_size": "hidden_size",
    "attention_heads_count": "attention_heads",
    "sequence_length_tokens": "sequence_length",
    "vocabulary_size": "vocabulary_size",
}
"""Fields of a transformer by the dimension that each is."""
_DROPOUTS: Final = (
    *("attention_dropout", "hidden_dropout", "resid_dropout", "attn_pdrop", "resid_pdrop", "dropout"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A model as imported."""

    workload: Workload
    notes: tuple[str, ...]
    """What was taken from a default, and what the model has that its dimensions do not say."""


def model_from_hugging_face(
    source: str | Path | Mapping[str, Any], *, sequence_length: int | None = None
) -> ImportedModel:
    """The model that a `config.json` describes.

    Parameters
    ----------
    source : path of the file, or what it holds.
    sequence_length : tokens per sample. None = the longest that the model takes, which is rarely what it is trained
        with; a note says so.

    Returns
    -------
    ImportedModel
        Its workload (transformer, model's name, precision, dropout), and notes on every assumption.

    Raises
    ------
    ImportedModelError
        Naming the key that is missing or wrong, or the architecture that a `Transformer` does not represent.
    """
    if isinstance(source, Mapping):
        return _Import(source, "config").model(sequence_length)
    path = Path(source)
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ImportedModelError(f"{path}: cannot be read: {reason}") from None
    except (ValueError, RecursionError):
        raise ImportedModelError(f"{path}: is not valid JSON; must be the config.json of a model") from None
    if not isinstance(document, dict):
        raise ImportedModelError(f"{path}: must contain a JSON object, the config.json of a model")
    return _Import(document, str(path)).model(sequence_length)


class _Import(Reader):
    """One import."""

    def model(self, sequence_length: int | None) -> ImportedModel:
        whole = str(self.config.get("model_type"))
        if whole in TEXT_FAMILIES:
            text = _Import(text_of(self, whole), self.source).model(sequence_length)
            encoder = encoder_of(self, whole)
            workload = replace(text.workload, encoder=encoder, model_name=self._name(whole))
            return ImportedModel(workload=workload, notes=(*text.notes, *self.notes))
        kind, family = self._family()
        names = {**USUAL, **family.names}
        hidden_size = self.count(names["hidden_size"])
        heads = self.count(names["attention_heads"])
        layers = self._layers(names["layers"])
        feed_forward = self._feed_forward(names["feed_forward_size"], hidden_size, family)
        transformer: dict[str, Any] = {
            "layers_count": layers,
            "hidden_size": hidden_size,
            "attention_heads_count": heads,
            "sequence_length_tokens": self._sequence(
                names["sequence_length"], sequence_length, family.positions_unused
            ),
            "vocabulary_size": self.count(names["vocabulary_size"]),
            "key_value_heads_count": self._key_value_heads(kind, family, heads),
            "feed_forward_size": feed_forward,
            **(
                self._latent_attention()
                if family.latent
                else {"head_size": self._head_size(kind, family, hidden_size, heads)}
            ),
            "gated_feed_forward": family.gated,
            "untied_embeddings": not self.flag("tie_word_embeddings", otherwise=family.tied),
        }
        kinds = kinds_of_layers(self, kind, layers)
        transformer |= facts_of_layers(self, kind, kinds, hidden_size)
        experts = family.experts
        has_experts = experts is not None and self.config.get(experts.count) not in (None, 0)
        if experts and has_experts and (experts.layers != LISTED or MOE in kinds):
            transformer |= self._experts(experts, kinds)
        self._say_what_is_left_out()
        workload = Workload(
            model_name=self._name(kind),
            transformer=Transformer(**transformer),
            precision=self._precision(),
            dropout=self._dropout(),
        )
        return ImportedModel(workload=workload, notes=tuple(self.notes))

    def _family(self) -> tuple[str, Family]:
        kind = self.config.get("model_type")
        if kind is None:
            raise self.wrong("model_type", "is missing; must be one of " + _family_names())
        kind = ALIASES.get(str(kind), str(kind))
        if self.config.get("is_encoder_decoder"):
            raise self.wrong("is_encoder_decoder", "must be false: encoder-decoder models are not supported")
        text_config = self.config.get("text_config")
        if kind not in FAMILIES and isinstance(text_config, Mapping):
            raise self.wrong(
                "text_config",
                f"is one of several parts of a model of type {kind!r}; import it alone "
                f"(its model_type is {text_config.get('model_type')!r})",
            )
        if kind not in FAMILIES:
            raise self.wrong(
                "model_type",
                f"{kind!r} is not supported (supported: {_family_names()}): state its dimensions as "
                f"workload.transformer of a profile or specification: {self._dimensions()}",
            )
        return kind, FAMILIES[kind]

    def _dimensions(self) -> str:
        """What a transformer must state, with the numbers that are there under their usual names."""
        values = {field: self.config.get(USUAL[name][0]) for field, name in _MUST_BE_STATED.items()}
        return ", ".join(f"{field} ({value})" if isinstance(value, int) else field for field, value in values.items())

    def _layers(self, names: tuple[str, ...]) -> int:
        layers = self.count(names)
        if layers > _MOST_LAYERS:
            raise self.wrong(self.present(names), f"must be at most {_MOST_LAYERS}, found {layers}")
        return layers

    def _feed_forward(self, names: tuple[str, ...], hidden_size: int, family: Family) -> int:
        if "expansion_ratio" in names and self.config.get("expansion_ratio") is not None:
            return self._expanded_size(hidden_size)
        if family.feed_forward_default and all(self.config.get(name) is None for name in names):
            return 4 * hidden_size
        width = self.count(names)
        if not family.halved_feed_forward:
            return width
        if width % 2:
            raise self.wrong(self.present(names), f"must be even, because it includes the gate, found {width}")
        return width // 2

    def _expanded_size(self, hidden_size: int) -> int:
        ratio = self.config["expansion_ratio"]
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1024:
            raise self.wrong("expansion_ratio", f"must be a number above 0, found {ratio!r}")
        return max(1, int(hidden_size * ratio))

    def _sequence(self, names: tuple[str, ...], stated_length: int | None, unused_positions: int) -> int:
        if stated_length is not None:
            if stated_length < 1:
                raise ImportedModelError(f"sequence_length: must be at least 1 token, found {stated_length}")
            return stated_length
        if all(self.config.get(name) is None for name in names):
            raise ImportedModelError(
                f"{self.source}: sequence_length must be given: {names[0]}, the model's longest, is missing"
            )
        longest = self.count(names)
        if longest > unused_positions:
            longest -= unused_positions
        self.notes.append(
            f"sequence_length is assumed to be {longest} tokens, the model's longest ({self.present(names)}): "
            "state it if the job trains on shorter sequences"
        )
        return longest

    def _key_value_heads(self, kind: str, family: Family, heads: int) -> int:
        if kind == "falcon":
            # As its attention decides: the old architecture shares one head or none.
            if self.flag("new_decoder_architecture", otherwise=False) or not self.flag("multi_query", otherwise=True):
                return self.count(("num_kv_heads",), otherwise=heads)
            return 1
        if kind == "gpt_bigcode":
            return 1 if self.flag("multi_query", otherwise=True) else heads
        if kind == "mpt":
            return self._grouped_by_attention(heads)
        if not family.grouped:
            return heads
        return self.count(("num_key_value_heads",), otherwise=None if family.key_value_heads == STATED else heads)

    def _grouped_by_attention(self, heads: int) -> int:
        """As MPT says it: by the type of attention, in an object of its own."""
        attention = self.config.get("attn_config") or {}
        if not isinstance(attention, Mapping):
            raise self.wrong("attn_config", f"must be an object, found {attention!r}")
        if attention.get("attn_type") == "multiquery_attention":
            return 1
        return self.count_in(attention, ("kv_n_heads",), otherwise=heads)

    def _head_size(self, kind: str, family: Family, hidden_size: int, heads: int) -> int:
        name = _HEAD_SIZES.get(kind, "head_dim")
        if self.config.get(name) is not None:
            return self.count((name,))
        if family.head_size:
            self.notes.append(f"head_dim is missing and assumed to be {family.head_size}, the default of {kind}")
            return family.head_size
        if hidden_size % heads:
            raise self.wrong(name, f"must be given: {heads} heads do not divide the hidden size of {hidden_size}")
        return hidden_size // heads

    def _latent_attention(self) -> dict[str, int | None]:
        rotary = self.count(("qk_rope_head_dim",))
        return {
            "key_value_latent_size": self.count(("kv_lora_rank",)),
            "query_latent_size": self.count(("q_lora_rank",), otherwise=0, least=0) or None,
            "rotary_head_size": rotary,
            "head_size": self.count(("qk_nope_head_dim",)) + rotary,
            "value_head_size": self.count(("v_head_dim",)),
        }

    def _experts(self, experts: Experts, kinds: list[str]) -> dict[str, int | None]:
        width = self.count((experts.width,))
        shared_width = self.count((experts.shared_count,), otherwise=0, least=0) * width if experts.shared_count else 0
        if experts.shared_width:
            shared_width = self.count((experts.shared_width,), least=0)
        sparse = self._layers_with_experts(experts.layers, kinds)
        if not 1 <= sparse <= len(kinds):
            raise self.wrong(
                experts.count, f"must be 0 if no layer has experts, found {self.config.get(experts.count)}"
            )
        return {
            "experts_count": self.count((experts.count,)),
            "experts_per_token_count": self.count(("num_experts_per_tok", "experts_per_token")),
            "expert_feed_forward_size": width,
            "shared_expert_feed_forward_size": shared_width or None,
            "expert_layers_count": sparse if experts.layers else None,
        }

    def _layers_with_experts(self, which: str, kinds: list[str]) -> int:
        layers = range(len(kinds))
        if which == AFTER_DENSE:
            dense = self.count(("first_k_dense_replace",), otherwise=0, least=0)
            step = self.count(("moe_layer_freq",), otherwise=1)
            return sum(1 for layer in layers if layer >= dense and layer % step == 0)
        if which == PERIOD:
            period = self.count(("expert_layer_period",), otherwise=2)
            offset = self.count(("expert_layer_offset",), otherwise=1, least=0)
            return sum(1 for layer in layers if layer % period == offset)
        if which == EVERY_OTHER:
            step = self.count(("decoder_sparse_step",), otherwise=1)
            dense_layers = self.config.get("mlp_only_layers") or []
            if not isinstance(dense_layers, list) or not all(isinstance(layer, int) for layer in dense_layers):
                raise self.wrong("mlp_only_layers", f"must be a list of layers, found {dense_layers!r}")
            return sum(1 for layer in layers if layer not in dense_layers and (layer + 1) % step == 0)
        return kinds.count(MOE) if which == LISTED else len(kinds)

    def _say_what_is_left_out(self) -> None:
        if self.config.get("num_nextn_predict_layers"):
            self.notes.append("num_nextn_predict_layers: layers that predict further tokens are left out")
        projection_size = self.config.get("word_embed_proj_dim")
        if isinstance(projection_size, int) and projection_size != self.config.get("hidden_size"):
            self.notes.append(
                f"word_embed_proj_dim {projection_size} is not supported: embeddings are assumed to have hidden_size"
            )
        if self.config.get("quantization_config"):
            self.notes.append("quantization_config is ignored: the precision is that of the unquantized weights")

    def _precision(self) -> str:
        word = self.config.get("torch_dtype", self.config.get("dtype"))
        if word is None:
            for flag in ("bf16", "fp16", "fp32"):  # of the first Qwen
                if self.config.get(flag) is True:
                    return flag
            self.notes.append("torch_dtype is missing: precision is not stated")
            return ""
        precision = _PRECISIONS.get(str(word).removeprefix("torch."))
        if precision is None:
            raise self.wrong("torch_dtype", f"must be one of {', '.join(sorted(_PRECISIONS))}, found {word!r}")
        return precision

    def _dropout(self) -> bool | None:
        """Whether any rate of dropout is above 0; None = no key tells."""
        rates = [(name, self.config[name]) for name in _DROPOUTS if self.config.get(name) is not None]
        for name, rate in rates:
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0:
                raise self.wrong(name, f"must be a rate from 0 to 1, found {rate!r}")
        return any(rate > 0.0 for _, rate in rates) if rates else None

    def _name(self, kind: str) -> str:
        name = self.config.get("_name_or_path")
        # A published name is "owner/model"; anything else may be a local path.
        if isinstance(name, str) and name.count("/") <= 1 and name[:1].isalnum() and "\\" not in name:
            return name
        return kind


def _family_names() -> str:
    return ", ".join(sorted({*FAMILIES, *TEXT_FAMILIES}))
