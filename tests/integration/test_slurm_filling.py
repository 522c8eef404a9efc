"""What a prediction fills in for a submission to Slurm, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
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
from nodewise_integrations.slurm.requests import read_requests
from nodewise_integrations.slurm.submission import split
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


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="small", content=SMALL))
        client.append_profile(AppendProfileRequest(profile_id="large", content=LARGE))
        yield server.target


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWISE_STATE_FOLDER", str(tmp_path))


def found_for(target: str, *wishes: str, typed: str = "", script: str = "") -> Filling | NoAnswer:
    read = read_wishes(script, [*wishes, f"server={target}", "timeout-s=60"])
    return filled(read, read_requests(split([*typed.split(), "train.sh"]), script, {}, read))


def answered(target: str, *wishes: str, typed: str = "", script: str = "") -> Filling:
    found = found_for(target, *wishes, typed=typed, script=script)
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
    assert "--time is not changed: a limit ends jobs" in "\n".join(far.lines)
    assert "far beyond the measured runs" in far.lines[1]


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
    owners = answered(target, "profile=small", "nodes=2", "gpus-per-node=4", typed="--gpus-per-node=2")
    assert owners.options == ("--nodes=2",)
    assert owners.advice.chosen.workers == 4


def test_what_a_script_states_of_all_nodes_follows_their_number(target: str) -> None:
    """The number of all tasks and of all GPUs is another with another number of nodes; what each has stays."""
    script = "#SBATCH --nodes=4 --ntasks=8 --gpus-per-task=4\n"
    tasks = answered(target, "profile=small", "nodes=2", script=script)
    assert tasks.options == ("--nodes=2", "--ntasks=4")
    assert (tasks.advice.chosen.nodes, tasks.advice.chosen.workers) == (2, 16)
    gpus = answered(target, "profile=small", "nodes=2", script="#SBATCH -N 4 -G a100:32 --ntasks-per-node=8\n")
    assert gpus.options == ("--nodes=2", "--gpus=a100:16")
    assert gpus.advice.chosen.workers == 16
    assert any(line.startswith("note: 8 GPUs on each node are assumed") for line in gpus.lines)
    wished = answered(target, "profile=small", "nodes=2", "gpus-per-node=8", script="#SBATCH --gpus=32\n")
    assert wished.options == ("--nodes=2", "--gpus=16", "--gpus-per-node=8")
    assert not any("assumed" in line for line in wished.lines)


def test_gpus_as_the_script_has_them_stand_above_those_of_the_evidence(target: str) -> None:
    for stated in (
        "--gres=gpu:4",
        "--gpus-per-node=a100:4",
        "--gres=nvme:1,gpu:a100:4",
        "--ntasks=2 --gpus-per-task=4",
    ):
        found = answered(target, "profile=small", "nodes=2", "gpus-per-node=auto", script=f"#SBATCH -N 2 {stated}\n")
        assert found.advice.chosen.workers == 8, stated
        assert not any(option.startswith("--gpus-per-node") for option in found.options), stated
        assert "4 GPUs on each node, as the job states" in found.lines


def test_of_a_range_that_was_typed_a_number_within_it_is_chosen(target: str) -> None:
    found = answered(target, "profile=small", "nodes=1-8", typed="--nodes=2-3")
    assert {row.nodes for row in found.advice.answer} == {2, 3}
    assert found.last == (f"--nodes={found.advice.chosen.nodes}",)
    assert found.options == ()


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
    found = found_for(target, *how, "nodes=1")
    assert isinstance(found, NoAnswer)
    assert found.reason is NoAdvice.NOTHING_FITS


def test_a_limit_of_more_than_a_year_is_not_filled_in(target: str) -> None:
    found = answered(target, "profile=small", "nodes=2", "steps=1e12")
    assert not any(option.startswith("--time") for option in found.options)
    assert "--time is not changed: at the lower bound of the throughput the work takes more than a year" in found.lines


def test_the_table_marks_the_chosen_count(target: str) -> None:
    head, *rows = table(answered(target, "profile=small", "nodes=1-3").advice)
    assert head.split() == ["nodes", "workers", "steps/s", "interval", "memory", "GiB"]
    assert [row.split()[0] for row in rows] == ["1", "2", "->"]
