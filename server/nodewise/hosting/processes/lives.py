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

from nodewise.hosting.processes.forked import Forked, Nest
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
    process : Popen or Forked
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
        self, process: subprocess.Popen[bytes] | Forked, pipe: Pipe, folder: str, end_output: Callable[[], None]
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
        self._end = select.poll()
        self._end.register(self._gone, select.POLLIN)
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
        return self._over or bool(self._end.poll(0))

    def how_it_ended(self) -> str:
        """Make sure that it is gone, and say how it went."""
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "closed its socket and was ended"
        status = self._process.returncode or 0
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
            if isinstance(self._process, Forked):
                self._process.close()


def _name_of(number: int) -> str:
    """Of a signal; those of real time have none of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of real time"


_starters: dict[int, ThreadPoolExecutor] = {}
_nests: dict[int, Nest] = {}
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
    output, errors = os.pipe(), os.pipe()
    try:
        with theirs:
            process = _forked(theirs, output[1], errors[1]) or _interpreter(theirs, output[1], errors[1])
    except BaseException:
        for each in (output[0], errors[0]):
            os.close(each)
        raise
    finally:
        for each in (output[1], errors[1]):
            os.close(each)
    end_output = watch_output(distribution, {"stdout": output[0], "stderr": errors[0]})
    ours.settimeout(send_s)
    return Life(process, Pipe(ours, wary=True), folder, end_output)


def _environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    return {**dict.fromkeys(_ONE_THREAD, "1"), **own}


def _forked(theirs: socket.socket, output: int, errors: int) -> Forked | None:
    """A host that a nest forks; None = there is none, as where descriptors or processes are scarce."""
    nest = _nests.get(os.getpid())
    try:
        if nest is None:
            nest = _nests[os.getpid()] = Nest(_environment())
    except OSError:
        return None
    found = nest.fork(theirs.fileno(), output, errors)
    if nest.ended:
        del _nests[os.getpid()]  # the next host has another
    return found


def _interpreter(theirs: socket.socket, output: int, errors: int) -> subprocess.Popen[bytes]:
    """A host that imports for itself."""
    return subprocess.Popen(  # noqa: S603  # this interpreter, and a module of ours
        [sys.executable, "-P", "-m", MODULE, str(theirs.fileno()), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        pass_fds=(theirs.fileno(),),
        start_new_session=True,
        env=_environment(),
    )
