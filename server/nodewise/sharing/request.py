"""The question about jobs that share a device, as it is asked, and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.domain.sharing import DeviceShares, Processors, SharingMode, SoloJob

__all__ = ["AskedJob", "AskedShares", "PredictedShares", "PredictedSharing"]


@dataclass(frozen=True, slots=True, eq=False)
class AskedJob:
    """A job as stated, and the profile that may tell more, or why it could not be loaded; None = there is none."""

    solo: SoloJob
    profile: Profile | NodewiseError | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AskedShares:
    """Who would share which device, and what was measured.

    Attributes
    ----------
    runs : tuple
        (job, job, share, share) of pairs that ran.
    sets : tuple
        Indexes of the jobs of each set, or what is wrong with it.
    model : str
        Name of the sharing model; empty = the only one.
    """

    device: str
    memory_bytes: float | None
    processors: Processors | None
    mode: SharingMode
    jobs: tuple[AskedJob, ...]
    runs: tuple[tuple[int, int, float, float], ...]
    sets: tuple[tuple[int, ...] | NodewiseError, ...]
    coverage: float
    model: str


@dataclass(frozen=True, slots=True)
class PredictedShares:
    """The answer for one set and its verdict in a sentence."""

    shares: DeviceShares
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedSharing:
    """Answers by set, or why there is none; who answered; the device's memory that was checked against."""

    sets: tuple[PredictedShares | NodewiseError, ...]
    sharing_model: str
    sharing_model_version: str
    device_memory_bytes: float | None
    coverage: float
