"""The refusal that most questions get, apart from the estimator, so that they import none of it."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import Assessment, Profile, Query, Refusal

__all__ = ["refuse"]

_NOTHING: Final = Assessment(
    refusal=Refusal.missing("the profile has no traces: record some steps on every rank and ingest them", "traces"),
    of_profile=True,
)


def refuse(profile: Profile, _: Query) -> Assessment | None:
    """Refuse a profile without traces; None = it has some."""
    return None if profile.traces else _NOTHING
