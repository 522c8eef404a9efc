"""Slurm with Nodewise beside it: a real controller and real nodes on this machine, as the page tells to set them up."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from failing_servers import FAILURES, failing_targets
from patience import wait_until
from slurm_clusters import SlurmCluster, running_slurm

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_client import (
    AppendProfileRequest,
    Client,
    DeleteProfileRequest,
    ProfileContent,
    configuration_rows,
    configurations,
    observations,
)
from nodewise_integrations import slurm as slurm_package
from nodewise_integrations.slurm.stated import shape_of, stated_options
from nodewise_integrations.slurm.submission import sbatch_directives, split

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "integrations" / "slurm.md"
PROGRAMS = Path(sys.executable).parent
TRAIN = ROOT / "examples" / "slurm" / "train.sh"
PROFILE = "team-a/cifar10"
MEASURED = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2], workers=[4, 8], devices="T4", sync_modes="allreduce", batch_per_worker_samples=[512, 256]
        ),
        steps_per_second=[2.535, 3.848],
    )
)
"""As in examples/slurm/cifar10.csv."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    (configured,) = blocks("ini")
    more = re.sub(r"/opt/nodewise/bin/", f"{PROGRAMS}/", configured)
    with running_slurm(
        nodes=4, gpus=4, more=more, files=[Path(slurm_package.__file__).with_name("job_submit.lua")]
    ) as cluster:
        yield cluster


@dataclass
class Site:
    """A folder of an owner of jobs, and what he types there."""

    slurm: SlurmCluster
    folder: Path
    environment: Mapping[str, str]

    def types(self, command: str, *, script: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = shlex.split(command)
        known = PROGRAMS / program
        return self.slurm.run(
            str(known) if known.exists() else program,
            *arguments,
            cwd=self.folder,
            environment={**self.environment, **more},
            script=script,
        )

    def got(self, command: str, *, script: str | None = None) -> list[str]:
        """Nodes, tasks, and GPUs of each node that Slurm gave to a job that tells them. Empty = it tells none."""
        job, _ = self.submitted(command, script=script)
        return (self.folder / f"slurm-{job['JobId']}.out").read_text().removesuffix("\n").split(",")

    def submitted(self, command: str, *, script: str | None = None, **more: str) -> tuple[dict[str, str], str]:
        """The job once it has ended, and what was said at its submission."""
        typed = self.types(command, script=script, **more)
        assert typed.returncode == 0, typed.stderr
        (job_id,) = re.findall(r"\d+$", typed.stdout.strip())
        return self.slurm.finished(job_id), typed.stderr

    def logged(self) -> str:
        log = self.folder / "epilog.log"
        return log.read_text(encoding="utf-8") if log.exists() else ""


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    settings = Settings(store="memory:", learn_interval_s=0.0)  # else the page's interval depends on when it learnt
    with EmbeddedServer(settings) as server:
        yield server.target


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target) as client:
        yield client


@pytest.fixture
def site(slurm: SlurmCluster, target: str, client: Client, tmp_path: Path) -> Site:
    """With the job of the page in its profile, as if nothing had run yet."""
    client.delete_profile(DeleteProfileRequest(profile_id=PROFILE, etag="*", allow_missing=True))
    client.append_profile(AppendProfileRequest(profile_id=PROFILE, content=MEASURED))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        "NODEWISE_SERVER": target,
        "NODEWISE_EPILOG_LOG": str(tmp_path / "epilog.log"),
        "NODEWISE_STATE_FOLDER": str(tmp_path / "state"),
    }
    return Site(slurm, tmp_path, environment)


def rows_of(client: Client) -> tuple[dict[str, object], ...]:
    content = client.get_profile(PROFILE).content
    assert content is not None
    assert content.observations is not None
    assert content.observations.configurations is not None
    rows = configuration_rows(content.observations.configurations)
    return tuple(
        {**row, "steps_per_second": rate} for row, rate in zip(rows, content.observations.steps_per_second, strict=True)
    )


def likely(shown: str, said: str) -> bool:
    """Whether a line of the page is what was said, where `[...]` stands for anything."""
    return re.fullmatch(re.escape(" ".join(shown.split())).replace(r"\[\.\.\.\]", ".*"), said) is not None


def test_the_page_from_top_to_bottom(site: Site, client: Client) -> None:
    """Its commands, what they print, and what becomes of the job."""
    typed = [
        line
        for block in blocks("sh")
        for line in block.splitlines()
        if not line.startswith(("pip", "export", "nodewise "))
    ]
    printed = [block.strip().splitlines() for block in blocks("text")]
    submit, job_ids = typed[0], [""]
    for command, expected in zip(typed, printed[:-1], strict=True):
        done = site.types(command.replace("JOB", job_ids[-1]))
        said = [" ".join(line.split()) for line in (done.stderr + done.stdout).splitlines()]
        if command == submit:
            job_ids += re.findall(r"Submitted batch job (\d+)", done.stdout)
            site.slurm.finished(job_ids[-1])
        for line in expected:
            assert any(likely(line.replace("JOB", job_ids[-1]), each) for each in said), (line, said)
    assert f"steps/s are added to {PROFILE}, revision 2" in site.logged()
    job = site.slurm.job(job_ids[1])
    assert (job["NumNodes"], job["TresPerNode"], job["TimeLimit"]) == ("3", "gres:gpu:4", "00:16:00")
    newest = rows_of(client)[-1]
    assert (newest["nodes"], newest["workers"], newest["steps_per_second"]) == (3, 12, 5.278)
    assert (newest["devices"], newest["sync_modes"], newest["global_batch_samples"]) == ("T4", "allreduce", 2048)


def test_what_the_owner_types_stands_above_a_prediction(site: Site) -> None:
    script = site.folder / "tell.sh"
    script.write_text(
        '#!/bin/sh\n#NODEWISE --profile=team-a/cifar10 --nodes=1-8 --global-batch=2048 --steps=3343\necho "$@"\n'
    )
    job, said = site.submitted("nodewise-sbatch -N 1 --output=out-%j.txt --parsable tell.sh 'one two' --nodes=3")
    assert job["NumNodes"] == "1"
    assert job["TimeLimit"] == "00:31:00"
    assert "1 node, as stated by --nodes=1" in said
    assert (site.folder / f"out-{job['JobId']}.txt").read_text() == "one two --nodes=3\n"
    job, said = site.submitted("nodewise-sbatch --time=5 tell.sh")
    assert (job["NumNodes"], job["TimeLimit"]) == ("3", "00:05:00")
    assert "the time limit is the one of --time=5" in said


@pytest.mark.wheel
def test_a_script_by_standard_input(site: Site) -> None:
    job, _ = site.submitted("nodewise-sbatch --job-name=piped", script=TRAIN.read_text(encoding="utf-8"))
    assert (job["JobName"], job["NumNodes"], job["JobState"]) == ("piped", "3", "COMPLETED")
    assert "steps/s=5.278" in (site.folder / f"slurm-{job['JobId']}.out").read_text()


def test_a_job_without_wishes_is_sbatchs_alone(site: Site) -> None:
    with_us = site.types("nodewise-sbatch --partition=nowhere --wrap=true")
    alone = site.types("sbatch --partition=nowhere --wrap=true")
    assert (with_us.returncode, with_us.stdout, with_us.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert alone.returncode != 0
    job, said = site.submitted("nodewise-sbatch --wrap='env | grep -c NODEWISE_JOB; exit 3'")
    assert said == ""
    assert job["ExitCode"] == "3:0"
    assert (site.folder / f"slurm-{job['JobId']}.out").read_text() == "0\n"
    assert site.logged() == ""


def test_a_wrong_wish_is_named_and_nothing_is_submitted(site: Site) -> None:
    wrong = site.types(f"nodewise-sbatch --nodewise-share=2 {TRAIN}")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert "--nodewise-share: must be a number above 0 and at most 1, found '2'" in wrong.stderr


def test_without_nodewise_jobs_run_as_their_owners_ask(site: Site, client: Client) -> None:
    gone = {"NODEWISE_SERVER": "127.0.0.1:1"}
    job, said = site.submitted(f"nodewise-sbatch {TRAIN}", **gone)
    assert (job["NumNodes"], job["TresPerNode"], job["TimeLimit"]) == ("2", "gres:gpu:4", "01:00:00")
    assert job["JobState"] == "COMPLETED"
    (line,) = said.splitlines()
    assert likely(blocks("text")[-1].strip(), line)
    assert "3.848 steps/s are not added" in site.logged()
    # Nor is it asked a second time, by the next job or at its end.
    job, said = site.submitted(f"nodewise-sbatch {TRAIN}", **gone)
    assert (job["NumNodes"], job["JobState"]) == ("2", "COMPLETED")
    assert "not asked again for" in said
    assert site.logged().count("(resting: ") == 2
    assert len(rows_of(client)) == 2


def test_what_a_job_writes_is_added_once_however_often_it_is_told(site: Site, client: Client) -> None:
    script = f"""#!/bin/sh
#NODEWISE --profile={PROFILE}
#SBATCH --nodes=2 --gpus-per-node=2
echo '{{"steps_per_second": 2.4, "steps": 500, "step_variation": 0.1}}' > nodewise-$SLURM_JOB_ID.json
env | grep -E '^(SLURM_|NODEWISE_)' > environment
srun --mpi=none true
"""
    job, said = site.submitted("nodewise-sbatch", script=script)
    assert said == ""
    assert f"2.4 steps/s are added to {PROFILE}, revision 2" in site.logged()
    assert site.logged().count("\n") == 1  # its steps have nothing to tell
    newest = rows_of(client)[-1]
    assert (newest["nodes"], newest["workers"], newest["steps_per_second"]) == (2, 4, 2.4)
    assert newest["batch_per_worker_samples"] == 256  # as in the newest observation before it
    # Slurm runs it again, say after a node failed.
    told = dict(line.partition("=")[::2] for line in (site.folder / "environment").read_text().splitlines())
    again = subprocess.run(
        [PROGRAMS / "nodewise-epilog"], cwd=site.folder, env={**os.environ, **told}, check=True, capture_output=True
    )
    assert again.stdout == again.stderr == b""
    assert len(rows_of(client)) == 3
    assert job["JobState"] == "COMPLETED"


def test_a_job_that_tells_nothing_is_logged(site: Site, client: Client) -> None:
    site.submitted("nodewise-sbatch", script=f"#!/bin/sh\n#NODEWISE --profile={PROFILE} --pattern='rate=(.*)'\n:\n")
    assert "no line matches 'rate=(.*)' with steps per second above 0" in site.logged()
    site.submitted("nodewise-sbatch", script=f"#!/bin/sh\n#NODEWISE --profile={PROFILE}\n:\n")
    assert f"nothing to add to {PROFILE}: the job did not write {site.folder}/nodewise-" in site.logged()
    assert len(rows_of(client)) == 2


TELLS = "echo $SLURM_JOB_NUM_NODES,$SLURM_NTASKS,$SLURM_GPUS_ON_NODE"


STATED = (
    "--gres=gpu:4",
    "-N 2 --gres gres:gpu:2",
    "-N2 --gpus-per-n=3",
    "-N 2 --tasks-per-node=2 --gres=gpu",
    "--ntasks=4 --nodes=4 --gpus-per-task=4",
    "-n4 --gpus-per-task=2 --gpus-per-node=4",
    "-n 1 --gpus-per-task=4",
    "-n1 -G 4",
    "--ntasks-per-node=2 --gpus-per-task=2",
    "-N2 --gpus-per-task=2",
    "-N2 --ntasks-per-node 4 --gpus-per-task 1",
    "--gpus=8 --gpus-per-node=4",
    "-G 8 --gres=gpu:4",
    "-N 2 --ntasks=8 --ntasks-per-gpu=1",
    "-N 2 --ntasks-per-gpu=1 --gpus-per-node=2",
    "-n 8 --ntasks-per-node=4 --gres=gpu:4",
    "-N2 --gpus-per-socket=2 --sockets-per-node=1",
    "-N2 --gpus-per-socket=2 -B 1",
)


def test_numbers_are_read_as_slurm_takes_them(site: Site) -> None:
    jobs: dict[str, str] = {}
    for stated in STATED:
        script = f"#!/bin/sh\n#SBATCH {stated} # words\n{TELLS}\n"
        typed = site.types("sbatch --parsable", script=script)
        assert typed.returncode == 0, (stated, typed.stderr)
        jobs[stated] = typed.stdout.strip()
        assert sbatch_directives(script).options == split(shlex.split(stated)).options
    for stated, job_id in jobs.items():
        site.slurm.finished(job_id)
        told = (site.folder / f"slurm-{job_id}.out").read_text().removesuffix("\n").split(",")
        shape = shape_of(stated_options(split(shlex.split(stated)), sbatch_directives(""), {}))
        assert shape.nodes is not None
        assert shape.tasks_per_node is not None
        # Without a word of tasks Slurm tells none: there is one of each node.
        assert [int(number or shape.nodes) for number in told] == [
            shape.nodes,
            shape.nodes * shape.tasks_per_node,
            shape.gpus_per_node,
        ], stated


def test_lines_of_a_script_are_read_as_sbatch_reads_them(site: Site) -> None:
    script = f"""#!/bin/sh
#SBATCH--nodes=2#no space is needed, before or after
#SLURM -J "it's # one"  # of old
#SBATCH --gres
  # the value may follow
#SBATCH gpu:3
#SBATCz --nodes=4

# SBATCH --nodes=4
#SBATCH --ntasks-per-n 2 --comment="a # b"
{TELLS}
#SBATCH --nodes=4
"""
    shape = shape_of(stated_options(split([]), sbatch_directives(script), {}))
    assert (shape.nodes, shape.tasks_per_node, shape.gpus_per_node) == (2, 2, 3)
    assert site.got("sbatch", script=script) == ["2", "4", "3"]


def test_every_option_of_this_sbatch_is_known(site: Site) -> None:
    told = site.types("sbatch --help").stdout
    options = re.findall(r"^ +(?:-\w, )?--([\w-]+)(\[?=)?", told, re.MULTILINE)
    assert len(options) > 80
    for name, value in options:
        read = split([f"--{name}", "x", "script"])
        assert read.problem == "", name
        # Of other options the text does not say for certain whether they take a value.
        assert value != "=" or read.script == "script", name


def test_what_depends_on_the_number_of_nodes_follows_it(site: Site) -> None:
    """After torchtitan's script, with Slurm's own number in its command."""
    head = f"#!/bin/sh\n#NODEWISE --profile={PROFILE} --nodes=1-4 --global-batch=2048\n"
    script = f"{head}#SBATCH --ntasks=4 --nodes=4 --gpus-per-task=4\n{TELLS}\n"
    assert site.got("nodewise-sbatch", script=script) == ["3", "3", "4"]
    total = f"{head}#SBATCH --nodes=2 --gpus=8 --gpus-per-node=4\n{TELLS}\n"
    assert site.got("nodewise-sbatch", script=total) == ["3", "", "4"]
    assert site.got("nodewise-sbatch --nodes=2-4", script=script.replace(" --ntasks=4", "")) == ["3", "3", "4"]
    job, said = site.submitted("nodewise-sbatch", script=f"{script}torchrun --nnodes 4 || true\n")
    assert (job["NumNodes"], job["NumTasks"]) == ("4", "4")
    assert "the number of nodes is not changed: line 5 of the script says --nnodes 4" in said


def test_a_job_of_several_components_is_submitted_as_it_is(site: Site) -> None:
    script = f"""#!/bin/sh
#SBATCH --nodes=1 --gres=gpu:1
#SBATCH hetjob
#SBATCH --nodes=2 --gres=gpu:1
#NODEWISE --profile={PROFILE} --nodes=1-4 --steps=100
true
"""
    typed = site.types("nodewise-sbatch", script=script, NODEWISE_SERVER="127.0.0.1:1")  # it is not asked
    assert typed.stderr == "nodewise-sbatch: a job with several components is submitted unchanged\n"
    (job_id,) = re.findall(r"\d+$", typed.stdout.strip())
    components = site.slurm.run("scontrol", "-o", "show", "job", job_id, cwd=site.folder).stdout
    assert re.findall(r"HetJobOffset=(\d).*?NumNodes=(\d)", components) == [("0", "1"), ("1", "2")]


HINT = "#NODEWISE of this script are read by nodewise-sbatch alone"


def test_plain_sbatch_hints_at_nodewise_sbatch(site: Site) -> None:
    """By job_submit.lua, which the controller of all these tests has loaded. Every job is accepted."""
    asking = f"#!/bin/sh\n#SBATCH --nodes=1\n#NODEWISE --nodes=1-4 --profile={PROFILE}\ntrue\n"
    job, said = site.submitted("sbatch", script=asking)
    assert HINT in said
    assert job["JobState"] == "COMPLETED"
    for command, script in (
        ("nodewise-sbatch", asking),
        ("sbatch --export=NONE", asking),
        ("sbatch", f"#!/bin/sh\n#NODEWISE --nodes=1-4\ntrue # --profile={PROFILE}\n"),
        ("sbatch", f"#!/bin/sh\ntrue\n#NODEWISE --profile={PROFILE}\n"),
    ):
        typed = site.types(command, script=script)
        assert typed.returncode == 0, typed.stderr
        assert HINT not in typed.stderr, (command, script)
    assert site.types("srun --nodes=1 true").returncode == 0  # without a script
    components = asking.replace("#NODEWISE", "#SBATCH hetjob\n#SBATCH --nodes=2\n#NODEWISE")
    for command in ("sbatch", "nodewise-sbatch"):
        typed = site.types(command, script=components)
        assert typed.returncode == 0, typed.stderr
        assert HINT not in typed.stderr


def test_each_task_of_an_array_is_recorded(site: Site, client: Client) -> None:
    script = f"""#!/bin/sh
#SBATCH --array=3-5 --nodes=1 --gpus-per-node=4
#NODEWISE --profile={PROFILE} --nodes=1-4 --global-batch=2048 --pattern="steps/s=([0-9.]+)"
echo "steps/s=$SLURM_ARRAY_TASK_ID"
"""
    typed = site.types("nodewise-sbatch", script=script)
    assert typed.returncode == 0, typed.stderr
    assert "--nodes=3, of 1 to 4" in typed.stderr
    assert HINT not in typed.stderr
    wait_until(lambda: len(rows_of(client)) == 2 + 3)
    recorded = rows_of(client)[2:]
    assert {row["nodes"] for row in recorded} == {3}
    assert sorted(float(str(row["steps_per_second"])) for row in recorded) == [3, 4, 5]


def test_however_nodewise_fails_jobs_run_and_end_as_without(site: Site) -> None:
    """Arrays, of which each task asks once more at its end."""
    array = f"""#!/bin/sh
#SBATCH --array=1-2 --nodes=1 --gpus-per-node=2 --time=01:00:00
#NODEWISE --profile={PROFILE} --nodes=2-4 --steps=3343 --pattern="steps/s=([0-9.]+)"
echo "steps/s=2.5"
"""
    job_ids: dict[str, str] = {}
    with failing_targets(*FAILURES) as targets:
        for failure, target in zip(FAILURES, targets, strict=True):
            here = {"NODEWISE_SERVER": target, "NODEWISE_EPILOG_LOG": f"{site.folder}/{failure}.log"}
            # At their ends they do not know that the submission got no answer.
            later = f"--export=ALL,NODEWISE_STATE_FOLDER={site.folder}/later"
            typed = site.types(f"nodewise-sbatch --nodewise-timeout-s=1 {later} --parsable", script=array, **here)
            assert typed.returncode == 0, (failure, typed.stderr)
            assert typed.stderr.startswith("nodewise-sbatch: no answer; the job is submitted unchanged ("), failure
            job_ids[failure] = typed.stdout.strip()
        for failure, job_id in job_ids.items():
            for task in (f"{job_id}_1", f"{job_id}_2"):
                job = site.slurm.finished(task)
                assert (job["JobState"], job["NumNodes"], job["TimeLimit"]) == ("COMPLETED", "1", "01:00:00"), failure
            log = (site.folder / f"{failure}.log").read_text()
            assert log.count(f"2.5 steps/s are not added to {PROFILE} (") == 2, log
