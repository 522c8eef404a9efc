"""What to paste for a plan, and the layout of a framework's file beside it, from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
CLUSTER = ("--cluster", "h100=4x8", "--sequence", "4096")


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def run(target: str, *arguments: str | Path) -> tuple[int, str, str]:
    words = ["plan", *map(str, arguments), "--no-explain", "--server", target]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def answer_of(target: str, *arguments: str | Path) -> dict[str, Any]:
    code, stdout, stderr = run(target, *arguments, "--json")
    assert code == 0, stderr
    document: dict[str, Any] = json.loads(stdout)
    return document


@pytest.mark.parametrize(
    ("framework", "text"),
    [
        ("megatron", "    --global-batch-size 512 \\"),
        ("deepspeed", '  "train_batch_size": 512,'),
        ("torchtitan", "global_batch_size = 512"),
        ("nemo", "    train.global_batch_size=512 \\"),
        ("accelerate", "num_processes: 32"),
    ],
)
def test_what_to_paste_is_that_of_the_best_plan(target: str, config: Path, framework: str, text: str) -> None:
    arguments = (config, *CLUSTER, "--batch", "512", "--flags", framework)
    code, stdout, stderr = run(target, *arguments)
    assert code == 0, stderr
    assert text in stdout.splitlines()
    assert "To paste, on each node, for " in stdout
    answer = answer_of(target, *arguments)
    assert answer["flags"]["best_refused"] is None
    assert "--nnodes 4" in answer["flags"]["command"] or framework == "accelerate"


def test_the_time_of_tokens_and_the_memory_of_the_device_are_shown(target: str, config: Path) -> None:
    arguments = (config, *CLUSTER, "--batch", "512", "--tokens", "1e12")
    _, stdout, _ = run(target, *arguments)
    assert " of 74.5 GiB on each device, 1e+12 tokens in " in stdout
    best = answer_of(target, *arguments)["best"]
    assert best["device_memory_bytes"] == 80e9
    assert best["finish_s"] == pytest.approx(1e12 / best["tokens_per_s"], rel=1e-3)
    assert best["tokens_per_s_per_device"] == pytest.approx(best["tokens_per_s"] / 32)


def test_a_file_is_predicted_beside_the_best(target: str, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    layout = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 16, "bf16": {"enabled": True}}
    file.write_text(json.dumps(layout | {"zero_optimization": {"stage": 3}}))
    answer = answer_of(target, config, *CLUSTER, "--from", file)
    stated = answer["from"]
    assert (stated["zero_stage"], stated["data_parallel"], stated["global_batch"]) == (3, 32, 512)
    assert stated["fits"] is True
    assert stated["best_speedup"] == pytest.approx(answer["best"]["samples_per_s"] / stated["samples_per_s"])
    assert stated["best_speedup"] >= 1.0
    code, stdout, _ = run(target, config, *CLUSTER, "--from", file)
    assert code == 0
    assert "It fits into memory." in stdout
    assert "Note: recomputation and pipeline stages are the script's: none are assumed." in stdout


def test_a_file_that_does_not_fit_is_said_so(target: str, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.toml"
    file.write_text('[training]\nlocal_batch_size = 16\n[activation_checkpoint]\nmode = "none"\n')
    _, stdout, _ = run(target, config, *CLUSTER, "--from", file)
    assert "It does not fit into memory: " in stdout
    assert answer_of(target, config, *CLUSTER, "--from", file)["from"]["fits"] is False


def test_the_file_of_one_framework_and_the_flags_of_another(target: str, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("--micro-batch-size 1 --global-batch-size 256 --bf16 --tensor-model-parallel-size 2\n")
    answer = answer_of(target, config, *CLUSTER, "--from", file, "--flags", "torchtitan")
    assert answer["best"]["zero_stage"] != 1
    assert answer["from"]["tensor_parallel"] == 2
    assert answer["flags"]["settings"]["training"]["global_batch_size"] == 256


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--micro-batch", "2", "--batch", "512"), "--micro-batch: needs --from"),
        (("--from", "none.json"), "--from: none.json: cannot be read"),
        (("--batch", "512", "--flags", "jax"), "'jax' is not one of"),
    ],
)
def test_wrong_options_are_named(target: str, config: Path, arguments: tuple[str, ...], what: str) -> None:
    code, _, stderr = run(target, config, *CLUSTER, *arguments)
    assert code == 2
    assert what in stderr


def test_a_missing_batch_is_named_with_its_option(target: str, config: Path, tmp_path: Path) -> None:
    file = tmp_path / "fsdp.yaml"
    file.write_text("distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 4\nnum_processes: 32\n")
    code, _, stderr = run(target, config, *CLUSTER, "--from", file)
    assert code == 2
    assert "must be stated (or give --micro-batch or --batch)" in stderr
    answer = answer_of(target, config, *CLUSTER, "--from", file, "--micro-batch", "2")
    assert answer["from"]["global_batch"] == 64


def test_options_of_a_model_are_refused_beside_a_specification(target: str, tmp_path: Path) -> None:
    spec = EXAMPLES / "plan_22b_64_devices.json"
    code, _, stderr = run(target, spec, "--from", tmp_path / "ds_config.json")
    assert code == 2
    assert "--from: needs the config.json of a model" in stderr


def specification(tmp_path: Path, **constraints: Any) -> Path:
    spec = json.loads((EXAMPLES / "plan_22b_64_devices.json").read_text())
    spec["profile"]["content"]["workload"]["precision"] = "bf16"
    spec["constraints"] |= constraints
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    return path


def test_a_specification_has_flags_too(target: str, tmp_path: Path) -> None:
    answer = answer_of(target, specification(tmp_path), "--flags", "megatron")
    assert f"--tensor-model-parallel-size {answer['best']['tensor_parallel']} " in answer["flags"]["command"]


def test_what_a_framework_lacks_for_every_layout_is_refused(target: str, tmp_path: Path) -> None:
    spec = specification(tmp_path, zero_stages=[1], data_parallel_degrees=[4])
    code, _, stderr = run(target, spec, "--flags", "torchtitan")
    assert code == 3
    assert "--flags: torchtitan cannot express this layout: ZeRO stage 1" in stderr
