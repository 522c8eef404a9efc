"""Serving: one worker in this process, or several that share a port under a supervisor."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import Registry
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.traces import TraceStore
from nodewise.runtime.application import Application, PortInUseError
from nodewise.runtime.blas import one_thread_each
from nodewise.runtime.logging import configure_logging, log_unhandled
from nodewise.runtime.settings import Settings, SettingsError, redacted
from nodewise.runtime.workshops import catalogue_of, registry_of

__all__ = ["application_of", "new_event_loop", "serve", "store_of"]

_log = structlog.get_logger(__name__)

QUICK_DEATH_S: Final = 2.0
COLLECT_EVERY: Final = (50_000, 20, 100)
"""Allocations between collections of the youngest objects, and such collections between those of older ones."""
POLL_S: Final = 0.2
"""How often a supervisor looks whether it was told to stop."""
MAX_QUICK_DEATHS: Final = 5
"""Deaths within QUICK_DEATH_S of their start, one after the other, after which a supervisor gives up."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop where it exists (a tenth less CPU per call), else of asyncio."""
    try:
        import uvloop  # noqa: PLC0415  # not on Windows
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def application_of(settings: Settings, registry: Registry | None = None, *, usual_processes: int = 0) -> Application:
    """An application as set; a registry that is given stands in for the plugins that are installed.

    Parameters
    ----------
    usual_processes : int
        Of the pool, where the settings do not say. With a registry that is given there are none: other processes have
        not got it.

    Raises
    ------
    PluginConflictError, StoreFormatError, SettingsError
        Whatever must stop a start, with a text for the operator.
    """
    processes = usual_processes if settings.compute_processes is None else settings.compute_processes
    if registry is None:
        registry = registry_of(settings)
    else:
        processes = 0
    catalogue = catalogue_of(settings)
    return Application(settings, registry, store_of(settings), catalogue, processes)


def store_of(settings: Settings) -> ProfileStore:
    """The store that the settings name, and traces where they say.

    Raises
    ------
    StoreFormatError, SettingsError
        It is another's, or cannot be opened.
    """
    kept, synced = settings.trace_artefact_bytes, settings.durability == "power"
    traces = Path(settings.traces) if settings.traces else None
    try:
        return open_store(
            settings.store,
            settings.durability,
            TraceStore(traces, sync_chunks=synced, artefact_bytes=kept) if traces else None,
            scored=settings.scoring,
            artefact_bytes=kept,
            deleted_kept_s=settings.deleted_profiles_kept_s,
        )
    except NodewiseError as error:
        raise SettingsError(f"setting {error.message}") from None


def serve(settings: Settings, announce: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status.

    Parameters
    ----------
    announce : callable
        Told ``HOST:PORT`` once calls are answered.

    Raises
    ------
    PortInUseError, PluginConflictError, StoreFormatError, SettingsError
        Whatever must stop a start, with a text for the operator.
    """
    one_thread_each()
    configure_logging(settings.log_level)
    _log.info("starting", settings=redacted(settings), pid=os.getpid())
    if settings.workers == 1:
        return _run(settings, settings.listen, announce, share_port=False)
    if settings.store.startswith("memory:"):
        raise SettingsError("setting store: memory: is one process's own; use sqlite:PATH with more than one worker")
    return _supervise(settings, announce)


def _run(settings: Settings, listen: str, announce: Callable[[str], None], *, share_port: bool) -> int:
    application = application_of(settings, usual_processes=max(1, _cores() // 2))

    async def life() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_unhandled)
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        stopping = loop.create_task(ended.wait())
        warming = loop.create_task(application.warm_up())
        await asyncio.wait((warming, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not ended.is_set():
            try:
                port = await application.start(listen, share_port=share_port)
            except PortInUseError:
                await application.stop()  # what it holds by now goes with it: its pool, its files
                raise
            _settle_garbage()
            announce(f"{listen.rsplit(':', 1)[0]}:{port}")
        await stopping
        warming.cancel()
        _log.info("draining")
        if not await application.stop():
            # A thread that a plugin holds would keep the interpreter from ending; all that must be kept is kept.
            sys.stdout.flush()
            os._exit(0)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(life())
    return 0


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _settle_garbage() -> None:
    """Collect garbage more seldom, and never look again at what was there before the first call.

    Nearly everything that a call makes is freed by its reference count; caches hold tens of thousands of small objects,
    and each full collection would walk them all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)


def _supervise(settings: Settings, announce: Callable[[str], None]) -> int:
    """Start workers on one port, replace those that die, and pass a stop on to them."""
    reserved, listen = _reserved(settings.listen)
    supervisor = _Supervisor(settings, listen)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.stop)
    try:
        # One after the other: the first creates the store's tables.
        if not all(supervisor.start() for _ in range(settings.workers)):
            return 0 if supervisor.stopping else 1
        announce(listen)
        return supervisor.watch()
    finally:
        supervisor.end()
        reserved.close()


class _Supervisor:
    """Keeps as many workers alive as are wanted; gives up after too many quick deaths in a row."""

    def __init__(self, settings: Settings, listen: str) -> None:
        self._settings = settings
        self._listen = listen
        self._context = multiprocessing.get_context("spawn")
        self._started_s: dict[BaseProcess, float] = {}
        self._quick_deaths = 0
        self.stopping = False

    def stop(self, _number: int, _frame: Any) -> None:
        """Handle a signal."""
        self.stopping = True

    def start(self) -> bool:
        """Start a worker; returns whether it answers calls (it has logged why not)."""
        receiving, sending = self._context.Pipe(duplex=False)
        worker = self._context.Process(target=_worker, args=(self._settings.model_dump(), self._listen, sending))
        worker.start()
        sending.close()
        with receiving:
            while not self.stopping:
                if not receiving.poll(POLL_S):
                    continue
                try:
                    receiving.recv()
                except EOFError:
                    break
                self._started_s[worker] = time.monotonic()
                return True
        worker.terminate()
        worker.join()
        return False

    def watch(self) -> int:
        """Replace workers that die until told to stop; returns the exit status."""
        while not self.stopping:
            for worker in [worker for worker in self._started_s if not worker.is_alive()]:
                lived_s = time.monotonic() - self._started_s.pop(worker)
                self._died(lived_s)
                _log.error("worker_died", pid=worker.pid, exit_code=worker.exitcode, quick_deaths=self._quick_deaths)
            while len(self._started_s) < self._settings.workers and not self.stopping:
                if self._quick_deaths >= MAX_QUICK_DEATHS:
                    return 1
                if not self.start():
                    self._died(0.0)
            multiprocessing.connection.wait([worker.sentinel for worker in self._started_s], timeout=POLL_S)
        return 0

    def _died(self, lived_s: float) -> None:
        self._quick_deaths = self._quick_deaths + 1 if lived_s < QUICK_DEATH_S else 0

    def end(self) -> None:
        """Stop every worker, with the patience that they were promised."""
        for worker in self._started_s:
            worker.terminate()
        deadline = time.monotonic() + self._settings.drain_delay_s + self._settings.grace_s + 2.0
        for worker in self._started_s:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                _log.error("worker_killed", pid=worker.pid)
                worker.kill()
                worker.join()


def _worker(values: dict[str, Any], listen: str, ready: Connection) -> None:
    settings = Settings(**values)
    configure_logging(settings.log_level)
    parent = multiprocessing.parent_process()
    if parent is not None:  # a worker whose supervisor was killed must not hold the port
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()

    def announce(address: str) -> None:
        ready.send(address)
        ready.close()

    try:
        status = _run(settings, listen, announce, share_port=True)
    except Exception:  # noqa: BLE001  # last stop of the process: the supervisor sees its status
        _log.exception("worker_failed")
        status = 1
    sys.exit(status)


def _follow(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _reserved(listen: str) -> tuple[socket.socket, str]:
    """A socket that holds the port for the workers (it never listens), and the address with its number."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bare = host.strip("[]")
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Without SO_REUSEPORT: fails if anyone else is there.
        try:
            probe.bind((bare, int(port)))
        except (OSError, ValueError):
            raise PortInUseError(
                f"cannot listen on {listen}: the port is in use or the address is not this machine's"
            ) from None
        number = probe.getsockname()[1]
    holder = socket.socket(family, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind((bare, number))
    return holder, f"{host}:{number}"
