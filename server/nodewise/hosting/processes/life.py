"""One process of a host, from its start to its end."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodewise.hosting.processes.connection import Connection, local_channel
from nodewise.hosting.processes.isolation import environment
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.processes.output import watch_output

__all__ = ["Life", "started"]

MODULE: Final = "nodewise.hosting.processes.main"
ENDING_S: Final = 2.0
"""Patience with a process that was killed, or whose connection has ended, until it is gone."""


class Life:
    """A process, the leader of a session of its own, and our connection to it.

    Attributes
    ----------
    paths : list of str
        Where it looks for modules.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        place: Path,
        ready: int,
        paths: list[str],
        end_output: Callable[[], None],
    ) -> None:
        self._process = process
        self._place = place
        self._ready = ready
        self._end_output = end_output
        self.pid = process.pid
        self.paths = paths
        # Children that a plugin forked hold descriptors open: only the process itself tells that it has ended.
        self._gone = os.pidfd_open(process.pid)
        self._ending = threading.Lock()
        self._over = False
        self._channel = local_channel(place)
        self.connection = Connection(self._channel)

    def wait(self, wait_s: float) -> bool:
        """Wait until it serves; False = it does not by then.

        Raises
        ------
        ConnectionError
            If it is gone.
        """
        found, _, _ = select.select([self._ready, self._gone], [], [], wait_s)
        if self._ready in found and os.read(self._ready, 1):
            return True
        if found:
            raise ConnectionResetError("the process is gone")
        return False

    @property
    def over(self) -> bool:
        """Whether it was ended from here."""
        return self._over

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._over or bool(select.select([self._gone], [], [], 0)[0])

    def how_it_ended(self) -> str:
        """Make sure that it is gone, and say how it went."""
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "closed its connection and was ended"
        status = self._process.returncode or 0
        self.kill()
        return f"exited with status {status}" if status >= 0 else f"ended by signal {-status} ({_name_of(-status)})"

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
            self._channel.close()
            for each in (self._gone, self._ready):
                os.close(each)
            shutil.rmtree(self._place, ignore_errors=True)


def _name_of(number: int) -> str:
    """Of a signal; those of real time have none of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of real time"


_starters: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


def started(distribution: str, limits: HostLimits, folder: str = "") -> Life:
    """A process that waits to be told what to load.

    Started by a thread that lives as long as this process: a host ends with the thread that started it.

    Parameters
    ----------
    limits : HostLimits
        What it may see besides its own.
    folder : str
        Where it looks for modules before all else; "" = where this process looks.
    """
    with _lock:
        starter = _starters.get(os.getpid())
        if starter is None:
            starter = _starters[os.getpid()] = ThreadPoolExecutor(1, thread_name_prefix="nodewise-host-starter")
    return starter.submit(_start, distribution, limits, folder).result()


def _start(distribution: str, limits: HostLimits, folder: str) -> Life:
    paths = [*filter(None, [folder]), *(path or str(Path.cwd()) for path in sys.path)]
    place = Path(tempfile.mkdtemp(prefix="nodewise-host-"))
    ready, output, errors = os.pipe(), os.pipe(), os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603  # this interpreter, and a module of ours
            [
                *(sys.executable, "-P", "-m", MODULE, str(place), str(ready[1]), str(os.getpid())),
                *map(os.pathsep.join, (paths, limits.paths)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output[1],
            stderr=errors[1],
            pass_fds=(ready[1],),
            start_new_session=True,
            env=environment(os.environ, limits.environment),
        )
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        for each in (ready[0], output[0], errors[0]):
            os.close(each)
        raise
    finally:
        for each in (ready[1], output[1], errors[1]):
            os.close(each)
    end_output = watch_output(distribution, {"stdout": output[0], "stderr": errors[0]})
    return Life(process, place, ready[0], paths, end_output)
