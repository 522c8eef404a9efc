"""The supervisor: keeps workers serving on one port, restarts those that end, and replaces them without a gap.

It loads neither plugins nor the service. Events (signals, messages and ends of workers) change its state; then one
function compares the workers with the settings and acts, so that one rule covers first start, crash and restart.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from tempfile import TemporaryDirectory
from typing import Any, Final

import structlog

from nodewise.processes.backoff import Backoff
from nodewise.processes.process import status_text
from nodewise.processes.service_manager import notify_service_manager
from nodewise.runtime.listening import reserve_port
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, SettingsError
from nodewise.runtime.starting import StartError
from nodewise.runtime.workers import Worker

__all__ = ["supervise"]

_log = structlog.get_logger(__name__)

Announce = Callable[[str, str], None]

START_S: Final = 600.0
"""Most seconds of a worker's start; on a machine with twenty times its load a start took two minutes."""
SAME_SIGNAL_S: Final = 0.5
"""Seconds within which signals to stop count as one: a terminal and its program both forward the same Ctrl-C."""
SPARE_AFTER_S: Final = 10.0
"""Seconds of serving after which the only worker's spare starts: imports take two seconds of a core, which the first
calls need."""


def supervise(settings: Settings, read: Callable[[], Settings], announce: Announce) -> int:
    """Serve with workers until SIGTERM or SIGINT; returns the exit status.

    Parameters
    ----------
    read : callable
        Reads the settings again, on SIGHUP; raises SettingsError.
    announce : callable
        Called with ``HOST:PORT`` and the HTTP address (empty = none), once enough workers answer calls.

    Raises
    ------
    StartError
        If the first workers cannot start.
    """
    with ExitStack() as stack:
        holder, listen = reserve_port(settings.listen)
        stack.enter_context(holder)
        http = ""
        if settings.http_listen:
            holder, http = reserve_port(settings.http_listen, "http")
            stack.enter_context(holder)
        metrics = stack.enter_context(TemporaryDirectory(prefix="nodewise-metrics-"))
        return asyncio.run(_Supervisor(settings, (listen, http, metrics), read, announce).run())


class _Supervisor:
    """Starts, watches and replaces the workers."""

    def __init__(
        self, settings: Settings, listen: tuple[str, str, str], read: Callable[[], Settings], announce: Announce
    ) -> None:
        self._settings = self._before = settings
        """Settings of workers that start now, and those to use again if a restart fails."""
        self._listen = listen
        self._read = read
        self._announce = announce
        self._is_announced = False
        self._is_restarting = self._restart_again = False
        self._workers: list[Worker] = []
        self._spare: Worker | None = None
        """A process that has imported what a worker needs, so that it can replace the only worker at once."""
        self._backoff = Backoff(settings.crash_budget)
        self._delay: asyncio.TimerHandle | None = None
        """The delay before another worker starts; None = no delay."""
        self._stopping_since_s: float | None = None
        self._failure: StartError | None = None
        self._gave_up = False
        self._has_terminal = _has_terminal()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Run until the last worker has ended; returns the exit status. Raises StartError."""
        self._loop, self._change = asyncio.get_running_loop(), asyncio.Event()
        for number, handler in (
            (signal.SIGTERM, self._request_stop),
            (signal.SIGINT, self._request_stop),
            (signal.SIGHUP, self._reload_asked),
            (signal.SIGCHLD, self._reap_orphans),
        ):
            self._loop.add_signal_handler(number, handler)
        try:
            while self._stopping_since_s is None or self._workers:
                if self._stopping_since_s is None:
                    self._place()
                await self._change.wait()
                self._change.clear()
        finally:
            for worker in self._workers:  # only after a fault of the supervisor
                worker.process.kill()
            self._drop_spare()
        if self._failure is not None:
            raise self._failure
        return int(self._gave_up)

    # --- events

    def _request_stop(self) -> None:
        if self._stopping_since_s is None:
            _log.info("stopping", workers=len(self._workers))
            self._stop()
        elif self._loop.time() - self._stopping_since_s > SAME_SIGNAL_S:
            for worker in self._workers:
                worker.process.kill()

    def _stop(self) -> None:
        if self._stopping_since_s is None:
            self._stopping_since_s = self._loop.time()
            notify_service_manager("STOPPING=1")
            for worker in self._workers:
                self._drain(worker)
            self._change.set()

    def _reload_asked(self) -> None:
        """Ask one worker to swap plugins in place, unless changed settings need new workers.

        The other workers follow its decision. If no plugin differs, or one that runs in the workers themselves does,
        it asks for a restart.
        """
        if self._has_terminal and not _has_terminal():  # SIGHUP also means that the terminal is gone
            self._request_stop()
            return
        serving = [worker for worker in self._workers if worker.is_serving and not worker.is_stale]
        if serving and self._is_announced and not self._is_restarting and not self._settings_differ():
            self._begin(serving[0].reload())
        else:
            self._restart()

    def _settings_differ(self) -> bool:
        try:
            settings = self._read()
        except SettingsError:  # the restart reports it
            return True
        return settings.model_copy(update={"listen": self._settings.listen}) != self._settings

    def _restart(self) -> None:
        """Replace every worker by a new one, with the settings read again."""
        self._restart_again = self._is_restarting or not self._is_announced
        if self._restart_again or self._stopping_since_s is not None:
            return
        try:
            settings = self._read()
        except SettingsError as error:
            _log.error("restart_refused", reason=str(error))
            return
        if settings.listen != self._settings.listen:
            _log.warning("setting_not_applied", setting="listen", reason="stop and start the server to change its port")
        if settings.store.startswith("memory:"):
            _log.warning("store_lost", reason="memory: belongs to one process; new workers start with an empty one")
        self._before, self._is_restarting = self._settings, True
        self._start_after(0.0)
        self._adopt(settings.model_copy(update={"listen": self._settings.listen}))
        for worker in self._workers:
            worker.is_stale = True
        _log.info("restarting", workers=settings.workers)
        self._change.set()

    def _adopt(self, settings: Settings) -> None:
        self._drop_spare()  # it has imported the plugins that were installed before
        self._settings, self._backoff = settings, Backoff(settings.crash_budget)
        configure_logging(settings.log_level)

    def _restart_failed(self, reason: str) -> None:
        """End a restart: workers that serve stay, also those with the new settings."""
        if not self._is_restarting:
            return
        _log.error("restart_failed", reason=reason)
        self._is_restarting = False
        if not any(worker.is_serving and worker.settings is self._settings for worker in self._workers):
            self._adopt(self._before)
        for worker in self._workers:
            worker.is_stale = False
            if not worker.is_serving and worker.settings is not self._settings:
                self._kill(worker, "superseded")

    async def _tend(self, worker: Worker) -> None:
        """Handle a worker's messages until it has ended."""
        failure, killed_for = None, ""
        try:
            async with asyncio.timeout(START_S) as limit:
                async for message in worker.messages():
                    if message["say"] == "serving":
                        limit.reschedule(None)
                        _log.info("worker_serves", pid=worker.process.pid, seconds=round(worker.age_s, 3))
                        self._loop.call_later(SPARE_AFTER_S, self._start_spare)
                    elif message["say"] == "restart":
                        self._restart()
                    elif message["say"] == "refused":
                        failure = StartError(message["text"], of_input=message["of_input"])
                    self._change.set()
                await worker.process.wait_for_end()
        except TimeoutError:
            killed_for = f"it did not serve within {START_S:g} s"
            self._kill(worker, killed_for)
        status = await worker.process.wait_for_end()
        worker.close()
        if self._listen[1]:
            from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415  # no call waits for it

            mark_process_dead(worker.process.pid, self._listen[2])  # type: ignore[no-untyped-call]
        self._workers.remove(worker)
        self._change.set()
        if self._stopping_since_s is None and (not worker.is_draining or killed_for):
            self._note_death(worker, failure, killed_for or status_text(status), status)

    def _note_death(self, worker: Worker, failure: StartError | None, cause: str, status: int) -> None:
        """Log the unexpected end of a worker, and schedule its replacement."""
        delay_s = self._backoff.record_death(worker.served_s)
        self._start_after(delay_s)
        about = {"pid": worker.process.pid, "lived_s": round(worker.age_s, 3), "restart_in_s": round(delay_s, 3)}
        if failure is None:
            _log.error("worker_died", cause=cause, exit_code=status, **about)
            failure = StartError(f"a worker ended before it served: {cause}", of_input=False)
        elif self._is_announced:  # else the command prints it
            _log.error("worker_refused", reason=str(failure), **about)
        if not self._is_announced:
            self._failure = failure
            self._stop()
            return
        if worker.serving_since_s is None:
            self._restart_failed(str(failure))
        # While another worker serves, further attempts cost nothing.
        if self._backoff.is_spent and not any(each.is_serving for each in self._workers):
            _log.error("crash_budget_spent", cause=cause)
            self._gave_up = True
            self._stop()

    def _reap_orphans(self) -> None:
        """Reap orphans: as process 1 of a container this process is their parent."""
        own = {worker.process.pid for worker in (*self._workers, self._spare) if worker is not None}
        with suppress(ChildProcessError):
            while (child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and child.si_pid not in own:
                os.waitpid(child.si_pid, 0)

    # --- actions

    def _place(self) -> None:
        """Start, drain and count workers until they are as the settings say."""
        alive = [worker for worker in self._workers if not worker.is_draining]
        fresh = [worker for worker in alive if not worker.is_stale]
        serving = [worker for worker in alive if worker.is_serving]
        missing = self._settings.workers - len(fresh)
        if len(fresh) < len(alive):  # old workers serve meanwhile, so new ones start one after the other
            missing = min(missing, 1 - sum(not worker.is_serving for worker in fresh))
        while missing > 0 and self._delay is None:
            self._start(patient=bool(serving))
            missing -= 1
        if len(serving) > self._settings.workers:
            leaving = next((worker for worker in serving if worker.is_stale), serving[0])
            _log.info("worker_drains", pid=leaving.process.pid)
            self._drain(leaving)
            self._place()
            return
        if len(serving) == self._settings.workers and not self._is_announced:
            self._is_announced = True
            self._announce(*self._listen[:2])
            notify_service_manager("READY=1")
        if self._is_restarting and len(fresh) == len(alive):
            self._is_restarting = False
            _log.info("restarted", workers=self._settings.workers)
        if self._restart_again and self._is_announced and not self._is_restarting:
            self._restart()

    def _start(self, *, patient: bool) -> None:
        try:
            worker = self._spare or Worker(self._settings, *self._listen)
        except OSError as error:  # the system has no memory or no process left
            delay_s = max(self._backoff.record_death(0.0), 1.0)
            _log.error("worker_not_started", reason=str(error), restart_in_s=delay_s)
            self._start_after(delay_s)
            return
        worker.is_patient, self._spare = patient, None
        self._workers.append(worker)
        self._begin(self._tend(worker))

    def _start_spare(self) -> None:
        """Start a spare for the only worker; several workers need none, since the others serve meanwhile."""
        is_wanted = self._settings.workers == 1 and self._stopping_since_s is None
        if is_wanted and self._spare is None:
            with suppress(OSError):  # without a spare a replacement only takes longer
                self._spare = Worker(self._settings, *self._listen)

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.process.kill()
            self._spare.process.wait()
            self._spare.close()
            self._spare = None

    def _start_after(self, delay_s: float) -> None:
        def end() -> None:
            self._delay = None
            self._change.set()

        if self._delay is not None:
            self._delay.cancel()
        self._delay = self._loop.call_later(delay_s, end)

    def _drain(self, worker: Worker) -> None:
        if not worker.is_draining:
            worker.is_draining = True
            self._begin(worker.drain())

    def _kill(self, worker: Worker, reason: str) -> None:
        _log.error("worker_killed", pid=worker.process.pid, reason=reason)
        worker.is_draining = True
        worker.process.kill()

    def _begin(self, task: Coroutine[Any, Any, None]) -> None:
        running = self._loop.create_task(task)
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)


def _has_terminal() -> bool:
    try:
        os.tcgetpgrp(0)
    except OSError:
        return False
    return True
