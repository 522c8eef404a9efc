"""Distributions with plugins, from their metadata, before any of their code is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final

import structlog
from packaging.utils import canonicalize_name

from nodewise.plugin import ENTRY_POINT_GROUP

__all__ = [
    "SHIPPED_DISTRIBUTION",
    "allowed_entry_points",
    "canonical",
    "distribution_of",
    "folder_of",
    "name_of",
    "origin_of",
]

_log = structlog.get_logger(__name__)

SHIPPED_DISTRIBUTION: Final = "nodewise"
"""Plugins of this distribution run in the server's workers."""


def allowed_entry_points(
    entry_points: Callable[[], Iterable[metadata.EntryPoint]] | None,
    allowed: Collection[str] | None,
    *,
    safe_mode: bool,
) -> Iterable[metadata.EntryPoint]:
    """The entry points that may be loaded, in order of distributions and names."""
    names = None if allowed is None else {*allowed, *canonical(allowed)}
    source = entry_points or (lambda: metadata.entry_points(group=ENTRY_POINT_GROUP))
    for entry_point in sorted(source(), key=lambda point: (name_of(point), point.name)):
        name, distribution = name_of(entry_point), distribution_of(entry_point)
        may = names is None or canonicalize_name(name) in names or entry_point.name in names
        if name != SHIPPED_DISTRIBUTION and (safe_mode or not may):
            _log.info("plugin_not_allowed", plugin=entry_point.name, distribution=distribution)
            continue
        yield entry_point


def canonical(names: Iterable[str]) -> frozenset[str]:
    """Names of distributions in their normalised form."""
    return frozenset(str(canonicalize_name(name)) for name in names)


def origin_of(entry_point: metadata.EntryPoint) -> str:
    """Folder and time of installation of its distribution; "" = it belongs to none."""
    if entry_point.dist is None:
        return ""
    metadata_path = getattr(entry_point.dist, "_path", None)
    try:
        written_ns = 0 if metadata_path is None else Path(metadata_path).stat().st_mtime_ns
    except OSError:
        written_ns = 0
    return f"{entry_point.dist.locate_file('')} {written_ns}"


def folder_of(entry_point: metadata.EntryPoint) -> str:
    """The folder of a distribution that is outside this process's search path; "" = it is inside."""
    if entry_point.dist is None:
        return ""
    place = str(entry_point.dist.locate_file(""))
    return "" if place in {path or str(Path.cwd()) for path in sys.path} else place


def name_of(entry_point: metadata.EntryPoint) -> str:
    """The name of its distribution."""
    return _name_and_version(entry_point.dist)[0] if entry_point.dist is not None else "(unknown)"


def distribution_of(entry_point: metadata.EntryPoint) -> str:
    """Name and version of its distribution."""
    return " ".join(_name_and_version(entry_point.dist)) if entry_point.dist is not None else "(unknown)"


@lru_cache(maxsize=256)
def _name_and_version(dist: metadata.Distribution) -> tuple[str, str]:
    """Name and version, read once, as reading them parses all metadata."""
    return dist.name, dist.version
