"""Odd specifications of plans from the command line: each is answered, or refused with the field and what is right."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from patience import PATIENCE_S
from typer.testing import CliRunner

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app
from nodewise_protos.v1beta1 import plan_service_pb2 as pb
from nodewise_protos.v1beta1 import plan_service_pb2_grpc

SPEC = json.loads((Path(__file__).parents[2] / "examples" / "plan_22b_64_devices.json").read_text())
POOL = {"device_name": "A100-80GB", "nodes": {"values": [1, 2]}, "workers_per_node": 8}
CONSTRAINTS = {"pools": [POOL], "global_batch_samples": {"values": [64]}}
KEYS = {"space", "evaluated", "feasible", "search_s", "best", "frontier"}


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server:
        yield server.target


def spec(top: dict[str, Any] | None = None, **constraints: Any) -> dict[str, Any]:
    plain = {"profile": SPEC["profile"], "constraints": {**CONSTRAINTS, **constraints}}
    return copy.deepcopy({**plain, **(top or {})})


def run(target: str, folder: Path, document: Any) -> tuple[int, dict[str, Any], str]:
    file = folder / "spec.json"
    file.write_text(json.dumps(document))
    result = CliRunner().invoke(app, ["plan", str(file), "--json", "--no-explain", "--server", target])
    return result.exit_code, json.loads(result.stdout) if result.stdout else {}, " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        (
            {"tensor_parallel": {"values": [1]}},
            "constraints.tensor_parallel: is not a field of PlanConstraints; the nearest is tensor_parallel_degrees",
        ),
        ({"pools": []}, "constraints.pools: must hold at least one pool"),
        ({"pools": [{**POOL, "workers_per_node": 0}]}, "constraints.pools[0].workers_per_node: must be"),
        ({"pools": [{**POOL, "nodes": {"values": [0]}}]}, "constraints.pools[0].nodes.values[0]: must be"),
        (
            {"microBatchSamples": "64 or so"},
            "constraints.micro_batch_samples: must be an object that holds values, ranges; found '64 or so'",
        ),
        ({"global_batch_samples": {}}, "constraints.global_batch_samples: must hold at least one value"),
        # Billions of values are refused, not spelled out.
        ({"global_batch_samples": {"ranges": [{"first": 1, "last": 2 * 10**9}]}}, "at most 4096 values"),
        ({"global_batch_samples": {"ranges": [{"first": 8, "last": 4}]}}, "ranges[0].last: must be at least first (8)"),
        ({"global_batch_samples": {}, "micro_batch_samples": {"values": [1]}}, "must hold at least one value"),
        ({"memory_headroom_bytes": -1}, "constraints.memory_headroom_bytes: must be"),
        ({"max_nodes": -1}, "constraints.max_nodes: must be"),
        ({"sync_modes": ["SYNC_MODE_HYBRID"]}, "must be one of SYNC_MODE_ASYNC, SYNC_MODE_SYNC, SYNC_MODE_ALLREDUCE"),
        ({"zero_stages": [7]}, "constraints.zero_stages[0]: must be"),
    ],
)
def test_what_is_wrong_is_named(target: str, tmp_path: Path, constraints: dict[str, Any], said: str) -> None:
    code, answer, stderr = run(target, tmp_path, spec(**constraints))
    assert (code, answer) == (2, {})
    assert said in json.loads(stderr)["error"]["message"]


@pytest.mark.parametrize(
    ("constraints", "said", "unsaid"),
    [
        ({"tensor_parallel_degrees": {"values": [5, 6]}}, "tensor_parallel 5, 6: must divide the 64", "global_batches"),
        (
            {"tensor_parallel_degrees": {"values": [8]}, "pipeline_parallel_degrees": {"values": [4]}},
            "tensor_parallel 8: no other allowed degree",
            "must divide the 64",
        ),
        (
            {"data_parallel_degrees": {"values": [3]}},
            "data_parallel 3: must be the devices",
            "global_batches",
        ),
        (
            {"sync_modes": ["SYNC_MODE_ASYNC"]},
            "sync_modes ASYNC: partitioned transformers exchange",
            "global_batches",
        ),
        ({"memory_headroom_bytes": 80 * 2**30}, "more than the 0 GiB that 80 GiB of headroom leave", "there are"),
        (
            {"interleave_degrees": {"values": [4]}, "pipeline_parallel_degrees": {"values": [1]}},
            "interleave 4: times the pipeline stages",
            "global_batches",
        ),
    ],
)
def test_what_cannot_be_is_told_with_its_reason(
    target: str, tmp_path: Path, constraints: dict[str, Any], said: str, unsaid: str
) -> None:
    code, answer, stderr = run(target, tmp_path, spec(**constraints))
    assert code == 3
    assert set(answer) >= KEYS
    assert (answer["best"], answer["feasible"]) == (None, 0)
    assert said in stderr
    assert unsaid not in stderr
    assert len({each["message"] for each in answer["rejections"]}) == len(answer["rejections"])


def test_values_that_do_nothing_are_remarked(target: str, tmp_path: Path) -> None:
    code, answer, _ = run(target, tmp_path, spec(parameter_servers={"values": [2]}, zero_stages=[], max_nodes=1))
    assert code == 0
    assert set(answer) >= KEYS
    assert answer["best"]["nodes"] == 1
    assert any("parameter_servers 2" in each["message"] for each in answer["rejections"])


def test_a_device_of_the_users_own(target: str, tmp_path: Path) -> None:
    code, _, stderr = run(target, tmp_path, spec(pools=[{**POOL, "device_name": "Abacus"}]))
    assert (code, "no device 'Abacus'" in stderr) == (3, True)
    facts = tmp_path / "own.toml"
    facts.write_text(
        """
[devices.Abacus]
fp16_flops_per_s = 100e12
memory_bytes = 64e9
memory_bytes_per_s = 1e12
intra_node_link = "NVLink3"
source = "a test's own"
"""
    )
    with EmbeddedServer(Settings(store="memory:", grace_s=1.0, catalogue=str(facts))) as own:
        code, answer, stderr = run(own.target, tmp_path, spec(pools=[{**POOL, "device_name": "Abacus"}]))
    assert (code, stderr) == (0, "")
    assert answer["best"]["device"] == "Abacus"


def test_the_answer_depends_on_nothing_else(target: str, tmp_path: Path) -> None:
    names = ["A100-80GB", "H100-SXM5-80GB"]
    pools = [{**POOL, "device_name": name} for name in names]
    answers = []
    for order in (pools, pools[::-1], pools):
        _, answer, _ = run(target, tmp_path, spec(pools=order, global_batch_samples={"values": [96, 64]}))
        answers.append((answer["best"], answer["frontier"], answer["space"]))
    with EmbeddedServer() as other:
        _, answer, _ = run(other.target, tmp_path, spec(pools=pools, global_batch_samples={"values": [64, 96]}))
    answers.append((answer["best"], answer["frontier"], answer["space"]))
    assert all(each == answers[0] for each in answers)


def test_a_short_budget_answers_with_the_best_so_far(target: str, tmp_path: Path) -> None:
    code, answer, _ = run(target, tmp_path, {**SPEC, "objective": {"highest_throughput": {}}, "budget_seconds": 0.05})
    assert (code, answer["complete"]) == (0, False)
    assert answer["best"] is not None
    assert answer["evaluated"] < answer["space"]


def request() -> pb.PlanRequest:
    return json_format.ParseDict({**SPEC, "exhaustive": True, "skip_explanation": True}, pb.PlanRequest())


def test_a_deadline_ends_a_call_and_cancelling_frees_the_next(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        stub = plan_service_pb2_grpc.PlanServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.Plan(request(), timeout=0.05))
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        calls = [stub.Plan(request(), timeout=PATIENCE_S) for _ in range(4)]
        for call in calls:
            call.cancel()
        # As many as run at once were asked for, and more: what was cancelled must not hold their places.
        small = request()
        del small.constraints.pools[1:]
        small.exhaustive = False
        assert list(stub.Plan(small, timeout=PATIENCE_S))[-1].HasField("result")


def test_two_at_once_answer_as_one_alone(target: str, tmp_path: Path) -> None:
    document = spec()
    _, alone, _ = run(target, tmp_path, document)
    found: list[dict[str, Any]] = []

    def ask() -> None:
        found.append(answer_of(target, document))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(found) == 3
    assert all(each == found[0] for each in found)
    assert found[0]["space"] == alone["space"]


def answer_of(target: str, document: dict[str, Any]) -> dict[str, Any]:
    with grpc.insecure_channel(target) as channel:
        stub = plan_service_pb2_grpc.PlanServiceStub(channel)
        last = list(stub.Plan(json_format.ParseDict(document, pb.PlanRequest()), timeout=PATIENCE_S))[-1].result
    return {
        "space": last.space_count,
        "configurations": json_format.MessageToDict(last.configurations),
        "frontier": list(last.frontier_rows),
    }


def test_lists_and_single_values_stand_for_sets(target: str, tmp_path: Path) -> None:
    long = {"pools": [{**POOL, "nodes": {"values": [2]}}], "tensor_parallel_degrees": {"values": [2, 4]}}
    plain = {**long, "microBatchSamples": {"values": [1]}, "zero_stages": [1], "precisions": ["bf16"]}
    short = {
        "pools": {**POOL, "nodes": 2},
        "global_batch_samples": [64],
        "tensor_parallel_degrees": [2, 4],
        "microBatchSamples": 1,
        "zero_stages": {"values": [1]},
        "precisions": "bf16",
    }
    mixed = {
        **short,
        "global_batch_samples": {"values": 64},
        "tensor_parallel_degrees": {"first": 2, "last": 4, "step": 2},
    }
    answers = []
    for constraints in (plain, short, mixed):
        code, answer, stderr = run(target, tmp_path, spec(**constraints))
        assert (code, stderr) == (0, "")
        answers.append({key: answer[key] for key in ("space", "best", "frontier")})
    assert answers[0] == answers[1] == answers[2]


LLAMA = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16,
    "num_hidden_layers": 8, "vocab_size": 32000, "max_position_embeddings": 2048, "torch_dtype": "float16",
}  # fmt: skip
OTHERS = [
    {"model_type": "mpt", "d_model": 768, "n_heads": 12, "n_layers": 12, "max_seq_len": 2048, "vocab_size": 50368},
    {
        "model_type": "qwen", "hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 8, "seq_length": 2048,
        "intermediate_size": 5504, "vocab_size": 152064, "fp16": True,
    },
    {
        "model_type": "roberta", "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
        "num_hidden_layers": 12, "vocab_size": 50265, "max_position_embeddings": 514,
    },
]  # fmt: skip


def plan_of_model(folder: Path, config: dict[str, Any], *options: str) -> tuple[int, str, str]:
    (folder / "config.json").write_text(json.dumps(config))
    result = CliRunner().invoke(app, ["plan", str(folder / "config.json"), *options])
    return result.exit_code, result.stdout, result.stderr


def test_a_models_file_is_planned_as_its_specification(target: str, tmp_path: Path) -> None:
    options = ("--json", "--no-explain", "--server", target, "--precision", "bf16")
    asked = ("--cluster", "a100-80gb=2x8", "--batch", "64", "--sequence", "1024")
    code, out, stderr = plan_of_model(tmp_path, LLAMA, *asked, *options)
    assert (code, stderr) == (0, "")
    workload = {"hugging_face": "config.json", "sequence_length_tokens": 1024, "precision": "bf16"}
    pool = {**POOL, "device_name": "a100-80gb"}
    code, same, _ = run(
        target, tmp_path, spec({"profile": {"content": {"workload": workload}}}, pools=[pool], global_batch_samples=64)
    )
    assert code == 0
    found = json.loads(out)
    assert (found["best"], found["space"]) == (same["best"], same["space"])


@pytest.mark.parametrize("config", OTHERS, ids=lambda config: str(config["model_type"]))
def test_models_of_other_kinds_are_planned(target: str, tmp_path: Path, config: dict[str, Any]) -> None:
    code, out, _ = plan_of_model(
        tmp_path,
        config,
        "--cluster",
        "A100=1x4, H100=1x4",
        "--batch",
        "32",
        "--json",
        "--no-explain",
        "--server",
        target,
    )
    assert code == 0
    assert json.loads(out)["best"]["workers"] == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            [],
            "needs --cluster DEVICE=NODESxDEVICES (such as H100=4x8: 4 nodes of 8 H100) and --batch SAMPLES (in a step",
        ),
        (["--cluster", "V100=2x4"], "--cluster V100=2x4 --batch 512`"),
        (["--batch", "96"], "--cluster H100=4x8 --batch 96`"),
        (["--batch", "96", "--cluster", "V100"], "--cluster: must be DEVICE=NODESxDEVICES"),
        (["--batch", "96", "--cluster", "V100=0x4"], "found 'V100=0x4'"),
    ],
)
def test_what_a_models_file_leaves_open_is_asked_for(tmp_path: Path, options: list[str], said: str) -> None:
    code, out, stderr = plan_of_model(tmp_path, LLAMA, *options)
    assert (code, out) == (2, "")
    assert said in " ".join(stderr.split())
    assert "is no field" not in stderr


def test_options_of_a_model_go_with_no_specification(target: str, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec()))
    result = CliRunner().invoke(app, ["plan", str(file), "--batch", "64", "--server", target])
    assert result.exit_code == 2
    assert "--batch: needs the config.json of a model" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("name", "near"),
    [("H100 64GB", "H100"), ("Hopper", "H100"), ("NVIDIA Ampere", "A100"), ("V100-64GB", "V100-32GB")],
)
def test_the_nearest_devices_are_named(target: str, tmp_path: Path, name: str, near: str) -> None:
    code, _, stderr = run(target, tmp_path, spec(pools=[{**POOL, "device_name": name}]))
    assert code == 3
    message = json.loads(stderr)["error"]["message"]
    assert f"nearest to {name!r} are " in message
    assert near in message.partition(f"nearest to {name!r} are ")[2].partition(": `nodewise devices`")[0].split(", ")


def test_predict_names_the_nearest_devices_and_what_to_state(target: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    asked = ["predict", str(tmp_path / "config.json"), "--nodes", "1", "--server", target]

    def said(*options: str) -> str:
        result = CliRunner().invoke(app, [*asked, *options])
        assert (result.exit_code, result.stdout) == (3, "")
        return " ".join(result.stderr.split()).partition("EVIDENCE_MISSING: ")[2]

    near = said("--device", "H100 81GB", "--global-batch", "8")
    assert "no device 'H100 81GB'" in near or "nearest to 'H100 81GB' are H100, " in near
    assert near.endswith("`nodewise devices` lists all")
    assert len(near) < 400


def test_devices_are_listed(target: str) -> None:
    result = CliRunner().invoke(app, ["devices", "--server", target])
    assert result.exit_code == 0
    assert "H100-SXM5" in result.stdout
    result = CliRunner().invoke(app, ["devices", "--json", "--server", target])
    listed = {entry["name"]: entry for entry in json.loads(result.stdout)["devices"]}
    assert listed["A100"]["facts"]["memory_bytes"] == 40e9
    assert "A100-40GB" in listed["A100"]["aliases"]
