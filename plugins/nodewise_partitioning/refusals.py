"""The refusal that most questions get, apart from the estimator, so that they import none of it."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import Assessment, Profile, Query, Refusal

__all__ = ["NO_DIMENSIONS", "refuse"]

NO_DIMENSIONS: Final = Refusal.missing(
    "the workload states neither the dimensions of a transformer (layers, hidden size, heads, sequence and "
    "vocabulary) nor the layers of another network",
    "transformer",
    "layers",
)
_NOTHING: Final = Assessment(refusal=NO_DIMENSIONS, of_profile=True)


def refuse(profile: Profile, _: Query) -> Assessment | None:
    """Refuse a workload without dimensions; None = it has some."""
    return None if profile.workload.transformer is not None or profile.workload.layers else _NOTHING
