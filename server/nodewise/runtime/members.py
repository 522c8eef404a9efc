"""A worker as its supervisor sees it: what it has told, and how long it has been at what."""

from __future__ import annotations

import enum
import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any, Final

from nodewise.runtime.channel import Channel, Say
from nodewise.runtime.followers import Follower
from nodewise.runtime.settings import Settings
from nodewise.runtime.vitals import Pulse

__all__ = ["Member", "State"]

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


class Member(Follower):
    """One worker process.

    Parameters
    ----------
    channel : Channel
        Our end.
    process : Popen or None
        As of :class:`Follower`.
    settings : Settings
        That it is to serve with.
    listen, http : str
        HOST:PORT to share; the one for HTTP empty = none.
    core : int or None
        That it is to keep to.
    patient : bool
        Whether others serve, so that it may wait until all plugins are loaded.
    """

    def __init__(
        self,
        channel: Channel,
        process: subprocess.Popen[bytes] | None,
        settings: Settings,
        listen: str,
        http: str,
        core: int | None,
        *,
        patient: bool,
    ) -> None:
        super().__init__(channel, process)
        self.settings = settings
        self.core = core
        self._patient = patient
        self.state = State.STARTING
        self.stale = False
        """Whether it is to go as soon as another serves in its place."""
        self.refusal: dict[str, Any] | None = None
        """Why it cannot start, as it said."""
        self.deadline_s = float("inf")
        """When a worker that ends is killed, by the monotonic clock."""
        self.served_since_s: float | None = None
        order = {"settings": settings.model_dump(mode="json"), "core": core, "patient": patient}
        channel.send(Say.WORK, listen=listen, http=http, **order)

    def served_s(self) -> float:
        """How long it has served."""
        return 0.0 if self.served_since_s is None else time.monotonic() - self.served_since_s

    def hurry(self) -> None:
        """Let one that starts wait for no plugin any more: nobody else serves."""
        if self._patient:
            self._patient = False
            self.channel.send(Say.HURRY)

    def serve(self) -> None:
        """Let a warm one open store and port."""
        self.state = State.OPENING
        self.channel.send(Say.SERVE)

    def reload(self) -> None:
        """Let one that serves look for other plugins."""
        self.channel.send(Say.RELOAD)

    def heard(self) -> list[str] | None:
        """Take in what it tells; returns what moved its state, None = it will tell nothing more."""
        messages = self.received()
        if messages is None:
            return None
        moves: list[str] = []
        for message in messages:
            say = message["say"]
            if say == Say.BORN:
                self._born(message["pid"])
            elif say == Say.DOING:
                self._at(message["what"], message.get("limit_s"))
            elif say == Say.RESTART:
                moves.append(say)
            elif say == Say.REFUSED:
                self.refusal = message
            elif say in (Say.WARM, Say.SERVING, Say.DRAINING) and self.state is not State.DRAINING:
                self._moved(State(say))
                moves.append(say)
        return moves

    def _at(self, what: str, limit_s: float | None) -> None:
        self.doing = what
        if limit_s is not None and self.state is State.STARTING:
            self._pulse = Pulse(limit_s)

    def _born(self, pid: int) -> None:
        self.pid = pid
        if self.ended_for:
            super().kill(self.ended_for)
        elif self.state is State.DRAINING:
            self._told_to_end()

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
            self._told_to_end()

    def _told_to_end(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def hangs(self, now_s: float) -> bool:
        """Whether it hangs, by one more look at it."""
        # One that drains has a deadline, and a loop that ends does not beat.
        return super().hangs(now_s) and self.state is not State.DRAINING

    def kill(self, why: str) -> None:
        """End it now, and what it started in its group."""
        super().kill(why)
        self.state = State.DRAINING
        self.deadline_s = float("inf")
