"""Run in an environment with training frameworks: each reads the settings of layouts by its own code.

Standard input has one JSON object: framework, and layouts with what was generated for each. Standard output gets the
versions, the number that was accepted, and the errors. Nothing of Nodewise is imported.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import shlex
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

DISTRIBUTIONS = ("torch", "megatron-core", "deepspeed", "torchtitan", "accelerate")


def arguments_of(command: str, after: str) -> list[str]:
    """What a command has after one of its words."""
    words = shlex.split(command.replace("\\\n", " "))
    return words[words.index(after) + 1 :]


def read_megatron(layout: dict[str, Any]) -> dict[str, Any]:
    import torch  # of the other environment
    from megatron.training.arguments import (
        core_transformer_config_from_args,
        parse_args,
        validate_args,
    )

    # The only question about the hardware: its architecture, Hopper.
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0)
    os.environ |= {"WORLD_SIZE": str(layout["devices"]), "RANK": "0"}
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    for word in shlex.split(layout["command"].replace("\\\n", " ")):
        if "=" not in word:
            break
        os.environ.__setitem__(*word.split("=", 1))
    data = [
        "--mock-data",
        "--tokenizer-type",
        "NullTokenizer",
        "--vocab-size",
        "32000",
        "--no-gradient-accumulation-fusion",
    ]
    sys.argv = ["pretrain_gpt.py", *arguments_of(layout["command"], "pretrain_gpt.py"), *data]
    args = parse_args()
    validate_args(args)
    core_transformer_config_from_args(args)
    return {
        "data": args.data_parallel_size,
        "accumulation": args.global_batch_size // (args.micro_batch_size * args.data_parallel_size),
        "interleave": args.virtual_pipeline_model_parallel_size or 1,
        "sequence_parallel": args.sequence_parallel,
    }


def read_nemo(layout: dict[str, Any]) -> dict[str, Any]:
    """By the classes of megatron-core from which those of Megatron Bridge derive."""
    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig
    from megatron.core.transformer import TransformerConfig
    from megatron.training.config import CheckpointConfig, TrainingConfig

    settings = layout["settings"]
    model = {name: value for name, value in settings["model"].items() if name != "seq_length"}
    experts = {"num_moe_experts": layout["experts"], "add_bias_linear": False} if layout["experts"] else {}
    if model["pipeline_model_parallel_size"] > 1:
        import torch

        experts["pipeline_dtype"] = torch.bfloat16  # a recipe states it
    read = TransformerConfig(num_layers=layout["layers"], hidden_size=4096, num_attention_heads=32, **experts, **model)
    train = TrainingConfig(**settings["train"])
    DistributedDataParallelConfig(**settings["ddp"])
    OptimizerConfig(**settings["optimizer"])
    CheckpointConfig(**settings.get("checkpoint", {}))
    degrees = read.tensor_model_parallel_size * read.pipeline_model_parallel_size * read.context_parallel_size
    data = layout["devices"] // degrees
    return {
        "data": data,
        "accumulation": train.global_batch_size // (train.micro_batch_size * data),
        "interleave": read.virtual_pipeline_model_parallel_size or 1,
        "sequence_parallel": read.sequence_parallel,
    }


def read_deepspeed(layout: dict[str, Any]) -> dict[str, Any]:
    import deepspeed.comm
    from deepspeed.module_inject.auto_ep_config import parse_autoep_config, validate_autoep_config
    from deepspeed.runtime.config import DeepSpeedConfig

    document = json.loads(layout["files"]["ds_config.json"])
    if "expert_parallel" in document:
        tensor = document.get("tensor_parallel", {}).get("autotp_size", 1)
        stage = document["zero_optimization"]["stage"]
        experts = parse_autoep_config(document["expert_parallel"])
        validate_autoep_config(experts, layout["devices"], 1, tensor, 1, zero_stage=stage)
    # As a pipeline and tensor parallelism hand over: what is parallel, and by how much.
    mpu = types.SimpleNamespace(get_data_parallel_world_size=lambda: layout["data"])
    deepspeed.comm.get_rank = lambda: 0
    deepspeed.comm.get_world_size = lambda: layout["devices"]
    read = DeepSpeedConfig(document, mpu=mpu)
    micro_batch = read.train_micro_batch_size_per_gpu
    return {
        "data": read.train_batch_size // (micro_batch * read.gradient_accumulation_steps),
        "accumulation": read.gradient_accumulation_steps,
        "zero_stage": read.zero_optimization_stage,
    }


def read_torchtitan(layout: dict[str, Any]) -> dict[str, Any]:
    from torchtitan.config import ConfigManager
    from torchtitan.distributed import ParallelDims

    version = importlib.metadata.version("torchtitan")
    if version < "0.3":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train_config.toml"
            path.write_text(layout["files"]["train_config.toml"])
            config = ConfigManager().parse_args(["--job.config_file", str(path)])
        parallelism, chunks = config.parallelism, config.parallelism
        dims = ParallelDims(
            dp_replicate=parallelism.data_parallel_replicate_degree,
            dp_shard=parallelism.data_parallel_shard_degree,
            cp=parallelism.context_parallel_degree,
            tp=parallelism.tensor_parallel_degree,
            pp=parallelism.pipeline_parallel_degree,
            ep=parallelism.expert_parallel_degree,
            etp=1,
            world_size=layout["devices"],
        )
    else:
        names = ("deepseek_v3", "deepseek_v3_16b") if layout["experts"] else ("llama3", "llama3_8b")
        words = arguments_of(layout["command"], "torchtitan.train")
        words = [{"$MODULE": names[0], "$CONFIG": names[1]}.get(word, word) for word in words]
        config = ConfigManager().parse_args(words)
        parallelism = config.parallelism
        dims = ParallelDims.from_config(parallelism, layout["devices"])
        ranks = dims.dp_shard * dims.cp * dims.tp
        assert ranks % dims.ep == 0, f"{dims.ep} does not divide {ranks}"
    chunks = 1
    if dims.pp > 1:
        per_stage = parallelism.pipeline_parallel_layers_per_stage
        less = (
            parallelism.pipeline_parallel_first_stage_less_layers + parallelism.pipeline_parallel_last_stage_less_layers
        )
        chunks = -(-(layout["layers"] + less) // per_stage) // dims.pp
    data = dims.dp_replicate * dims.dp_shard
    micro_batch = parallelism.pipeline_parallel_microbatch_size if dims.pp > 1 else config.training.local_batch_size
    return {
        "data": data,
        "accumulation": config.training.global_batch_size // (micro_batch * data),
        "interleave": chunks,
    }


def read_accelerate(layout: dict[str, Any]) -> dict[str, Any]:
    from accelerate import ParallelismConfig
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "accelerate.yaml"
        path.write_text(layout["files"]["accelerate.yaml"])
        words = arguments_of(layout["command"].replace("$NODE_RANK", "0"), "launch")
        words = [str(path) if word == "accelerate.yaml" else word for word in words]
        args, _, _ = _validate_launch_command(launch_command_parser().parse_args(words))
    data = args.num_processes
    if args.use_parallelism_config:
        read = ParallelismConfig(
            dp_replicate_size=args.parallelism_config_dp_replicate_size,
            dp_shard_size=args.parallelism_config_dp_shard_size,
            tp_size=args.parallelism_config_tp_size,
            cp_size=args.parallelism_config_cp_size,
        )
        assert read.total_size == args.num_processes, f"{read.total_size} is not {args.num_processes}"
        data = read.dp_replicate_size * read.dp_shard_size
    return {"data": data, "accumulation": int(args.gradient_accumulation_steps)}


READERS = {
    "accelerate": read_accelerate,
    "deepspeed": read_deepspeed,
    "megatron": read_megatron,
    "nemo": read_nemo,
    "torchtitan": read_torchtitan,
}


def main() -> None:
    """Read every layout by the framework, and compare what it makes of it with what was planned."""
    warnings.filterwarnings("ignore")
    question = json.load(sys.stdin)
    read, errors = READERS[question["framework"]], []
    for number, layout in enumerate(question["layouts"]):
        noise = io.StringIO()
        try:
            with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
                values = read(layout)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # any refusal counts
            tail = noise.getvalue()[-200:] if isinstance(error, SystemExit) else ""
            errors.append(f"{number}: {type(error).__name__}: {error} {tail}; {layout['command']}")
            continue
        wrong = {name: value for name, value in values.items() if value != layout[name]}
        if wrong:
            errors.append(f"{number}: read as {wrong}; {layout['command']}")
    versions = {}
    for name in DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    print(json.dumps({"versions": versions, "accepted": len(question["layouts"]) - len(errors), "errors": errors}))


if __name__ == "__main__":
    main()
