"""Where plugins are found: in a generation's folders first, then among what is installed with the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name

from nodewise.hosting.distributions import distribution_of, name_of, origin_of
from nodewise.plugin import ENTRY_POINT_GROUP

__all__ = ["entry_points_of", "fingerprint", "registering"]


def entry_points_of(folders: Sequence[Path]) -> list[metadata.EntryPoint]:
    """Entry points of plugins; a distribution in a folder stands in the place of the installed one of its name."""
    points = [point for folder in folders for each in registering(folder) for point in _points(each)]
    own = {canonicalize_name(name_of(point)) for point in points if point.dist is not None}
    return points + [
        point
        for point in metadata.entry_points(group=ENTRY_POINT_GROUP)
        if point.dist is None or canonicalize_name(name_of(point)) not in own
    ]


def registering(folder: Path) -> list[metadata.Distribution]:
    """The distributions of a folder that register plugins."""
    return [each for each in metadata.distributions(path=[str(folder)]) if _points(each)]


def fingerprint(points: Iterable[metadata.EntryPoint]) -> dict[str, str]:
    """Texts that differ where another build of a distribution stands, by its canonical name.

    A process that has imported a distribution goes on with what it imported, whatever is installed meanwhile.
    """
    return {
        str(canonicalize_name(name_of(point))): f"{distribution_of(point)} {origin_of(point)}"
        for point in points
        if point.dist is not None
    }


def _points(distribution: metadata.Distribution) -> list[metadata.EntryPoint]:
    return [point for point in distribution.entry_points if point.group == ENTRY_POINT_GROUP]
