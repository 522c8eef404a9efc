"""A process as the supervisor that started it sees it: its channel, its pulse, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Final

from nodewise.runtime.channel import Channel
from nodewise.runtime.vitals import Pulse, vitals_of

__all__ = ["START_PATIENCE_S", "Follower", "interpreter"]

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from nodewise.runtime.{module} import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
"""Of an interpreter: what it can import is what its supervisor can, however that was started."""
START_PATIENCE_S: Final = 60.0
"""CPU time, or sleep, that a start may take between two marks of its progress: imports take 2.5 s of CPU, and 12 s
where kernels are compiled for the first time, some of it beside others on a slow machine."""


class Follower:
    """A process that ends with its supervisor.

    Parameters
    ----------
    channel : Channel
        Our end.
    process : Popen or None
        What was started for it; None = it is still to be forked, and will say which process it is.
    """

    def __init__(self, channel: Channel, process: subprocess.Popen[bytes] | None) -> None:
        self.channel = channel
        self.pid = 0 if process is None else process.pid
        """0 = not known yet."""
        self.ended_for = ""
        """Why it was killed, if we did it."""
        self.born_s = time.monotonic()
        self._process = process
        self._pulse = Pulse(START_PATIENCE_S)
        self.doing = ""
        """What it last said that it is at."""
        self._seen_s = self.born_s

    def received(self) -> list[dict[str, Any]] | None:
        """What it tells, each a sign of life; None = it will tell nothing more."""
        messages = self.channel.receive()
        if messages:
            self._pulse.beat()
        return messages

    def hangs(self, now_s: float) -> bool:
        """Whether it hangs, by one more look at it."""
        since_s, self._seen_s = now_s - self._seen_s, now_s
        seen = vitals_of(self.pid) if self.pid else None
        return seen is not None and self._pulse.hangs(seen, since_s)

    def kill(self, why: str) -> None:
        """End it now, and what it started in its group."""
        self.ended_for = self.ended_for or why
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # where it is in no group of its own yet

    def close(self, status: int) -> None:
        """Let go of the channel, once the process has ended, and was waited for."""
        if self._process is not None:
            self._process.returncode = status
        self.channel.close()


def interpreter(module: str) -> tuple[Channel, subprocess.Popen[bytes]]:
    """An interpreter of its own that calls a module's ``main`` with its end of a channel. Raises OSError."""
    ours, theirs = socket.socketpair()
    program = _PROGRAM.format(module=module)
    try:
        with theirs:
            # A process group of its own: signals that a terminal sends are the supervisor's to pass on, and whatever
            # the process started can be killed with it.
            process = subprocess.Popen(  # noqa: S603  # this interpreter, and nothing of a caller's
                [sys.executable, "-P", "-c", program, json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
    except OSError:
        ours.close()
        raise
    return Channel(ours), process
