"""DeepSpeed: `ds_config.json`, and the pipeline that only a script can state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nodewise_client.frameworks._layout import Launch, Layout, refuse, torchrun
from nodewise_values import Recomputation

__all__ = ["CONSTRAINTS", "FACTS", "NAME", "launch"]

NAME: Final = "DeepSpeed"
FACTS: Final = {"framework": "deepspeed flash-attention"}
"""Facts of a workload that is trained with it."""
CONSTRAINTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "context_parallel_degrees": (1,),
    "interleave_degrees": (1,),
    "sequence_parallel": (False,),
    "recomputations": (Recomputation.NONE, Recomputation.FULL),
}
PRECISIONS: Final = ("bf16", "fp16", "fp32")


def lacking(layout: Layout) -> Iterator[str]:
    """What DeepSpeed lacks for a layout."""
    schedule = layout.workload.pipeline_schedule or "1f1b"
    if layout.precision not in PRECISIONS:
        yield f"precision {layout.precision} (it has {', '.join(PRECISIONS)})"
    if layout.context > 1:
        yield "context parallelism by ring attention (its Ulysses splits heads instead)"
    if layout.interleave > 1:
        yield "interleaved pipeline stages"
    if layout.sequence_parallel and layout.tensor > 1:
        yield "sequence parallelism of norms and dropouts beside tensor parallelism"
    if layout.recomputation == Recomputation.SELECTIVE:
        yield "selective recomputation (it recomputes whole layers)"
    if layout.pipeline > 1:
        if schedule != "1f1b":
            yield f"the pipeline schedule {schedule} (it has 1f1b)"
        if layout.sharding_stage >= 2:
            yield f"ZeRO stage {layout.zero_stage} with a pipeline (0 and 1 only)"
    if layout.expert > 1:
        yield from _lacking_experts(layout)
    if layout.workload.sharding_devices_count:
        yield "hybrid sharding (sharding_devices_count)"


def _lacking_experts(layout: Layout) -> Iterator[str]:
    if layout.pipeline > 1:
        yield "expert parallelism with a pipeline"
    if layout.tensor > 1 and layout.expert_tensor > 1:
        yield "experts split by tensor parallelism"
    if layout.data % layout.expert:
        yield "expert parallelism over tensor-parallel ranks"


def launch(layout: Layout) -> Launch:
    """The configuration for a layout.

    Raises
    ------
    LayoutError
        Naming what DeepSpeed lacks.
    """
    refuse(NAME, lacking(layout))
    settings, full = _settings(layout), layout.recomputation == Recomputation.FULL
    code = []
    if layout.pipeline > 1:
        interval = ", activation_checkpoint_interval=1" if full else ""
        sizes = f"num_pp={layout.pipeline}, num_mp={layout.tensor}, num_dp={layout.data}"
        code = [
            "from deepspeed.pipe import PipelineModule",
            "from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology",
            f"topology = PipeModelDataParallelTopology({sizes})",
            f"model = PipelineModule(layers=layers, topology=topology{interval})",
        ]
    elif full:
        code = ["model.gradient_checkpointing_enable()"]
    return Launch(
        framework=f"{NAME} 0.19",
        command=torchrun(layout, "train.py --deepspeed --deepspeed_config ds_config.json"),
        settings={"ds_config.json": settings},
        files={"ds_config.json": json.dumps(settings, indent=2) + "\n"},
        code=tuple(code),
        notes=tuple(_notes(layout)),
    )


def _notes(layout: Layout) -> Iterator[str]:
    tokens = layout.transformer.sequence_length_tokens
    yield f"the model, its {tokens} tokens per sample, the optimizer and the data are the script's"
    if layout.pipeline > 1 and layout.tensor > 1:
        yield "with a pipeline, the layers of the script split their tensors themselves"
    yield from layout.notes_on_workload("offload")


def _settings(layout: Layout) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": layout.sharding_stage}
    offload = layout.workload.offload
    if offload in ("optimizer", "parameters") and layout.sharding_stage:
        zero["offload_optimizer"] = {"device": "cpu"}
        if offload == "parameters" and layout.sharding_stage == 3:
            zero["offload_param"] = {"device": "cpu"}
    settings: dict[str, Any] = {
        "train_batch_size": layout.global_batch,
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": layout.accumulation,
        "zero_optimization": zero,
        "bf16": {"enabled": layout.precision == "bf16"},
        "fp16": {"enabled": layout.precision == "fp16"},
    }
    if layout.tensor > 1 and layout.pipeline == 1:
        settings["tensor_parallel"] = {"autotp_size": layout.tensor}
    if layout.expert > 1:
        settings["expert_parallel"] = {"enabled": True, "autoep_size": layout.expert}
    return settings
