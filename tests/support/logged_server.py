"""``nodewise serve`` with its log in a file, for tests in which much is logged, or killed, and read afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from serving import COMMAND, PLUGINS_FIRST


class LoggedServer:
    """A server as a process with all that it starts; ended on leaving the context.

    Parameters
    ----------
    folder : Path
        For its log, of all servers that were started there.
    *arguments
        Of ``nodewise serve``.
    environment : mapping
        Above that of this process.
    listen : str
        HOST:PORT.
    command : sequence of str
        ``nodewise`` of this or of another release.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.log = folder / "server.log"
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "serve", "--listen", listen, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **PLUGINS_FIRST, **(environment or {})},
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self._process.wait(PATIENCE_S)
            self._process.stdout.close()
            raise RuntimeError(f"the server did not start: {line!r} {self.log.read_text(encoding='utf-8')[-2000:]}")
        self.target = line.removeprefix("listening on ").strip()

    @property
    def http_target(self) -> str:
        """HOST:PORT of HTTP; read once, of a server that has it."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().removeprefix("answering HTTP on ").strip()

    @property
    def pid(self) -> int:
        """Of the process that was started: the supervisor, where there is one."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether that process lives."""
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """A signal to that process."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """As a power switch would; returns when it is gone."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def terminate(self) -> int:
        """SIGTERM; the exit status."""
        self._process.terminate()
        return self._process.wait(PATIENCE_S)

    def logged(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Lines of the log: those that are JSON objects, and those that are not."""
        objects, others = [], []
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                found = json.loads(line)
            except json.JSONDecodeError:
                found = None
            if isinstance(found, dict):
                objects.append(found)
            else:
                others.append(line)
        return objects, others

    def __enter__(self) -> LoggedServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(PATIENCE_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
