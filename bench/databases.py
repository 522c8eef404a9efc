"""A PostgreSQL server under measurement, in a folder of its own, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import cpu_clock_of

_DEBIAN = Path("/usr/lib/postgresql")
_CONFIGURED = (
    "listen_addresses = ''\nunix_socket_directories = '{folder}'\nshared_buffers = 128MB\nmax_wal_size = 4GB\n"
)


class Database:
    """One that runs; its processes are those of the postmaster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"postgresql://nodewise@/postgres?host={folder}"

    def cpu_s(self) -> float:
        """User and system time so far of all its processes: those that live, and those that ended, in ticks."""
        postmaster = int((self._folder / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        ended = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()[13:15]
        live_ns = sum(time.clock_gettime_ns(cpu_clock_of(pid)) for pid in (postmaster, *map(int, children)))
        return live_ns / 1e9 + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def database() -> Iterator[Database | None]:
    """A server for as long as this is open, with the durability that it has by default; None = it is not installed."""
    programs = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = shutil.which("initdb")
    program = programs[-1] if programs else Path(found) if found else None
    if program is None:
        yield None
        return
    user = "nobody" if os.geteuid() == 0 else None  # its programs refuse to be root
    with tempfile.TemporaryDirectory(prefix="nodewise-bench-") as scratch:
        Path(scratch).chmod(0o711)
        folder = Path(scratch) / "data"
        folder.mkdir()
        if user is not None:
            shutil.chown(folder, user)

        def run(name: str, *arguments: str) -> None:
            command = [str(program.parent / name), f"--pgdata={folder}", *arguments]
            subprocess.run(command, user=user, cwd="/", stdout=subprocess.DEVNULL, check=True)

        run("initdb", "--auth=trust", "--encoding=UTF8", "--no-locale", "--username=nodewise")
        (folder / "postgresql.auto.conf").write_text(_CONFIGURED.format(folder=folder), encoding="utf-8")
        run("pg_ctl", "--wait", f"--log={folder / 'log'}", "start")
        try:
            yield Database(folder)
        finally:
            run("pg_ctl", "--wait", "--mode=fast", "stop")
