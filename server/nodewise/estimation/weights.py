"""What entries of caches weigh, in bytes, by what is known without looking: rows. Measured by ``ports.footprint``."""

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
"""Room of a server's caches. A job that was asked about takes some 30 kB, so they hold what about 8,000 jobs need."""

ENTRY_BYTES: Final = 512
"""A key of some objects, the entry, and what maps the one to the other."""
BASIS_BYTES: Final = 1_024
HOSTED_MODEL_BYTES: Final = 16 << 10
"""A model in a host, into which nobody here can look: its handle, and several times the 2.3 kB that a model of the
queueing estimator takes, so that hosts are told to let go of models too."""
_COLUMNS_BYTES: Final = 2_048
"""Configurations, predictions or an answer of few rows: objects more than numbers."""
_ROW_BYTES: Final = 8 * (len(CONFIGURATION_DEFAULTS) + 2)
"""Columns of one row of configurations, eight bytes each; those of predictions with their breakdown are no more."""


def part_of_rows(configurations: Configurations) -> Part:
    """Configurations, which questions that are asked again share."""
    return configurations, _COLUMNS_BYTES + _ROW_BYTES * len(configurations.workers)


def resolved_bytes(rows: int) -> int:
    """Of what is made of resolved rows: predictions, their rates and intervals, and both as they go over the wire."""
    return 3 * _COLUMNS_BYTES + 5 * _ROW_BYTES * rows


def part_of_profile(profile: Profile) -> Part:
    """A profile, which models of several estimators are fitted to."""
    return profile, profile_bytes(profile)
