"""Starting processes: Python functions in interpreters of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import IO, Any, Final

from nodewise.processes.process import Process

__all__ = ["allowed_environment", "spawn", "spawn_connected"]

_PROGRAM: Final = (
    "import json, sys; order = json.loads(sys.argv.pop()); sys.path[:] = order['path']; "
    "from nodewise.processes.child import run; run(order)"
)
"""The child's import path is this process's, however this process was started."""
ALLOWED: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
    *("PYTHONPATH", "PYTHONHASHSEED", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    *("VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_CACHE_DIR", "GRPC_VERBOSITY"),
)
"""Environment variables about the machine, none of which holds a secret."""

Stream = int | IO[bytes] | None


def spawn(
    function: str,
    *arguments: Any,
    name: str,
    pass_fds: Collection[int] = (),
    environment: Mapping[str, str] | None = None,
    stdout: Stream = None,
    stderr: Stream = None,
    death_signal: signal.Signals = signal.SIGKILL,
    nice: int = 0,
    own_session: bool = False,
) -> Process:
    """Start an interpreter that calls a function and then ends. Blocks for milliseconds, until it has started.

    It leads a process group of its own (signals of a terminal do not reach it), reads nothing from standard input,
    holds no descriptor but those that are passed, ignores SIGINT and SIGHUP, and the kernel sends it a signal when this
    process ends.

    Parameters
    ----------
    function : str
        ``module:name``.
    *arguments
        Arguments of the function: JSON values. Other processes can read them, so they must not be secrets.
    name : str
        For ``ps -o comm``; at most 15 letters.
    pass_fds : collection of int
        Descriptors that it inherits, with their numbers.
    environment : mapping or None
        Its environment variables; None = those of this process.
    stdout, stderr
        As of ``subprocess.Popen``; None = those of this process.
    death_signal : Signals
        Signal that the kernel sends when this process ends. With SIGKILL forks (``os.fork``) of the child get it too.
    nice : int
        Added to its niceness.
    own_session : bool
        Whether it leads a session too, so that its children cannot move to a group of another session.

    Raises
    ------
    OSError
        No process, memory or descriptor is available.
    """
    order = {
        "path": sys.path,
        "function": function,
        "arguments": arguments,
        "name": name,
        "parent": os.getpid(),
        "death_signal": int(death_signal),
        "nice": nice,
    }

    def start() -> Process:
        popen = subprocess.Popen(  # noqa: S603  # this interpreter, and nothing of a caller's
            [sys.executable, "-P", "-c", _PROGRAM, json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            env=environment,
            start_new_session=own_session,
            process_group=None if own_session else 0,
        )
        return Process(popen)

    # To the kernel its parent is the starting thread, so a thread is used that lasts as long as the process.
    if threading.current_thread() is threading.main_thread():
        return start()
    return _starter(os.getpid()).submit(start).result()


def spawn_connected(function: str, *arguments: Any, **options: Any) -> tuple[Process, socket.socket]:
    """As :func:`spawn`; the function's first argument is the descriptor of one of a pair of sockets.

    Returns the process and the other socket.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            return spawn(function, theirs.fileno(), *arguments, pass_fds=[theirs.fileno()], **options), ours
    except OSError:
        ours.close()
        raise


def allowed_environment(names: Collection[str] = (), **values: str) -> dict[str, str]:
    """Variables of this process that hold no secrets, those of some names, and further values."""
    names_allowed = {*ALLOWED, *names}
    return {**{name: value for name, value in os.environ.items() if name in names_allowed}, **values}


@cache
def _starter(_pid: int) -> ThreadPoolExecutor:
    """The starting thread of this process; a fork has none of its parent's threads."""
    return ThreadPoolExecutor(1, thread_name_prefix="nodewise-starter")
