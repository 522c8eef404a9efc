"""A YAML file of Accelerate as a layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._statements import Statement
from nodewise_values import Recomputation

__all__ = ["parse_yaml", "read"]

_STRATEGIES: Final = {
    "full_shard": 3,
    "1": 3,
    "hybrid_shard": 3,
    "4": 3,
    "shard_grad_op": 2,
    "2": 2,
    "hybrid_shard_zero2": 2,
    "5": 2,
    "no_shard": 0,
    "3": 0,
}
_SCALARS: Final[Mapping[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
    "{}": {},
    "[]": [],
}


def read(file: Statement, document: Mapping[str, Any]) -> None:
    """Read what a file states."""
    kind = str(document.get("distributed_type", "NO")).upper()
    kinds = ("FSDP", "DEEPSPEED", "MULTI_GPU", "MEGATRON_LM", "NO")
    if kind not in kinds:
        file.wrong("distributed_type", f"must be one of {', '.join(kinds)}, found {kind!r}")
    file.count("nodes", "num_machines", document.get("num_machines"))
    file.count("devices", "num_processes", document.get("num_processes"))
    file.names["micro_batch"] = "the batch of a device, which is the script's"
    word = str(document.get("mixed_precision", "no")).lower()
    formats = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "no": "fp32", "false": "fp32"}
    file.values["precision"] = file.choice("mixed_precision", word, formats)
    file.values["zero_stage"] = 0
    if kind == "DEEPSPEED":
        _of_deepspeed(file, file.section("deepspeed_config", document.get("deepspeed_config")))
    elif kind == "FSDP":
        _of_fsdp(file, file.section("fsdp_config", document.get("fsdp_config")))
    elif kind == "MEGATRON_LM":
        _of_megatron(file, file.section("megatron_lm_config", document.get("megatron_lm_config")))
    degrees = file.section("parallelism_config", document.get("parallelism_config"))
    prefix = "parallelism_config_"
    for field_name, name in (("tensor", "tp_size"), ("context", "cp_size")):
        value = degrees.get(prefix + name, degrees.get(name))
        if value is not None:
            file.count(field_name, f"parallelism_config.{prefix}{name}", value)
    ulysses = (
        str(degrees.get(f"{prefix}cp_backend", "torch")).lower() == "deepspeed" and file.values.get("context", 1) > 1
    )
    if ulysses or str(degrees.get(f"{prefix}sp_size", 1)) != "1":
        name = f"parallelism_config.{prefix}{'cp_backend' if ulysses else 'sp_size'}"
        file.wrong(name, f"must be {'torch' if ulysses else 1}: Ulysses sequence parallelism is not predicted")
    sizes = [degrees.get(f"{prefix}dp_{name}_size") for name in ("replicate", "shard")]
    if all(isinstance(size, int) and size > 1 for size in sizes):
        file.facts["sharding_devices_count"] = sizes[1]
    if "gradient_accumulation_steps" in document:
        file.count("accumulation", "gradient_accumulation_steps", document["gradient_accumulation_steps"])
    if "recomputation" not in file.values:
        file.notes.append("recomputation is the script's: none is assumed")


def _of_deepspeed(file: Statement, section: Mapping[str, Any]) -> None:
    if section.get("deepspeed_config_file"):
        file.wrong("deepspeed_config.deepspeed_config_file", "names the file that states the layout; read that one")
    stage = file.count("zero_stage", "deepspeed_config.zero_stage", section.get("zero_stage", 2), 0)
    if stage is not None and stage > 3:
        file.wrong("deepspeed_config.zero_stage", f"must be 0, 1, 2 or 3, found {stage}")
    name = "gradient_accumulation_steps"
    file.count("accumulation", f"deepspeed_config.{name}", section.get(name))
    for device, fact in (("offload_optimizer_device", "optimizer"), ("offload_param_device", "parameters")):
        if str(section.get(device, "none")).lower() not in ("none", "false"):
            file.facts["offload"] = fact


def _of_fsdp(file: Statement, section: Mapping[str, Any]) -> None:
    stage = 3
    if section.get("fsdp_sharding_strategy") is not None:
        name = "fsdp_sharding_strategy"
        stage = int(file.choice(f"fsdp_config.{name}", section[name], _STRATEGIES))
    reshard = section.get("fsdp_reshard_after_forward")
    if reshard is not None and str(reshard).lower() in _STRATEGIES:
        stage = _STRATEGIES[str(reshard).lower()]
    elif reshard is not None:
        stage = 3 if file.flag("fsdp_config.fsdp_reshard_after_forward", reshard) else 2
    file.values["zero_stage"] = stage
    name = "fsdp_activation_checkpointing"
    if name in section:
        full = file.flag(f"fsdp_config.{name}", section[name])
        file.recomputation(Recomputation.FULL if full else Recomputation.NONE)
    if file.flag("fsdp_config.fsdp_offload_params", section.get("fsdp_offload_params")):
        file.facts["offload"] = "parameters"


def _of_megatron(file: Statement, section: Mapping[str, Any]) -> None:
    for field_name, name in (("tensor", "tp_degree"), ("pipeline", "pp_degree")):
        key = f"megatron_lm_{name}"
        file.count(field_name, f"megatron_lm_config.{key}", section.get(key))
    key = "megatron_lm_num_micro_batches"
    file.count("accumulation", f"megatron_lm_config.{key}", section.get(key))

    def is_on(name: str) -> bool:
        return file.flag(f"megatron_lm_config.{name}", section.get(name))

    file.values["sequence_parallel"] = is_on("megatron_lm_sequence_parallelism")
    file.values["zero_stage"] = int(is_on("megatron_lm_use_distributed_optimizer"))
    selective = is_on("megatron_lm_recompute_activations")
    file.recomputation(Recomputation.SELECTIVE if selective else Recomputation.NONE)


def parse_yaml(file: Statement, text: str) -> dict[str, Any]:
    """The subset of YAML in which Accelerate writes: objects of scalars, nested by indentation."""
    document: dict[str, Any] = {}
    levels: list[tuple[int, dict[str, Any]]] = [(0, document)]
    opened: tuple[dict[str, Any], str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split(" #")[0].rstrip()
        if not content.strip() or content.lstrip().startswith(("#", "---", "...", "- ")):
            continue
        indent = len(content) - len(content.lstrip())
        name, colon, value = content.strip().partition(":")
        if not colon or "\t" in content[:indent]:
            file.wrong(f"line {number}", f"must be a name, a colon and a value, found {content.strip()!r}")
        if opened is not None and indent > levels[-1][0]:
            inner: dict[str, Any] = {}
            opened[0][opened[1]] = inner
            levels.append((indent, inner))
        while indent < levels[-1][0]:
            levels.pop()
        name, value = name.strip("'\""), value.strip()
        levels[-1][1][name] = _scalar(value)
        opened = None if value else (levels[-1][1], name)
    return document


def _scalar(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in _SCALARS:
        return _SCALARS[text.lower()]
    try:
        return int(text)
    except ValueError:
        return text
