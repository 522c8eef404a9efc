"""A worker: the process that answers calls, under a supervisor that it follows."""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import os
import signal
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.estimators.warm_up import warm_up, warm_up_aside
from nodewise.processes.channel import AsyncChannel, Channel
from nodewise.processes.child import set_name
from nodewise.runtime.application import Application
from nodewise.runtime.assembly import application_of, start_faults
from nodewise.runtime.event_loop import limit_pauses, new_event_loop
from nodewise.runtime.generations.admin import Administration
from nodewise.runtime.generations.arriving import with_arrivals
from nodewise.runtime.generations.changes import Changes, Outcome
from nodewise.runtime.generations.folder import PluginsFolder, plugins_folder_of
from nodewise.runtime.generations.loading import import_shipped, load_first_generation
from nodewise.runtime.generations.serving import Serving
from nodewise.runtime.generations.serving_state import LoadedPlugins
from nodewise.runtime.learning.administration import LearnedPriors
from nodewise.runtime.logging import configure_logging, log_unhandled
from nodewise.runtime.settings import Settings
from nodewise.runtime.starting import StartError

__all__ = ["main"]

_log = structlog.get_logger(__name__)


def main(descriptor: int, imports_shipped: bool) -> int:  # noqa: FBT001  # called by position, in a process of its own
    """Serve by the orders of the supervisor until it ends the worker; returns the exit status.

    Parameters
    ----------
    descriptor : int
        Of the channel to the supervisor, which tells first what to do: ``settings``, ``listen``, ``http``, ``metrics``,
        ``patient``.
    imports_shipped : bool
        Whether to import the shipped plugins before that: where no folder of plugins may have another build of them.
    """
    channel = Channel(descriptor)
    if imports_shipped:
        import_shipped()
    try:
        order = json.loads(channel.receive())
    except EOFError:
        return 0
    set_name("nodewise-worker")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = order.pop("metrics")  # before prometheus_client is imported
    settings = Settings(**order.pop("settings"))
    configure_logging(settings.log_level)
    try:
        with start_faults(settings):
            # Plugins that are trusted inline may import a framework.
            loaded_plugins = load_first_generation(settings, wait_s=0.0)
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(_Worker(settings, **order).serve(loaded_plugins, channel))
    except StartError as error:
        _tell(channel, "refused", text=str(error), of_input=error.of_input)
        return 1
    except Exception:  # noqa: BLE001  # last stop of the process: the supervisor sees its status
        _log.exception("worker_failed")
        return 1
    return 0


class _Worker:
    """One worker's life: it gets warm, opens store and port, answers, and drains.

    Parameters
    ----------
    listen, http : str
        HOST:PORT to share with other workers; the one for HTTP empty = none.
    patient : bool
        Whether others serve meanwhile, so that all plugins can be waited for.
    """

    def __init__(self, settings: Settings, *, listen: str, http: str, patient: bool) -> None:
        self._settings, self._listen, self._http, self._patient = settings, listen, http, patient
        self._end_event, self._is_orphaned = asyncio.Event(), asyncio.Event()
        self._changes: Changes | None = None
        self._reloading: asyncio.Task[None] | None = None

    async def serve(self, loaded_plugins: LoadedPlugins, channel: Channel) -> None:
        """Serve until the end. Raises what prevents the start."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_unhandled)
        loop.add_signal_handler(signal.SIGTERM, self._end_event.set)
        following = loop.create_task(self._follow(channel))
        end = loop.create_task(self._end_event.wait())
        ready = loop.create_task(self._ready(loaded_plugins))
        await asyncio.wait((ready, end), return_when=asyncio.FIRST_COMPLETED)
        if self._end_event.is_set():
            _leave()  # nothing is open yet, and warming up may take long
        application = application_of(
            self._settings, loaded_plugins=ready.result(), processes=_pool_size(self._settings), has_audit_log=True
        )
        application.tracks.stable.make_services()
        folder = plugins_folder_of(self._settings) or _temporary_folder()
        serving = Serving(application, self._settings, folder)
        self._changes = Changes(serving, lambda: _tell(channel, "restart"))
        if self._settings.admin:
            application.offer(Administration(self._changes), LearnedPriors.of(application))
        await _open(application, self._listen, self._http)
        refreshing = loop.create_task(serving.run())
        _tell(channel, "serving")
        await end
        refreshing.cancel()
        serving.close()
        _log.info("draining")
        threads_ended = await application.stop(at_once=self._is_orphaned)
        following.cancel()
        if not threads_ended:
            _leave()  # a thread that a plugin blocks would keep the process alive; everything is written by now

    async def _ready(self, loaded_plugins: LoadedPlugins) -> LoadedPlugins:
        """Warm up, and wait for plugins that are still loading; those that take longer are added later."""
        patience_s = math.inf if self._patient else self._settings.hosts.start_patience_s
        await asyncio.to_thread(warm_up, loaded_plugins.registry.estimators)
        await asyncio.to_thread(loaded_plugins.registry.wait_until_known, patience_s)
        if loaded_plugins.registry.is_stale:
            before, loaded_plugins = (
                loaded_plugins,
                await asyncio.to_thread(with_arrivals, loaded_plugins, serving=self._patient),
            )
            before.registry.close()
            warm_up_aside(loaded_plugins.registry.estimators)
        return loaded_plugins

    async def _follow(self, channel: Channel) -> None:
        """Follow the supervisor's messages; without a supervisor drain, since nothing would replace this worker."""
        orders = await AsyncChannel.of(channel.duplicate())
        try:
            while True:
                await orders.receive()  # there is one kind of order: reload
                if self._changes is not None and (self._reloading is None or self._reloading.done()):
                    self._reloading = asyncio.create_task(_reload(self._changes, channel))
        except EOFError:
            self._is_orphaned.set()
            self._end_event.set()
        finally:
            orders.close()


async def _reload(changes: Changes, channel: Channel) -> None:
    """Let the plugins that are installed now take over; if none differs, ask for new processes."""
    try:
        result = await changes.reload()
    except NodewiseError as error:
        _log.error("reload_refused", reason=str(error.reason), message=error.message)
        return
    except Exception as error:  # noqa: BLE001  # the current plugins go on serving
        _log.error("reload_failed", exc_info=error)
        return
    _log.info("reloaded", outcome=result.outcome.name, generation=result.number, failures=result.trial.failures)
    if result.outcome is Outcome.UNCHANGED:
        _tell(channel, "restart")


def _tell(channel: Channel, say: str, **more: Any) -> None:
    """Send the supervisor a message, if it still runs."""
    try:
        channel.send(json.dumps({"say": say, **more}).encode())
    except OSError:
        return


async def _open(application: Application, listen: str, http: str) -> None:
    """Start an application; stop it again if it cannot start."""
    try:
        await application.start(listen, http=http, share_port=True)
    except BaseException:
        at_once = asyncio.Event()
        at_once.set()
        await application.stop(at_once=at_once)  # closes its pool and its files
        raise
    limit_pauses()


def _pool_size(settings: Settings) -> int:
    """Number of processes for long calls."""
    if settings.compute_processes is not None:
        return settings.compute_processes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // 2)


def _temporary_folder() -> PluginsFolder:
    """A folder of plugins that ends with the process, as its store does."""
    path = Path(mkdtemp(prefix="nodewise-plugins-"))
    atexit.register(rmtree, path, ignore_errors=True)
    return PluginsFolder(path)


def _leave() -> None:
    """End the process now, with status 0."""
    sys.stdout.flush()
    os._exit(0)
