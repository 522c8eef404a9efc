"""A command line of sbatch is read as sbatch reads it, and passed on as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from nodewise_integrations.slurm.requests import read_requests
from nodewise_integrations.slurm.submission import directives, read_script, split


@pytest.mark.parametrize(
    ("line", "script", "options"),
    [
        ("train.sh a b", "train.sh", {}),
        ("-N 4 train.sh -N 5", "train.sh", {"nodes": "4"}),
        ("-N4 -t10 train.sh", "train.sh", {"nodes": "4", "time": "10"}),
        ("--nodes 4 --time=1:00 train.sh --nodes=9", "train.sh", {"nodes": "4", "time": "1:00"}),
        ("--nodes=2 --nodes=3 train.sh", "train.sh", {"nodes": "3"}),
        ("-vHN2 train.sh", "train.sh", {"v": "", "H": "", "nodes": "2"}),
        ("--exclusive --parsable -W train.sh", "train.sh", {"exclusive": "", "parsable": "", "W": ""}),
        ("--exclusive=user train.sh", "train.sh", {"exclusive": "user"}),
        ("-o out.txt -- --odd.sh x", "--odd.sh", {"output": "out.txt"}),
        ("--wrap 'sleep 1'", None, {"wrap": "sleep 1"}),
        ("--wrap", None, {"wrap": ""}),
        ("", None, {}),
    ],
)
def test_where_the_script_is(line: str, script: str | None, options: dict[str, str]) -> None:
    words = shlex.split(line)
    found = split(words)
    assert (found.script, found.options, found.rest, found.ours) == (script, options, tuple(words), ())


def test_our_options_are_taken_out_before_the_script_alone() -> None:
    found = split(["--nodewise-nodes=1-4", "-N", "2", "--nodewise-explain", "train.sh", "--nodewise-nodes=9"])
    assert found.ours == ("nodes=1-4", "explain")
    assert found.rest == ("-N", "2", "train.sh", "--nodewise-nodes=9")
    assert not found.heterogeneous
    assert split(["-N1", ":", "-N2", "train.sh"]).heterogeneous


def test_directives_end_at_the_first_command() -> None:
    script = """#!/bin/sh
#NODEWISE --profile=a --pattern="x y"   # a remark

#NODEWISEX --no
# NODEWISE --no
   # a comment
#NODEWISE\t--nodes=1-4
echo
#NODEWISE --late=1
"""
    assert directives(script, "#NODEWISE") == ["--profile=a", "--pattern=x y", "--nodes=1-4"]
    with pytest.raises(ValueError, match=r"line 2: #NODEWISE: No closing quotation"):
        directives("#!/bin/sh\n#NODEWISE --pattern='x\n", "#NODEWISE")


def test_a_script_is_found_as_sbatch_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.sh"
    script.write_bytes(b"#!/bin/sh\n\xff\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_script("train.sh") == read_script(str(script)) == "#!/bin/sh\n\ufffd\n"
    assert read_script("nowhere.sh") == ""
    assert read_script(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("line", "script", "environment", "nodes", "time_from", "output"),
    [
        ("-N 2-4 x", "", {}, 2, "", "slurm-%j.out"),
        ("--nodes=1k x", "", {}, None, "", "slurm-%j.out"),
        ("-t 5 -o o.txt x", "", {}, None, "--time=5", "o.txt"),
        ("-a 1-3 x", "#SBATCH -t 3 -N 4\n", {}, None, "", "slurm-%A_%a.out"),
        ("x", "#SBATCH -o %x.txt\n", {"SBATCH_TIMELIMIT": "9"}, None, "SBATCH_TIMELIMIT", "%x.txt"),
        ("x", "#SBATCH --array=1 --output='it is\n", {}, None, "", "slurm-%j.out"),
    ],
)
def test_what_the_owner_asks_for(
    line: str, script: str, environment: dict[str, str], nodes: int | None, time_from: str, output: str
) -> None:
    found = read_requests(split(shlex.split(line)), script, environment, chosen=True)
    assert (found.nodes, found.time_from, found.output) == (nodes, time_from, output)


def test_where_none_may_be_chosen_the_scripts_own_nodes_are_asked_about() -> None:
    found = read_requests(split(["x"]), "#SBATCH --nodes=4\n", {})
    assert (found.nodes, found.nodes_from) == (4, "#SBATCH --nodes=4")
    assert read_requests(split(["x"]), "#SBATCH --nodes=4\n", {}, chosen=True).nodes is None


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("a100:8", 8), ("a100", None), ("0", None)])
def test_devices_of_a_node(text: str, number: int | None) -> None:
    assert read_requests(split([f"--gpus-per-node={text}", "x"]), "", {}).gpus_per_node == number
    assert read_requests(split(["x"]), "", {"SBATCH_GPUS_PER_NODE": text}).gpus_per_node == number
