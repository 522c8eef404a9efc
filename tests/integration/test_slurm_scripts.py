"""What becomes of scripts as projects have them: what is asked about, and what is filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from measurements import data_path

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import AppendProfileRequest, Client, ProfileContent, configurations, observations
from nodewise_integrations.slurm.sbatch import main

WISHES = "#NODEWISE --profile=team/job --nodes=1-8 --steps=3343 --objective=highest-throughput"
MEASURED = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2], workers=[4, 8], devices="T4", sync_modes="allreduce", batch_per_worker_samples=512
        ),
        steps_per_second=[2.6, 2.5],
    )
)
"""On four devices a node, which none of the scripts below asks for."""


@dataclass(frozen=True)
class Submitted:
    asked: dict[int, int]
    """Workers by the number of nodes."""
    options: list[str]
    """What was filled in."""
    said: str


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server, Client(server.target) as client:
        for name in ("team/job", "team-a/cifar10"):
            client.append_profile(AppendProfileRequest(profile_id=name, content=MEASURED))
        yield server.target


@pytest.fixture
def submit(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Submitted]:
    monkeypatch.setenv("NODEWISE_SERVER", target)
    monkeypatch.setenv("NODEWISE_STATE_FOLDER", str(tmp_path))
    script = tmp_path / "train.sh"

    def submit(text: str, typed: str = "", **environment: str) -> Submitted:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        script.write_text(text, encoding="utf-8")
        words = shlex.split(typed)
        with pytest.raises(SystemExit) as ended:
            main(["--nodewise-explain", "--nodewise-timeout-s=60", *words, str(script)])
        out, said = capfd.readouterr()
        assert ended.value.code == 0, said
        *rows, command = out.splitlines()
        asked = {int(row.split()[0]): int(row.split()[1]) for row in (each.removeprefix("->") for each in rows[1:])}
        given = shlex.split(command)
        assert (given[0], given[-1]) == ("sbatch", str(script))
        return Submitted(asked, [word for word in given[1:-1] if word not in words], said)

    return submit


def script(directives: str, body: str = "srun true") -> str:
    lines = [f"#SBATCH {line}" for line in directives.strip().splitlines()]
    return "\n".join(["#!/bin/bash", *lines, WISHES, body, ""])


# After torchtitan, nanotron, BLOOM, Accelerate, Lightning, NeMo, Jean Zay's pages, minGPT and Megatron-LM.
NANOTRON = script("""--job-name=aaa
--nodes=2
--ntasks-per-node=1          # crucial - only 1 task per dist per node!
--gres=gpu:8
--exclusive
-o /logs/%x-%j-train.out""")
TORCHTITAN = script(
    """--ntasks=4
--nodes=4
--gpus-per-task=8
--cpus-per-task=96""",
    'head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)\n'
    "srun torchrun --nnodes 4 --nproc_per_node 8 train.py",
)
TORCHTITAN_BY_VARIABLE = TORCHTITAN.replace("--nnodes 4", "--nnodes $SLURM_NNODES")
LIGHTNING = script(
    "-N 4\n--gpus-per-node a100:8\n--tasks-per-node=8\n--mem=0\n--signal=SIGUSR1@90", "srun python3 train.py"
)
NEMO = script(
    "-A team -p batch -N 8 -J 'a: b' --array=1-5%1\n--ntasks-per-node 8 --gpus-per-node 8 --mem=0 --overcommit",
    "srun --container-image x.sqsh python train.py trainer.num_nodes=$SLURM_JOB_NUM_NODES trainer.devices=8",
)
JEAN_ZAY = script("--ntasks=8\n--ntasks-per-node=4\n--gres=gpu:4,nvme:1\n-C v100-32g\n--hint=nomultithread")
ACCELERATE = script(
    "--nodes=4\n--ntasks-per-node=1\n--gres=gpu:2\n-D .",
    "export GPUS_PER_NODE=2\nexport LAUNCHER=\"accelerate launch \\\n"
    "  --num_processes $((SLURM_NNODES * GPUS_PER_NODE)) \\\n  --num_machines $SLURM_NNODES\"\nsrun $LAUNCHER train.py",
)  # fmt: skip
TOTAL = script("--nodes=2\n--gpus=16\n--ntasks-per-gpu=1")


@pytest.mark.parametrize(
    ("text", "gpus_of_node", "follows"),
    [
        (NANOTRON, 8, []),
        (TORCHTITAN_BY_VARIABLE, 8, ["--ntasks={0}"]),
        (LIGHTNING, 8, []),
        (NEMO, 8, []),
        (JEAN_ZAY, 4, ["--ntasks={4}"]),
        (ACCELERATE, 2, []),
        (TOTAL, 8, ["--gpus={8}"]),
    ],
)
def test_the_scripts_own_gpus_are_asked_about_and_all_numbers_agree(
    submit: Callable[..., Submitted], text: str, gpus_of_node: int, follows: list[str]
) -> None:
    done = submit(text)
    assert done.asked == {nodes: nodes * gpus_of_node for nodes in range(1, 9)}
    (nodes,) = [int(option.removeprefix("--nodes=")) for option in done.options if option.startswith("--nodes=")]
    assert f"--nodes={nodes}, of 1 to 8" in done.said
    expected = [re.sub(r"\{(\d)\}", lambda match: str(nodes * max(1, int(match[1]))), each) for each in follows]
    assert [option for option in done.options if not option.startswith(("--nodes=", "--time="))] == expected


@pytest.mark.parametrize(
    ("text", "nodes", "why"),
    [
        (TORCHTITAN, 4, "line 8 of the script says --nnodes 4"),
        (script("-N 2 --gres=gpu:8", "NNODES=2\nsrun ./run.sh"), 2, "says NNODES=2"),
        (script("-N 2 --gres=gpu:8", "N=2\ntorchrun \\\n  --nnodes=$N a.py"), 2, "says --nnodes=$N"),
        (script("-N 2 --gres=gpu:8", "mpirun -np 16 python a.py"), 2, "says -np 16"),
        (script("-N 2 --gres=gpu:8", "srun -N2 -n16 python a.py"), 2, "says srun --nodes=2"),
        (script("-N 3 --gres=gpu:8 --nodelist=n[1-3]"), 3, "#SBATCH --nodelist=n[1-3] determines which nodes"),
        (script("-N 6 --gres=gpu:8 -C '[rack1*2&rack2*4]'"), 6, "determines which nodes"),
        (script("-N 10-12 --gres=gpu:8"), 10, "allows none of the numbers"),
    ],
)
def test_a_count_that_something_else_states_is_asked_about_and_kept(
    submit: Callable[..., Submitted], text: str, nodes: int, why: str
) -> None:
    done = submit(text)
    assert done.asked == {nodes: 8 * nodes}
    assert "the number of nodes is not changed: " in done.said
    assert why in done.said
    assert [option for option in done.options if not option.startswith("--time=")] == []


@pytest.mark.parametrize(
    ("text", "typed", "why"),
    [
        (script("-N 4 --gres=gpu:1\nhetjob\n-N 4 --gres=gpu:1"), "", "a job with several components"),
        (script("-N 4 --gres=gpu:1\nPackJob -N 4"), "", "a job with several components"),
        (script("-N 4 --gres=gpu:1"), "-N1 : -N2", "a job with several components"),
        (script("--ntasks=32 --gres=gpu:8"), "", "#SBATCH --ntasks=32, #SBATCH --gres=gpu:8: Slurm decides on"),
        (script("-G 16"), "", "#SBATCH --gpus=16: Slurm decides on the number of nodes; state --nodes"),
        (script("-N 3 -G 16"), "", "cannot be divided evenly"),
        (script("-N 2 --gres=gpu:8"), "--gpus-per-node=4", "the numbers of GPUs of a node do not agree"),
        (script("-N 2 --gres=gpu:8"), "--nodewise-gpus-per-node=4", "--nodewise-gpus-per-node=4 contradicts"),
        (script("-N 2 --gres=gpu:a100:4,gpu:v100:4"), "", "names several kinds of GPUs"),
        (script("-N 2 --gres=shard:2"), "", "requests parts of a GPU"),
        (script("--nodes=$NODES"), "", "#SBATCH --nodes=$NODES: is not a number of nodes"),
        (script("--nod=2"), "", "--nod may be --nodefile or --nodelist or --nodes"),
        ("#PBS -l nodes=4\n" + script("--gres=gpu:8"), "", "sbatch translates '#PBS -l nodes=4'"),
        (script("--nodelist=n[1-3] --gres=gpu:8"), "", "the number of nodes is not known"),
        (script("-N 2"), "--site-option x", "--site-option is not a known option; write --site-option=x"),
    ],
)
def test_a_job_that_cannot_be_read_is_submitted_as_it_is_with_the_reason(
    submit: Callable[..., Submitted], text: str, typed: str, why: str
) -> None:
    done = submit(text, typed)
    assert (done.asked, done.options) == ({}, [])
    assert why in done.said


def test_gpus_are_as_in_the_evidence_where_the_job_states_none(submit: Callable[..., Submitted]) -> None:
    """After aws-samples: whole nodes are asked for, and the wish says where their GPUs are to be taken from."""
    done = submit(script("--nodes=4 # number of nodes\n--exclusive\n--wait-all-nodes=1").replace(
        "--steps", "--gpus-per-node=auto --steps"
    ))  # fmt: skip
    assert done.asked == {nodes: 4 * nodes for nodes in range(1, 9)}
    assert "--gpus-per-node=4" in done.options


def test_the_command_line_stands_above_variables_and_these_above_the_script(
    submit: Callable[..., Submitted],
) -> None:
    text = script("-N 4 --gres=gpu:2")
    assert submit(text, "-N 3").asked == {3: 6}
    assert submit(text, "--nodes 3 --gres gres:gpu:a100:8").asked == {3: 24}
    assert submit(text, "-N3", SBATCH_GRES="gpu:4").asked == {3: 12}
    assert submit(text, "-N3 --gres=gpu:1", SBATCH_GRES="gpu:4").asked == {3: 3}
    # The number of all tasks was typed: it would not be theirs with another number of nodes.
    typed = submit(script("-N 4 --gpus-per-task=1"), "-n 8", SBATCH_GRES="gpu:2")
    assert typed.asked == {4: 8}
    assert "not changed: --ntasks=8 is the total on all nodes" in typed.said


def test_a_chosen_number_lies_within_the_ranges_that_are_stated(submit: Callable[..., Submitted]) -> None:
    in_script = submit(script("--nodes=2-4 --gres=gpu:8"))
    assert in_script.asked == {2: 16, 3: 24, 4: 32}
    typed = submit(script("--nodes=6 --gres=gpu:8"), "--nodes=3-5")
    assert typed.asked == {3: 24, 4: 32, 5: 40}
    # After what was typed, in whose place it stands.
    assert typed.options[-1].startswith("--nodes=")
    sizes = submit(script("--nodes=2,4-8:4 --gres=gpu:8"))
    assert sizes.asked == {2: 16, 4: 32, 8: 64}
    elastic = submit(script("--gres=gpu:8 -N 4", "torchrun --nnodes=2:5 train.py"))
    assert sorted(elastic.asked) == [2, 3, 4, 5]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("aws_fsdp_like.sbatch", {nodes: 4 * nodes for nodes in range(1, 9)}, "of 1 to 8"),
        ("control_gpus_per_node.slurm", {nodes: 8 * nodes for nodes in range(1, 9)}, "of 1 to 8"),
        ("nanotron_like.slurm", {nodes: 8 * nodes for nodes in range(1, 9)}, "of 1 to 8"),
        ("torchtitan_like.slurm", {4: 32}, "the number of nodes is not changed"),
        ("hetjob.slurm", {}, "a job with several components"),
    ],
)
def test_scripts_after_public_ones(
    submit: Callable[..., Submitted], name: str, asked: dict[int, int], said: str
) -> None:
    done = submit(data_path("cases", "sbatch", name).read_text(encoding="utf-8"))
    assert done.asked == asked
    assert said in done.said


def test_no_limit_is_filled_in_below_one_that_must_be_had(submit: Callable[..., Submitted]) -> None:
    done = submit(script("-N 2 --gres=gpu:4 --time-min=01:00:00"))
    assert not any(option.startswith("--time") for option in done.options)
    assert "the time limit is the one of #SBATCH --time-min=01:00:00" in done.said


def test_a_command_that_is_wrapped_is_read_too(
    target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NODEWISE_STATE_FOLDER", str(tmp_path))
    ours = ["--nodewise-explain", "--nodewise-profile=team/job", "--nodewise-nodes=1-8", f"--nodewise-server={target}"]
    with pytest.raises(SystemExit):
        main([*ours, "--gres=gpu:8", "--wrap=srun torchrun --nnodes 4 train.py"])
    out, _ = capfd.readouterr()
    assert [row.split()[1:3] for row in out.splitlines() if row.startswith("->")] == [["4", "32"]]
