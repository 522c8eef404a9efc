"""The life of a process that serves: it gets warm, opens store and port, answers, and drains."""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.estimators.warm_up import warm_up, warm_up_aside
from nodewise.runtime.application import Application
from nodewise.runtime.assembly import application_of, start_faults
from nodewise.runtime.channel import Channel, Say
from nodewise.runtime.event_loop import new_event_loop, settle_garbage
from nodewise.runtime.generations.admin import Administration
from nodewise.runtime.generations.arriving import with_arrivals
from nodewise.runtime.generations.changes import Changes, Outcome
from nodewise.runtime.generations.folder import PluginsFolder, plugins_folder_of
from nodewise.runtime.generations.loading import served_first
from nodewise.runtime.generations.serving import Serving
from nodewise.runtime.generations.serving_state import LoadedPlugins
from nodewise.runtime.learning.administration import LearnedPriors
from nodewise.runtime.logging import log_unhandled
from nodewise.runtime.pinning import cores, pin
from nodewise.runtime.settings import Settings

__all__ = ["Life", "serve_alone"]

_log = structlog.get_logger(__name__)

BEAT_S: Final = 1.0
"""Between two signs of life."""
LOADING_S: Final = 120.0
"""CPU time, or sleep, that loading all plugins may take beyond the budget of a host."""


class Life:
    """One worker's, as its supervisor tells.

    Parameters
    ----------
    settings : Settings
        To serve with.
    listen, http : str
        HOST:PORT to share with other workers; the one for HTTP empty = none.
    channel : Channel
        To the supervisor; when it ends the worker drains.
    core : int or None
        To keep to.
    patient : bool
        Whether others serve meanwhile, so that all plugins can be waited for.
    """

    def __init__(
        self, settings: Settings, listen: str, http: str, channel: Channel, core: int | None, *, patient: bool
    ) -> None:
        self._settings = settings
        self._listen = listen
        self._http = http
        self._channel = channel
        self._core = core
        self._patient = patient
        self._patience_s = math.inf if patient else settings.hosts.start_patience_s
        self._changes: Changes | None = None
        self._reloading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Until the end. Raises StartError."""
        with start_faults(self._settings):
            # Plugins that are trusted inline may import a framework.
            self._channel.send(
                Say.DOING, what="loading plugins", limit_s=LOADING_S + self._settings.hosts.load_budget_s
            )
            plugged = served_first(self._settings, wait_s=0.0)
            self._channel.send(Say.DOING, what="")
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._live(plugged))

    async def _live(self, plugged: LoadedPlugins) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_unhandled)
        self._ended, self._told, self._orphaned = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._hurried = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        loop.add_reader(self._channel.fileno(), self._heard)
        ending = loop.create_task(self._ended.wait())
        beating = loop.create_task(self._beat())
        warming = asyncio.ensure_future(asyncio.to_thread(warm_up, plugged.registry.estimators))
        await asyncio.wait((warming, ending), return_when=asyncio.FIRST_COMPLETED)
        plugged = await self._gathered(plugged, ending)
        if not self._ended.is_set():
            self._channel.send(Say.WARM)
            told = loop.create_task(self._told.wait())
            await asyncio.wait((told, ending), return_when=asyncio.FIRST_COMPLETED)
        if self._ended.is_set():
            _leave()  # nothing is open, and what warms up may go on for as long as it likes
        processes = _processes(self._settings)
        if self._core is not None:
            pin(self._core)
        application = application_of(self._settings, plugged=plugged, processes=processes, audited=True)
        self._changes = self._changes_of(application)
        serving = self._changes.serving
        await _opened(application, self._listen, self._http, share_port=True)
        following = loop.create_task(serving.run())
        self._channel.send(Say.SERVING)
        await ending
        following.cancel()
        serving.close()
        self._channel.send(Say.DRAINING)
        _log.info("draining")
        threads_ended = await application.stop(at_once=self._orphaned)
        beating.cancel()
        loop.remove_reader(self._channel.fileno())
        if not threads_ended:
            _leave()  # a thread that a plugin holds would keep the interpreter; all that must be kept is kept

    async def _gathered(self, plugged: LoadedPlugins, ending: asyncio.Task[bool]) -> LoadedPlugins:
        """Wait for plugins that are still being loaded, as long as others serve, or as is set; the rest joins later."""
        settled = asyncio.ensure_future(asyncio.to_thread(plugged.registry.settled, self._patience_s))
        hurried = asyncio.get_running_loop().create_task(self._hurried.wait())
        await asyncio.wait((settled, hurried, ending), return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if plugged.registry.arrived:
            before, plugged = plugged, await asyncio.to_thread(with_arrivals, plugged, serving=self._patient)
            before.registry.close()
            warm_up_aside(plugged.registry.estimators)
        return plugged

    def _changes_of(self, application: Application) -> Changes:
        """What lets other plugins take over in this process."""
        folder = plugins_folder_of(self._settings) or _folder_of_this_process()
        changes = Changes(Serving(application, self._settings, folder), lambda: self._channel.send(Say.RESTART))
        if self._settings.admin:
            application.offer(Administration(changes), LearnedPriors.of(application))
        return changes

    async def _reload(self, changes: Changes) -> None:
        """Let what is installed or written by now take over; where nothing differs, in new processes."""
        async with self._reloading:
            try:
                found = await changes.reload()
            except NodewiseError as error:
                _log.error("reload_refused", reason=str(error.reason), message=error.message)
                return
            except Exception as error:  # noqa: BLE001  # what serves goes on
                _log.error("reload_failed", exc_info=error)
                return
        _log.info("reloaded", outcome=found.outcome.name, generation=found.number, failures=found.trial.failures)
        if found.outcome is Outcome.UNCHANGED:
            self._channel.send(Say.RESTART)

    async def _beat(self) -> None:
        while True:
            self._channel.send(Say.BEAT)
            await asyncio.sleep(BEAT_S)

    def _heard(self) -> None:
        messages = self._channel.receive()
        if messages is None:
            # Nobody is left who would replace this worker, and a new server may want the port.
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._orphaned.set()
            self._ended.set()
            return
        for message in messages:
            if message["say"] == Say.SERVE:
                self._told.set()
            elif message["say"] == Say.HURRY:
                self._hurried.set()
            elif message["say"] == Say.RELOAD and self._changes is not None:
                task = asyncio.get_running_loop().create_task(self._reload(self._changes))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)


def serve_alone(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve from this process, which nobody supervises, until SIGTERM.

    Parameters
    ----------
    announce : callable
        Told ``HOST:PORT`` once calls are answered.

    Raises
    ------
    StartError
    """

    async def life() -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.set_exception_handler(log_unhandled)
        loop.add_signal_handler(signal.SIGTERM, ended.set)
        port = await _opened(application, settings.listen, settings.http_listen, share_port=False)
        announce(f"{settings.listen.rpartition(':')[0]}:{port}")
        await ended.wait()
        if not await application.stop():
            _leave()

    with start_faults(settings), asyncio.Runner(loop_factory=new_event_loop) as runner:
        application = application_of(settings, processes=_processes(settings), audited=True)
        runner.run(life())


async def _opened(application: Application, listen: str, http: str, *, share_port: bool) -> int:
    """Let an application serve; returns the port."""
    try:
        port = await application.start(listen, http=http, share_port=share_port)
    except BaseException:
        at_once = asyncio.Event()
        at_once.set()
        await application.stop(at_once=at_once)  # what it holds by now goes with it: its pool, its files
        raise
    settle_garbage()
    return port


def _processes(settings: Settings) -> int:
    """Of the pool for long calls."""
    return max(1, len(cores()) // 2) if settings.compute_processes is None else settings.compute_processes


def _folder_of_this_process() -> PluginsFolder:
    """A folder of plugins that ends with the process, as its store does."""
    path = Path(mkdtemp(prefix="nodewise-plugins-"))
    atexit.register(rmtree, path, ignore_errors=True)
    return PluginsFolder(path)


def _leave() -> None:
    """End the process now, with status 0."""
    sys.stdout.flush()
    os._exit(0)
