"""torchtitan (PyTorch FSDP2): arguments of its release 0.3, and the TOML file of releases before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nodewise_client.frameworks._layout import Launch, Layout, refuse, torchrun
from nodewise_values import Recomputation

__all__ = ["CONSTRAINTS", "FACTS", "NAME", "launch", "shard_group"]

NAME: Final = "torchtitan"
FACTS: Final = {"framework": "pytorch flash-attention", "master_weights": True}
"""Facts of a workload that is trained with it."""
CONSTRAINTS: Final[Mapping[str, tuple[Any, ...]]] = {"zero_stages": (0, 2, 3)}
PRECISIONS: Final = {"bf16": "bfloat16", "fp32": "float32"}
SCHEDULES: Final = {("1f1b", False): "1F1B", ("1f1b", True): "Interleaved1F1B", ("gpipe", False): "GPipe"}
"""By the name of a schedule, and whether a stage has several chunks."""


def shard_group(layout: Layout) -> int:
    """Replicas over which FSDP shards."""
    sharding = layout.workload.sharding_devices_count
    return 1 if not layout.sharding_stage else min(sharding, layout.data) if sharding else layout.data


def lacking(layout: Layout) -> Iterator[str]:
    """What torchtitan lacks for a layout."""
    if layout.precision not in PRECISIONS:
        yield f"precision {layout.precision} by flags (it has {', '.join(PRECISIONS)})"
    if layout.sharding_stage == 1:
        yield "ZeRO stage 1 (FSDP shards gradients too: stages 2 and 3)"
    if layout.zero_stage == 0 and layout.context > 1:
        yield "context parallelism without sharding (it shards weights over the context-parallel ranks)"
    elif layout.zero_stage == 0 and layout.data > 1 and layout.tensor * layout.pipeline * layout.expert > 1:
        yield "ZeRO stage 0 beside other parallelism than data parallelism"
    if layout.data % shard_group(layout):
        yield f"sharding over {shard_group(layout)} of {layout.data} replicas"
    if layout.pipeline > 1:
        yield from _lacking_stages(layout)
    if layout.expert > 1:
        if layout.tensor > 1 and layout.expert_tensor > 1:
            yield "experts split by tensor parallelism"
        if (shard_group(layout) * layout.context * layout.tensor) % layout.expert:
            yield "expert parallelism over other ranks than those of FSDP, context and tensor parallelism"


def _lacking_stages(layout: Layout) -> Iterator[str]:
    schedule, layers = layout.workload.pipeline_schedule or "1f1b", layout.transformer.layers_count
    if (schedule, layout.interleave > 1) not in SCHEDULES:
        chunks = "one chunk" if layout.interleave == 1 else "several chunks"
        yield f"the pipeline schedule {schedule} with {chunks} a stage"
    if layout.workload.stage_layers or layers % (layout.pipeline * layout.interleave):
        yield (
            f"{layers} layers over {layout.pipeline} x {layout.interleave} equal stages: unequal ones need "
            "module_fqns_per_model_part, which is not generated"
        )
    if not layout.transformer.untied_embeddings:
        yield "tied embeddings with a pipeline"


def launch(layout: Layout) -> Launch:
    """Arguments for a layout.

    Raises
    ------
    LayoutError
        Naming what torchtitan lacks.
    """
    refuse(NAME, lacking(layout))
    settings = _settings(layout)
    recomputation = settings["activation_checkpoint"]["mode"]
    flags = [
        _flag(section, name, value)
        for section, values in settings.items()
        if section != "activation_checkpoint"
        for name, value in values.items()
    ]
    if layout.tensor > 1 and not layout.sequence_parallel:
        flags.append("--parallelism.no-enable-sequence-parallel")
    if layout.pipeline * layout.expert > 1:
        flags.append("--training.disable-cuda-graphs")
    return Launch(
        framework=f"{NAME} 0.3; the TOML file is for releases up to 0.2",
        command=torchrun(
            layout,
            "-m torchtitan.train --module $MODULE --config $CONFIG",
            *flags,
            f"activation-checkpoint:{recomputation}",
        ),
        settings=settings,
        files={"train_config.toml": _toml(settings)},
        notes=tuple(_notes(layout)),
    )


def _notes(layout: Layout) -> Iterator[str]:
    yield "MODULE and CONFIG name the model, such as llama3 and llama3_8b"
    if layout.context > 1:
        yield "FSDP also shards over the context-parallel ranks, which takes less memory than predicted"
    if layout.recomputation == Recomputation.SELECTIVE:
        yield "its selective recomputation saves matrix products and recomputes the rest of a layer"
    if layout.tensor > 1 and not layout.sequence_parallel:
        yield "releases up to 0.2 always split norms along the sequence"
    yield from layout.notes_on_workload("execution")


def _settings(layout: Layout) -> dict[str, dict[str, Any]]:
    workload, precision = layout.workload, PRECISIONS[layout.precision]
    pipelined, shards = layout.pipeline > 1, shard_group(layout)
    parallelism: dict[str, Any] = {
        "data_parallel_replicate_degree": layout.data // shards,
        "data_parallel_shard_degree": shards,
        "fsdp_reshard_after_forward": "always" if layout.zero_stage == 3 else "never",
        "tensor_parallel_degree": layout.tensor,
        "context_parallel_degree": layout.context,
        "expert_parallel_degree": layout.expert,
        "pipeline_parallel_degree": layout.pipeline,
    }
    if pipelined:
        stages = layout.pipeline * layout.interleave
        parallelism |= {
            "pipeline_parallel_schedule": SCHEDULES[workload.pipeline_schedule or "1f1b", layout.interleave > 1],
            "pipeline_parallel_layers_per_stage": layout.transformer.layers_count // stages,
            "pipeline_parallel_first_stage_less_layers": 0,
            "pipeline_parallel_last_stage_less_layers": 0,
            "pipeline_parallel_microbatch_size": layout.micro_batch,
        }
    settings: dict[str, dict[str, Any]] = {
        "training": {
            # A pipeline takes the micro-batches of a step at once.
            "local_batch_size": layout.micro_batch * (layout.accumulation if pipelined else 1),
            "global_batch_size": layout.global_batch,
            "seq_len": layout.transformer.sequence_length_tokens,
            "dtype": precision if workload.master_weights is False else "float32",
            "mixed_precision_param": precision,
        },
        "parallelism": parallelism,
        "activation_checkpoint": {"mode": str(layout.recomputation)},
    }
    if workload.execution == "compiled":
        settings["compile"] = {"enable": True}
    return settings


def _flag(section: str, name: str, value: Any) -> str:
    key = f"--{section}.{name}"
    return key if value is True else f"{key} {value}"


def _toml(settings: Mapping[str, Mapping[str, Any]]) -> str:
    return "\n".join(
        "".join([f"[{section}]\n", *(f"{name} = {json.dumps(value)}\n" for name, value in values.items())])
        for section, values in settings.items()
    )
