"""Configurations of other projects are refused by name, whatever they are called and whichever command is given one."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodewise_cli.app import app

DEEPSPEED = """{"bf16": {"enabled": "auto"}, "zero_optimization": {"offload_optimizer": {"device": "cpu"}, "stage": 2},
 "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto", "train_batch_size": "auto"}"""
TORCHTITAN = """# torchtitan Config.toml
[job]
dump_folder = "./outputs"  # batch_size = 3
[model]
name = "llama3"
[training]
batch_size = 1
seq_len = 4_096
tensor_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
[optimizer]
name = "AdamW"
lr = 3e-4
"""
NEOX = """# GPT-2 pretraining setup
{
  # parallelism settings
  "pipe-parallel-size": 2,
  "model_parallel_size": 4,
  "num-layers": 24, "hidden-size": 2048, "seq-length": 1024,
  "train_micro_batch_size_per_gpu": 8,
  "zero_optimization": {"stage": 1, "overlap_comm": True},
  "optimizer": {"type": "Adam", "params": {"lr": 0.0006}},
}
"""
FOUNDRY = """variables:
  max_seq_len: 4096
model:
  name: mpt_causal_lm
  d_model: 2048
train_loader: {name: text}
global_train_batch_size: 256
device_train_microbatch_size: auto
"""
ACCELERATE = """compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 1
  zero_stage: 3
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""
MEGATRON = """#!/bin/bash
GPT_ARGS="
    --num-layers 24 \\
    --hidden-size $HIDDEN \\
    --tensor-model-parallel-size=2 \\
    --micro-batch-size 4 \\
    --optimizer adam \\
    --global-batch-size 64
"
torchrun pretrain_gpt.py $GPT_ARGS
"""
NEMO = """trainer:
  num_nodes: 2
model:
  micro_batch_size: 2
  tensor_model_parallel_size: 8
"""
FILES = [
    ("ds_config.json", DEEPSPEED, "is a DeepSpeed configuration", "--micro-batch 4 --zero-stage 2"),
    ("zero.txt", DEEPSPEED, "is a DeepSpeed configuration", "--micro-batch 4 --zero-stage 2"),
    ("own.csv", DEEPSPEED, "is a DeepSpeed configuration", "--micro-batch 4 --zero-stage 2"),
    (
        "llama.toml",
        TORCHTITAN,
        "is a torchtitan configuration",
        "--sequence-length 4096 --micro-batch 1 --tensor-parallel 2 --optimizer adamw --pipeline-schedule 1f1b",
    ),
    (
        "small.yml",
        NEOX,
        "is a GPT-NeoX configuration",
        (
            "--sequence-length 1024 --micro-batch 8 --tensor-parallel 4 --pipeline-parallel 2 --zero-stage 1 "
            "--optimizer adam"
        ),
    ),
    ("1b.yaml", FOUNDRY, "is an llm-foundry configuration", "--sequence-length 4096 --global-batch 256"),
    ("default.yaml", ACCELERATE, "is an Accelerate configuration", "--zero-stage 3 --precision bf16"),
    (
        "train.sh",
        MEGATRON,
        "holds arguments of Megatron-LM",
        "--global-batch 64 --micro-batch 4 --tensor-parallel 2 --optimizer adam",
    ),
    ("nemo.yaml", NEMO, "is a NeMo configuration", "--micro-batch 2 --tensor-parallel 8"),
    ("nothing.yaml", "mixed_precision: no\nmachine_rank: 0\nnum_machines: 1\n", "is an Accelerate configuration", ""),
]
COMMANDS = [
    ["predict", "--nodes", "1"],
    ["plan"],
    ["backtest"],
    ["ingest", "--server", "127.0.0.1:1"],
    ["diagnose"],
    ["schedule"],
    ["spot"],
    ["share"],
    ["rank", "--device", "K80", "--batch", "8"],
]


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2, (result.exit_code, result.stderr)
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize(("name", "text", "what", "options"), FILES, ids=[name for name, *_ in FILES])
@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_a_project_is_named(tmp_path: Path, command: list[str], name: str, text: str, what: str, options: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    stderr = said(*command, str(path))
    assert f"{path}: {what}" in stderr
    assert "which Nodewise cannot read yet" in stderr
    assert stderr.strip().endswith(f"and state {options}" if options else "`nodewise plan`")
    assert stderr.count("\n") == 1
    assert len(stderr) < len(str(path)) + 400


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] not in {"predict", "plan"}])
def test_a_models_file_goes_to_predict_or_plan(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"architectures": ["X"], "model_type": "qwen", "seq_length": 8, "bf16": true, "fp16": false}')
    assert f"{path}: is a model's config.json; only `nodewise predict` and" in said(*command, str(path))


def test_others_are_refused_as_before(tmp_path: Path) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text("title: notes\nmodel: mine\n")
    assert "is not valid JSON" in said("plan", str(path))
    assert "unknown column 'title: notes'" in said("backtest", str(path))


def test_a_table_that_quotes_arguments_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("job,device,nodes,workers,steps_per_s\n--num-layers 24 --hidden-size 64,A100,1,0,2\n")
    assert f"{path}:2: column workers" in said("backtest", str(path))
