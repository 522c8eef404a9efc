"""Questions that people asked in public, typed as they would: what is answered, and what must not be said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from measurements import data_path
from typer.testing import CliRunner

from nodewise_cli.app import app

pytestmark = pytest.mark.data


def run(*arguments: object, status: int = 0) -> str:
    found = CliRunner().invoke(app, [str(each) for each in arguments])
    assert found.exit_code == status, found.output
    return found.output


def answer(*arguments: object) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(run(*arguments, "--json").splitlines()[-1])
    return read


def question(name: str) -> Path:
    return data_path("cases", "questions", name)


def rows_of(*arguments: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answer(*arguments)["predictions"]
    return rows


@pytest.mark.parametrize(
    ("job", "workers_per_node", "link_bytes_per_s", "gradient_bytes", "measured"),
    [
        ("hvd752-resnet50-1GbE", 2, 125e6, 102228128, 4 * 32 * 0.534),
        ("hvd659-resnet101-10GbE", 1, 1.25e9, 178e6, 2 * 64 * 2.2734),
        ("hvd416-resnet101-40GbE", 8, 5e9, 178e6, 16 * 64 * 2.3238),
    ],
)
def test_one_node_carried_to_two_pays_for_the_link(
    job: str, workers_per_node: int, link_bytes_per_s: float, gradient_bytes: float, measured: float
) -> None:
    table = question("c24_horovod_links.csv")
    (row,) = rows_of("predict", table, "--job", job, "--nodes", "2", "--workers-per-node", workers_per_node)
    # A ring over two nodes sends all gradients once over a node's link.
    assert row["step_s"] >= gradient_bytes / link_bytes_per_s
    assert row["lower_samples_per_s"] <= measured <= row["upper_samples_per_s"]


def test_a_slow_link_is_the_first_thing_to_measure() -> None:
    said = run("suggest", question("c24_horovod_links.csv"), "--job", "hvd752-resnet50-1GbE", "--nodes", "1-8")
    assert "1: every run was inside one node" in " ".join(said.split())


def test_a_run_in_one_node_does_not_narrow_what_two_do() -> None:
    def width(name: str, job: str) -> float:
        (row,) = rows_of("predict", question(name), "--job", job, "--nodes", "2")
        return float(row["upper_samples_per_s"] / row["lower_samples_per_s"])

    alone = width("c17b_roberta3707_facts.csv", "hf3707-facts")
    assert width("c17_roberta3707.csv", "hf3707") >= 0.95 * alone


def test_a_table_of_splits_is_predicted_as_it_is_split() -> None:
    rows = rows_of("predict", question("c22_split_in_table.csv"), "--nodes", "1")
    assert [row["status"] for row in rows] == ["answered"]
    planned = run("plan", question("c05_8xA100-80_z2.json"), status=3)
    assert "the closest" in planned


@pytest.mark.parametrize("name", ["c05_24xA100-40_t4p6.json", "c05_8xA100-80_z3.json"])
def test_what_ran_is_planned(name: str) -> None:
    assert "Best (least_time)" in run("plan", question(name))


@pytest.mark.parametrize(
    ("name", "project", "options"),
    [
        ("ds_config.json", "DeepSpeed", "--micro-batch 2 --accumulation 4 --zero-stage 3 --precision fp16"),
        ("llama3_70b.toml", "torchtitan", "--sequence-length 8192 --micro-batch 8 --tensor-parallel 8"),
        ("megatron_args.txt", "Megatron", "--pipeline-parallel 8 --precision bf16"),
        ("mpt.yaml", "llm-foundry", "--global-batch 512 --micro-batch 16 --precision bf16"),
        ("neox_20b.yml", "GPT-NeoX", "--accumulation 32 --tensor-parallel 2 --pipeline-parallel 4 --zero-stage 1"),
    ],
)
def test_files_of_other_projects_are_known_by_name(name: str, project: str, options: str) -> None:
    path = data_path("cases", "questions", "raw", name)
    for command in (("predict", "--nodes", "2"), ("plan", "--cluster", "h100=2x8", "--batch", "64")):
        said = run(command[0], path, *command[1:], status=2)
        assert project in said
        assert options in said


@pytest.mark.parametrize(
    "name", ["gpt-neox-20b", "gpt2-124m", "llama-2-13b", "mpt-125m", "qwen-14b-chat", "roberta-base"]
)
def test_a_models_config_is_planned_and_predicted_alike(name: str) -> None:
    config = data_path("cases", "questions", "configs", f"{name}.json")
    planned = answer("plan", config, "--cluster", "a100=2x8", "--batch", "64")
    (row,) = rows_of(
        "predict", config, "--device", "A100", "--nodes", "2", "--workers-per-node", "8", "--global-batch", "64"
    )
    best = planned["best"]
    # A model that fits unsplit is predicted as replicas alone, which a plan may beat.
    assert row["samples_per_s"] <= 1.001 * best["samples_per_s"]
    if name in ("gpt-neox-20b", "llama-2-13b", "qwen-14b-chat"):
        assert row["samples_per_s"] == pytest.approx(best["samples_per_s"], rel=1e-6)
