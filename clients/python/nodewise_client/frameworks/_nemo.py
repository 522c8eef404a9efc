"""NeMo: overrides of a recipe of Megatron Bridge, in which NeMo trains language models since its release 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client.frameworks._layout import Launch, Layout, refuse, torchrun
from nodewise_client.frameworks._megatron import lacking, notes_of_model, sharding
from nodewise_values import Recomputation

__all__ = ["CONSTRAINTS", "FACTS", "NAME", "launch"]

NAME: Final = "NeMo"
FACTS: Final = {"framework": "nemo flash-attention"}
"""Facts of a workload that is trained with it."""
CONSTRAINTS: Final[Mapping[str, tuple[Any, ...]]] = {}
PRECISIONS: Final = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp32": None,
    "fp8": "bf16_with_fp8_delayed_scaling_mixed",
}


def launch(layout: Layout) -> Launch:
    """Overrides for a layout.

    Raises
    ------
    LayoutError
        Naming what NeMo lacks.
    """
    refuse(NAME, lacking(layout))
    settings = _settings(layout)
    overrides = [
        f"{section}.{name}={'null' if value is None else str(value).lower() if isinstance(value, bool) else value}"
        for section, values in settings.items()
        for name, value in values.items()
    ]
    overrides.append(f"mixed_precision={PRECISIONS[layout.precision] or 'null'}")
    return Launch(
        framework=f"{NAME} (Megatron Bridge 0.6)",
        command=torchrun(layout, "scripts/training/run_recipe.py --recipe $RECIPE", *overrides),
        settings=settings,
        notes=(
            "RECIPE names the model's recipe, such as llama3_8b_pretrain_config",
            "in NeMo 2, MegatronStrategy takes the names of the section model",
            *notes_of_model(layout),
            *layout.notes_on_workload(),
        ),
    )


def _settings(layout: Layout) -> dict[str, dict[str, Any]]:
    sequence, ddp = layout.transformer.sequence_length_tokens, sharding(layout)
    full = layout.recomputation == Recomputation.FULL
    settings: dict[str, dict[str, Any]] = {
        "model": {
            "tensor_model_parallel_size": layout.tensor,
            "pipeline_model_parallel_size": layout.pipeline,
            "virtual_pipeline_model_parallel_size": layout.interleave if layout.interleave > 1 else None,
            "context_parallel_size": layout.context,
            "sequence_parallel": layout.sequence_parallel and layout.tensor > 1,
            "seq_length": sequence,
            "recompute_granularity": None if layout.recomputation == Recomputation.NONE else str(layout.recomputation),
            "recompute_method": "uniform" if full else None,
            "recompute_num_layers": 1 if full else None,
        },
        "train": {"micro_batch_size": layout.micro_batch, "global_batch_size": layout.global_batch},
        "dataset": {"seq_length": sequence},
        "ddp": {"use_distributed_optimizer": False} | ddp,
        "optimizer": {"use_distributed_optimizer": bool(ddp)},
    }
    if layout.transformer.experts_count:
        settings["model"] |= {
            "expert_model_parallel_size": layout.expert,
            "expert_tensor_parallel_size": layout.expert_tensor,
        }
    if layout.sharding_stage >= 2:
        settings["checkpoint"] = {"ckpt_format": "fsdp_dtensor"}
    return settings
