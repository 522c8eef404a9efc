"""Files of training frameworks: what each states of a layout."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodewise_client.frameworks import _accelerate_file, _deepspeed_file, _megatron_file, _torchtitan_file
from nodewise_client.frameworks._statements import LayoutFileError, StatedLayout, Statement

__all__ = ["LayoutFileError", "StatedLayout", "read_layout"]


def read_layout(path: str | Path) -> StatedLayout:
    """What a file states: JSON of DeepSpeed, TOML of torchtitan, YAML of Accelerate, or arguments of Megatron-LM.

    The file's ending says which it is; any other than .json, .toml, .yaml and .yml is read as a script or arguments.

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
    if ending in (".yaml", ".yml"):
        return _accelerate(source, text)
    if ending == ".json":
        document = _parse(source, text, json.loads, "JSON")
        if "compute_environment" in document or "distributed_type" in document:
            file = Statement(source, "accelerate")
            _accelerate_file.read(file, document)
        else:
            file = Statement(source, "deepspeed")
            _refuse_others(file, document, ("zero_optimization", "train_", "gradient_accumulation", "bf16", "fp16"))
            _deepspeed_file.read(file, document)
    elif ending == ".toml":
        file = Statement(source, "torchtitan")
        document = _parse(source, text, tomllib.loads, "TOML")
        _refuse_others(file, document, ("training", "parallelism", "experimental"))
        _torchtitan_file.read(file, document)
    else:
        file = Statement(source, "megatron")
        _megatron_file.read(file, text)
    return file.result()


def _accelerate(source: str, text: str) -> StatedLayout:
    file = Statement(source, "accelerate")
    document = _accelerate_file.parse_yaml(file, text)
    _refuse_others(file, document, ("distributed_type", "num_processes", "mixed_precision"))
    _accelerate_file.read(file, document)
    return file.result()


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
