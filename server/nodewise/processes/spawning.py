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
"""What it can import is what this process can, however this process was started."""
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
    """Start an interpreter that calls a function, and ends with it. Blocks for milliseconds, until it has started.

    It leads a process group of its own (signals of a terminal do not reach it), reads nothing from standard input,
    holds no descriptor but those that are passed, ignores SIGINT and SIGHUP, and the kernel sends it a signal when this
    process ends.

    Parameters
    ----------
    function : str
        ``module:name``.
    *arguments
        Of the function: JSON values. Other processes can read them, so no secrets.
    name : str
        For ``ps -o comm``; at most 15 letters.
    pass_fds : collection of int
        Descriptors that it inherits, with their numbers.
    environment : mapping or None
        All of its variables; None = those of this process.
    stdout, stderr
        As of ``subprocess.Popen``; None = those of this process.
    death_signal : Signals
        That the kernel sends when this process ends. With SIGKILL what the process forks (``os.fork``) gets it too.
    nice : int
        Added to its niceness.
    own_session : bool
        Whether it leads a session too: what it starts can leave its group for no group of another session.

    Raises
    ------
    OSError
        There is no process, memory or descriptor to be had.
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

    # Its parent is, to the kernel, the thread that started it: one that lasts as long as the process.
    if threading.current_thread() is threading.main_thread():
        return start()
    return _starter(os.getpid()).submit(start).result()


def spawn_connected(function: str, *arguments: Any, **options: Any) -> tuple[Process, socket.socket]:
    """As :func:`spawn`, with one of a pair of sockets, whose descriptor is the function's first argument.

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
    """Variables of this process that are no secret, those of some names, and further values."""
    names_allowed = {*ALLOWED, *names}
    return {**{name: value for name, value in os.environ.items() if name in names_allowed}, **values}


@cache
def _starter(_pid: int) -> ThreadPoolExecutor:
    """Of this process: a fork has none of the threads of the process before."""
    return ThreadPoolExecutor(1, thread_name_prefix="nodewise-starter")
