"""A PostgreSQL server of the tests' own, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from nodewise_conformance.programs import why_not

__all__ = ["PostgresCluster", "running_cluster"]

_DEBIAN: Final = Path("/usr/lib/postgresql")
_CONFIGURED: Final = """
listen_addresses = ''
fsync = off
full_page_writes = off
max_connections = 100
shared_buffers = 16MB
"""
"""Only a socket in its folder; nothing here loses power."""


class PostgresCluster:
    """A server that is running, in a folder of its own; it belongs to nobody who is root."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self) -> None:
        """Make its files."""
        self._folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody")
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--username=nodewise")
        # The server's own user may be another one.
        settings = self._folder / "postgresql.auto.conf"
        settings.write_text(f"{_CONFIGURED}unix_socket_directories = '{self._folder}'\n", encoding="utf-8")

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run("pg_ctl", "--wait", f"--log={self._folder / 'log'}", "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it as a crash does, or in another of pg_ctl's modes."""
        self._run("pg_ctl", "--wait", f"--mode={mode}", "stop")

    @property
    def url(self) -> str:
        """Of its database."""
        return f"postgresql://nodewise@/postgres?host={self._folder}"

    def emptied(self) -> str:
        """The URL of its database, in which nothing is left: quicker than a new one."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return self.url

    def _run(self, program: str, *arguments: str) -> None:
        known = _program(program)
        if known is None:
            pytest.skip("PostgreSQL is not installed")
        command = [str(known), f"--pgdata={self._folder}", *arguments]
        log = self._folder.with_name(f"{self._folder.name}-{program}.log")
        with log.open("wb") as output:
            done = subprocess.run(command, user=_user(), cwd="/", stdout=output, stderr=output, check=False)
        assert not done.returncode, log.read_text(encoding="utf-8", errors="replace")


def _user() -> str | None:
    """Its programs refuse to run as root."""
    return "nobody" if os.geteuid() == 0 else None


@cache
def _program(name: str) -> Path | None:
    """A program of the server: on the path, or where Debian keeps versions side by side, the newest."""
    versions = sorted(_DEBIAN.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    found = shutil.which(name)
    return versions[-1] if versions else Path(found) if found else None


@contextmanager
def running_cluster(make_folder: Callable[[], Path]) -> Iterator[PostgresCluster]:
    """A server for as long as this is open; the test is skipped where there is none."""
    if sys.platform == "win32":
        pytest.skip("PostgreSQL is started on POSIX alone")
    if why := why_not(str(_program("initdb") or "initdb"), Path("/"), user=_user()):
        pytest.skip(f"PostgreSQL: {why}")
    pytest.importorskip("psycopg")
    cluster = PostgresCluster(make_folder() / "cluster")
    cluster.create()
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
