"""Discovery of plugins: in the folders of a generation first, then in the server's environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name

from nodewise.hosting.distributions import distribution_of, name_of, origin_of
from nodewise.plugin import ENTRY_POINT_GROUP

__all__ = ["entry_points_of", "fingerprint", "registering"]


def entry_points_of(folders: Sequence[Path]) -> list[metadata.EntryPoint]:
    """Return the entry points of plugins. A distribution in a folder replaces the installed one of the same name."""
    points = [point for folder in folders for each in registering(folder) for point in _points(each)]
    own = {canonicalize_name(name_of(point)) for point in points if point.dist is not None}
    return points + [
        point
        for point in metadata.entry_points(group=ENTRY_POINT_GROUP)
        if point.dist is None or canonicalize_name(name_of(point)) not in own
    ]


def registering(folder: Path) -> list[metadata.Distribution]:
    """Return the distributions of a folder that register plugins."""
    return [each for each in metadata.distributions(path=[str(folder)]) if _points(each)]


def fingerprint(points: Iterable[metadata.EntryPoint]) -> dict[str, str]:
    """Return fingerprints of distributions by canonical name. Another build has another fingerprint.

    A process keeps the build that it imported, even if another one is installed meanwhile.
    """
    return {
        str(canonicalize_name(name_of(point))): f"{distribution_of(point)} {origin_of(point)}"
        for point in points
        if point.dist is not None
    }


def _points(distribution: metadata.Distribution) -> list[metadata.EntryPoint]:
    return [point for point in distribution.entry_points if point.group == ENTRY_POINT_GROUP]
