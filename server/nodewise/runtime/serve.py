"""Serving in the foreground: reads the settings and starts the supervisor of the workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import structlog

from nodewise.runtime.blas import one_thread_each
from nodewise.runtime.generations.folder import PluginsFolderError, plugins_folder_of
from nodewise.runtime.identity.checks import check_identity
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, SettingsError, load_settings, redact
from nodewise.runtime.starting import StartError
from nodewise.runtime.supervisor import Announce, supervise

__all__ = ["serve_configured"]

_log = structlog.get_logger(__name__)

HIGHEST_PORT: Final = 65_535


def serve_configured(config: Path | None, announce: Announce, **options: Any) -> int:
    """Serve in the foreground until SIGTERM or SIGINT; returns the exit status.

    Loads neither plugins nor the service: this process is the supervisor, which faults of both must not end.

    Parameters
    ----------
    config : Path or None
        File of settings; the environment and options take precedence over it.
    announce : callable
        Called with ``HOST:PORT`` and the HTTP address (empty = none), once the server answers calls.
    **options
        Settings by name; None = not stated.

    Raises
    ------
    StartError
        What prevents the start.
    """

    def read() -> Settings:
        return _check(load_settings(config, **options))

    try:
        settings = read()
        folder = plugins_folder_of(settings)
        if folder is not None:
            folder.begin()
    except SettingsError as error:
        raise StartError(str(error), of_input=True) from None
    except PluginsFolderError as error:
        raise StartError(str(error), of_input=False) from None
    one_thread_each()
    configure_logging(settings.log_level)
    _log.info("starting", settings=redact(settings), pid=os.getpid())
    return supervise(settings, read, announce)


def _check(settings: Settings) -> Settings:
    """The settings, if they are consistent. Raises SettingsError."""
    _check_address("listen", settings.listen)
    if settings.http_listen:
        _check_address("http", settings.http_listen)
    if settings.workers > 1 and settings.store.startswith("memory:"):
        raise SettingsError("setting store: memory: belongs to one process; use sqlite:PATH for more than one worker")
    check_identity(settings)
    return settings


def _check_address(setting: str, listen: str) -> None:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > HIGHEST_PORT:
        right = f"must be HOST:PORT with a port of 0 to {HIGHEST_PORT}"
        raise SettingsError(f"setting {setting}: {right}, found {listen!r}")
