"""Approximate sizes of cache entries in bytes, derived from their rows. ``ports.footprint`` measured the constants."""

from __future__ import annotations

from typing import Final

from nodewise.domain.configurations import Configurations
from nodewise.domain.facts import CONFIGURATION_DEFAULTS
from nodewise.domain.profile import Profile
from nodewise.ports.cache import Part
from nodewise.profiles.reader import profile_bytes

__all__ = [
    "BASIS_BYTES",
    "CACHE_BYTES",
    "ENTRY_BYTES",
    "HOSTED_MODEL_BYTES",
    "part_of_profile",
    "part_of_rows",
    "resolved_bytes",
]

CACHE_BYTES: Final = 256 << 20
"""Total size of a server's caches. A job with questions takes some 30 kB, so the caches hold about 8,000 jobs."""

ENTRY_BYTES: Final = 512
"""A key of some objects, the entry, and its place in the mapping."""
BASIS_BYTES: Final = 1_024
HOSTED_MODEL_BYTES: Final = 16 << 10
"""A model in a plugin host, whose size is not visible here: its handle, and several times the 2.3 kB of a model of the
queueing estimator, so that hosts are asked to release models too."""
_COLUMNS_BYTES: Final = 2_048
"""Configurations, predictions or an answer with few rows: mostly objects, few numbers."""
_ROW_BYTES: Final = 8 * (len(CONFIGURATION_DEFAULTS) + 2)
"""Columns of one row of configurations, eight bytes each. Predictions with their breakdown need no more."""


def part_of_rows(configurations: Configurations) -> Part:
    """Return the part for configurations, which repeated questions share."""
    return configurations, _COLUMNS_BYTES + _ROW_BYTES * len(configurations.workers)


def resolved_bytes(rows: int) -> int:
    """Return the size of results for resolved rows: predictions, rates, intervals, and their encoded messages."""
    return 3 * _COLUMNS_BYTES + 5 * _ROW_BYTES * rows


def part_of_profile(profile: Profile) -> Part:
    """Return the part for a profile, which models of several estimators share."""
    return profile, profile_bytes(profile)
