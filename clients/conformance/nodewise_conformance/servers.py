"""Real servers: `nodewise serve` as processes of their own, killed and started again where a scenario asks for it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

__all__ = ["NODEWISE", "PATIENCE_S", "RealServer", "free_port"]

NODEWISE: Final = str(Path(sys.executable).parent / "nodewise")
"""The command of the environment that runs this."""
PATIENCE_S: Final = 120.0
"""For what a busy machine does late."""
_BASE: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Answers must not depend on how quickly plugins were loaded, nor on what earlier scenarios taught.
        "NODEWISE_HOSTS__START_PATIENCE_S": "60",
        "NODEWISE_SCORING": "false",
        "NODEWISE_LEARN_INTERVAL_S": "0",
        "NODEWISE_ADMIN": "true",
        "NODEWISE_LOG_LEVEL": "info",
        "NODEWISE_SAFE_MODE": "true",
        # All clients call from one address, and a busy machine is no reason to refuse any of them.
        "NODEWISE_QUOTAS__STREAMS_PER_CALLER": "0",
        "NODEWISE_QUOTAS__LONG_CALLS_PER_CALLER": "0",
        "NODEWISE_QUEUE_WAIT_S": "600",
        "NODEWISE_DEFAULT_DEADLINE_S": "600",
        "NODEWISE_HTTP_ORIGINS": "*",
        "COVERAGE_PROCESS_CONFIG": "",
    }
)


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _started_by(pid: int) -> list[int]:
    """Processes below one, where the kernel tells; they would go on for a while to end what they began."""
    children_file = Path(f"/proc/{pid}/task/{pid}/children")
    children = [int(each) for each in children_file.read_text().split()] if children_file.exists() else []
    return [*children, *(below for child in children for below in _started_by(child))]


class RealServer:
    """`nodewise serve` with a store in a folder of its own.

    Parameters
    ----------
    settings : mapping
        Environment of the process, above that of this one.
    durable : bool
        Whether the store is a file, which a restart finds again.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, durable: bool = False) -> None:
        self._folder: Final = tempfile.TemporaryDirectory(prefix="nodewise-conformance-")
        self._settings: Final = dict(settings or {})
        self._log: Final = Path(self._folder.name) / "log"
        self.store: Final = f"sqlite:{self._folder.name}/store.db" if durable else "memory:"
        self._listen = self._http = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None
        self.started = 0
        """Times that it was started."""
        self._lock: Final = threading.Lock()

    @property
    def folder(self) -> Path:
        """Its folder, gone when it is closed."""
        return Path(self._folder.name)

    @property
    def target(self) -> str:
        """HOST:PORT; the same after a restart."""
        return self._listen

    @property
    def http_target(self) -> str:
        """HOST:PORT of its HTTP listener; the same after a restart."""
        return self._http

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises
        ------
        RuntimeError
            Where it does not come up; the text holds the end of its log.
        """
        environment = {**os.environ, **_BASE, **self._settings, "NODEWISE_STORE": self.store}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [NODEWISE, "serve", "--listen", self._listen, "--http", self._http], stdout=subprocess.PIPE, stderr=log,
                text=True, env=environment, cwd=self._folder.name,
            )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self._process.wait(PATIENCE_S)
            raise RuntimeError(f"the server did not start: {line!r}\n{self.log_tail()}")
        self._listen = line.removeprefix("listening on ").strip()
        self._http = self._process.stdout.readline().removeprefix("answering HTTP on ").strip()
        self.started += 1

    def log_tail(self) -> str:
        """What it said last."""
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])

    def kill(self) -> None:
        """As a power switch would: the supervisor with all that it has started."""
        if self._process is not None:
            for pid in (self._process.pid, *_started_by(self._process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._end()

    def restart_killed(self) -> None:
        """Kill it and start it again on the same port and store."""
        with self._lock:
            self.kill()
            self.start()

    def rolling_restart(self) -> None:
        """Replace its workers one by one, as operators do; returns when all are new."""
        with self._lock:
            restart_count = self._log.read_text(encoding="utf-8").count('"restarted"')
            os.kill(self.pid, signal.SIGHUP)
            pause = threading.Event()
            for _ in range(int(PATIENCE_S / 0.05)):
                if self._log.read_text(encoding="utf-8").count('"restarted"') > restart_count:
                    return
                pause.wait(0.05)
            raise RuntimeError(f"the server was not restarted:\n{self.log_tail()}")

    def close(self) -> None:
        """Stop it and remove its store."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._end()
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder.name, ignore_errors=True)
        self._folder.cleanup()

    def _end(self) -> None:
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
