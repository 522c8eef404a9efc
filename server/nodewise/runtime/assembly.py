"""Makes the application and the store of a server from its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodewise.domain.errors import Kind, NodewiseError, Reason
from nodewise.hosting.interrupts import marked_interrupts
from nodewise.hosting.registry import PluginConflictError, Registry
from nodewise.profiles.opening import StoreOptions, open_store, sqlite_file
from nodewise.profiles.store import ProfileStore, StoreFormatError
from nodewise.runtime.application import Application, PortInUseError
from nodewise.runtime.audit_log import AuditLog
from nodewise.runtime.generations.loading import load_first_generation
from nodewise.runtime.generations.serving_state import LoadedPlugins
from nodewise.runtime.settings import Settings, SettingsError, redacted_url
from nodewise.runtime.starting import StartError
from nodewise.runtime.workshops import catalogue_of, traces_of

__all__ = ["application_of", "start_faults", "store_of"]


def application_of(
    settings: Settings,
    registry: Registry | None = None,
    *,
    loaded_plugins: LoadedPlugins | None = None,
    processes: int = 0,
    has_audit_log: bool = False,
) -> Application:
    """An application for these settings.

    Parameters
    ----------
    registry : Registry or None
        Replaces the installed plugins. Other processes do not have it, so long calls then run in threads.
    loaded_plugins : LoadedPlugins or None
        Plugins that are loaded already; None = the stable generation, or the installed plugins.
    processes : int
        Processes for long calls; 0 = threads.
    has_audit_log : bool
        Whether to log administration and deletions: where other programs can call the server.

    Raises
    ------
    PluginConflictError, StoreFormatError, SettingsError
        What prevents the start, with a text for the operator.
    """
    if registry is not None:
        loaded_plugins, processes = LoadedPlugins(registry=registry, catalogue=catalogue_of(settings)), 0
    audit = AuditLog(settings.audit_log) if has_audit_log or settings.audit_log else None
    return Application(
        settings, loaded_plugins or load_first_generation(settings), store_of(settings), processes, audit
    )


def store_of(settings: Settings) -> ProfileStore:
    """The store that the settings name, with its traces.

    Raises
    ------
    StoreFormatError, SettingsError, NodewiseError
        If it is no store of Nodewise; if the settings are wrong; STORE_UNAVAILABLE if it cannot be opened.
    """
    trace_bytes, is_synchronous = settings.trace_artefact_bytes, settings.durability == "power"
    try:
        traces = (
            traces_of(settings, settings.traces, _cache_of(settings), sync_chunks=is_synchronous)
            if settings.traces
            else None
        )
        options = StoreOptions(
            durability=settings.durability,
            traces=traces,
            scored=settings.scoring,
            artefact_bytes=trace_bytes,
            deleted_kept_s=settings.deleted_profiles_kept_s,
            quotas=settings.quotas,
        )
        return open_store(settings.store, options)
    except NodewiseError as error:
        if error.kind is not Kind.INVALID:
            raise
        raise SettingsError(f"setting {error.message}") from None


def _cache_of(settings: Settings) -> Path | None:
    """Directory for copies of traces of a bucket: as set, else beside the store; None = a temporary directory."""
    if settings.trace_cache:
        return Path(settings.trace_cache)
    file = sqlite_file(settings.store)
    return None if file is None else file.with_name(f"{file.name}-traces")


@contextmanager
def start_faults(settings: Settings | None = None) -> Iterator[None]:
    """Raise every error that prevents a start as a StartError; plugins load and learn in the caller's thread.

    Raises
    ------
    StartError
    """
    store = "" if settings is None else f"store {redacted_url(settings.store)}: "
    try:
        with marked_interrupts():
            yield
    except StoreFormatError as error:
        raise StartError(f"{store}{error}", of_input=False) from None
    except SettingsError as error:
        raise StartError(str(error), of_input=True) from None
    except (PortInUseError, PluginConflictError) as error:
        raise StartError(str(error), of_input=False) from None
    except NodewiseError as error:
        prefix = store if error.reason is Reason.STORE_UNAVAILABLE else ""
        raise StartError(f"{prefix}{error.message}", of_input=error.kind is Kind.INVALID) from None
