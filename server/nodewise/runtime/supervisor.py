"""The supervisor: keeps workers serving on one port, whatever ends them, and replaces them without a gap.

One loop reacts to signals, to what workers tell, to their deaths and to the clock. Nothing in it waits for anything
else: every state that a worker can be in has a limit.
"""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

import structlog

from nodewise.runtime.channel import Say
from nodewise.runtime.crashes import Crashes, cause_of
from nodewise.runtime.listening import reserved
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.members import Member, State
from nodewise.runtime.nursery import Nursery
from nodewise.runtime.placing import core_for, next_to_open, of, room, surplus
from nodewise.runtime.reaping import reaped
from nodewise.runtime.recycling import Recycling
from nodewise.runtime.restarts import Restarts
from nodewise.runtime.settings import Settings
from nodewise.runtime.signals import Signals, caught
from nodewise.runtime.starting import StartError

__all__ = ["supervise"]

_log = structlog.get_logger(__name__)

Announce = Callable[[str, str], None]

LOOK_EVERY_S: Final = 1.0
"""Between looks at the workers' pulse and memory: a third of a millisecond each."""
SAME_SIGNAL_S: Final = 0.5
"""Signals to stop that come within so long are one: a terminal and the program that it runs pass on the same Ctrl-C."""
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


def supervise(settings: Settings, again: Callable[[], Settings], announce: Announce) -> int:
    """Serve with workers until SIGTERM or SIGINT; returns the exit status.

    Parameters
    ----------
    again : callable
        Reads the settings anew, for SIGHUP; raises SettingsError.
    announce : callable
        Told ``HOST:PORT``, and that of HTTP (empty = none), once as many workers as wanted answer calls.

    Raises
    ------
    StartError
        If the first workers cannot start.
    """
    with ExitStack() as held:
        holder, listen = reserved(settings.listen)
        held.enter_context(holder)
        http = ""
        if settings.http_listen:
            holder, http = reserved(settings.http_listen, "http")
            held.enter_context(holder)
        signals = held.enter_context(caught((*_ENDING, signal.SIGHUP, signal.SIGCHLD)))
        return _Supervisor(settings, (listen, http), signals, again, announce).run()


class _Supervisor:
    """The loop, and the workers that there are."""

    def __init__(
        self,
        settings: Settings,
        listen: tuple[str, str],
        signals: Signals,
        again: Callable[[], Settings],
        announce: Announce,
    ) -> None:
        self._listen = listen
        self._signals = signals
        self._announce = announce
        self._announced = False
        self._members: list[Member] = []
        self._restarts = Restarts(settings, again, self._adopted)
        self._crashes = Crashes(settings.crash_budget)
        self._recycling = Recycling(settings)
        self._start_after_s = 0.0
        self._look_s = 0.0
        self._stopping_since_s: float | None = None
        self._status = 0
        self._failure: StartError | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals, selectors.EVENT_READ)
        self._nursery = Nursery(settings, self._selector)

    def run(self) -> int:
        """Until the last worker has ended; returns the exit status. Raises StartError."""
        try:
            while self._stopping_since_s is None or self._members:
                self._place()
                self._selector.select(self._patience_s())
                self._take_signals()
                self._nursery.listen()
                self._listen_to_members()
                self._reap()
                self._look()
        finally:
            self._nursery.close()
            for member in self._members:  # only after a fault of ours
                member.kill("the supervisor failed")
            self._selector.close()
        if self._failure is not None:
            raise self._failure
        return self._status

    # --- what happens

    def _take_signals(self) -> None:
        for number in self._signals.taken():
            if number in _ENDING or (number == signal.SIGHUP and self._signals.terminal_is_gone()):
                self._told_to_stop()
            elif number == signal.SIGHUP:
                self._told_to_reload()

    def _told_to_stop(self) -> None:
        if self._stopping_since_s is None:
            _log.info("stopping", workers=len(self._members))
            self._stop()
        elif time.monotonic() - self._stopping_since_s > SAME_SIGNAL_S:
            for member in self._members:
                member.kill("told to stop at once")

    def _stop(self) -> None:
        if self._stopping_since_s is None:
            self._stopping_since_s = time.monotonic()
            self._nursery.close()
            for member in self._members:
                member.drain()

    def _give_up(self, failure: StartError | None) -> None:
        self._failure, self._status = failure, 1
        self._stop()

    def _told_to_reload(self) -> None:
        """Let a worker see whether other plugins can take over in place, unless the settings need new workers.

        It tries them for all: the others follow what it decides. Where nothing differs, or what does runs in the
        workers themselves, it asks for a restart.
        """
        serving = [member for member in of(self._members, State.SERVING) if not member.stale]
        free = self._announced and not self._restarts.under_way and self._stopping_since_s is None
        if serving and free and not self._restarts.differs():
            serving[0].reload()
        else:
            self._told_to_restart()

    def _told_to_restart(self) -> None:
        if self._restarts.under_way or not self._announced:
            self._restarts.again = True
        elif self._stopping_since_s is None:
            self._start_after_s = 0.0
            if self._restarts.begin(self._members):
                self._nursery.renew(self._restarts.settings)  # what is installed may have changed as well

    def _adopted(self, settings: Settings) -> None:
        """Settings have changed, or have changed back."""
        configure_logging(settings.log_level)
        self._crashes = Crashes(settings.crash_budget)
        self._recycling = Recycling(settings)

    def _listen_to_members(self) -> None:
        for member in list(self._members):
            moves = member.heard()
            for move in moves or ():
                if move == Say.RESTART:
                    self._told_to_restart()
                elif move == Say.SERVING:
                    _log.info("worker_serves", pid=member.pid, seconds=round(time.monotonic() - member.born_s, 3))
            if moves is None:
                with suppress(KeyError):
                    self._selector.unregister(member.channel)
                if not member.pid:
                    self._members.remove(member)
                    member.close(0)
                    self._nursery.failed("a worker was not forked")

    def _reap(self) -> None:
        for pid, status in reaped():
            for member in self._members:
                member.heard()  # what it told last, its process perhaps
                if member.pid == pid:
                    self._ended(member, status)
                    break
            else:
                self._nursery.ended(pid, status)

    def _ended(self, member: Member, status: int) -> None:
        self._members.remove(member)
        with suppress(KeyError):
            self._selector.unregister(member.channel)
        served_s = member.served_s()
        expected = member.state is State.DRAINING and not member.ended_for.startswith("hung")
        member.close(status)
        if expected or self._stopping_since_s is not None:
            _log.debug("worker_ended", pid=member.pid, status=status)
            return
        if member.refusal is not None:
            self._refused(member, member.refusal)
            return
        cause = cause_of(status, member.doing) if not member.ended_for else member.ended_for
        delay_s = self._crashes.died(cause, served_s)
        lived_s = round(time.monotonic() - member.born_s, 3)
        _log.error(
            "worker_died",
            pid=member.pid,
            cause=cause,
            exit_code=status,
            lived_s=lived_s,
            restart_in_s=round(delay_s, 3),
        )
        self._start_after_s = max(self._start_after_s, time.monotonic() + delay_s)
        if not self._announced:
            self._give_up(StartError(f"a worker ended before it served: {cause}", of_input=False))
        elif member.served_since_s is None:
            self._restarts.failed(f"a new worker ended before it served: {cause}", self._members)
        spent = self._crashes.spent()
        # As long as somebody serves, trying again at leisure costs nothing.
        if spent is not None and not of(self._members, State.SERVING):
            _log.error("given_up", cause=spent)
            self._give_up(None)

    def _refused(self, member: Member, refusal: dict[str, object]) -> None:
        """A worker told why it cannot start."""
        failure = StartError(str(refusal["text"]), of_input=bool(refusal["of_input"]))
        if not self._announced:
            self._give_up(failure)
            return
        delay_s = self._crashes.died("a start that was refused", 0.0)
        _log.error("worker_refused", pid=member.pid, reason=str(failure), restart_in_s=round(delay_s, 3))
        self._start_after_s = max(self._start_after_s, time.monotonic() + delay_s)
        self._restarts.failed(str(failure), self._members)
        if self._crashes.spent() is not None and not of(self._members, State.SERVING):
            self._give_up(failure)

    def _look(self) -> None:
        """Deadlines at each turn; pulse and memory each second."""
        now_s = time.monotonic()
        for member in self._members:
            if now_s >= member.deadline_s:
                _log.error("worker_killed", pid=member.pid, reason="it did not end in time")
                member.kill("it did not end in time")
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_EVERY_S
        for member in self._members:
            if member.hangs(now_s):
                cause = f"hung in {member.doing}" if member.doing else "hung"
                _log.error("worker_killed", pid=member.pid, reason=cause)
                member.kill(cause)
        if self._stopping_since_s is None:
            self._nursery.look(now_s, at_rest=not of(self._members, State.STARTING, State.OPENING))
            if not any(member.stale for member in self._members):
                self._recycling.mark(of(self._members, State.SERVING))

    # --- what is wanted

    def _place(self) -> None:
        """See to it that there are the workers that are wanted."""
        if self._stopping_since_s is not None:
            return
        settings = self._restarts.settings
        for member in of(self._members, State.STARTING, State.WARM, State.OPENING):
            if member.stale:
                member.kill("superseded")
        if time.monotonic() >= self._start_after_s and self._nursery.ready:
            for _ in range(room(self._members, settings, announced=self._announced)):
                self._start(settings)
        self._let_serve(settings.workers)
        self._restarts.look(self._members)
        if self._restarts.again and self._announced and not self._restarts.under_way:
            self._restarts.again = False
            self._told_to_restart()

    def _let_serve(self, wanted: int) -> None:
        """Let a warm worker serve where one is wanted, and drain one whose place is taken."""
        if not of(self._members, State.WARM, State.OPENING, State.SERVING):
            for member in of(self._members, State.STARTING):
                member.hurry()
        opening = next_to_open(self._members, wanted)
        if opening is not None:
            opening.serve()
        leaving = surplus(self._members, wanted)
        if leaving is not None:
            _log.info("worker_drains", pid=leaving.pid)
            leaving.drain()
        elif len(of(self._members, State.SERVING)) == wanted and not self._announced:
            self._announced = True
            self._announce(*self._listen)

    def _start(self, settings: Settings) -> None:
        try:
            core, patient = core_for(self._members, settings), bool(of(self._members, State.SERVING))
            member = self._nursery.worker(settings, *self._listen, core, patient=patient)
        except OSError as error:  # no memory or no process to be had
            delay_s = self._crashes.died("no process to be had", 0.0)
            _log.error("worker_not_started", reason=str(error), restart_in_s=delay_s)
            self._start_after_s = time.monotonic() + max(delay_s, LOOK_EVERY_S)
            return
        self._members.append(member)
        self._selector.register(member.channel, selectors.EVENT_READ)

    def _patience_s(self) -> float:
        now_s = time.monotonic()
        moments = [self._look_s, *(member.deadline_s for member in self._members)]
        if self._start_after_s > now_s:
            moments.append(self._start_after_s)
        return max(0.0, min(LOOK_EVERY_S, min(moments) - now_s))
