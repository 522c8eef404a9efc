"""Accelerate: its YAML file for FSDP2 or plain data parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nodewise_client.frameworks._layout import Launch, Layout, refuse, yaml_lines
from nodewise_client.frameworks._torchtitan import shard_group
from nodewise_values import Recomputation

__all__ = ["CONSTRAINTS", "FACTS", "NAME", "launch"]

NAME: Final = "Accelerate"
FACTS: Final = {"framework": "pytorch flash-attention"}
"""Facts of a workload that is trained with it."""
CONSTRAINTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "pipeline_parallel_degrees": (1,),
    "expert_parallel_degrees": (1,),
    "zero_stages": (0, 2, 3),
    "sequence_parallel": (False,),
    "recomputations": (Recomputation.NONE, Recomputation.FULL),
}
PRECISIONS: Final = {"bf16": "bf16", "fp16": "fp16", "fp32": "no", "fp8": "fp8"}


def lacking(layout: Layout) -> Iterator[str]:
    """What Accelerate lacks for a layout."""
    if layout.precision not in PRECISIONS:
        yield f"precision {layout.precision} (it has {', '.join(PRECISIONS)})"
    if layout.pipeline > 1:
        yield "pipeline parallelism in training"
    if layout.expert > 1:
        yield "expert parallelism"
    if layout.sequence_parallel and layout.tensor > 1:
        yield "sequence parallelism of norms and dropouts beside tensor parallelism"
    if layout.recomputation == Recomputation.SELECTIVE:
        yield "selective recomputation (it recomputes whole layers)"
    if layout.sharding_stage == 1:
        yield "ZeRO stage 1 (FSDP shards gradients too: stages 2 and 3)"
    if layout.zero_stage == 0 and layout.data > 1 and layout.tensor * layout.context > 1:
        yield "ZeRO stage 0 beside tensor or context parallelism"
    if layout.data % shard_group(layout):
        yield f"sharding over {shard_group(layout)} of {layout.data} replicas"


def launch(layout: Layout) -> Launch:
    """The file for a layout.

    Raises
    ------
    LayoutError
        Naming what Accelerate lacks.
    """
    refuse(NAME, lacking(layout))
    settings, full = _settings(layout), layout.recomputation == Recomputation.FULL
    head = " --machine_rank $NODE_RANK --main_process_ip $HEAD_NODE --main_process_port 29500"
    where = head if layout.nodes > 1 else ""
    command = f"accelerate launch --config_file accelerate.yaml{where}"
    steps = f"--gradient_accumulation_steps {layout.accumulation}"
    return Launch(
        framework=f"{NAME} 1.15",
        command=f"{command} \\\n    {steps} \\\n    train.py",
        settings={"accelerate.yaml": settings},
        files={"accelerate.yaml": yaml_lines(settings)},
        code=("model.gradient_checkpointing_enable()",) if full and "fsdp_config" not in settings else (),
        notes=(
            f"each device loads {layout.micro_batch} samples of {layout.transformer.sequence_length_tokens} tokens",
            *layout.notes_on_workload(),
        ),
    )


def _settings(layout: Layout) -> dict[str, Any]:
    shards = shard_group(layout)
    several = layout.sharding_stage or layout.tensor * layout.context > 1
    settings: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP" if several else "MULTI_GPU" if layout.devices > 1 else "NO",
        "mixed_precision": PRECISIONS[layout.precision],
        "num_machines": layout.nodes,
        "num_processes": layout.devices,
        "main_training_function": "main",
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
    }
    if several:
        settings["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_reshard_after_forward": layout.zero_stage == 3,
            "fsdp_activation_checkpointing": layout.recomputation == Recomputation.FULL,
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        }
        settings["parallelism_config"] = {
            "parallelism_config_dp_replicate_size": layout.data // shards,
            "parallelism_config_dp_shard_size": shards,
            "parallelism_config_tp_size": layout.tensor,
            "parallelism_config_cp_size": layout.context,
        }
    return settings
