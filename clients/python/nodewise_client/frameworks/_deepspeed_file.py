"""`ds_config.json` of DeepSpeed as a layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._statements import Statement
from nodewise_values import Recomputation

__all__ = ["is_neox", "read", "read_neox"]

_BATCHES: Final = {
    "global_batch": "train_batch_size",
    "micro_batch": "train_micro_batch_size_per_gpu",
    "accumulation": "gradient_accumulation_steps",
}
_OF_NEOX: Final = {
    "tensor": "model_parallel_size",
    "sequence_length": "seq_length",
    "layers": "num_layers",
}


def read(file: Statement, document: Mapping[str, Any]) -> None:
    """Read what a configuration states; "auto" states nothing."""
    for field_name, name in _BATCHES.items():
        file.count(field_name, name, document.get(name))
    zero = file.section("zero_optimization", document.get("zero_optimization"))
    file.values["zero_stage"] = 0
    stage = file.count("zero_stage", "zero_optimization.stage", zero.get("stage"), 0)
    if stage is not None and stage > 3:
        file.wrong("zero_optimization.stage", f"must be 0, 1, 2 or 3, found {stage}")
    file.values.setdefault("zero_stage", 0)
    _offload(file, zero)
    formats = [
        name
        for name in ("bf16", "fp16")
        if file.flag(f"{name}.enabled", file.section(name, document.get(name)).get("enabled"))
    ]
    if len(formats) == 2:
        file.wrong("bf16.enabled", "must be false where fp16.enabled is true")
    stated = any(
        file.section(name, document.get(name)).get("enabled") not in (None, "auto") for name in ("bf16", "fp16")
    )
    if formats or stated:
        file.values["precision"] = formats[0] if formats else "fp32"
    else:
        file.notes.append("bf16 and fp16 are not stated: the model's precision is assumed")
    tensor = file.section("tensor_parallel", document.get("tensor_parallel"))
    file.count("tensor", "tensor_parallel.autotp_size", tensor.get("autotp_size") or None)
    expert = file.section("expert_parallel", document.get("expert_parallel"))
    if file.flag("expert_parallel.enabled", expert.get("enabled")):
        file.count("expert", "expert_parallel.autoep_size", expert.get("autoep_size"))
    if document.get("sequence_parallel_size") not in (None, 1):
        file.wrong("sequence_parallel_size", "must be 1: Ulysses sequence parallelism is not predicted")
    optimizer = file.section("optimizer", document.get("optimizer")).get("type")
    if isinstance(optimizer, str):
        file.facts["optimizer"] = optimizer.lower()
    if not is_neox(document):
        file.notes.append("recomputation and pipeline stages are the script's: none are assumed")


def is_neox(document: Mapping[str, Any]) -> bool:
    """Whether a configuration is of GPT-NeoX, which adds Megatron's settings to those of DeepSpeed."""
    return any(str(name).replace("-", "_") in ("pipe_parallel_size", "model_parallel_size") for name in document)


def read_neox(file: Statement, document: Mapping[str, Any]) -> None:
    """Read a configuration of GPT-NeoX, whose names have dashes or underscores."""
    values = {name.replace("-", "_"): value for name, value in document.items()}
    if "precision" in values:
        formats = {"bfloat16": "bf16", "bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}
        word = file.choice("precision", values["precision"], formats)
        values |= {name: {"enabled": word == name} for name in ("bf16", "fp16")}
    read(file, values | {"pipe_parallel_size": values.get("pipe_parallel_size")})
    for field_name, name in _OF_NEOX.items():
        file.count(field_name, name.replace("_", "-"), values.get(name))
    file.count("pipeline", "pipe-parallel-size", values.get("pipe_parallel_size") or 1)
    full = file.flag("checkpoint-activations", values.get("checkpoint_activations"))
    file.recomputation(Recomputation.FULL if full else Recomputation.NONE)
    parallel = file.flag("sequence-parallel", values.get("sequence_parallel"))
    file.values["sequence_parallel"] = parallel and file.values.get("tensor", 1) > 1


def _offload(file: Statement, zero: Mapping[str, Any]) -> None:
    for name, fact in (("offload_optimizer", "optimizer"), ("offload_param", "parameters")):
        device = file.section(f"zero_optimization.{name}", zero.get(name)).get("device", "none")
        if device not in ("none", "cpu", "nvme"):
            file.wrong(f"zero_optimization.{name}.device", f"must be none, cpu or nvme, found {device!r}")
        if device == "nvme":
            file.notes.append(f"zero_optimization.{name}: NVMe is predicted as the host's memory")
        if device != "none":
            file.facts["offload"] = fact
    if file.flag("zero_optimization.cpu_offload", zero.get("cpu_offload")):  # the name until DeepSpeed 0.3.16
        file.facts.setdefault("offload", "optimizer")
