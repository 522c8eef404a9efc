"""Settings of frameworks for a layout, and what each refuses by name."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from nodewise_client import Recomputation, SyncMode, Transformer, Workload
from nodewise_client.frameworks import FRAMEWORKS, Layout, LayoutError, facts, launch, plan_constraints

MODEL = Transformer(
    layers_count=32,
    hidden_size=4096,
    attention_heads_count=32,
    key_value_heads_count=8,
    sequence_length_tokens=4096,
    vocabulary_size=128256,
    feed_forward_size=14336,
    gated_feed_forward=True,
    untied_embeddings=True,
)
PLAIN = Layout(
    workload=Workload(transformer=MODEL), nodes=4, devices_per_node=8, micro_batch=2, global_batch=512, zero_stage=2
)


def with_model(layout: Layout, **dimensions: Any) -> Layout:
    return replace(layout, workload=replace(layout.workload, transformer=replace(MODEL, **dimensions)))


def test_the_layout_of_a_configuration_of_a_plan() -> None:
    configuration = {
        "nodes": 4,
        "workers": 32,
        "tensor_parallel_degrees": 2,
        "pipeline_parallel_degrees": 2,
        "batch_per_worker_samples": 1.0,
        "global_batch_samples": 512.0,
        "recomputations": Recomputation.SELECTIVE,
        "sequence_parallel": True,
        "zero_stages": 1,
        "precisions": "",
        "sync_modes": SyncMode.ALLREDUCE,
    }
    layout = Layout.of(configuration, Workload(transformer=MODEL, precision="bf16"))
    assert (layout.tensor, layout.pipeline, layout.data, layout.accumulation) == (2, 2, 8, 64)
    assert (layout.devices_per_node, layout.precision, layout.zero_stage) == (8, "bf16", 1)
    with pytest.raises(LayoutError, match=r"not a transformer; it has parameter servers; its precision is not stated"):
        Layout.of(configuration | {"parameter_servers": 2}, Workload())


def test_megatron_states_every_degree_and_the_model() -> None:
    layout = replace(
        PLAIN,
        tensor=2,
        pipeline=4,
        context=2,
        interleave=2,
        sequence_parallel=True,
        zero_stage=1,
        recomputation=Recomputation.FULL,
    )
    command = launch(layout, "megatron").command
    for argument in (
        "--tensor-model-parallel-size 2",
        "--pipeline-model-parallel-size 4",
        "--context-parallel-size 2",
        "--num-virtual-stages-per-pipeline-rank 2",
        "--sequence-parallel",
        "--use-distributed-optimizer",
        "--recompute-granularity full",
        "--num-query-groups 8",
        "--seq-length 4096",
        "--bf16",
    ):
        assert f"    {argument}" in command
    assert command.startswith("CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 4 ")
    assert "--nproc-per-node 8" in command
    assert "--use-megatron-fsdp" in launch(PLAIN, "megatron").command


def test_nemo_names_the_same_in_sections() -> None:
    settings = launch(replace(PLAIN, tensor=2, zero_stage=1), "nemo").settings
    assert settings["model"]["tensor_model_parallel_size"] == 2
    assert settings["train"] == {"micro_batch_size": 2, "global_batch_size": 512}
    assert settings["optimizer"] == {"use_distributed_optimizer": True}


def test_deepspeed_divides_the_batch_and_leaves_the_pipeline_to_the_script() -> None:
    result = launch(replace(PLAIN, pipeline=2, zero_stage=1), "deepspeed")
    document = json.loads(result.files["ds_config.json"])
    assert document["gradient_accumulation_steps"] * document["train_micro_batch_size_per_gpu"] * 16 == 512
    assert document["zero_optimization"] == {"stage": 1}
    assert "topology = PipeModelDataParallelTopology(num_pp=2, num_mp=1, num_dp=16)" in result.code
    offloading = replace(PLAIN, workload=replace(PLAIN.workload, offload="parameters"), zero_stage=3)
    zero = json.loads(launch(offloading, "deepspeed").files["ds_config.json"])["zero_optimization"]
    assert zero["offload_param"] == zero["offload_optimizer"] == {"device": "cpu"}


def test_torchtitan_gives_a_pipeline_all_micro_batches() -> None:
    result = launch(replace(PLAIN, pipeline=4, interleave=2, zero_stage=3), "torchtitan")
    document = tomllib.loads(result.files["train_config.toml"])
    assert document["training"]["local_batch_size"] == 64
    assert document["parallelism"]["pipeline_parallel_microbatch_size"] == 2
    assert document["parallelism"]["pipeline_parallel_layers_per_stage"] == 4
    assert document["parallelism"]["fsdp_reshard_after_forward"] == "always"
    assert "--training.disable-cuda-graphs" in result.command
    hybrid = replace(PLAIN, workload=replace(PLAIN.workload, sharding_devices_count=8))
    degrees = tomllib.loads(launch(hybrid, "torchtitan").files["train_config.toml"])["parallelism"]
    assert (degrees["data_parallel_replicate_degree"], degrees["data_parallel_shard_degree"]) == (4, 8)


def test_accelerate_states_the_mesh() -> None:
    result = launch(replace(PLAIN, context=2, zero_stage=3), "accelerate")
    assert "  parallelism_config_cp_size: 2\n" in result.files["accelerate.yaml"]
    assert "--gradient_accumulation_steps 16" in result.command
    assert "distributed_type" in launch(replace(PLAIN, zero_stage=0), "accelerate").files["accelerate.yaml"]


@pytest.mark.parametrize(
    ("framework", "changes", "lacks"),
    [
        ("megatron", {"precision": "int8"}, "precision int8"),
        ("megatron", {"pipeline": 32, "interleave": 2}, "32 layers over 32 x 2 equal stages"),
        ("deepspeed", {"context": 2}, "context parallelism by ring attention"),
        ("deepspeed", {"pipeline": 2}, "ZeRO stage 2 with a pipeline"),
        ("deepspeed", {"recomputation": Recomputation.SELECTIVE}, "selective recomputation"),
        ("deepspeed", {"tensor": 2, "sequence_parallel": True}, "sequence parallelism of norms"),
        ("torchtitan", {"zero_stage": 1}, "ZeRO stage 1"),
        ("torchtitan", {"precision": "fp16"}, "precision fp16"),
        ("torchtitan", {"zero_stage": 0, "tensor": 2}, "ZeRO stage 0 beside other parallelism"),
        ("accelerate", {"pipeline": 2}, "pipeline parallelism"),
        ("nemo", {"pipeline": 4, "interleave": 2, "global_batch": 48}, "3 micro-batches with interleaved stages"),
    ],
)
def test_what_a_framework_lacks_is_named(framework: str, changes: dict[str, Any], lacks: str) -> None:
    with pytest.raises(LayoutError) as error:
        launch(replace(PLAIN, **changes), framework)
    assert lacks in str(error.value)
    assert str(error.value).startswith(error.value.framework)


def test_schedules_and_tied_embeddings() -> None:
    zero_bubble = replace(PLAIN.workload, pipeline_schedule="zero-bubble")
    for framework in ("megatron", "deepspeed", "torchtitan"):
        with pytest.raises(LayoutError, match="the pipeline schedule zero-bubble"):
            launch(replace(PLAIN, workload=zero_bubble, pipeline=2), framework)
    with pytest.raises(LayoutError, match="tied embeddings"):
        launch(with_model(replace(PLAIN, pipeline=2), untied_embeddings=False), "torchtitan")


def test_experts() -> None:
    layout = with_model(replace(PLAIN, expert=8), experts_count=8, experts_per_token_count=2)
    assert "--expert-model-parallel-size 8" in launch(layout, "megatron").command
    assert json.loads(launch(layout, "deepspeed").files["ds_config.json"])["expert_parallel"]["autoep_size"] == 8
    with pytest.raises(LayoutError, match="without sequence parallelism"):
        launch(replace(layout, tensor=2), "megatron")
    # Sixteen replicas do not hold 32 ranks of experts: each tensor-parallel rank has experts of its own.
    folded = with_model(replace(layout, tensor=2, expert=32, sequence_parallel=True), experts_count=64)
    assert "--expert-tensor-parallel-size 1" in launch(folded, "megatron").command


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_facts_and_constraints_are_those_of_the_contract(framework: str) -> None:
    replace(Workload(), **facts(framework))
    assert launch(replace(PLAIN, zero_stage=3), framework).command
    assert all(isinstance(values, tuple) for values in plan_constraints(framework).values())


def test_an_unknown_framework_is_named() -> None:
    with pytest.raises(ValueError, match=r"must be one of megatron, .* found 'jax'"):
        launch(PLAIN, "jax")


def test_facts_that_no_setting_states_are_noted() -> None:
    workload = replace(PLAIN.workload, execution="graphs", optimizer="lion")
    notes = launch(replace(PLAIN, workload=workload), "deepspeed").notes
    assert "not among these settings: execution, optimizer of the workload" in notes
