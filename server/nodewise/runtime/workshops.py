"""What long work is done with, made from settings: by the process that serves, and again by those of its pool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodewise.catalogue.loading import CatalogueError, load_catalogue
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.processes.host import Listing
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import Catalogue
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.reading import TraceLoader
from nodewise.profiles.traces import TraceStore
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["catalogue_of", "opened", "registry_of", "workshop_of"]

POOL_SHARE = 4
"""A process of the pool has this part of a worker's room for caches: work there takes long beside a fit."""


def registry_of(settings: Settings, listings: Mapping[str, Listing] | None = None) -> Registry:
    """The plugins that are installed and allowed.

    Parameters
    ----------
    listings : mapping of distribution to Listing
        What is known already of plugins that run in processes of their own.

    Raises
    ------
    PluginConflictError
        If two of them claim one name.
    """
    hosting = Hosting(limits=settings.hosts.limits(), trusted=settings.trusted_plugins, listings=listings or {})
    return load_registry(allowed=settings.plugins, safe_mode=settings.safe_mode, hosting=hosting)


def catalogue_of(settings: Settings) -> Catalogue:
    """Devices and links.

    Raises
    ------
    SettingsError
        If the file of one's own cannot be used.
    """
    try:
        return load_catalogue(Path(settings.catalogue) if settings.catalogue else None)
    except CatalogueError as error:
        raise SettingsError(f"setting catalogue: {error}") from None


def workshop_of(
    settings: Settings, registry: Registry, catalogue: Catalogue, traces: TraceStore, **more: Any
) -> Workshop:
    """A workshop over plugins, a catalogue and a store of traces; ``more`` are further arguments of its Answers."""
    limits = settings.limits.limits()
    loader = TraceLoader(traces, registry.trace_readers, limits.trace_unpacked_bytes)
    made = Answers(
        registry,
        catalogue=catalogue,
        max_workers=limits.max_workers,
        most_cycles=limits.simulated_cycles_per_question,
        traces=loader.traces_of,
        fallbacks=settings.fallback_estimators,
        **more,
    )
    return Workshop(answers=made, traces=loader, limits=limits)


def opened(settings: Settings, traces: Path, listings: Mapping[str, Listing]) -> Workshop:
    """The workshop of a process that was just started; what was learned comes with the work.

    Plugins that run in processes of their own have further ones here, which start when they are first asked and end
    with this process.
    """
    configure_logging(settings.log_level)
    store = TraceStore(traces, artefact_bytes=settings.trace_artefact_bytes)
    space = CacheSpace(settings.cache_bytes // POOL_SHARE)
    return workshop_of(settings, registry_of(settings, listings), catalogue_of(settings), store, space=space)
