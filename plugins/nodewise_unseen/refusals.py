"""The refusal that most questions get, apart from the estimator, so that they import none of it."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import Assessment, Profile, Query, Refusal

__all__ = ["NO_FLOPS", "refuse"]

NO_FLOPS: Final = Refusal.missing(
    "FLOPs per sample of the model (forward and backward pass) must be stated", "flops_per_sample"
)
_NOTHING: Final = Assessment(refusal=NO_FLOPS, of_profile=True)


def refuse(profile: Profile, _: Query) -> Assessment | None:
    """Refuse a workload without FLOPs; None = it has some."""
    return None if profile.workload.flops_per_sample else _NOTHING
