"""Requests about jobs that share a device, and their answers."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.domain.sharing import DeviceShares, Processors, SharingMode, SoloJob

__all__ = ["PredictedShares", "PredictedSharing", "SharingJob", "SharingRequest"]


@dataclass(frozen=True, slots=True, eq=False)
class SharingJob:
    """A job as stated, and its profile for further facts, or why it could not be loaded; None = it names none."""

    solo: SoloJob
    profile: Profile | NodewiseError | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharingRequest:
    """Sets of jobs that would share a device, and measured pairs.

    Attributes
    ----------
    runs : tuple
        (job, job, share, share) of measured pairs.
    sets : tuple
        Indexes of the jobs of each set, or its error.
    model : str
        Name of the sharing model; empty = the only one.
    """

    device: str
    memory_bytes: float | None
    processors: Processors | None
    mode: SharingMode
    jobs: tuple[SharingJob, ...]
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
    """Answers or errors by set; the model that answered; the memory of the device."""

    sets: tuple[PredictedShares | NodewiseError, ...]
    sharing_model: str
    sharing_model_version: str
    device_memory_bytes: float | None
    coverage: float
