"""One process of a host, from its start to its end."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc

from nodewise.hosting.processes.connection import OPTIONS, Connection
from nodewise.hosting.processes.faults import HostFaultError, HostKilledError
from nodewise.hosting.processes.isolation import environment
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.output import watch_output
from nodewise.processes.process import Process, status_text
from nodewise.processes.spawning import spawn

__all__ = ["HostProcess", "start"]

ENDING_S: Final = 2.0
"""Seconds to wait for the end of a process that was killed, or whose connection has ended."""


class HostProcess(Connection):
    """A process, the leader of its own session, and the connection to it.

    Parameters
    ----------
    folder : Path
        Of its sockets.
    ready : int
        Descriptor on which it reports that it serves.
    served : grpc.Server
        Server of the objects that its calls may use.

    Attributes
    ----------
    is_over : bool
        Whether this worker ended it.
    """

    def __init__(self, process: Process, folder: Path, ready: int, context_server: grpc.Server) -> None:
        super().__init__(grpc.insecure_channel(f"unix:{folder}/host", OPTIONS))
        self._process = process
        self._folder = folder
        self._ready = ready
        self._context_server = context_server
        self.pid = process.pid
        self._ending = threading.Lock()
        self.is_over = False

    def wait(self, wait_s: float) -> None:
        """Wait until it serves. Raises TimeoutError if that takes longer, ConnectionError if it has ended."""
        readable, _, _ = select.select([self._ready, self._process.fileno()], [], [], wait_s)
        if not readable:
            raise TimeoutError
        if self._ready not in readable or not os.read(self._ready, 1):
            raise ConnectionError

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self.is_over or self._process.status is not None

    def fault(self) -> HostFaultError:
        """End the process if it runs, and return how it ended."""
        status = self._process.wait(ENDING_S)
        self.kill()
        if status is None:
            return HostFaultError("its process closed its connection and was ended")
        if status >= 0:
            return HostFaultError(f"its process exited with status {status}")
        kind = HostKilledError if status == -signal.SIGKILL else HostFaultError
        return kind(f"its process ended by signal {-status} ({status_text(status)})")

    def kill(self) -> None:
        """Kill it now, with all its child processes."""
        with self._ending:
            if self.is_over:
                return
            self.is_over = True
        self._process.kill()
        self._process.wait(ENDING_S)  # longer if it is in the kernel's hands; it is reaped with this process
        self._channel.close()
        self._context_server.stop(None)
        os.close(self._ready)
        shutil.rmtree(self._folder, ignore_errors=True)


def start(
    distribution: str,
    points: tuple[tuple[str, str], ...],
    limits: HostLimits,
    serve: Callable[[Path], grpc.Server],
    modules: str = "",
) -> HostProcess:
    """A process that loads a distribution.

    Parameters
    ----------
    points : tuple of pairs
        Name and value of each entry point.
    serve : callable
        Serves the objects that it may call, in a folder.
    modules : str
        Folder that it searches for modules first; "" = this process's search path alone.
    """
    paths = [*filter(None, [modules]), *(path or str(Path.cwd()) for path in sys.path)]
    folder = Path(tempfile.mkdtemp(prefix="nodewise-host-"))
    pipes = [os.pipe() for _ in range(3)]
    (ready, ready_there), (output, output_there), (errors, errors_there) = pipes
    order: dict[str, Any] = {
        "distribution": distribution,
        "points": points,
        "paths": paths,
        "writable": limits.paths,
        "memory_bytes": limits.memory_bytes,
    }
    try:
        process = spawn(
            "nodewise.hosting.processes.main:main",
            *(str(folder), ready_there, order),
            name="nodewise-host",
            pass_fds=[ready_there],
            environment=environment(limits.environment),
            stdout=output_there,
            stderr=errors_there,
            own_session=True,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        for here, _ in pipes:
            os.close(here)
        raise
    finally:
        for _, there in pipes:
            os.close(there)
    watch_output(distribution, {"stdout": output, "stderr": errors}, process)
    return HostProcess(process, folder, ready, serve(folder))
