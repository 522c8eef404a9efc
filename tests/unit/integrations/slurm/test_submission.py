"""A command line of sbatch is read as sbatch reads it, and passed on as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from nodewise_integrations.slurm.submission import (
    commands,
    directives,
    read_script,
    sbatch_directives,
    split,
    translated,
)


@pytest.mark.parametrize(
    ("line", "script", "options"),
    [
        ("train.sh a b", "train.sh", {}),
        ("-N 4 train.sh -N 5", "train.sh", {"nodes": "4"}),
        ("-N4 -t10 train.sh", "train.sh", {"nodes": "4", "time": "10"}),
        ("--nodes 4 --time=1:00 train.sh --nodes=9", "train.sh", {"nodes": "4", "time": "1:00"}),
        ("--nodes=2 --nodes=3 train.sh", "train.sh", {"nodes": "3"}),
        ("-vHN2 train.sh", "train.sh", {"verbose": "", "hold": "", "nodes": "2"}),
        ("--exclusive --parsable -W train.sh", "train.sh", {"exclusive": "", "parsable": "", "wait": ""}),
        ("--exclusive=user train.sh", "train.sh", {"exclusive": "user"}),
        ("-o out.txt -- --odd.sh x", "--odd.sh", {"output": "out.txt"}),
        ("--wrap 'sleep 1'", None, {"wrap": "sleep 1"}),
        ("--wrap", None, {"wrap": ""}),
        ("-n 8 -G16 -w n1 train.sh", "train.sh", {"ntasks": "8", "gpus": "16", "nodelist": "n1"}),
        (
            "--gpus-per-t 2 --gpus-per-n=a100:4 --tasks-per-n=4 x",
            "x",
            {
                "gpus-per-task": "2",
                "gpus-per-node": "a100:4",
                "ntasks-per-node": "4",
            },
        ),
        ("-k -koff --no-kill x", "x", {"no-kill": ""}),
        (
            "--container-image=a --no-container-mount-home --site=x x",
            "x",
            {
                "container-image": "a",
                "no-container-mount-home": "",
                "site": "x",
            },
        ),
        ("--site --nodes=2 x", "x", {"site": "", "nodes": "2"}),
        ("", None, {}),
    ],
)
def test_where_the_script_is(line: str, script: str | None, options: dict[str, str]) -> None:
    words = shlex.split(line)
    found = split(words)
    assert (found.script, found.options, found.rest, found.ours) == (script, options, tuple(words), ())
    assert found.problem == ""
    assert script is None or script in found.rest[found.options_end :][:2]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--node=2 x", "--node may be --nodefile or --nodelist or --nodes"),
        ("--tasks=2 x", "--tasks may be --ntasks or --ntasks-per-node"),
        ("--site value x", "--site is not a known option; write --site=value if that is its value"),
    ],
)
def test_what_may_be_read_in_two_ways_is_said(line: str, problem: str) -> None:
    assert split(line.split()).problem == problem


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
    monkeypatch.setenv("PATH", "")
    assert read_script("train.sh", str(tmp_path)) == read_script(str(script), "/") != ""
    assert read_script(str(tmp_path)) == ""


def test_lines_of_sbatch_are_read_as_sbatch_reads_them() -> None:
    found = sbatch_directives("""#!/bin/bash
#SBATCH--nodes=4#no space is needed, before or after
#SLURM -J "it's # one"  # of old
#SBATCH --gres
  # the value may follow
#SBATCH \tgpu:8
#SBATCz --nodes=9
# SBATCH --nodes=9

#SBATCH --site option --comment=a\\ b
cd /tmp
#SBATCH --nodes=9
""")
    assert found.options == {
        "nodes": "4", "job-name": "it's # one", "gres": "gpu:8", "site": "option", "comment": "a b",
    }  # fmt: skip
    assert (found.problem, found.heterogeneous) == ("", False)


@pytest.mark.parametrize("word", ["hetjob", "packjob", "HetJob --nodes=2"])
def test_components_in_a_script(word: str) -> None:
    assert sbatch_directives(f"#SBATCH -N 1\n#SBATCH {word}\n#SBATCH -N 2\n").heterogeneous
    assert not sbatch_directives(f"#SBATCH -N 1 --comment={word.split(maxsplit=1)[0]}\n").heterogeneous


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("#SBATCH --comment='x\n", "line 1 of the script: #SBATCH: No closing quotation"),
        ("#SBATCH -N 2 4\n", "#SBATCH: '4' is not an option"),
        ("#SBATCH --gp=2\n", "--gp may be --gpu-bind or --gpu-freq or --gpus or "),
    ],
)
def test_lines_of_sbatch_that_cannot_be_read(script: str, problem: str) -> None:
    assert sbatch_directives(script).problem.startswith(problem)


def test_options_of_other_systems_are_found() -> None:
    assert translated("#!/bin/sh\n#PBS -l nodes=4\n") == "#PBS -l nodes=4"
    assert translated("#!/bin/sh\ntrue\n#PBS -l nodes=4\n") == ""


def test_commands_are_whole_and_without_remarks() -> None:
    assert list(commands("# a\n\nsrun \\\n  true # b\necho $#")) == [(3, "srun    true"), (5, "echo $#")]
