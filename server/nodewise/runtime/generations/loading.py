"""Loads the plugins and the catalogue of generations, from their folders and from the server's environment."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from packaging.utils import canonicalize_name

from nodewise.hosting.distributions import SHIPPED_DISTRIBUTION, name_of
from nodewise.hosting.records import Listing
from nodewise.hosting.registry import Registry
from nodewise.runtime.generations.discovery import entry_points_of, fingerprint
from nodewise.runtime.generations.folder import PluginsFolder, PluginsFolderError, plugins_folder_of
from nodewise.runtime.generations.manifest import Generation
from nodewise.runtime.generations.serving_state import LoadedPlugins
from nodewise.runtime.settings import Settings, SettingsError
from nodewise.runtime.workshops import Opening, catalogue_of, registry_of

__all__ = [
    "catalogue_bytes",
    "catalogue_digest",
    "import_shipped",
    "load_first_generation",
    "load_generation",
    "make_importable",
    "prints_of",
]


def import_shipped() -> None:
    """Import the installed shipped plugins and their libraries, before the settings are known."""
    for point in entry_points_of(()):
        if name_of(point) == SHIPPED_DISTRIBUTION:
            with suppress(Exception):  # the registry reports it
                point.load()


def load_first_generation(settings: Settings, *, wait_s: float = math.inf) -> LoadedPlugins:
    """Load the first generation of a process: the stable one if there is one, else the installed plugins.

    Parameters
    ----------
    wait_s : float
        Seconds to wait for plugins that hosts are still loading; then they are omitted.

    Raises
    ------
    PluginConflictError, SettingsError
        It cannot be loaded.
    """
    folder = plugins_folder_of(settings)
    if folder is None:
        folder = PluginsFolder(Path(os.devnull))  # an empty folder has the generation of the installed plugins
    try:
        generation = folder.generation(folder.state().stable)
        make_importable(settings, folder, generation)
        return load_generation(settings, folder, generation, wait_s=wait_s)
    except PluginsFolderError as error:
        raise SettingsError(f"setting plugins_folder: {error}") from None


def load_generation(
    settings: Settings,
    folder: PluginsFolder,
    generation: Generation,
    registries: Sequence[Registry] = (),
    *,
    wait_s: float = math.inf,
) -> LoadedPlugins:
    """Load a generation's plugins and its catalogue.

    Parameters
    ----------
    registries : sequence of Registry
        Registries of loaded generations. Equal distributions share their hosts.
    wait_s : float
        As of :func:`served_first`.

    Raises
    ------
    PluginConflictError, SettingsError, PluginsFolderError
        It cannot be loaded.
    """
    folders = _folders(folder, generation)
    own = folder.catalogue_of(generation)
    if generation.number:
        settings = settings.model_copy(update={"catalogue": "" if own is None else str(own)})
    catalogue = catalogue_of(settings)
    registry = registry_of(settings, folders=folders, registries=registries, wait_s=wait_s)
    return LoadedPlugins(
        registry=registry,
        catalogue=catalogue,
        name=f"{generation.number}.{registry.generation}" if generation.number else "",
        number=generation.number,
        opening=partial(_opening, settings, generation.number, folders),
    )


def _opening(
    settings: Settings, number: int, folders: tuple[Path, ...], traces: Path, listings: Mapping[str, Listing]
) -> Opening:
    return Opening(settings, traces, number, folders, listings, tuple(sorted(listings)))


def make_importable(settings: Settings, folder: PluginsFolder, generation: Generation) -> None:
    """Add inline distributions to the import path of a process that has imported none of them."""
    inline = _inline(settings)
    for each in generation.distributions:
        if each.name in inline:
            sys.path.insert(0, str(folder.folder_of(each)))


def prints_of(settings: Settings, folder: PluginsFolder, generation: Generation) -> tuple[dict[str, str], ...]:
    """Return the fingerprints of the builds of inline distributions, and of the others."""
    points, inline = fingerprint(entry_points_of(_folders(folder, generation))), _inline(settings)
    here = {name: text for name, text in points.items() if name in inline}
    return here, {name: text for name, text in points.items() if name not in inline}


def catalogue_bytes(settings: Settings) -> bytes:
    """Return the operator's current file of devices and links; empty = none.

    Raises
    ------
    SettingsError
        It cannot be read.
    """
    if not settings.catalogue:
        return b""
    try:
        return Path(settings.catalogue).read_bytes()
    except OSError as error:
        raise SettingsError(f"setting catalogue: {settings.catalogue} cannot be read ({error.strerror})") from None


def catalogue_digest(content: bytes) -> str:
    """Return the digest of a catalogue, as in generations."""
    return hashlib.sha256(content).hexdigest()[:16] if content else ""


def _folders(folder: PluginsFolder, generation: Generation) -> tuple[Path, ...]:
    return tuple(folder.folder_of(each) for each in generation.distributions)


def _inline(settings: Settings) -> set[str]:
    return {str(canonicalize_name(name)) for name in (SHIPPED_DISTRIBUTION, *settings.trusted_plugins)}
