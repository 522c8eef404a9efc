"""API for programs that run the server inside themselves, such as the command line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

import structlog

from nodewise.hosting.registry import Registry
from nodewise.runtime.assembly import application_of, start_faults
from nodewise.runtime.event_loop import new_event_loop
from nodewise.runtime.generations.folder import plugins_folder_of
from nodewise.runtime.generations.serving_state import LoadedPlugins
from nodewise.runtime.generations.traffic_router import Tracks
from nodewise.runtime.identity.settings import TlsSettings
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, load_settings
from nodewise.runtime.starting import StartError

if TYPE_CHECKING:
    from nodewise.runtime.generations.serving import Serving

__all__ = ["EmbeddedServer", "StartError", "embedded_target"]


class EmbeddedServer:
    """A server inside this process, with the same service over a real socket.

    Serves on loopback, on a free port, while the context is open.

    Parameters
    ----------
    settings : Settings or None
        None = a store in memory.
    registry : Registry or None
        Plugins; None = those installed.
    """

    def __init__(self, settings: Settings | None = None, registry: Registry | None = None) -> None:
        self._settings = settings or Settings(store="memory:", grace_s=1.0)
        self._registry = registry
        self._serving: Serving | None = None
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nodewise-embedded", daemon=True)
        self.target = ""
        self.http_target = ""
        """Address of HTTP, if the setting ``http`` names one."""

    def __enter__(self) -> EmbeddedServer:
        if not structlog.is_configured():
            configure_logging("warning")
        self._application = application_of(self._settings, self._registry)
        if self._settings.admin:
            self._begin_serving()
        self._thread.start()
        http = "" if self._settings.http is None else self._settings.http_listen
        starting = asyncio.run_coroutine_threadsafe(self._application.start("127.0.0.1:0", http=http), self._loop)
        self.target = f"127.0.0.1:{starting.result()}"
        self.http_target = f"127.0.0.1:{self._application.http_port}" if http else ""
        return self

    def _begin_serving(self) -> None:
        """Follow the folder of plugins, and let callers change it."""
        # Few embedded servers are administered, and the conformance checks of new plugins take long to import.
        from nodewise.runtime.generations.admin import Administration  # noqa: PLC0415
        from nodewise.runtime.generations.changes import Changes  # noqa: PLC0415
        from nodewise.runtime.generations.serving import Serving  # noqa: PLC0415
        from nodewise.runtime.learning.administration import LearnedPriors  # noqa: PLC0415

        folder = plugins_folder_of(self._settings)
        if folder is None:
            text = "setting admin: needs the setting plugins_folder, or a store that lasts, such as sqlite:PATH"
            raise StartError(text, of_input=True)
        self._serving = Serving(self._application, self._settings, folder)
        self._application.offer(Administration(Changes(self._serving)), LearnedPriors.of(self._application))
        self._following = asyncio.run_coroutine_threadsafe(self._serving.run(), self._loop)

    def swap(self, registry: Registry) -> None:
        """Let other plugins answer all calls that begin from now on; calls in flight end with the old ones."""

        async def do_swap() -> None:
            application = self._application
            loaded_plugins = LoadedPlugins(
                registry=registry, catalogue=application.tracks.stable.loaded_plugins.catalogue
            )
            await application.switch(Tracks(await application.serving_state_of(loaded_plugins)))

        asyncio.run_coroutine_threadsafe(do_swap(), self._loop).result()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._serving is not None:
            self._following.cancel()
            self._loop.call_soon_threadsafe(self._serving.close)
        asyncio.run_coroutine_threadsafe(self._application.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def embedded_target() -> Iterator[str]:
    """``HOST:PORT`` of a server inside this process whose store ends with the block.

    Raises
    ------
    StartError
        If it cannot start.
    """
    configure_logging("error")
    with ExitStack() as stack:
        with start_faults():
            settings = load_settings(
                store="memory:",
                http="off",
                traces="",
                workers=1,
                grace_s=1.0,
                drain_delay_s=0.0,
                scoring=False,
                learn_interval_s=0.0,
                authentication=(),
                tls=TlsSettings(),
            )
            server = stack.enter_context(EmbeddedServer(settings))
        yield server.target
