"""Arguments of Megatron-LM as a layout: a shell script, or the arguments alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._statements import Statement
from nodewise_values import Recomputation

__all__ = ["read"]

_ASSIGNMENT: Final = re.compile(r"(?:export\s+|local\s+|readonly\s+)*([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ARITHMETIC: Final = re.compile(r"\$\(\(([^()]*)\)\)")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?:(:?-|:?=)([^}]*))?\}|(\w+))")
_PRODUCT: Final = re.compile(r"\s*\d+(?:\s*[*/]\s*\d+)*\s*")
_COUNTS: Final = {
    "tensor": ("tensor-model-parallel-size", "model-parallel-size"),
    "pipeline": ("pipeline-model-parallel-size",),
    "context": ("context-parallel-size",),
    "expert": ("expert-model-parallel-size",),
    "micro_batch": ("micro-batch-size",),
    "global_batch": ("global-batch-size",),
    "sequence_length": ("seq-length", "encoder-seq-length"),
    "interleave": ("num-virtual-stages-per-pipeline-rank",),
    "layers_per_chunk": ("num-layers-per-virtual-pipeline-stage",),
    "layers": ("num-layers", "encoder-num-layers"),
    "nodes": ("nnodes", "num-nodes"),
    "devices_per_node": ("nproc-per-node", "num-gpus"),
}
_STRATEGIES: Final = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}


def read(file: Statement, text: str) -> None:
    """Read what a script or a list of arguments states."""
    arguments = _arguments(text)
    if not any(name in arguments for names in _COUNTS.values() for name in names):
        file.wrong("arguments", "must contain arguments of Megatron-LM, such as --tensor-model-parallel-size 8")
    for field_name, names in _COUNTS.items():
        file.names.setdefault(field_name, f"--{names[0]}")
        for name in names:
            value = arguments.get(name)
            if isinstance(value, str) and "$" in value:
                file.names[field_name] = f"--{name} ({value} is not set in the file)"
            elif value is not None:
                file.count(field_name, f"--{name}", None if value is True else value)
    file.values["sequence_parallel"] = "sequence-parallel" in arguments and file.values.get("tensor", 1) > 1
    file.values["zero_stage"] = _zero_stage(file, arguments)
    formats = [name for name in ("bf16", "fp16") if name in arguments]
    if len(formats) == 2:
        file.wrong("--bf16", "must be left out where --fp16 is given")
    fp8 = {"fp8-format", "fp8-hybrid", "fp8-e4m3"} & arguments.keys()
    file.values["precision"] = "fp8" if fp8 else formats[0] if formats else "fp32"
    file.recomputation(_recomputation(file, arguments))
    if isinstance(arguments.get("optimizer"), str):
        file.facts["optimizer"] = arguments["optimizer"]


def _zero_stage(file: Statement, arguments: Mapping[str, Any]) -> int:
    if "zero-stage" in arguments:
        return int(file.choice("--zero-stage", arguments["zero-stage"], {str(stage): stage for stage in range(4)}))
    if {"use-megatron-fsdp", "use-custom-fsdp"} & arguments.keys():
        strategy = arguments.get("data-parallel-sharding-strategy", "no_shard")
        return int(file.choice("--data-parallel-sharding-strategy", strategy, _STRATEGIES))
    if "use-torch-fsdp2" in arguments:
        return 3
    return int("use-distributed-optimizer" in arguments)


def _recomputation(file: Statement, arguments: Mapping[str, Any]) -> Recomputation:
    words = {"selective": Recomputation.SELECTIVE, "full": Recomputation.FULL}
    if "recompute-granularity" in arguments:
        granularity: Recomputation = file.choice("--recompute-granularity", arguments["recompute-granularity"], words)
        return granularity
    if "recompute-activations" in arguments:
        return Recomputation.SELECTIVE
    return Recomputation.FULL if "checkpoint-activations" in arguments else Recomputation.NONE


def _arguments(text: str) -> dict[str, Any]:
    """Arguments by name, without leading dashes and with dashes for underscores; True for those without a value."""
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    variables: dict[str, str] = {}
    words: list[str] = []
    for line in lines:
        match = _ASSIGNMENT.fullmatch(line.strip())
        if match and not match[2].startswith("("):
            variables[match[1]] = _substitute(" ".join(_words(match[2])), variables)
            words += _words(variables[match[1]]) if "--" in variables[match[1]] else []
        else:
            words += [part for word in _words(line) for part in _substitute(word, variables).split()]
    arguments: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            name = name.replace("_", "-").rstrip(")")
            arguments[name] = value or True
        elif name and arguments[name] is True:
            arguments[name] = word.rstrip(")")
    return arguments


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote that goes on over lines
        return line.replace('"', " ").replace("'", " ").split()


def _substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with the variables that are set before it, and products of numbers computed."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[4]
        return variables.get(name, match[3] if match[3] is not None else match[0])

    def product(match: re.Match[str]) -> str:
        expression = re.sub(r"\b[A-Za-z_]\w*", lambda word: variables.get(word[0], word[0]), match[1])
        if not _PRODUCT.fullmatch(expression):
            return match[0]
        factors = re.findall(r"([*/]?)\s*(\d+)", expression)
        result = 1
        for sign, number in factors:
            result = result // max(int(number), 1) if sign == "/" else result * int(number)
        return str(result)

    return _ARITHMETIC.sub(product, _VARIABLE.sub(value, text))
