"""What a process that serves is made of, by its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.hosting.interrupts import marked_interrupts
from nodewise.hosting.registry import PluginConflictError, Registry
from nodewise.profiles.opening import open_store
from nodewise.profiles.store import ProfileStore, StoreFormatError
from nodewise.profiles.traces import TraceStore
from nodewise.runtime.application import Application, PortInUseError
from nodewise.runtime.settings import Settings, SettingsError, redacted_url
from nodewise.runtime.starting import StartError
from nodewise.runtime.workshops import catalogue_of, registry_of

__all__ = ["application_of", "start_faults", "store_of"]


def application_of(settings: Settings, registry: Registry | None = None, *, processes: int = 0) -> Application:
    """An application as set.

    Parameters
    ----------
    registry : Registry or None
        Stands in for the plugins that are installed.
    processes : int
        Of the pool; 0 = threads. Those of a pool load the plugins that are installed, whatever registry is given here.

    Raises
    ------
    PluginConflictError, StoreFormatError, SettingsError
        Whatever must stop a start, with a text for the operator.
    """
    if registry is None:
        registry = registry_of(settings)
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


@contextmanager
def start_faults(settings: Settings | None = None) -> Iterator[None]:
    """Whatever stops a start, as one kind of error; plugins are loaded, and learn, in the caller's thread.

    Raises
    ------
    StartError
    """
    try:
        with marked_interrupts():
            yield
    except StoreFormatError as error:
        store = "" if settings is None else f"store {redacted_url(settings.store)}: "
        raise StartError(f"{store}{error}", of_input=False) from None
    except SettingsError as error:
        raise StartError(str(error), of_input=True) from None
    except (PortInUseError, PluginConflictError) as error:
        raise StartError(str(error), of_input=False) from None
    except NodewiseError as error:
        raise StartError(error.message, of_input=error.kind is Kind.INVALID) from None
