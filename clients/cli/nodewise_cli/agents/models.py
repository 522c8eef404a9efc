"""The workload that an agent describes: a config.json, or a size and dimensions, with what is assumed for the rest."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from nodewise_cli.agents.arguments import JobQuestion, Model
from nodewise_cli.agents.known_models import KnownModel, known_model
from nodewise_cli.failures import InputError
from nodewise_client import ImportedModelError, Transformer, Workload, model_from_hugging_face
from nodewise_values.fact import by_csv
from nodewise_values.facts import TRANSFORMER, WORKLOAD

__all__ = ["MIXED_PRECISION", "LengthMissingError", "described_workload", "with_training"]

SAME_SIZE: Final = 1.15
"""Ratio to the published parameters up to which a stated size is that of the model."""
LONGEST_UNSAID: Final = 4096
"""Tokens of the longest sequence that is assumed to be trained with where a config states it."""
_SHAPES: Final = (
    *((85e6, 12, 768), (302e6, 24, 1024), (680e6, 24, 1536), (1.2e9, 24, 2048), (2.5e9, 32, 2560), (6.4e9, 32, 4096)),
    *((12.6e9, 40, 5120), (32e9, 60, 6656), (68e9, 80, 8192), (174e9, 96, 12288), (405e9, 126, 16384)),
    *((530e9, 105, 20480), (1.0e12, 128, 25600)),
)
"""Parameters without embeddings, layers and width of published dense models: GPT-3 (Brown et al. 2020), Llama 1 to 3.1,
Megatron-Turing NLG 530B, and the 1T model of Narayanan et al. 2021."""
_HEAD: Final = 128
_SMALL_HEAD: Final = 64
_SMALL_HIDDEN: Final = 2048
_TIED_BELOW: Final = 2e9
_VOCABULARIES: Final = {True: 50257, False: 32000}
"""Of models with tied embeddings (GPT-2), and of others (Llama 2)."""
_FULL_FORMATS: Final = frozenset({"fp32", "tf32", "fp64"})
_FULL_BYTES: Final = 4
_FORMATS: Final = ("bf16", "fp16", "fp32")
"""Number formats in which a job that states none is assumed to train: the first that its device has."""
MIXED_PRECISION: Final = (
    "32-bit master weights, as usual in mixed precision: with Adam 16 bytes for each trained parameter; "
    "state master_weights false for pure 16-bit training"
)
_TRAINING: Final = (
    *("framework", "optimizer", "precision", "master_weights", "optimizer_state_bits", "frozen_weights"),
    *("frozen_weight_bits", "adapter_rank", "offload", "fused_loss"),
)


def described_workload(model: Model, question: JobQuestion) -> tuple[Workload, list[str]]:
    """The workload of a described model, and what is assumed.

    Raises
    ------
    InputError
        Naming the argument and what would be right.
    """
    if model.config is not None:
        return _of_config(model.config, question)
    if (known := _model_by_name(model)) is not None:
        workload, assumed = _of_config(dict(known.config), question)
        return workload, [f"the dimensions of {known.name}, by its name", *assumed]
    if model.layers is None and model.parameters is None and model.flops_per_sample is None:
        unknown = "" if model.name is None else f"; no language model is known by the name {model.name!r}"
        raise InputError(
            f"model: must have config, or parameters such as 7B, or layers, hidden_size and so on{unknown}. Of other "
            "networks, such as convolutional ones, give measured runs in the place of model"
        )
    workload = Workload(model_name=model.name or "")
    if model.flops_per_sample is not None and model.layers is None:
        if model.parameters is not None:
            workload = replace(workload, parameter_bytes=float(round(model.parameters * _FULL_BYTES)))
        return replace(
            workload,
            flops_per_sample=model.flops_per_sample,
            activation_bytes_per_sample=model.activation_bytes_per_sample,
        ), []
    dimensions, assumed = _dimensions(model)
    fields = by_csv(TRANSFORMER)
    values = {fields[name].field: value for name, value in dimensions.items()}
    transformer = Transformer(sequence_length_tokens=question.sequence_length or 1, **values)
    return replace(workload, transformer=transformer), assumed


def with_training(workload: Workload, question: JobQuestion, formats: Collection[str]) -> tuple[Workload, list[str]]:
    """The workload with what the question states of training, and what is assumed on a device with such formats."""
    fields = {fact.csv: fact.field for fact in WORKLOAD.values() if fact.csv} | {"precision": "precision"}
    stated = {name: getattr(question, name) for name in _TRAINING}
    workload = replace(workload, **{fields[name]: value for name, value in stated.items() if value is not None})
    assumed: list[str] = []
    if workload.transformer is None or question.model is None:
        return workload, assumed
    if not workload.precision:
        workload = replace(workload, precision=next((each for each in _FORMATS if each in formats), _FORMATS[0]))
        assumed.append(f"training in {workload.precision}")
    if workload.master_weights is None and workload.precision not in _FULL_FORMATS:
        workload = replace(workload, master_weights=True)
        assumed.append(MIXED_PRECISION)
    return workload, assumed


class LengthMissingError(InputError):
    """A model takes long sequences, and the question does not state those of the training."""

    def __init__(self, tokens: int) -> None:
        super().__init__(
            f"sequence_length: must be given: the model takes up to {tokens:,} tokens, few jobs train on so many"
        )


def _model_by_name(model: Model) -> KnownModel | None:
    """The published model that a name means, unless the size is another's; None = its dimensions are described."""
    if model.name is None or model.layers is not None or model.flops_per_sample is not None:
        return None
    known = known_model(model.name)
    if known is None or model.parameters is None:
        return known
    return known if 1.0 / SAME_SIZE < model.parameters / known.parameters < SAME_SIZE else None


def _of_config(config: dict[str, Any], question: JobQuestion) -> tuple[Workload, list[str]]:
    try:
        model = model_from_hugging_face(config, sequence_length=question.sequence_length)
    except ImportedModelError as error:
        text, is_list, _ = str(error).partition(" (supported: ")
        more = (
            "; leave config out and give parameters: a language model of that size is then assumed" if is_list else ""
        )
        raise InputError(f"model.{text}{more}") from None
    transformer = model.workload.transformer
    longest = 0 if transformer is None else transformer.sequence_length_tokens
    if question.sequence_length is None and longest > LONGEST_UNSAID:
        raise LengthMissingError(longest)
    # What a config says of its stored weights is not what a job trains in, and the question's format is told apart.
    return model.workload, [note for note in model.notes if not note.startswith("torch_dtype")]


def _dimensions(model: Model) -> tuple[dict[str, Any], list[str]]:
    """The dimensions by the columns of a table: those stated, those of usual shapes, and a width that fits the size."""
    fields = by_csv(TRANSFORMER)
    stated = {name: getattr(model, name) for name in fields if getattr(model, name, None) is not None}
    required = [name for name, fact in fields.items() if fact.required and name != "sequence_length"]
    missing = [name for name in required if name not in stated]
    if not missing:
        return stated, []
    if model.parameters is None:
        raise InputError(f"model: must have parameters such as 7B, or also {', '.join(missing)}")
    if model.experts is not None:
        raise InputError(f"model: a mixture of experts must have {', '.join(missing)}, or its config")
    size = model.parameters
    if not _SHAPES[0][0] / 100 <= size <= 100 * _SHAPES[-1][0]:
        raise InputError(f"model.parameters: must be the size of a transformer, such as 7B, found {size:g}")
    _, layers, hidden = min(_SHAPES, key=lambda shape: abs(math.log(shape[0] / size)))
    chosen: dict[str, Any] = {"hidden_size": stated.get("hidden_size", hidden), "layers": stated.get("layers", layers)}
    tied = not stated.get("untied_output", size >= _TIED_BELOW)
    head = _SMALL_HEAD if chosen["hidden_size"] <= _SMALL_HIDDEN else _HEAD
    chosen |= {"vocabulary_size": _VOCABULARIES[tied], "attention_heads": max(1, chosen["hidden_size"] // head)}
    chosen |= stated | {"untied_output": not tied}
    if "feed_forward_size" not in stated:
        chosen["feed_forward_size"] = _feed_forward_size(size, chosen, tied=tied)
    named = ", ".join(f"{name} {value}" for name, value in chosen.items() if name not in stated and value is not True)
    return chosen, [f"dimensions usual for a dense language model of this size: {named}"]


def _feed_forward_size(size: float, chosen: dict[str, Any], *, tied: bool) -> int:
    """The width with which the parameters add up to the size: matrices of attention, of the layer, and embeddings."""
    layers, hidden = chosen["layers"], chosen["hidden_size"]
    share = chosen.get("kv_heads", chosen["attention_heads"]) / chosen["attention_heads"]
    embeddings = chosen["vocabulary_size"] * hidden * (1 if tied else 2)
    attention = layers * hidden * hidden * (2 + 2 * share)
    matrices = 3 if chosen.get("gated") else 2
    width: int = round((size - embeddings - attention) / (matrices * layers * hidden))
    if width < 1:
        raise InputError(
            "model.parameters: is too small for its other dimensions; leave them out, or state all of them"
        )
    return width
