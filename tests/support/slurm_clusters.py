"""A Slurm cluster of the tests' own on this machine, where its programs are installed: one slurmd for each node."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from patience import PATIENCE_S, wait_until

from nodewise_conformance.programs import why_not_any

__all__ = ["SlurmCluster", "running_slurm"]

_DAEMONS: Final = ("munged", "slurmctld", "slurmd")
_COMMANDS: Final = ("sbatch", "scontrol", "sinfo")
_CONFIGURED: Final = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
# The machine has fewer processors than its nodes together.
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=1
SchedulerParameters=batch_sched_delay=0
{more}
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports}] CPUs={gpus} RealMemory=500 Gres=gpu:{gpus}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmCluster:
    """Munge, a controller and the daemons of its nodes, in a folder; whoever makes it stops it."""

    def __init__(self, folder: Path, *, nodes: int, gpus: int, more: str = "", files: Sequence[Path] = ()) -> None:
        self._folder: Final = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.nodes: Final = nodes
        host = socket.gethostname()
        controller, *ports = _free_ports(nodes + 1)
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(
            _CONFIGURED.format(
                host=host,
                user=getpass.getuser(),
                folder=folder,
                controller_port=controller,
                ports=",".join(map(str, ports)),
                nodes=nodes,
                gpus=gpus,
                more=more,
            ),
            encoding="utf-8",
        )
        for file in files:
            shutil.copy(file, folder)
        # Slurm counts the files, and nobody opens them: no job is held in a control group here.
        for number in range(gpus):
            (folder / f"gpu{number}").touch()
        (folder / "gres.conf").write_text(f"NodeName=n[1-{nodes}] Name=gpu File={folder}/gpu[0-{gpus - 1}]\n")
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)

    @property
    def environment(self) -> dict[str, str]:
        """For commands that speak to it."""
        return {"SLURM_CONF": str(self._folder / "slurm.conf")}

    def start(self) -> None:
        """Start all daemons and wait until every node is idle."""
        where = [f"--{name}={self._folder}/munge.{name.partition('-')[0]}" for name in ("pid-file", "seed-file")]
        socket_, key = f"--socket={self._folder}/munge.sock", f"--key-file={self._folder}/munge.key"
        self._daemon("munged", "--foreground", "--force", socket_, key, *where)
        wait_until((self._folder / "munge.sock").exists)
        self._daemon("slurmctld", "-D", "-f", f"{self._folder}/slurm.conf")
        for number in range(1, self.nodes + 1):
            self._daemon("slurmd", "-D", "-N", f"n{number}", "-f", f"{self._folder}/slurm.conf")
        wait_until(lambda: self._idle() == self.nodes)

    def stop(self) -> None:
        """End all daemons, the last first."""
        for process in reversed(self._started):
            process.send_signal(signal.SIGTERM)
        for process in self._started:
            try:
                process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started.clear()

    def run(
        self, *command: str, cwd: Path, environment: Mapping[str, str] | None = None, script: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command that speaks to it; its status is the caller's to look at."""
        return subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **self.environment, **(environment or {})},
            input=script,
            stdin=subprocess.DEVNULL if script is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def job(self, job_id: str) -> dict[str, str]:
        """What `scontrol show job` says, by its names."""
        told = self.run("scontrol", "--oneliner", "show", "job", job_id, cwd=self._folder)
        assert told.returncode == 0, told.stderr
        return dict(word.partition("=")[::2] for word in told.stdout.split() if "=" in word)

    def finished(self, job_id: str) -> dict[str, str]:
        """The same once it has ended, its epilogs included."""
        found: dict[str, str] = {}

        def ended() -> bool:
            time.sleep(0.05)  # each look is a process
            found.update(self.job(job_id))
            return found["JobState"] not in {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}

        wait_until(ended)
        return found

    def logs(self) -> str:
        """The ends of what the daemons said, for a failure."""
        return "\n".join(
            f"{log.name}: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
            for log in sorted(self._folder.glob("*.log"))
        )

    def _idle(self) -> int:
        for process in self._started:
            assert process.poll() is None, f"{process.args!r} has ended\n{self.logs()}"
        told = self.run("sinfo", "--noheader", "--Node", "--format=%t", cwd=self._folder)
        return told.stdout.split().count("idle")

    def _daemon(self, *command: str) -> None:
        name = "-".join((Path(command[0]).name, str(len(self._started))))
        with (self._folder / f"{name}.out.log").open("wb") as said:
            self._started.append(
                subprocess.Popen(
                    [_program(command[0]) or command[0], *command[1:]],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env={**os.environ, **self.environment},
                )
            )


def _program(name: str) -> str | None:
    """A program on the path, or where Debian puts daemons."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _free_ports(count: int) -> Sequence[int]:
    """Ports that nobody listens on; all are held until the last is known."""
    with ExitStack() as held:
        found = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


@contextmanager
def running_slurm(
    *, nodes: int = 4, gpus: int = 4, more: str = "", files: Sequence[Path] = ()
) -> Iterator[SlurmCluster]:
    """A cluster for as long as this is open, with files beside slurm.conf. Tests are skipped without Slurm."""
    if sys.platform != "linux":
        pytest.skip("Slurm is started on Linux alone")
    # The commands of users do not start before there is a controller.
    missing = [f"no {name} on PATH" for name in _COMMANDS if _program(name) is None]
    if why := "; ".join(missing) or why_not_any([_program(name) or name for name in _DAEMONS]):
        pytest.skip(f"Slurm: {why}")
    # Not pytest's own folder: the path of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="nodewise-slurm-") as folder:
        Path(folder).chmod(0o755)
        cluster = SlurmCluster(Path(folder), nodes=nodes, gpus=gpus, more=more, files=files)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
