"""What a prediction fills in for a submission to Slurm, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodewise.runtime.embedded import EmbeddedServer
from nodewise_client import (
    AppendProfileRequest,
    Client,
    Network,
    ProfileContent,
    Transformer,
    Workload,
    configurations,
    observations,
)
from nodewise_integrations.advice import NoAdvice, NoAnswer
from nodewise_integrations.slurm.filling import Filling, filled, table
from nodewise_integrations.slurm.requests import Requests
from nodewise_integrations.slurm.wishes import read_wishes

SMALL = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2], workers=[8, 16], sync_modes="allreduce", batch_per_worker_samples=32, devices="A100"
        ),
        steps_per_second=[4.1, 3.9],
    )
)
# Sharded over all its devices (ZeRO 3) this still needs several nodes.
LARGE = ProfileContent(
    workload=Workload(
        precision="fp16",
        transformer=Transformer(
            layers_count=48,
            hidden_size=6144,
            attention_heads_count=64,
            sequence_length_tokens=2048,
            vocabulary_size=51200,
        ),
    ),
    network=Network(link_bytes_per_second=25e9),
)
ASKED = Requests(output="slurm-%j.out")


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="small", content=SMALL))
        client.append_profile(AppendProfileRequest(profile_id="large", content=LARGE))
        yield server.target


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWISE_STATE_FOLDER", str(tmp_path))


def answered(target: str, *wishes: str, asked: Requests = ASKED) -> Filling:
    found = filled(read_wishes("", [*wishes, f"server={target}", "timeout-s=60"]), asked)
    assert isinstance(found, Filling), found
    return found


def minutes(found: Filling) -> float:
    (limit,) = [option for option in found.options if option.startswith("--time=")]
    return float(limit.removeprefix("--time="))


def test_no_limit_is_made_of_an_extrapolation(target: str) -> None:
    near = answered(target, "profile=small", "nodes=1-4", "steps=36000", "margin=0.5")
    lower = near.advice.chosen.lower_steps_per_second
    assert minutes(near) == pytest.approx(1.5 * 36000 / lower / 60, abs=1)
    far = answered(target, "profile=small", "nodes=16", "steps=36000")
    assert far.options == ("--nodes=16",)
    assert "--time is left as it is: a limit ends jobs" in "\n".join(far.lines)
    assert "far beyond what was measured" in far.lines[1]


def test_steps_and_samples_are_the_same_work(target: str) -> None:
    steps = answered(target, "profile=small", "nodes=2", "steps=36000")
    samples = answered(target, "profile=small", "nodes=2", f"samples={36000 * 16 * 32}")
    assert minutes(steps) == minutes(samples)


def test_devices_are_filled_in_where_asked_for(target: str) -> None:
    assert answered(target, "profile=small", "nodes=2").options == ("--nodes=2",)
    auto = answered(target, "profile=small", "nodes=2", "gpus-per-node=auto")
    assert auto.options == ("--nodes=2", "--gpus-per-node=8")
    four = answered(target, "profile=small", "nodes=2", "gpus-per-node=4")
    assert four.options == ("--nodes=2", "--gpus-per-node=4")
    assert four.advice.chosen.workers == 8
    owners = answered(
        target, "profile=small", "nodes=2", "gpus-per-node=4", asked=Requests(gpus_per_node=2, output="o")
    )
    assert owners.options == ("--nodes=2",)
    assert owners.advice.chosen.workers == 4


def test_other_objectives(target: str) -> None:
    fast = answered(target, "profile=small", "nodes=1-3", "objective=highest-throughput")
    assert fast.options == ("--nodes=3",)
    few = answered(target, "profile=small", "nodes=1-3", "objective=fewest-devices", "deadline-s=3600", "samples=5e6")
    assert few.options[0] == "--nodes=2"
    assert few.lines[0].startswith("--nodes=2, of 1 to 3: ")
    time = answered(target, "profile=small", "nodes=1,3", "objective=least-time", "max-nodes=2", "samples=5e6")
    assert time.options[0] == "--nodes=1"
    assert time.lines[0].startswith("--nodes=1, of 1, 3: ")


def test_what_does_not_fit_is_shown_and_never_filled_in(target: str) -> None:
    how = ("profile=large", "device=A100-40GB", "sync=allreduce", "batch-per-worker=1", "gpus-per-node=8")
    two = answered(target, *how, "nodes=1-2")
    assert two.options[0] == "--nodes=2"
    assert "it fits into memory with" in two.lines[1]
    assert any(line.startswith("note: ") and "sequence parallelism" in line for line in two.lines)
    assert "GiB too large" in table(two.advice)[1]
    found = filled(read_wishes("", [*how, "nodes=1", f"server={target}", "timeout-s=60"]), ASKED)
    assert isinstance(found, NoAnswer)
    assert found.reason is NoAdvice.NOTHING_FITS


def test_the_table_marks_the_chosen_count(target: str) -> None:
    head, *rows = table(answered(target, "profile=small", "nodes=1-3").advice)
    assert head.split() == ["nodes", "workers", "steps/s", "interval", "memory", "GiB"]
    assert [row.split()[0] for row in rows] == ["1", "2", "->"]
