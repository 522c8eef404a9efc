"""A TOML file of torchtitan as a layout, with the defaults of its release 0.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._statements import Statement
from nodewise_values import Recomputation

__all__ = ["read"]

_EARLIER: Final = ("parallelism", "training", "experimental")
"""Sections in which releases have had the degrees."""
_SCHEDULES: Final = {
    "1f1b": "1f1b",
    "interleaved1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleavedzerobubble": "zero-bubble",
    "zbvzerobubble": "zero-bubble",
    "dualpipev": "dualpipe",
}


def read(file: Statement, document: Mapping[str, Any]) -> None:
    """Read what a file states."""
    sections = {
        name: file.section(name, document.get(name)) for name in (*_EARLIER, "activation_checkpoint", "compile")
    }
    training = sections["training"]

    def degree(field_name: str, *names: str) -> None:
        for section in _EARLIER:
            for name in names:
                if name in sections[section]:
                    file.count(field_name, f"{section}.{name}", sections[section][name])

    degree("tensor", "tensor_parallel_degree")
    degree("pipeline", "pipeline_parallel_degree")
    degree("context", "context_parallel_degree")
    degree("expert", "expert_parallel_degree")
    file.values["sequence_parallel"] = file.values.get("tensor", 1) > 1
    file.count("sequence_length", "training.seq_len", training.get("seq_len", 2048))
    if "seq_len" not in training:
        file.notes.append("training.seq_len is not stated: 2048 tokens, its default")
    _batch(file, training, sections["parallelism"])
    _sharding(file, sections)
    _recomputation(file, sections["activation_checkpoint"])
    formats = {"bfloat16": "bf16", "float32": "fp32"}
    kind = training.get("mixed_precision_param", "bfloat16")
    file.values["precision"] = file.choice("training.mixed_precision_param", kind, formats)
    pure = training.get("dtype") == "bfloat16"
    file.facts["master_weights"] = not pure
    if pure:
        file.values["precision"] = "bf16"
    # Until release 0.1, `training.compile` had the switch.
    compiled = file.flag("training.compile", training.get("compile"))
    if file.flag("compile.enable", sections["compile"].get("enable")) or compiled:
        file.facts["execution"] = "compiled"
    if file.flag("training.enable_cpu_offload", training.get("enable_cpu_offload")):
        file.facts["offload"] = "parameters"
    if file.section("model", document.get("model")).get("converters"):
        file.notes.append("model.converters: quantised products are not predicted")


def _batch(file: Statement, training: Mapping[str, Any], parallelism: Mapping[str, Any]) -> None:
    name = "batch_size" if "batch_size" in training and "local_batch_size" not in training else "local_batch_size"
    local = file.count("micro_batch", f"training.{name}", training.get(name, 8))
    if name not in training:
        file.notes.append("training.local_batch_size is not stated: 8 samples, its default")
    total = training.get("global_batch_size")
    file.count("global_batch", "training.global_batch_size", None if total == -1 else total)
    if file.values.get("pipeline", 1) == 1:
        return
    micro = "pipeline_parallel_microbatch_size"
    size = file.count("micro_batch", f"parallelism.{micro}", parallelism.get(micro, 1))
    if local and size and local % size:
        file.wrong("training.local_batch_size", f"{local} samples must be a multiple of parallelism.{micro} {size}")
    if local and size and "global_batch" not in file.values:
        file.values["accumulation"] = local // size
    name = "pipeline_parallel_schedule"
    schedule = parallelism.get(name, "1F1B")
    file.facts["pipeline_schedule"] = file.choice(f"parallelism.{name}", schedule, _SCHEDULES)
    if str(schedule).lower() in ("interleaved1f1b", "interleavedzerobubble", "zbvzerobubble", "dualpipev"):
        file.values["interleave"] = 2
        if parallelism.get("pipeline_parallel_layers_per_stage"):
            file.count(
                "layers_per_chunk",
                "parallelism.pipeline_parallel_layers_per_stage",
                parallelism["pipeline_parallel_layers_per_stage"],
            )


def _sharding(file: Statement, sections: Mapping[str, Mapping[str, Any]]) -> None:
    found = {
        name: value
        for section in reversed(_EARLIER)
        for name, value in sections[section].items()
        if name.startswith("data_parallel_") and name.endswith("_degree")
    }
    replicas = found.get("data_parallel_replicate_degree", 1)
    shards = found.get("data_parallel_shard_degree", -1)
    for name, value, least in (("replicate", replicas, 1), ("shard", shards, -1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least or value == 0:
            text = "must be a whole number of at least 1" + (", or -1 for all that are left" if least < 0 else "")
            file.wrong(f"parallelism.data_parallel_{name}_degree", f"{text}, found {value!r}")
    if shards > 0:
        file.names["data"] = "parallelism.data_parallel_replicate_degree x data_parallel_shard_degree"
        file.values["data"] = replicas * shards
        if shards > 1 and replicas > 1:
            file.facts["sharding_devices_count"] = shards
    elif replicas > 1:
        file.names["data"] = "parallelism.data_parallel_shard_degree"
        file.values["replicate"] = replicas
    policy = sections["parallelism"].get("fsdp_reshard_after_forward", "default")
    stage_of_default = 2 if file.values.get("pipeline", 1) > 1 else 3
    stages = {"default": stage_of_default, "always": 3, "never": 2}
    stage = file.choice("parallelism.fsdp_reshard_after_forward", policy, stages)
    file.values["zero_stage"] = 0 if shards == 1 else stage


def _recomputation(file: Statement, section: Mapping[str, Any]) -> None:
    modes = {"none": Recomputation.NONE, "full": Recomputation.FULL, "selective": Recomputation.SELECTIVE}
    mode = file.choice("activation_checkpoint.mode", section.get("mode", "selective"), modes)
    option = str(section.get("selective_ac_option", "2"))
    if mode is Recomputation.SELECTIVE and option != "op":
        if not option.isdigit() or option == "0":
            file.wrong("activation_checkpoint.selective_ac_option", f"must be op or a whole number, found {option!r}")
        mode = Recomputation.FULL
        if option != "1":
            file.facts["recomputed_share"] = 1 / int(option)
    elif mode is Recomputation.SELECTIVE:
        file.notes.append("activation_checkpoint: recomputation by operators is predicted as that of attention")
    file.recomputation(mode)
