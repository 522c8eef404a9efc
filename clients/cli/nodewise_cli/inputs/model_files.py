"""Model files that a profile names: a Hugging Face `config.json`, a table of layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format

from nodewise_cli.console import complain
from nodewise_cli.failures import InputError
from nodewise_client import ImportedModel, ImportedModelError, Workload, layers_from_csv, model_from_hugging_face
from nodewise_values.wire import to_message

__all__ = ["with_model", "workload_of_model"]

HUGGING_FACE: Final = "hugging_face"
LAYER_TABLE: Final = "layer_table"
SEQUENCE_LENGTH: Final = "sequence_length_tokens"
_ALIASES: Final = {
    "hf",
    "hf_config",
    "huggingface",
    "huggingface_config",
    "hugging_face_config",
    "config",
    "model_config",
}


def workload_of_model(path: Path, document: dict[str, Any], sequence_length: int | None) -> Workload:
    """The workload of a `config.json`; its notes go to standard error.

    Raises
    ------
    InputError
        Naming the file, the key and what would be right.
    """
    try:
        return _workload_of(model_from_hugging_face(document, sequence_length=sequence_length))
    except ImportedModelError as error:
        raise InputError(f"{path}: {str(error).removeprefix('config: ')}") from None


def with_model(path: Path, workload: dict[str, Any]) -> dict[str, Any]:
    """A workload's document with the content of its model files instead of their names.

    ``{"hugging_face": FILE, "sequence_length_tokens": 4096}`` becomes the transformer of a `config.json`,
    ``{"layer_table": FILE}`` the layers of a table; paths are relative to the document's. What the document says itself
    stands.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    names = {name for field in to_message(Workload()).DESCRIPTOR.fields for name in (field.name, field.json_name)}
    for key in workload.keys() - names - {HUGGING_FACE, LAYER_TABLE, SEQUENCE_LENGTH}:
        if key.lower().replace("-", "_") in _ALIASES:
            raise InputError(f"{path}: workload.{key}: is not a field of Workload; use {HUGGING_FACE}")
    rest = {key: value for key, value in workload.items() if key not in {HUGGING_FACE, LAYER_TABLE, SEQUENCE_LENGTH}}
    length = workload.get(SEQUENCE_LENGTH)
    if length is not None and HUGGING_FACE not in workload:
        unknown = sorted(rest.keys() - names)
        if unknown:
            raise InputError(
                f"{path}: workload.{unknown[0]}: is not a field of Workload; name the file of a model by {HUGGING_FACE}"
            )
        raise InputError(
            f"{path}: workload.{SEQUENCE_LENGTH}: needs {HUGGING_FACE}; without it, state "
            "workload.transformer.sequence_length_tokens"
        )
    if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
        text = json.dumps(length)
        raise InputError(f"{path}: workload.{SEQUENCE_LENGTH}: must be a whole number, found {text}")
    workloads = []
    try:
        if HUGGING_FACE in workload:
            config = _file(path, workload, HUGGING_FACE, "transformer")
            workloads.append(_workload_of(model_from_hugging_face(config, sequence_length=length)))
        if LAYER_TABLE in workload:
            workloads.append(Workload(layers=layers_from_csv(_file(path, workload, LAYER_TABLE, "layers"))))
    except ImportedModelError as error:
        raise InputError(str(error)) from None
    return {name: fact for part in workloads for name, fact in _fields(part).items()} | rest


def _file(path: Path, workload: dict[str, Any], key: str, what: str) -> Path:
    """The file that a key names; it must be the only source of what it states."""
    if what in workload:
        raise InputError(f"{path}: workload.{what}: must be left out when {key} is given, which states it")
    name = workload[key]
    if not isinstance(name, str) or not name:
        raise InputError(f"{path}: workload.{key}: must be the path of a file, found {json.dumps(name)}")
    return path.parent / name


def _fields(workload: Workload) -> dict[str, Any]:
    return json_format.MessageToDict(to_message(workload), preserving_proto_field_name=True)


def _workload_of(model: ImportedModel) -> Workload:
    for note in model.notes:
        complain(note)
    return model.workload
