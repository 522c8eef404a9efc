"""What a job states of nodes, tasks and GPUs is read in each way that Slurm has, and what may follow a prediction."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise_integrations.slurm.body import literals
from nodewise_integrations.slurm.requests import Requests, read_requests
from nodewise_integrations.slurm.submission import split
from nodewise_integrations.slurm.wishes import read_wishes

HARMLESS = ("--mem=0", "--exclusive", "--cpus-per-task=8", "--exclude=n7", "--spread-job", "--licenses=a:2")


def requests(typed: str = "", script: str = "", environment: dict[str, str] | None = None, *wishes: str) -> Requests:
    read = read_wishes(script, ["profile=a", *(wishes or ("nodes=1-8",))])
    return read_requests(split([*shlex.split(typed), "train.sh"]), script, environment or {}, read)


@pytest.mark.parametrize(
    ("stated", "nodes", "gpus"),
    [
        # Of a node.
        ("", 1, None),
        ("--gres=gpu:8", 1, 8),
        ("--gres gpu", 1, 1),
        ("--gres=gpu:a100", 1, 1),
        ("--gres=gpu:a100:4", 1, 4),
        ("--gres=gpu:1g.10gb:4", 1, 4),
        ("--gres=gres:gpu:8", 1, 8),
        ("--gres=gpu:1K", 1, 1024),
        ("--gres=nvme:1,gpu:8", 1, 8),
        ("--gres=none", 1, None),
        ("-N 2 --gpus-per-node=8", 2, 8),
        ("-N2 --gpus-per-node a100:8", 2, 8),
        ("-N 2 --tres-per-node=gres/gpu:8", 2, 8),
        ("-N 2 --gpus-per-socket=4 --sockets-per-node=2", 2, 8),
        ("-N 2 --gpus-per-socket=4 -B 2:4:1", 2, 8),
        # Of a task.
        ("-N 4 -n 4 --gpus-per-task=8", 4, 8),
        ("--nodes=4 --ntasks-per-node=8 --gpus-per-task=1", 4, 8),
        ("--nodes=4 --gpus-per-task=2", 4, 2),
        ("-n 1 --gpus-per-task=4", 1, 4),
        ("-n 4 --gpus-per-task=4 --gpus-per-node=8", 2, 8),
        ("-N 4 -n 4 --tres-per-task=cpu:4,gres/gpu:h100:8", 4, 8),
        ("-N 4 -n 4 --tres-per-task=gres/gpu=8", 4, 8),
        ("-N 2 -n 16 --ntasks-per-gpu=1", 2, 8),
        ("-N 2 --ntasks-per-node=8 --ntasks-per-gpu=2", 2, 4),
        # Of all nodes.
        ("-N 2 --gpus=16", 2, 8),
        ("-N 2 -G a100:16", 2, 8),
        ("-G 16 --gres=gpu:8", 2, 8),
        ("-n 1 -G 4", 1, 4),
        ("-n 32 --ntasks-per-node=8 --gres=gpu:8", 4, 8),
        ("--nodes=1k --gres=gpu:8", 1024, 8),
    ],
)
def test_nodes_and_gpus(stated: str, nodes: int, gpus: int | None) -> None:
    """The same on the command line and in a script."""
    for found in (
        requests(stated, "", None, "steps=1"),
        requests("", f"#SBATCH {stated}\n", None, "steps=1"),
        requests(" ".join(HARMLESS), f"#SBATCH {stated} # words\n", None, "steps=1"),
    ):
        assert (found.problem, found.counts, found.gpus_per_node) == ("", (nodes,), gpus)


@pytest.mark.parametrize(
    ("variable", "stated"),
    [
        ("SBATCH_GPUS", "16"),
        ("SBATCH_GPUS_PER_NODE", "a100:4"),
        ("SBATCH_GPUS_PER_TASK", "2"),
        ("SBATCH_GRES", "gpu:4"),
        ("SBATCH_TRES_PER_TASK", "gres/gpu:2"),
    ],
)
def test_variables_stand_above_the_script_and_below_the_command_line(variable: str, stated: str) -> None:
    script = "#SBATCH -N 4 --ntasks-per-node=2\n"
    assert requests("", script, {variable: stated}, "steps=1").gpus_per_node == 4
    option = variable.removeprefix("SBATCH_").lower().replace("_", "-")
    value = "8" if option == "gpus" else stated.replace("4", "2").replace("2", "1", option.endswith("task"))
    assert requests(f"--{option}={value}", script, {variable: stated}, "steps=1").gpus_per_node == 2
    assert requests("", f"#SBATCH --{option}={value}\n{script}", {variable: stated}, "steps=1").gpus_per_node == 4


@pytest.mark.parametrize(
    "stated",
    [
        "-n 32",
        "-n 32 --gpus-per-task=1",
        "-G 16",
        "-G 16 --ntasks-per-node=4",
        "-N 3 -G 16",
        "-N 3 -n 8",
        "-N 2 --gres=gpu:8 --gpus-per-node=4",
        "-N 2 -G 16 --gres=gpu:4",
        "-N 2 --ntasks-per-node=2 --gpus-per-task=2 --gres=gpu:8",
        "-N 5-6 -n 32 --ntasks-per-node=8",
        "-N 2-4 -G 16",
        "-N 2-4 -n 16 --gpus-per-task=1",
        "--gres=gpu:a100:4,gpu:v100:4",
        "--gpus-per-node=a100:2,v100:2",
        "--gres=gpu:0",
        "--gres=shard:2",
        "--gres=gpu:four:",
        "--gpus-per-node=",
        "--gpus-per-socket=4",
        "--gpus-per-socket=4 -B '*'",
        "--ntasks=x",
        "--nodes=4-2",
        "--nodes=0",
        "--nodes=a",
        "--nodelist=n[1-4]",
        "-F hosts",
    ],
)
def test_what_cannot_be_told_is_not_guessed(stated: str) -> None:
    found = requests("", f"#SBATCH {stated}\n")
    assert found.problem
    assert found.counts == ()


def test_totals_follow_and_what_each_has_stays() -> None:
    found = requests("", "#SBATCH -N 4 -n 32 -G a100:32\n")
    assert (found.counts, found.tasks_per_node, found.gpus_kind, found.gpus_per_node) == (
        tuple(range(1, 9)), 8, "a100:", 8,
    )  # fmt: skip
    assert not found.gpus_placed
    # On one node there is nothing to place, on more there is.
    assert requests("", "#SBATCH -N 1 -G 8\n", None, "steps=1").gpus_placed
    assert not requests("", "#SBATCH -N 1 -G 8\n").gpus_placed
    each = requests("", "#SBATCH -N 4 --ntasks-per-node=8 --gpus-per-node=8\n")
    assert (each.tasks_per_node, each.gpus_kind, each.gpus_placed) == (None, None, True)


def test_what_was_typed_of_all_nodes_keeps_their_number() -> None:
    for typed in ("-n 32", "-G 32"):
        found = requests(typed, "#SBATCH -N 4 --gres=gpu:8\n")
        assert (found.counts, found.nodes_from) == ((4,), "as stated by #SBATCH --nodes=4")
        assert "is the total on all nodes" in found.kept
    assert "which nodes" in requests("", "#SBATCH -N 4 -m arbitrary -w n[1-4]\n").kept
    # One number of nodes that was typed is the owner's choice, and needs no reason.
    assert (requests("-N 3 -n 3").counts, requests("-N 3 -n 3").kept) == ((3,), "")


def test_ranges_bound_the_choice() -> None:
    script = requests("", "#SBATCH -N 2-4\n")
    assert (script.counts, script.narrows, script.nodes_from) == ((2, 3, 4), False, "")
    typed = requests("--nodes=2,4-6:2", "#SBATCH -N 2-3\n")
    assert (typed.counts, typed.narrows) == ((2, 4, 6), True)
    none = requests("-N 9-12")
    assert (none.counts, none.nodes_from) == ((9,), "the lowest number of --nodes=9-12")
    assert none.kept == "--nodes=9-12 allows none of the numbers that Nodewise may choose"
    assert requests("-N 2-4", "", None, "steps=1").nodes_from == "the lowest number of --nodes=2-4"


@pytest.mark.parametrize(
    ("script", "wish", "gpus", "fills"),
    [
        ("", "auto", None, True),
        ("", "4", 4, True),
        ("#SBATCH --gres=gpu:8\n", "auto", 8, False),
        ("#SBATCH --gres=gpu:8\n", "8", 8, False),
        ("#SBATCH -N 2 --gpus=16\n", "auto", 8, False),
        ("#SBATCH --gpus=16\n", "8", 8, True),
        ("#SBATCH -n 2 --gpus-per-task=8\n", "8", 8, False),
        # The same option, in whose place it stands.
        ("#SBATCH --gpus-per-node=8\n", "4", 4, True),
        ("#SBATCH --gpus-per-node=8\n", "auto", 8, False),
    ],
)
def test_gpus_that_are_wished_for_never_contradict(script: str, wish: str, gpus: int | None, fills: bool) -> None:
    found = requests("", script, None, "nodes=1-8", f"gpus-per-node={wish}")
    assert (found.problem, found.gpus_per_node, found.fills_gpus) == ("", gpus, fills)


def test_gpus_that_are_wished_for_give_way_or_are_refused() -> None:
    for typed, environment in (("--gres=gpu:2", {}), ("", {"SBATCH_GPUS_PER_NODE": "2"})):
        found = requests(typed, "", environment, "nodes=1-8", "gpus-per-node=4")
        assert (found.gpus_per_node, found.fills_gpus) == (2, False)
    for script in ("--gres=gpu:8", "-N 2 --gpus=16", "-n 2 --gpus-per-task=8 -N 2"):
        refused = requests("", f"#SBATCH {script}\n", None, "nodes=1-8", "gpus-per-node=4")
        assert refused.problem.startswith("--nodewise-gpus-per-node=4 contradicts #SBATCH --")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("torchrun --nnodes 4 x", [(4, 4, True)]),
        ("torchrun --nnodes=1:8 x", [(1, 8, True)]),
        ("torchrun --nnodes=$SLURM_NNODES x", []),
        ("torchrun --nnodes 1:$SLURM_NNODES x", []),
        ("torchrun --nnodes ${NNODES:-4} x", [(4, 4, True)]),
        ("torchrun --nnodes ${SLURM_NNODES:-1} x", []),
        ("accelerate launch --num_machines 4 --num_processes 32 x", [(4, 4, True), (32, 32, False)]),
        ("accelerate launch --num_processes $((SLURM_NNODES * 8)) x", []),
        ("python pack.py --num_processes 32", []),
        ("python x trainer.num_nodes=4 --trainer.num_nodes=5 --num-nodes 6", [(n, n, True) for n in (4, 5, 6)]),
        ("deepspeed --num_nodes=4 --num_gpus 8 x", [(4, 4, True)]),
        ("composer --nproc 8 --world_size 32 x", [(32, 32, False)]),
        ("mpirun -x A -np 32 x", [(32, 32, False)]),
        ("export NNODES=4 GPUS_PER_NODE=8", [(4, 4, True)]),
        ("NNODES=$SLURM_NNODES\nGPUS_PER_NODE=8", []),
        ("if a; then NNODES=$SLURM_NNODES\nelse NNODES=1\nfi", []),
        ("NNODES=${SLURM_JOB_NUM_NODES:-4}", []),
        ('M="4"\ntorchrun --nnodes "$M" x', [(4, 4, True)]),
        ("WORLD_SIZE=32", [(32, 32, False)]),
        ("WORLD_SIZE=$((SLURM_NNODES * 8))", []),
        ("srun -N 4 -n 32 x", [(4, 4, True)]),
        ("srun --ntasks=32 x -N 9", [(32, 32, False)]),
        ('ip=$(srun -N1 -n1 -w "$head" hostname)', []),
        ("# torchrun --nnodes 4\ntorchrun x # --nnodes 4", []),
    ],
)
def test_numbers_that_commands_state(body: str, found: list[tuple[int, int, bool]]) -> None:
    assert [(each.fewest, each.most, each.of_nodes) for each in literals(body)] == found


def test_a_step_beside_the_training_keeps_nothing() -> None:
    script = "#SBATCH -N {} --gres=gpu:8\nsrun -N1 -n1 prepare\nsrun train\n"
    assert requests("", script.format(4)).kept == ""
    assert requests("", script.format(1)).kept == "line 2 of the script says srun --nodes=1"


@pytest.mark.parametrize(
    ("line", "script", "environment", "time_from", "output"),
    [
        ("-t 5 -o o.txt", "", {}, "--time=5", "o.txt"),
        ("-a 1-3", "#SBATCH -t 3 -N 4\n", {}, "", "slurm-%A_%a.out"),
        ("", "", {"SBATCH_ARRAY_INX": "1-3"}, "", "slurm-%A_%a.out"),
        ("", "#SBATCH -o %x.txt\n", {"SBATCH_TIMELIMIT": "9"}, "SBATCH_TIMELIMIT=9", "%x.txt"),
        ("", "#SBATCH --time-min=5\n", {}, "#SBATCH --time-min=5", "slurm-%j.out"),
    ],
)
def test_limits_and_outputs(line: str, script: str, environment: dict[str, str], time_from: str, output: str) -> None:
    found = requests(line, script, environment)
    assert (found.time_from, found.output) == (time_from, output)


def test_options_of_other_systems_leave_the_job_alone() -> None:
    script = "#PBS -l nodes=4\n#SBATCH --gres=gpu:8\n"
    assert requests("", script).problem.startswith("sbatch translates '#PBS -l nodes=4'")
    assert requests("--ignore-pbs", script).problem == ""
    assert requests("", script, {"SBATCH_IGNORE_PBS": "1"}).problem == ""


WORDS = st.sampled_from([
    "#SBATCH", "#SBATCH ", "#PBS", "hetjob", "-N", "-n", "-G", "--nodes=", "--gres=gpu:", "--gpus-per-task ",
    "--ntasks=", "--gpus=", "--exclusive", "--time", "srun ", "--nnodes ", "NNODES=", "${", "}", ":", "'", '"', "\\",
    "=", "-", "#", "0", "2", "8", "99999999999999999999", "1k", "\n", " ", "\r\n", "\x00", "\u2028", "é", "١",
])  # fmt: skip


@given(st.lists(WORDS, max_size=24).map("".join))
def test_no_script_is_beyond_reading(script: str) -> None:
    """Whatever it says, it is read or left alone; the job is worth more than its number of nodes."""
    found = requests("", script, None, "nodes=1-8", "steps=1")
    assert found.problem or found.counts or found.heterogeneous
