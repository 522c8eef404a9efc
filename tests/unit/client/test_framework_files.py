"""Files of frameworks as layouts: as their documentations write them, with what is missing or wrong named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodewise_client import Recomputation, Transformer, Workload
from nodewise_client.frameworks import Layout, LayoutFileError, launch, read_layout

MODEL = Workload(
    transformer=Transformer(
        layers_count=32,
        hidden_size=4096,
        attention_heads_count=32,
        sequence_length_tokens=4096,
        vocabulary_size=32000,
        untied_embeddings=True,
    ),
    precision="bf16",
)

DEEPSPEED = """{
  "train_batch_size": 512,
  "train_micro_batch_size_per_gpu": 4,
  "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
  "zero_optimization": {
    "stage": 3, "overlap_comm": true, "offload_optimizer": {"device": "cpu", "pin_memory": true}
  },
  "bf16": {"enabled": true},
  "fp16": {"enabled": false, "loss_scale_window": 100}
}"""
HF_DEEPSPEED = """{
  "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 2, "allgather_partitions": true},
  "gradient_accumulation_steps": "auto", "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"
}"""
TORCHTITAN = """
[job]
description = "Llama 3 70B training"
[model]
name = "llama3"
[training]
local_batch_size = 8
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8  # 8-way TP
[activation_checkpoint]
mode = "full"
"""
PIPELINED_TORCHTITAN = """
[training]
local_batch_size = 32
seq_len = 8192
[parallelism]
tensor_parallel_degree = 2
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
"""
EARLIER_TORCHTITAN = """
[training]
batch_size = 2
seq_len = 4096
tensor_parallel_degree = 2
data_parallel_replicate_degree = 2
[experimental]
context_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
"""
MEGATRON = """#!/bin/bash
# Runs the "175B" parameter model
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=4
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
TP=${TP:-2}
CHECKPOINT_PATH=$1 #<Specify path>
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
)
GPT_MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --seq-length 2048
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size $((8*WORLD_SIZE))
    --bf16
    --recompute-granularity selective
)
MODEL_PARALLEL_ARGS=(
\t--tensor-model-parallel-size $TP
\t--pipeline-model-parallel-size 4
\t--num-layers-per-virtual-pipeline-stage 4
\t--sequence-parallel --use-distributed-optimizer
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\
    ${GPT_MODEL_ARGS[@]} --optimizer adam
"""
FSDP = """# written by accelerate config
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_offload_params: false
machine_rank: 0
mixed_precision: bf16
num_machines: 2
num_processes: 16
tpu_env: []
use_cpu: false
"""
ACCELERATE_DEEPSPEED = """compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 2
  offload_param_device: none
  zero3_init_flag: true
  zero_stage: 3
distributed_type: DEEPSPEED
mixed_precision: fp16
num_machines: 1
num_processes: 8
"""
ACCELERATE_MEGATRON = """distributed_type: MEGATRON_LM
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_pp_degree: 2
  megatron_lm_num_micro_batches: 4
  megatron_lm_recompute_activations: true
  megatron_lm_sequence_parallelism: true
  megatron_lm_use_distributed_optimizer: true
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def layout_of(path: Path, **batch: int) -> Layout:
    stated = read_layout(path)
    return stated.layout(stated.workload(MODEL), 4, 8, **batch)


@pytest.mark.parametrize(
    ("name", "text", "batch", "expected"),
    [
        (
            "ds_config.json",
            DEEPSPEED,
            {},
            {
                "micro_batch": 4,
                "global_batch": 512,
                "accumulation": 4,
                "zero_stage": 3,
                "precision": "bf16",
                "data": 32,
            },
        ),
        ("hf.json", HF_DEEPSPEED, {"global_batch": 64, "micro_batch": 1}, {"accumulation": 2, "zero_stage": 2}),
        (
            "llama3_70b.toml",
            TORCHTITAN,
            {},
            {"tensor": 8, "data": 4, "micro_batch": 8, "zero_stage": 3, "recomputation": Recomputation.FULL},
        ),
        (
            "pp.toml",
            PIPELINED_TORCHTITAN,
            {},
            {"pipeline": 4, "interleave": 2, "micro_batch": 2, "accumulation": 16, "zero_stage": 2, "data": 4},
        ),
        ("old.toml", EARLIER_TORCHTITAN, {}, {"tensor": 2, "context": 2, "micro_batch": 2, "data": 8}),
        (
            "train_gpt3_175b.sh",
            MEGATRON,
            {},
            {
                "tensor": 2,
                "pipeline": 4,
                "interleave": 2,
                "global_batch": 256,
                "zero_stage": 1,
                "sequence_parallel": True,
            },
        ),
        (
            "args.txt",
            "--tensor-model-parallel-size=4 --micro-batch-size 2 --fp16 --recompute-activations",
            {},
            {"tensor": 4, "global_batch": 16, "precision": "fp16", "recomputation": Recomputation.SELECTIVE},
        ),
        (
            "fsdp.yaml",
            FSDP,
            {"micro_batch": 2},
            {"devices": 16, "zero_stage": 2, "global_batch": 32, "recomputation": Recomputation.FULL},
        ),
        (
            "ds.yaml",
            ACCELERATE_DEEPSPEED,
            {"global_batch": 64},
            {"micro_batch": 4, "zero_stage": 3, "precision": "fp16"},
        ),
        (
            "mlm.yml",
            ACCELERATE_MEGATRON,
            {"micro_batch": 1},
            {"tensor": 2, "pipeline": 2, "accumulation": 4, "data": 2},
        ),
    ],
)
def test_files_state_layouts(
    tmp_path: Path, name: str, text: str, batch: dict[str, int], expected: dict[str, Any]
) -> None:
    layout = layout_of(write(tmp_path, name, text), **batch)
    assert {field: getattr(layout, field) for field in expected} == expected


def test_facts_of_the_workload_are_read(tmp_path: Path) -> None:
    workload = read_layout(write(tmp_path, "ds_config.json", DEEPSPEED)).workload(MODEL)
    assert (workload.optimizer, workload.offload) == ("adamw", "optimizer")
    stated = read_layout(write(tmp_path, "old.toml", EARLIER_TORCHTITAN))
    layout = layout_of(Path(stated.source))
    # Every second layer is recomputed, and groups of 4 replicas shard.
    assert layout.workload.recomputed_share == 0.5
    assert layout.workload.sharding_devices_count == 4
    assert stated.workload(MODEL).transformer == replace(
        MODEL.transformer or Transformer(), sequence_length_tokens=4096
    )


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "[]", "must contain an object"),
        ("a.json", '{"model_type": "llama"}', "must be a configuration of DeepSpeed"),
        ("a.json", '{"zero_optimization": {"stage": 4}}', "zero_optimization.stage: must be 0, 1, 2 or 3, found 4"),
        ("a.json", '{"zero_optimization": 2}', "zero_optimization: must be an object, found 2"),
        (
            "a.json",
            '{"train_batch_size": "many"}',
            "train_batch_size: must be a whole number of at least 1, found 'many'",
        ),
        ("a.json", '{"train_batch_size": 1.5}', "train_batch_size: must be a whole number"),
        (
            "a.json",
            '{"train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true}}',
            "bf16.enabled: must be false where fp16.enabled is true",
        ),
        ("a.json", '{"zero_optimization": {"stage": 1}}', "train_micro_batch_size_per_gpu or train_batch_size"),
        (
            "a.json",
            '{"train_batch_size": 512, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            "gradient_accumulation_steps: 2 micro-batches x 4 samples x 32 replicas are not the 512 samples",
        ),
        (
            "a.json",
            '{"train_batch_size": 48}',
            "train_batch_size: 48 samples of a step must be a multiple of 32 replicas",
        ),
        ("a.json", '{"train_batch_size": 64, "sequence_parallel_size": 2}', "Ulysses"),
        ("a.toml", "[training", "is not valid TOML"),
        ("a.toml", "[x]\ny = 1", "must be a configuration of torchtitan"),
        (
            "a.toml",
            "[parallelism]\ntensor_parallel_degree = 3",
            "parallelism.tensor_parallel_degree 3 must divide the 32",
        ),
        (
            "a.toml",
            "[parallelism]\ndata_parallel_shard_degree = 0",
            "data_parallel_shard_degree: must be a whole number",
        ),
        ("a.toml", "[parallelism]\ndata_parallel_shard_degree = 8", "must be 32, the 32 devices by the other degrees"),
        (
            "a.toml",
            '[training]\n[activation_checkpoint]\nmode = "memory_budget"',
            "activation_checkpoint.mode: must be one of none, full, selective",
        ),
        (
            "a.toml",
            "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3",
            "8 samples must be a multiple of parallelism.pipeline_parallel_microbatch_size 3",
        ),
        ("a.sh", "python train.py --lr 3", "must contain arguments of Megatron-LM"),
        ("a.sh", "--micro-batch-size $MBS --bf16", "--micro-batch-size ($MBS is not set in the file)"),
        ("a.sh", "--micro-batch-size 1 --bf16 --fp16", "--bf16: must be left out where --fp16 is given"),
        ("a.sh", "--micro-batch-size 1 --num-layers 24", "--num-layers: must be the 32 of the model, found 24"),
        ("a.sh", "--micro-batch-size 1 --nnodes 8 --nproc-per-node 8", "64 devices are not some of the 4 nodes"),
        ("a.sh", "--micro-batch-size 1 --tensor-model-parallel-size $TP", "parallel-size: $TP is not set in the file"),
        (
            "a.sh",
            "--micro-batch-size 1\nif [ $1 = 8 ]; then\nA=--bf16\nfi",
            "--bf16 or --fp16: stands under a condition",
        ),
        (
            "a.sh",
            "--micro-batch-size 1\n[ $A ] ; if f; then X='--context-parallel-size 2'; fi",
            "--context-parallel-size",
        ),
        ("a.yaml", "model:\n  tensor_model_parallel_size: two\n", "model.tensor_model_parallel_size: must be a whole"),
        ("a.yml", '{"pipe-parallel-size": 1, "precision": "int8"}', "precision: must be one of bfloat16"),
        ("a.yaml", "just words", "line 1: must be a name, a colon and a value"),
        ("a.yaml", "distributed_type: TPU\n", "distributed_type: must be one of FSDP"),
        ("a.yaml", FSDP, "the batch of a device, which is the script's: must be stated"),
        (
            "a.yaml",
            "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n",
            "names the file that states the layout",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path: Path, name: str, text: str, what: str) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(LayoutFileError) as error:
        layout_of(path)
    assert what in str(error.value)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=(--micro-batch-size 2)\nA+=(--bf16)\nA+=' --tensor-model-parallel-size 4'\nrun ${A[*]}", {"tensor": 4}),
        ("#SBATCH -N 2\n#SBATCH --gres=gpu:a100:4\n--micro-batch-size $SLURM_NNODES", {"micro_batch": 2}),
        ("N=3\nif [[ $N -gt 4 ]]; then M=1; elif (( N >= 3 )); then M=2; else M=4; fi\n--micro-batch-size $M", 2),
        ("if [ -z $M ] && ! [ 1 -eq 2 ]; then M=2; fi; go --micro-batch-size $M", 2),
        (
            "if [ 1 -ne 1 ]; then M=1\nelse M=2; if [ $1 ]; then M=2; fi; fi\nM=2; --micro-batch-size $M",
            2,
        ),
        (
            "M=2 # don't\ncase $1 in\n 8) M=8 ;;\nesac\nfunction go {\nrun --micro-batch-size $M; }\necho --bf16 'a\n'",
            2,
        ),
        ("cat << 'END' > x\n--micro-batch-size 4\nEND\nrun --micro-batch-size 2 --log 'it; # is'", 2),
        (f"A=x\n{'A=$A$A$A$A;' * 40}if {'! ' * 4000}[ 1 = 1 ]; {'then ' * 4000}run --micro-batch-size 2; fi", 2),
        ("G=$(nvidia-smi -L | wc -l)\nrun --nproc_per_node $G --micro-batch-size $((4/2))", 2),
    ],
)
def test_scripts_are_read_as_a_shell_reads_them(tmp_path: Path, text: str, expected: dict[str, Any] | int) -> None:
    layout = layout_of(write(tmp_path, "a.sh", text))
    values = expected if isinstance(expected, dict) else {"micro_batch": expected}
    assert {field: getattr(layout, field) for field in values} == values


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LayoutFileError, match="cannot be read: No such file"):
        read_layout(tmp_path / "none.json")


@pytest.mark.parametrize(("framework", "name"), [("deepspeed", "ds_config.json"), ("torchtitan", "train_config.toml")])
@pytest.mark.parametrize("zero_stage", [0, 2, 3])
def test_generated_files_are_read_as_the_same_layout(
    tmp_path: Path, framework: str, name: str, zero_stage: int
) -> None:
    layout = Layout(workload=MODEL, nodes=4, devices_per_node=8, micro_batch=2, global_batch=512, zero_stage=zero_stage)
    path = write(tmp_path, name, launch(layout, framework).files[name])
    assert replace(layout_of(path), workload=MODEL) == layout


def test_generated_arguments_are_read_as_the_same_layout(tmp_path: Path) -> None:
    layout = Layout(
        workload=MODEL,
        nodes=4,
        devices_per_node=8,
        tensor=2,
        pipeline=4,
        context=2,
        interleave=2,
        micro_batch=1,
        global_batch=64,
        zero_stage=1,
        sequence_parallel=True,
        recomputation=Recomputation.FULL,
    )
    path = write(tmp_path, "run.sh", launch(layout, "megatron").command)
    assert replace(layout_of(path), workload=MODEL) == layout
