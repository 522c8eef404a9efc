"""Megatron-LM: arguments of `pretrain_gpt.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nodewise_client.frameworks._layout import Launch, Layout, refuse, torchrun
from nodewise_values import Recomputation

__all__ = ["CONSTRAINTS", "FACTS", "NAME", "lacking", "launch", "sharding"]

NAME: Final = "Megatron-LM"
FACTS: Final = {"framework": "megatron-core flash-attention"}
"""Facts of a workload that is trained with it."""
CONSTRAINTS: Final[Mapping[str, tuple[Any, ...]]] = {}
"""Constraints of a search for layouts that the framework can express."""
PRECISIONS: Final = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp32": (),
    "fp8": ("--bf16", "--fp8-format hybrid"),
}
OPTIMIZERS: Final = {"": "", "adam": "adam", "adamw": "adam", "sgd": "sgd", "lion": "lion", "muon": "muon"}
"""Its Adam decays weights as AdamW does."""


def lacking(layout: Layout) -> Iterator[str]:
    """What Megatron-Core lacks for a layout."""
    workload, transformer = layout.workload, layout.transformer
    schedule = workload.pipeline_schedule or "1f1b"
    if layout.precision not in PRECISIONS:
        yield f"precision {layout.precision} (it has {', '.join(PRECISIONS)})"
    if layout.pipeline > 1 and schedule != "1f1b":
        yield f"the pipeline schedule {schedule} (it has 1f1b)"
    if workload.stage_layers or transformer.layers_count % (layout.pipeline * layout.interleave):
        yield (
            f"{transformer.layers_count} layers over {layout.pipeline} x {layout.interleave} equal stages: unequal "
            "ones need --pipeline-model-parallel-layout, which is not generated"
        )
    if layout.interleave > 1 and layout.accumulation % layout.pipeline:
        yield (
            f"{layout.accumulation} micro-batches with interleaved stages: a multiple of the {layout.pipeline} stages"
        )
    if layout.expert > 1 and layout.tensor > 1 and not layout.sequence_parallel:
        yield "expert and tensor parallelism without sequence parallelism"
    if workload.sharding_devices_count:
        yield "hybrid sharding (sharding_devices_count) by these flags"
    if transformer.state_space_layers_count:
        yield "state-space layers in GPT models"
    optimizer = (workload.optimizer or "").casefold()
    if optimizer not in OPTIMIZERS:
        yield f"the optimizer {workload.optimizer} (it has {', '.join(filter(None, OPTIMIZERS))})"
    elif layout.sharding_stage >= 2 and OPTIMIZERS[optimizer] not in ("", "adam", "sgd"):
        yield f"ZeRO stage {layout.zero_stage} with the optimizer {workload.optimizer} (with adam and sgd only)"


def sharding(layout: Layout) -> dict[str, Any]:
    """Settings of distributed data parallelism, by the names of `DistributedDataParallelConfig`."""
    if not layout.sharding_stage:
        return {}
    settings: dict[str, Any] = {"use_distributed_optimizer": True}
    if layout.sharding_stage >= 2:
        strategy = "optim_grads" if layout.sharding_stage == 2 else "optim_grads_params"
        settings |= {"use_megatron_fsdp": True, "data_parallel_sharding_strategy": strategy}
    return settings


def launch(layout: Layout) -> Launch:
    """Arguments for a layout.

    Raises
    ------
    LayoutError
        Naming what Megatron-LM lacks.
    """
    refuse(NAME, lacking(layout))
    arguments = tuple(
        name if value is True else f"{name} {value}" for name, value in _arguments(layout).items() if value is not False
    )
    arguments += PRECISIONS[layout.precision]
    # Before Blackwell, overlap of communication with computation relies on one queue; with FSDP on several.
    one_queue = layout.tensor * layout.context > 1 and layout.sharding_stage < 2
    environment = "CUDA_DEVICE_MAX_CONNECTIONS=1" if one_queue else ""
    return Launch(
        framework=f"{NAME} (megatron-core 0.19)",
        command=torchrun(layout, "pretrain_gpt.py", *arguments, environment=environment),
        settings={"arguments": _arguments(layout)},
        notes=(
            "add data, tokenizer, learning rate, and what the model has beside its dimensions (norms, positions)",
            *notes_of_model(layout),
            *layout.notes_on_workload("optimizer"),
        ),
    )


def notes_of_model(layout: Layout) -> Iterator[str]:
    """What the generated settings of Megatron-Core do not say of the layout."""
    transformer = layout.transformer
    if layout.sharding_stage and layout.context > 1:
        yield "it also shards over the context-parallel ranks, which takes less memory than predicted"
    if transformer.expert_layers_count and transformer.expert_layers_count < transformer.layers_count:
        yield f"state which {transformer.expert_layers_count} layers have experts (moe_layer_freq)"
    if transformer.attention_window_tokens:
        yield f"state the window of {transformer.attention_window_tokens} tokens (window_size)"


def _arguments(layout: Layout) -> dict[str, Any]:
    workload = layout.workload
    arguments: dict[str, Any] = {
        "--tensor-model-parallel-size": layout.tensor,
        "--pipeline-model-parallel-size": layout.pipeline,
        "--num-virtual-stages-per-pipeline-rank": layout.interleave if layout.interleave > 1 else False,
        "--context-parallel-size": layout.context if layout.context > 1 else False,
        "--sequence-parallel": layout.sequence_parallel and layout.tensor > 1,
        "--micro-batch-size": layout.micro_batch,
        "--global-batch-size": layout.global_batch,
        **{f"--{name.replace('_', '-')}": value for name, value in sharding(layout).items()},
        "--ckpt-format": "fsdp_dtensor" if layout.sharding_stage >= 2 else False,
        "--optimizer": OPTIMIZERS[(workload.optimizer or "").casefold()] or False,
    }
    if layout.recomputation == Recomputation.SELECTIVE:
        arguments["--recompute-granularity"] = "selective"
    elif layout.recomputation == Recomputation.FULL:
        arguments |= {"--recompute-granularity": "full", "--recompute-method": "uniform", "--recompute-num-layers": 1}
    return arguments | _dimensions(layout)


def _dimensions(layout: Layout) -> dict[str, Any]:
    model, sequence = layout.transformer, layout.transformer.sequence_length_tokens
    groups = model.key_value_heads_count or model.attention_heads_count
    arguments: dict[str, Any] = {
        "--num-layers": model.layers_count,
        "--hidden-size": model.hidden_size,
        "--num-attention-heads": model.attention_heads_count,
        "--group-query-attention": groups < model.attention_heads_count,
        "--num-query-groups": groups if groups < model.attention_heads_count else False,
        "--ffn-hidden-size": model.feed_forward_size or 4 * model.hidden_size,
        "--swiglu": model.gated_feed_forward,
        # Gated layers have no biases, and experts that tensor parallelism splits must have none.
        "--disable-bias-linear": model.gated_feed_forward or bool(model.experts_count),
        "--untie-embeddings-and-output-weights": model.untied_embeddings,
        "--seq-length": sequence,
        "--max-position-embeddings": sequence,
    }
    if model.key_value_latent_size:
        rotary = model.rotary_head_size or 0
        head = model.head_size or model.hidden_size // model.attention_heads_count
        arguments |= {
            "--multi-latent-attention": True,
            "--kv-lora-rank": model.key_value_latent_size,
            "--q-lora-rank": model.query_latent_size or False,
            "--qk-head-dim": head - rotary,
            "--qk-pos-emb-head-dim": rotary or False,
            "--v-head-dim": model.value_head_size or head,
        }
    elif model.head_size:
        arguments["--kv-channels"] = model.head_size
    if layout.workload.dropout is False:
        arguments |= {"--attention-dropout": 0.0, "--hidden-dropout": 0.0}
    if model.experts_count:
        arguments |= {
            "--num-experts": model.experts_count,
            "--moe-router-topk": model.experts_per_token_count or False,
            "--moe-ffn-hidden-size": model.expert_feed_forward_size or arguments["--ffn-hidden-size"],
            "--moe-shared-expert-intermediate-size": model.shared_expert_feed_forward_size or False,
            "--moe-token-dispatcher-type": "alltoall",
            "--expert-model-parallel-size": layout.expert,
            "--expert-tensor-parallel-size": layout.expert_tensor,
        }
    return arguments
