"""Where workers come from: forked by a zygote, which takes a tenth of a second, or else started anew.

A zygote belongs to the settings, and to what is installed, at the time of a start or restart; a restart has its own. It
is a help and no need: without one every worker is an interpreter that imports for itself.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress

import structlog

from nodewise.runtime.ahead import taken
from nodewise.runtime.channel import Channel, Say
from nodewise.runtime.crashes import Crashes, cause_of
from nodewise.runtime.followers import Follower, interpreter
from nodewise.runtime.members import Member
from nodewise.runtime.processes import adopts_orphans
from nodewise.runtime.settings import Settings

__all__ = ["Nursery"]

_log = structlog.get_logger(__name__)


class _Zygote(Follower):
    """A process that is to fork workers."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(*(taken() or interpreter("zygote")))
        self.ready_since_s: float | None = None
        """Since when it can; None = it imports."""
        self.channel.send(Say.WORK, settings=settings.model_dump(mode="json"))

    def ready(self) -> None:
        """It can."""
        self.ready_since_s = time.monotonic()

    def hangs(self, now_s: float) -> bool:
        """Whether its imports hang; one that waits to be asked has nothing to say."""
        return self.ready_since_s is None and super().hangs(now_s)


class Nursery:
    """Starts workers.

    Parameters
    ----------
    settings : Settings
        To serve with at first.
    selector : BaseSelector
        That wakes the supervisor when somebody tells something.
    """

    def __init__(self, settings: Settings, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._can_fork = adopts_orphans()
        self._zygote: _Zygote | None = None
        self.renew(settings)
        unwanted = taken()
        if unwanted is not None:  # nothing is to be preloaded
            unwanted[1].kill()

    def renew(self, settings: Settings) -> None:
        """Start anew with what is set and installed now; workers that there are live on."""
        self.close()
        self._settings = settings
        self._crashes = Crashes(settings.crash_budget)
        self._wanted = settings.preload and self._can_fork
        self._again_s = 0.0
        self._begin()

    def _begin(self) -> None:
        """Start a zygote, if there is to be one and there is none."""
        if self._zygote is not None or not self._wanted or time.monotonic() < self._again_s:
            return
        try:
            self._zygote = _Zygote(self._settings)
        except OSError as error:
            self._failed(str(error), 0.0)
            return
        self._selector.register(self._zygote.channel, selectors.EVENT_READ)

    @property
    def ready(self) -> bool:
        """Whether it is time to start a worker, rather than to wait for a zygote that imports."""
        return self._zygote is None or self._zygote.ready_since_s is not None

    def worker(self, settings: Settings, listen: str, http: str, core: int | None, *, patient: bool) -> Member:
        """A worker that starts; arguments as of :class:`Member`. Raises OSError."""
        if self._zygote is not None and self._zygote.ready_since_s is not None:
            ours, theirs = socket.socketpair()
            with theirs:
                if self._zygote.channel.hand(theirs.fileno()):
                    return Member(Channel(ours), None, settings, listen, http, core, patient=patient)
            ours.close()
            self.failed("it takes no more orders")
        return Member(*interpreter("worker"), settings, listen, http, core, patient=patient)

    def listen(self) -> None:
        """Take in what the zygote tells."""
        zygote = self._zygote
        if zygote is None:
            return
        messages = zygote.received()
        if messages is None:
            with suppress(KeyError):  # heard before; its end is waited for
                self._selector.unregister(zygote.channel)
        for message in messages or ():
            if message["say"] == Say.DOING:
                zygote.doing = message["what"]
            elif message["say"] == Say.WARM:
                zygote.ready()
                _log.info("preloaded", pid=zygote.pid, seconds=round(time.monotonic() - zygote.born_s, 3))
            elif message["say"] == Say.REFUSED:
                self._wanted = False  # it would be the same with the next
                self.failed(message["text"])

    def failed(self, reason: str) -> None:
        """The zygote is no use: workers start without it, until there is another."""
        zygote = self._zygote
        if zygote is not None:
            ready_s = 0.0 if zygote.ready_since_s is None else time.monotonic() - zygote.ready_since_s
            self.close()
            self._failed(reason, ready_s)

    def _failed(self, reason: str, ready_s: float) -> None:
        delay_s = self._crashes.died(reason, ready_s)
        self._wanted = self._wanted and self._crashes.spent() is None
        self._again_s = time.monotonic() + delay_s
        _log.warning("preloading_failed", reason=reason, again=self._wanted)

    def ended(self, pid: int, status: int) -> bool:
        """Whether it is the zygote that has ended."""
        zygote = self._zygote
        if zygote is None or zygote.pid != pid:
            return False
        zygote.pid = 0  # which may be another's from now on
        self.failed(zygote.ended_for or cause_of(status))
        return True

    def look(self, now_s: float, *, at_rest: bool) -> None:
        """Each second: end a zygote that hangs, and start another where there is none.

        Parameters
        ----------
        at_rest : bool
            Whether no worker is about to serve: those have the cores first.
        """
        if self._zygote is not None and self._zygote.hangs(now_s):
            self._zygote.kill(f"hung in {self._zygote.doing}" if self._zygote.doing else "hung")
        if at_rest:
            self._begin()

    def close(self) -> None:
        """Let go of the zygote: without an order to wait for it ends."""
        zygote, self._zygote = self._zygote, None
        if zygote is None:
            return
        with suppress(KeyError):
            self._selector.unregister(zygote.channel)
        if zygote.ready_since_s is None:
            zygote.kill("superseded")
        zygote.close(0)
