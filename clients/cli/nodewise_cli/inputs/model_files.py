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
    """A workload's document with what its model files hold in the place of their names.

    ``{"hugging_face": FILE, "sequence_length_tokens": 4096}`` becomes the transformer of a `config.json`,
    ``{"layer_table": FILE}`` the layers of a table; paths are relative to the document's. What the document says itself
    stands.

    Raises
    ------
    InputError
        Naming the file, the place and what would be right.
    """
    known = {name for field in to_message(Workload()).DESCRIPTOR.fields for name in (field.name, field.json_name)}
    for key in workload.keys() - known - {HUGGING_FACE, LAYER_TABLE, SEQUENCE_LENGTH}:
        if key.lower().replace("-", "_") in _ALIASES:
            raise InputError(f"{path}: workload.{key}: is no field of Workload; the nearest is {HUGGING_FACE}")
    rest = {key: value for key, value in workload.items() if key not in {HUGGING_FACE, LAYER_TABLE, SEQUENCE_LENGTH}}
    length = workload.get(SEQUENCE_LENGTH)
    if length is not None and HUGGING_FACE not in workload:
        unknown = sorted(rest.keys() - known)
        if unknown:
            raise InputError(
                f"{path}: workload.{unknown[0]}: is no field of Workload; the file of a model is {HUGGING_FACE}"
            )
        raise InputError(
            f"{path}: workload.{SEQUENCE_LENGTH}: must come with {HUGGING_FACE}; without it the length is "
            "workload.transformer.sequence_length_tokens"
        )
    if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
        found = json.dumps(length)
        raise InputError(
            f"{path}: workload.{SEQUENCE_LENGTH}: must be a whole number beside {HUGGING_FACE}, found {found}"
        )
    imported = []
    try:
        if HUGGING_FACE in workload:
            named = _file(path, workload, HUGGING_FACE, "transformer")
            imported.append(_workload_of(model_from_hugging_face(named, sequence_length=length)))
        if LAYER_TABLE in workload:
            imported.append(Workload(layers=layers_from_csv(_file(path, workload, LAYER_TABLE, "layers"))))
    except ImportedModelError as error:
        raise InputError(str(error)) from None
    return {name: held for part in imported for name, held in _fields(part).items()} | rest


def _file(path: Path, workload: dict[str, Any], key: str, what: str) -> Path:
    """The file that a key names, which says what nothing else then may."""
    if what in workload:
        raise InputError(f"{path}: workload.{what}: must be left out beside {key}, which says it")
    named = workload[key]
    if not isinstance(named, str) or not named:
        raise InputError(f"{path}: workload.{key}: must be the path of a file, found {json.dumps(named)}")
    return path.parent / named


def _fields(workload: Workload) -> dict[str, Any]:
    return json_format.MessageToDict(to_message(workload), preserving_proto_field_name=True)


def _workload_of(found: ImportedModel) -> Workload:
    for note in found.notes:
        complain(note)
    return found.workload
