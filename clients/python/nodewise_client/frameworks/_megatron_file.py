"""Arguments of Megatron-LM as a layout: a shell script, or the arguments alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._shell import Arguments, read_script
from nodewise_client.frameworks._statements import Statement
from nodewise_values import Recomputation

__all__ = ["read"]

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
_REQUIRED: Final = ("tensor", "pipeline", "context", "expert", "interleave", "layers_per_chunk")
"""Counts that are 1 only if the script leaves them out."""
_SWITCHES: Final = ("sequence-parallel", "use-distributed-optimizer", "recompute-granularity", "recompute-activations")
_UNDECIDED: Final = "stands under a condition that the file does not decide"
_STRATEGIES: Final = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}


def read(file: Statement, text: str) -> None:
    """Read what a script or a list of arguments states."""
    script = read_script(text)
    arguments = script.values
    if not any(name in (*arguments, *script.undecided) for names in _COUNTS.values() for name in names):
        file.wrong("arguments", "must contain arguments of Megatron-LM, such as --tensor-model-parallel-size 8")
    for field_name, names in _COUNTS.items():
        file.names.setdefault(field_name, f"--{names[0]}")
        for name in names:
            _count(file, field_name, name, script)
    file.values["sequence_parallel"] = "sequence-parallel" in arguments and file.values.get("tensor", 1) > 1
    file.values["zero_stage"] = _zero_stage(file, arguments)
    formats = [name for name in ("bf16", "fp16") if name in arguments]
    if not formats and {"bf16", "fp16"} & script.undecided:
        file.wrong("--bf16 or --fp16", _UNDECIDED)
    if len(formats) == 2:
        file.wrong("--bf16", "must be left out where --fp16 is given")
    fp8 = {"fp8-format", "fp8-hybrid", "fp8-e4m3"} & arguments.keys()
    file.values["precision"] = "fp8" if fp8 else formats[0] if formats else "fp32"
    file.recomputation(_recomputation(file, arguments))
    file.notes += [f"--{name}: {_UNDECIDED}; it is not read" for name in _SWITCHES if name in script.undecided]
    if isinstance(arguments.get("optimizer"), str):
        file.facts["optimizer"] = arguments["optimizer"]


def _count(file: Statement, field_name: str, name: str, script: Arguments) -> None:
    value = script.values.get(name)
    missing = f"{value} is not set in the file" if isinstance(value, str) and "$" in value else ""
    if name in script.undecided:
        missing = _UNDECIDED
    if missing and field_name in _REQUIRED:
        file.wrong(f"--{name}", missing)
    if missing:
        file.names[field_name] = f"--{name} ({missing})"
    elif value is not None:
        file.count(field_name, f"--{name}", None if value is True else value)


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
