"""One process of a host, from its start to its end."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodewise.hosting.processes.frames import Pipe
from nodewise.hosting.processes.output import watch_output

__all__ = ["Life", "started"]

MODULE: Final = "nodewise.hosting.processes.main"
ENDING_S: Final = 2.0
"""Patience with a process that was killed, or whose socket has ended, until it is gone."""
_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""As for all processes of ours: matrices are small, and parallelism is ours to place."""
_OWN: Final = "NODEWISE_"
"""Settings of the server, which may hold secrets: no plugin's business."""


class Life:
    """A process and our end of its socket.

    Parameters
    ----------
    process : Popen
        Leader of a session of its own.
    pipe : Pipe
    folder : str
        Where it looks for modules before all else; "" = where this process looks.
    end_output : callable
        Ends the reading of what it prints.

    Attributes
    ----------
    last_exchange : int
        Number of the exchange that ended last; -1 = none has.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], pipe: Pipe, folder: str, end_output: Callable[[], None]
    ) -> None:
        self._process = process
        self._end_output = end_output
        self.pipe = pipe
        self.pid = process.pid
        self.paths = [*filter(None, [folder]), *(path or str(Path.cwd()) for path in sys.path)]
        self._gone = os.pidfd_open(process.pid)
        self._socket = pipe.socket.fileno()
        # Children that a plugin forked hold the socket open: only the process itself tells that it has ended.
        self._events = select.poll()
        self._events.register(self._socket, select.POLLIN)
        self._events.register(self._gone, select.POLLIN)
        self._ending = threading.Lock()
        self._over = False
        self.last_exchange = -1

    def wait(self, end_s: float) -> bool:
        """Wait until something has come, or the process is gone; False = neither until then.

        Raises
        ------
        ConnectionError
            If it is gone and has left nothing.
        """
        ready = self._events.poll(max(0.0, end_s - time.monotonic()) * 1e3)
        if not ready:
            return False
        if all(fd != self._socket for fd, _ in ready):
            raise ConnectionResetError("the process is gone")
        return True

    @property
    def at_rest(self) -> bool:
        """Whether it runs, and has sent nothing that nobody asked for."""
        return not self._over and not self.pipe.pending and not self._events.poll(0)

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._over or self._process.poll() is not None

    def how_it_ended(self) -> str:
        """Make sure that it is gone, and say how it went."""
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "closed its socket and was ended"
        status = self._process.returncode
        self.kill()
        if status >= 0:
            return f"exited with status {status}"
        return f"ended by signal {-status} ({_name_of(-status)})"

    def kill(self) -> None:
        """End it now, with all that it has forked."""
        with self._ending:
            if self._over:
                return
            self._over = True
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # in the kernel's hands; it is reaped with this process
                self._process.wait(ENDING_S)
            self._end_output()
            self.pipe.socket.close()
            os.close(self._gone)


def _name_of(number: int) -> str:
    """Of a signal; those of real time have none of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of real time"


_starters: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


def started(distribution: str, send_s: float, folder: str = "") -> Life:
    """A process that waits to be told what to load.

    Started by a thread that lives as long as this process: a host ends with the thread that started it.

    Parameters
    ----------
    send_s : float
        Seconds that it may leave what is sent to it unread.
    folder : str
        As of :class:`Life`.
    """
    with _lock:
        starter = _starters.get(os.getpid())
        if starter is None:
            starter = _starters[os.getpid()] = ThreadPoolExecutor(1, thread_name_prefix="nodewise-host-starter")
    return starter.submit(_start, distribution, send_s, folder).result()


def _start(distribution: str, send_s: float, folder: str) -> Life:
    ours, theirs = socket.socketpair()
    with theirs:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        process = subprocess.Popen(  # noqa: S603  # this interpreter, and a module of ours
            [sys.executable, "-P", "-m", MODULE, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env={**dict.fromkeys(_ONE_THREAD, "1"), **environment},
        )
    assert process.stdout is not None
    assert process.stderr is not None
    # The drain closes its own descriptors at their end.
    end_output = watch_output(
        distribution, {"stdout": os.dup(process.stdout.fileno()), "stderr": os.dup(process.stderr.fileno())}
    )
    process.stdout.close()
    process.stderr.close()
    ours.settimeout(send_s)
    return Life(process, Pipe(ours, wary=True), folder, end_output)
