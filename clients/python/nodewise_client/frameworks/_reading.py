"""Files of training frameworks: what each states of a layout."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nodewise_client.frameworks import _accelerate_file, _deepspeed_file, _megatron_file, _nemo_file, _torchtitan_file
from nodewise_client.frameworks._statements import LayoutFileError, StatedLayout, Statement

__all__ = ["LayoutFileError", "StatedLayout", "read_layout"]

_OF_DEEPSPEED: Final = ("zero_optimization", "train_", "gradient_accumulation", "bf16", "fp16")
_COMMENTS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|#[^\n]*|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])|\b(?:True|False|None)\b')


def read_layout(path: str | Path) -> StatedLayout:
    """What a file states, of DeepSpeed, torchtitan, Megatron-LM, Accelerate, GPT-NeoX or NeMo.

    The ending .json, .toml, .yaml or .yml names the language; any other file is a script or a list of arguments, unless
    it begins with "{". The fields of JSON and YAML show whose configuration it is.

    Raises
    ------
    LayoutFileError
        Naming the file, its field and what is right.
    """
    path = Path(path)
    source, ending = str(path), path.suffix.lower()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LayoutFileError(f"{source}: cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise LayoutFileError(f"{source}: must be a text file in UTF-8") from None
    is_object = re.match(r"\s*(?:#[^\n]*\s*)*\{", text) is not None
    if ending == ".json" or (is_object and ending != ".toml"):
        file = _of_object(source, _parse(source, text, _loose_json, "JSON"))
    elif ending in (".yaml", ".yml"):
        file = _of_object(source, _accelerate_file.parse_yaml(Statement(source, "accelerate"), text))
    elif ending == ".toml":
        file = Statement(source, "torchtitan")
        document = _parse(source, text, tomllib.loads, "TOML")
        _refuse_others(file, document, ("training", "parallelism", "experimental"))
        _torchtitan_file.read(file, document)
    else:
        file = Statement(source, "megatron")
        _megatron_file.read(file, text)
    return file.result()


def _of_object(source: str, document: Mapping[str, Any]) -> Statement:
    """What JSON or YAML states, of the framework whose fields it has."""
    if "compute_environment" in document or "distributed_type" in document:
        file = Statement(source, "accelerate")
        _accelerate_file.read(file, document)
    elif _nemo_file.is_nemo(document):
        file = Statement(source, "nemo")
        _nemo_file.read(file, document)
    elif _deepspeed_file.is_neox(document):
        file = Statement(source, "deepspeed")
        _deepspeed_file.read_neox(file, document)
    elif any(str(name).startswith(_OF_DEEPSPEED) for name in document):
        file = Statement(source, "deepspeed")
        _deepspeed_file.read(file, document)
    else:
        raise LayoutFileError(
            f"{source}: must be a configuration of DeepSpeed, which has {' or '.join(_OF_DEEPSPEED)}; of Accelerate, "
            "which has distributed_type; of NeMo, which has model.tensor_model_parallel_size; or of GPT-NeoX, which "
            "has pipe-parallel-size"
        )
    return file


def _loose_json(text: str) -> Any:
    """JSON, or what DeepSpeed and GPT-NeoX also read: comments, commas before a closing bracket, True for true."""

    def plain(match: re.Match[str]) -> str:
        return match[1] or {"True": "true", "False": "false", "None": "null"}.get(match[0], " ")

    try:
        return json.loads(text)
    except ValueError:
        loose = text
        for pattern in (_COMMENTS, _TRAILING):
            loose = pattern.sub(plain, loose)
        return json.loads(loose)


def _parse(source: str, text: str, parse: Any, language: str) -> Mapping[str, Any]:
    try:
        document = parse(text)
    except (ValueError, RecursionError) as error:
        raise LayoutFileError(f"{source}: is not valid {language}: {error}") from None
    if not isinstance(document, Mapping):
        raise LayoutFileError(f"{source}: must contain an object of {language}")
    return document


def _refuse_others(file: Statement, document: Mapping[str, Any], beginnings: tuple[str, ...]) -> None:
    """Refuse a document that has nothing of the framework."""
    if not any(str(name).startswith(beginnings) for name in document):
        raise LayoutFileError(
            f"{file.source}: must be a configuration of {file.framework}, which has {' or '.join(beginnings)}"
        )
