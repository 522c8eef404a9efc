"""Makes workshops, the objects that long work needs, from settings, in a worker and in the processes of its pool."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodewise.catalogue.loading import CatalogueError, load_catalogue
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.records import Listing
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import Catalogue
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.opening import open_traces
from nodewise.profiles.reading import TraceLoader
from nodewise.profiles.traces import TraceStore
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.generations.discovery import entry_points_of
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["Opening", "catalogue_of", "registry_of", "traces_of", "workshop_of"]

POOL_SHARE = 4
"""A process of the pool has a cache of 1/POOL_SHARE of the worker's: its work takes long compared with a fit."""


def registry_of(
    settings: Settings,
    listings: Mapping[str, Listing] | None = None,
    folders: Sequence[Path] = (),
    registries: Sequence[Registry] = (),
    *,
    wait_s: float = math.inf,
) -> Registry:
    """The plugins that are installed and allowed.

    Parameters
    ----------
    listings : mapping of distribution to Listing, or None
        The known records of all plugins that run in processes of their own; None = ask these processes.
    folders : sequence of Path
        Folders of distributions that replace the installed ones.
    registries : sequence of Registry
        Other registries of this process, whose equal plugins are shared.
    wait_s : float
        Seconds after which the registry omits plugins that are still loading.

    Raises
    ------
    PluginConflictError
        If two plugins claim one name.
    """
    limits, trusted_plugins = settings.hosts.limits(), settings.trusted_plugins
    addresses = {name: each.address() for name, each in settings.estimators.items()}
    hosting = Hosting(limits=limits, trusted=trusted_plugins, listings=listings, wait_s=wait_s, addresses=addresses)
    return load_registry(
        allowed=settings.plugins,
        safe_mode=settings.safe_mode,
        entry_points=lambda: entry_points_of(folders),
        hosting=hosting,
        registries=registries,
    )


def catalogue_of(settings: Settings) -> Catalogue:
    """Devices and links.

    Raises
    ------
    SettingsError
        If the operator's file cannot be used.
    """
    try:
        return load_catalogue(Path(settings.catalogue) if settings.catalogue else None)
    except CatalogueError as error:
        raise SettingsError(f"setting catalogue: {error}") from None


def traces_of(settings: Settings, where: str, cache: Path | None, *, sync_chunks: bool = False) -> TraceStore:
    """The store of traces at a directory or URL, with the limits of the settings.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a directory or URL that cannot be used.
    """
    return open_traces(
        where,
        cache,
        sync_chunks=sync_chunks,
        artefact_bytes=settings.trace_artefact_bytes,
        cache_bytes=settings.trace_cache_bytes,
    )


def workshop_of(
    settings: Settings, registry: Registry, catalogue: Catalogue, traces: TraceStore, **more: Any
) -> Workshop:
    """A workshop over plugins, a catalogue and a store of traces; ``more`` are further arguments of its Answers."""
    limits = settings.limits
    loader = TraceLoader(traces, registry.trace_readers, limits.trace_unpacked_bytes)
    answers = Answers(
        registry,
        catalogue=catalogue,
        max_workers=limits.max_workers,
        most_cycles=limits.simulated_cycles_per_question,
        traces=loader.traces_of,
        fallbacks=settings.fallback_estimators,
        **more,
    )
    return Workshop(answers=answers, traces=loader, limits=limits)


@dataclass(frozen=True, slots=True)
class Opening:
    """Makes the workshop of another process; lessons come with the work.

    Plugins that run in processes of their own have further processes there, which start at their first call and end
    with that process.

    Attributes
    ----------
    traces : Path
        Directory of the store of traces, or of its local copies if it is elsewhere.
    number : int
        Number of the generation; each generation has a workshop of its own.
    folders : tuple of Path
        Folders of its distributions.
    listings : mapping of distribution to Listing
        The known records of hosted plugins.
    hosted : tuple of str
        Distributions of the listings; when others arrive, the workshop is opened again.
    """

    settings: Settings
    traces: Path
    number: int = 0
    folders: tuple[Path, ...] = ()
    listings: Mapping[str, Listing] = field(default_factory=dict, compare=False)
    hosted: tuple[str, ...] = ()

    def __call__(self) -> Workshop:
        """Open the workshop."""
        settings = self.settings
        configure_logging(settings.log_level)
        where = settings.traces if "://" in settings.traces else str(self.traces)
        store = traces_of(settings, where, self.traces)
        registry = registry_of(settings, self.listings, self.folders)
        space = CacheSpace(settings.cache_bytes // POOL_SHARE)
        return workshop_of(settings, registry, catalogue_of(settings), store, space=space)
