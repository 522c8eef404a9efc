"""Import of a model's dimensions from the `config.json` of Hugging Face transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodewise_client._hugging_face_families import ALIASES, FAMILIES, STATED, USUAL, Family
from nodewise_values import Transformer, Workload

_PRECISIONS: Final = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float": "fp32",
}
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


class ImportedModelError(ValueError):
    """A file that no model can be imported from; the text names the key or column and what would be right."""


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
        held = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ImportedModelError(f"{path}: cannot be read: {reason}") from None
    except (ValueError, RecursionError):
        raise ImportedModelError(f"{path}: is no JSON; must be the config.json of a model") from None
    if not isinstance(held, dict):
        raise ImportedModelError(f"{path}: must hold a JSON object, the config.json of a model")
    return _Import(held, str(path)).model(sequence_length)


class _Import:
    """One import: reads keys, and keeps what it assumed."""

    def __init__(self, config: Mapping[str, Any], source: str) -> None:
        self._config = config
        self._source = source
        self._notes: list[str] = []

    def model(self, sequence_length: int | None) -> ImportedModel:
        kind, family = self._family()
        names = {**USUAL, **family.names}
        hidden = self._count(names["hidden_size"])
        heads = self._count(names["attention_heads"])
        layers = self._count(names["layers"])
        feed_forward = self._feed_forward(names["feed_forward_size"], hidden, family)
        transformer: dict[str, Any] = {
            "layers_count": layers,
            "hidden_size": hidden,
            "attention_heads_count": heads,
            "sequence_length_tokens": self._sequence(
                names["sequence_length"], sequence_length, family.positions_unused
            ),
            "vocabulary_size": self._count(names["vocabulary_size"]),
            "key_value_heads_count": self._key_value_heads(kind, family, heads),
            "feed_forward_size": feed_forward,
            "head_size": self._head_size(kind, family, hidden, heads),
            "gated_feed_forward": family.gated,
            "untied_embeddings": not self._flag("tie_word_embeddings", otherwise=family.tied),
        }
        if family.experts and self._config.get(family.experts) not in (None, 0):
            transformer |= self._experts(kind, family, layers)
        self._say_what_is_left_out(transformer["sequence_length_tokens"])
        workload = Workload(
            model_name=self._name(kind),
            transformer=Transformer(**transformer),
            precision=self._precision(),
            dropout=self._dropout(),
        )
        return ImportedModel(workload=workload, notes=tuple(self._notes))

    def _family(self) -> tuple[str, Family]:
        kind = self._config.get("model_type")
        if kind is None:
            raise self._wrong("model_type", "is missing: it says which keys the others are; must be one of " + _known())
        kind = ALIASES.get(str(kind), str(kind))
        if self._config.get("is_encoder_decoder"):
            raise self._wrong("is_encoder_decoder", "must be false: encoder-decoder models are not represented")
        nested = self._config.get("text_config")
        if kind not in FAMILIES and isinstance(nested, Mapping):
            raise self._wrong(
                "text_config",
                f"is one part of several of a model of type {kind!r}; must be imported by itself, "
                f"without the others (its model_type is {nested.get('model_type')!r})",
            )
        if kind not in FAMILIES:
            raise self._wrong(
                "model_type",
                f"{kind!r} is not known (known are {_known()}): state its dimensions as workload.transformer of "
                f"a profile or specification: {self._dimensions()}",
            )
        return kind, FAMILIES[kind]

    def _dimensions(self) -> str:
        """What a transformer must state, with the numbers that are there under their usual names."""
        found = {field: self._config.get(USUAL[name][0]) for field, name in _MUST_BE_STATED.items()}
        return ", ".join(f"{field} ({value})" if isinstance(value, int) else field for field, value in found.items())

    def _feed_forward(self, names: tuple[str, ...], hidden: int, family: Family) -> int:
        if "expansion_ratio" in names and self._config.get("expansion_ratio") is not None:
            return self._expanded(hidden)
        if family.feed_forward_default and all(self._config.get(name) is None for name in names):
            return 4 * hidden
        width = self._count(names)
        if not family.halved_feed_forward:
            return width
        if width % 2:
            raise self._wrong(self._present(names), f"must be even: it counts the gate too, found {width}")
        return width // 2

    def _expanded(self, hidden: int) -> int:
        ratio = self._config["expansion_ratio"]
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1024:
            raise self._wrong("expansion_ratio", f"must be a number above 0, found {ratio!r}")
        return max(1, int(hidden * ratio))

    def _sequence(self, names: tuple[str, ...], given: int | None, unused: int) -> int:
        if given is not None:
            if given < 1:
                raise ImportedModelError(f"sequence_length: must be at least 1 token, found {given}")
            return given
        if all(self._config.get(name) is None for name in names):
            raise ImportedModelError(
                f"{self._source}: sequence_length must be given: {names[0]}, the model's longest, is missing"
            )
        longest = self._count(names)
        if longest > unused:
            longest -= unused
        self._notes.append(
            f"sequence_length is taken as {longest} tokens, the model's longest ({self._present(names)}): "
            "state it where the job trains with shorter ones"
        )
        return longest

    def _key_value_heads(self, kind: str, family: Family, heads: int) -> int:
        if kind == "falcon":
            # As its attention decides: the old architecture shares one head or none.
            if self._flag("new_decoder_architecture", otherwise=False) or not self._flag("multi_query", otherwise=True):
                return self._count(("num_kv_heads",), otherwise=heads)
            return 1
        if kind == "gpt_bigcode":
            return 1 if self._flag("multi_query", otherwise=True) else heads
        if kind == "mpt":
            return self._grouped_by_attention(heads)
        if not family.grouped:
            return heads
        return self._count(("num_key_value_heads",), otherwise=None if family.key_value_heads == STATED else heads)

    def _grouped_by_attention(self, heads: int) -> int:
        """As MPT says it: by the type of attention, in an object of its own."""
        attention = self._config.get("attn_config") or {}
        if not isinstance(attention, Mapping):
            raise self._wrong("attn_config", f"must be an object, found {attention!r}")
        if attention.get("attn_type") == "multiquery_attention":
            return 1
        return self._count_in(attention, ("kv_n_heads",), otherwise=heads)

    def _head_size(self, kind: str, family: Family, hidden: int, heads: int) -> int:
        if kind in {"deepseek_v2", "deepseek_v3"}:
            return self._latent_attention(hidden, heads)
        stated = "kv_channels" if kind == "qwen" else "head_dim"
        if self._config.get(stated) is not None:
            return self._count((stated,))
        if family.head_size:
            self._notes.append(f"head_dim is missing and taken as {family.head_size}, the default of {kind}")
            return family.head_size
        if hidden % heads:
            raise self._wrong(stated, f"must be given: {heads} heads do not divide the hidden size of {hidden}")
        return hidden // heads

    def _latent_attention(self, hidden: int, heads: int) -> int:
        """Multi-head latent attention has no counterpart among the dimensions: the nearest, and how near it is."""
        value = self._count(("v_head_dim",))
        query = self._count(("qk_nope_head_dim",)) + self._count(("qk_rope_head_dim",))
        rank, rope = self._count(("kv_lora_rank",)), self._count(("qk_rope_head_dim",))
        queries = hidden * heads * query
        if self._config.get("q_lora_rank") is not None:
            queries = self._count(("q_lora_rank",)) * (hidden + heads * query)
        keys = hidden * (rank + rope) + rank * heads * (query - rope + value)
        latent, plain = queries + keys + heads * value * hidden, 4 * hidden * heads * value
        self._notes.append(
            f"multi-head latent attention (kv_lora_rank {rank}) is not represented: it is imported as plain attention "
            f"of {heads} heads of {value}, with {plain / 1e6:.0f} million attention parameters in a layer in the place "
            f"of {latent / 1e6:.0f}; memory and time of attention are too high by that"
        )
        return value

    def _experts(self, kind: str, family: Family, layers: int) -> dict[str, int | None]:
        experts = self._count((family.experts,))
        per_token = self._count(("num_experts_per_tok", "experts_per_token"))
        alike = kind in {"mixtral", "gpt_oss"}
        width = self._count(("intermediate_size",) if alike else ("moe_intermediate_size",))
        found: dict[str, int | None] = {
            "experts_count": experts,
            "experts_per_token_count": per_token,
            "expert_feed_forward_size": width,
        }
        if alike:
            return found
        if family.experts == "n_routed_experts":
            shared = self._count(("n_shared_experts",), otherwise=0, least=0) * width
            sparse = self._after_dense(layers)
        else:
            named = "shared_expert_intermediate_size"
            shared = self._count((named,), least=0) if kind == "qwen2_moe" else 0
            sparse = self._every_other(layers)
        if not 1 <= sparse <= layers:
            raise self._wrong(family.experts, f"must be 0 where no layer has experts, found {experts}")
        return found | {"shared_expert_feed_forward_size": shared or None, "expert_layers_count": sparse}

    def _after_dense(self, layers: int) -> int:
        dense = self._count(("first_k_dense_replace",), otherwise=0, least=0)
        step = self._count(("moe_layer_freq",), otherwise=1)
        return sum(1 for layer in range(layers) if layer >= dense and layer % step == 0)

    def _every_other(self, layers: int) -> int:
        step = self._count(("decoder_sparse_step",), otherwise=1)
        dense = self._config.get("mlp_only_layers") or []
        if not isinstance(dense, list) or not all(isinstance(layer, int) for layer in dense):
            raise self._wrong("mlp_only_layers", f"must be a list of layers, found {dense!r}")
        return sum(1 for layer in range(layers) if layer not in dense and (layer + 1) % step == 0)

    def _say_what_is_left_out(self, sequence: int) -> None:
        window = self._config.get("sliding_window")
        if isinstance(window, int) and window < sequence and self._config.get("use_sliding_window", True):
            self._notes.append(
                f"sliding_window {window} is not represented: every layer is taken to attend to all {sequence} tokens"
            )
        if self._config.get("num_nextn_predict_layers"):
            self._notes.append("num_nextn_predict_layers: layers that predict further tokens are left out")
        projected = self._config.get("word_embed_proj_dim")
        if isinstance(projected, int) and projected != self._config.get("hidden_size"):
            self._notes.append(
                f"word_embed_proj_dim {projected} is not represented: embeddings are taken to be as wide as hidden_size"
            )
        if self._config.get("quantization_config"):
            self._notes.append("quantization_config is left out: precision is that of the weights without it")

    def _precision(self) -> str:
        word = self._config.get("torch_dtype", self._config.get("dtype"))
        if word is None:
            for flag in ("bf16", "fp16", "fp32"):  # of the first Qwen
                if self._config.get(flag) is True:
                    return flag
            self._notes.append("torch_dtype is missing: precision is not stated")
            return ""
        found = _PRECISIONS.get(str(word).removeprefix("torch."))
        if found is None:
            raise self._wrong("torch_dtype", f"must be one of {', '.join(sorted(_PRECISIONS))}, found {word!r}")
        return found

    def _dropout(self) -> bool | None:
        """Whether any rate of dropout is above 0; None = no key tells."""
        rates = [(name, self._config[name]) for name in _DROPOUTS if self._config.get(name) is not None]
        for name, rate in rates:
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0:
                raise self._wrong(name, f"must be a rate from 0 to 1, found {rate!r}")
        return any(rate > 0.0 for _, rate in rates) if rates else None

    def _name(self, kind: str) -> str:
        named = self._config.get("_name_or_path")
        # A published name is "owner/model"; anything else may be a path of somebody's disk.
        if isinstance(named, str) and named.count("/") <= 1 and named[:1].isalnum() and "\\" not in named:
            return named
        return kind

    def _count(self, names: tuple[str, ...], *, otherwise: int | None = None, least: int = 1) -> int:
        return self._count_in(self._config, names, otherwise=otherwise, least=least)

    def _count_in(
        self, held: Mapping[str, Any], names: tuple[str, ...], *, otherwise: int | None, least: int = 1
    ) -> int:
        for name in names:
            value = held.get(name)
            if value is None:
                continue
            # A bool is an int to Python, and no count.
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise self._wrong(name, f"must be a whole number of at least {least}, found {value!r}")
            return value
        if otherwise is None:
            others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            raise self._wrong(names[0] + others, f"is missing; must be a whole number of at least {least}")
        return otherwise

    def _flag(self, name: str, *, otherwise: bool) -> bool:
        value = self._config.get(name)
        if value is None:
            return otherwise
        if not isinstance(value, bool):
            raise self._wrong(name, f"must be true or false, found {value!r}")
        return value

    def _present(self, names: tuple[str, ...]) -> str:
        return next(name for name in names if self._config.get(name) is not None)

    def _wrong(self, name: str, text: str) -> ImportedModelError:
        return ImportedModelError(f"{self._source}: {name}: {text}")


def _known() -> str:
    return ", ".join(sorted(FAMILIES))
