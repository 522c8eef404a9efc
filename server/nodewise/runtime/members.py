"""A worker as its supervisor sees it: a process, what it has told, and how long it has been at what."""

from __future__ import annotations

import enum
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Final

from nodewise.runtime.channel import Channel, Say
from nodewise.runtime.settings import Settings
from nodewise.runtime.vitals import Pulse, vitals_of

__all__ = ["Member", "State"]

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from nodewise.runtime.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
"""Of a worker's interpreter: what it can import is what its supervisor can, however that was started."""
START_PATIENCE_S: Final = 120.0
"""CPU time, or sleep, that a start may take before it answers or says why not; it takes 2.5 s of CPU, and 12 s where
kernels are compiled for the first time."""
ENDING_S: Final = 5.0
"""Patience with a worker that ends, beyond the delay and the grace that it was promised: its pool and threads."""


class State(enum.Enum):
    """Of a worker."""

    STARTING = "starting"
    """It imports and loads plugins."""
    WARM = "warm"
    """It holds neither port nor store, and can serve at once."""
    OPENING = "opening"
    """It opens both."""
    SERVING = "serving"
    DRAINING = "draining"
    """It was told to end."""


class Member:
    """One worker process.

    Parameters
    ----------
    settings : Settings
        That it is to serve with.
    listen : str
        HOST:PORT to share.
    core : int or None
        That it is to keep to.
    """

    def __init__(self, settings: Settings, listen: str, core: int | None) -> None:
        self.settings = settings
        self.core = core
        self.state = State.STARTING
        self.stale = False
        """Whether it is to go as soon as another serves in its place."""
        self.doing = ""
        """What it last said that it is at."""
        self.refusal: dict[str, Any] | None = None
        """Why it cannot start, as it said."""
        self.ended_for = ""
        """Why it was killed, if we did it."""
        self.deadline_s = float("inf")
        """When a worker that ends is killed, by the monotonic clock."""
        self.born_s = time.monotonic()
        self.served_since_s: float | None = None
        self._pulse = Pulse(START_PATIENCE_S)
        self._seen_s = self.born_s
        ours, theirs = socket.socketpair()
        with theirs:
            # A process group of its own: signals that a terminal sends are the supervisor's to pass on, and whatever
            # a worker started can be killed with it.
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter, and nothing of a caller's
                [sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self.pid = self._process.pid
        self.channel = Channel(ours)
        self.channel.send(Say.WORK, settings=settings.model_dump(mode="json"), listen=listen, core=core)

    def status(self) -> int | None:
        """Its exit status, negative = the signal that ended it; None = it lives."""
        return self._process.poll()

    def served_s(self) -> float:
        """How long it has served."""
        return 0.0 if self.served_since_s is None else time.monotonic() - self.served_since_s

    def serve(self) -> None:
        """Let a warm one open store and port."""
        self.state = State.OPENING
        self.channel.send(Say.SERVE)

    def heard(self) -> list[str] | None:
        """Take in what it tells; returns what moved its state, None = it will tell nothing more."""
        messages = self.channel.receive()
        if messages is None:
            return None
        moves: list[str] = []
        for message in messages:
            say = message["say"]
            self._pulse.beat()
            if say == Say.DOING:
                self.doing = message["what"]
            elif say == Say.REFUSED:
                self.refusal = message
            elif say in (Say.WARM, Say.SERVING, Say.DRAINING) and self.state is not State.DRAINING:
                self._moved(State(say))
                moves.append(say)
        return moves

    def _moved(self, state: State) -> None:
        self.state = state
        if state is State.SERVING:
            self.served_since_s = time.monotonic()
        if state is not State.STARTING:
            limit_s = self.settings.hung_after_s
            self._pulse = Pulse(limit_s if limit_s > 0 else float("inf"))
        if state is State.DRAINING:
            promised_s = self.settings.drain_delay_s + self.settings.grace_s
            self.deadline_s = min(self.deadline_s, time.monotonic() + promised_s + ENDING_S)

    def drain(self) -> None:
        """Tell it to end, with the patience that it was promised."""
        if self.state is not State.DRAINING:
            self._moved(State.DRAINING)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def hangs(self, now_s: float) -> bool:
        """Whether it hangs, by one more look at it."""
        since_s, self._seen_s = now_s - self._seen_s, now_s
        if self.state is State.DRAINING:  # that has a deadline, and a loop that ends does not beat
            return False
        seen = vitals_of(self.pid)
        return seen is not None and self._pulse.hangs(seen, since_s)

    def kill(self, why: str) -> None:
        """End it now, and what it started in its group."""
        self.ended_for = self.ended_for or why
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()  # where it is in no group of its own yet
        self.state = State.DRAINING
        self.deadline_s = float("inf")

    def close(self) -> None:
        """Let go of the channel, once the process has ended."""
        self.channel.close()
