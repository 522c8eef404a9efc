"""What is known of a job that ran alone on a device, and runs of two jobs that shared it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from scipy.optimize import nnls

__all__ = ["PairRun", "SharingMode", "SoloJob", "busy_share"]


class SharingMode(StrEnum):
    """How the driver lets processes share a device. Runs of one mode teach nothing about another."""

    TIME_SLICED = "time-sliced"
    """Separate contexts take turns: kernels of two processes never overlap (the default of CUDA)."""
    MPS = "mps"
    """One context for all processes (NVIDIA Multi-Process Service): kernels overlap where they leave room."""
    MIG = "mig"
    """Slices with processors, cache and memory of their own (Multi-Instance GPU)."""


@dataclass(frozen=True, slots=True)
class SoloJob:
    """A job as it ran alone on one device."""

    name: str
    model: str = ""
    """What jobs of other batch sizes and precisions share; empty = the job's name."""
    device_utilisation: float | None = None
    """Share of the time in which some kernel ran, 0 to 1."""
    memory_utilisation: float | None = None
    """Share of the time in which device memory was read or written, 0 to 1."""
    memory_bytes: float | None = None
    step_seconds: float | None = None
    elsewhere: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Solo steps on other devices: name -> (seconds, the device's peak FLOP/s over this one's)."""

    @property
    def family(self) -> str:
        """The model, or the name where no model is told."""
        return self.model or self.name

    @property
    def busy(self) -> float:
        """Share of the step in which the device works: measured, else inferred from other devices, else all of it.

        What other devices tell is a lower end (work need not follow peak FLOP/s: it may wait for memory), the whole
        step the upper one; the middle of the two stands.
        """
        if self.device_utilisation is not None:
            return self.device_utilisation
        if self.step_seconds is None or not self.elsewhere:
            return 1.0
        return 0.5 * (1.0 + busy_share(self.step_seconds, self.elsewhere))


@dataclass(frozen=True, slots=True)
class PairRun:
    """Two jobs that ran together on one device, and the share of its solo speed that each kept."""

    jobs: tuple[SoloJob, SoloJob]
    shares: tuple[float, float]


def busy_share(step_seconds: float, elsewhere: Mapping[str, tuple[float, float]]) -> float:
    """Share of a step that the device works, from steps on several devices.

    t_d = host + work / speed_d with neither part negative, relative residuals: Amdahl's law over devices. A job that
    gains nothing from a faster device waits for its host.
    """
    seconds = np.array([step_seconds, *(value for value, _ in elsewhere.values())])
    speeds = np.array([1.0, *(speed for _, speed in elsewhere.values())])
    (host, work), _ = nnls(np.column_stack([1.0 / seconds, 1.0 / (speeds * seconds)]), np.ones(seconds.size))
    return float(work / (host + work))
