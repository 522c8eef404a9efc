"""Profiles: everything known of a job, at one revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import numpy as np

from nodewise.domain.columns import Floats, Ints, constant, constant_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.facts import OBSERVATION_DEFAULTS, PHASE_DEFAULTS
from nodewise.domain.sharing import SharedDeviceRun
from nodewise.domain.workload import Network, Workload

__all__ = ["UNKNOWN", "Observations", "PhaseTimings", "Profile", "TraceReference"]

UNKNOWN: Final = -1.0
"""Value of a variation or an exposed time that is not known."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Runs:
    """Runs as columns, one row each: their configurations and measured numbers."""

    configurations: Configurations
    UNKNOWN_NUMBERS: ClassVar[Mapping[str, int | float]]
    """Values of columns that mean "not known"."""

    def __len__(self) -> int:
        return len(self.configurations)

    @classmethod
    def none(cls) -> Self:
        """No rows."""
        return cls._unknown(Configurations.of(0))

    @classmethod
    def _unknown(cls, configurations: Configurations, **columns: Any) -> Self:
        """Runs with these columns; all others are not known."""
        rows = len(configurations)
        unknown = {name: constant(rows, value) for name, value in cls.UNKNOWN_NUMBERS.items() if name not in columns}
        return cls(configurations=configurations, **unknown, **columns)

    def take(self, rows: Ints) -> Self:
        """Some rows, in the given order."""
        columns: dict[str, Any] = {name: freeze(getattr(self, name)[rows]) for name in self.UNKNOWN_NUMBERS}
        return type(self)(configurations=self.configurations.take(rows), **columns)

    @classmethod
    def concatenated(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one after the other."""
        several = [part for part in parts if len(part)]
        if not several:
            return cls.none()
        columns: dict[str, Any] = {
            name: freeze(np.concatenate([getattr(part, name) for part in several])) for name in cls.UNKNOWN_NUMBERS
        }
        configurations = Configurations.concatenated([part.configurations for part in several])
        return cls(configurations=configurations, **columns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PhaseTimings(_Runs):
    """Phases of one worker's step as columns, one row per timed run; means in seconds.

    Attributes
    ----------
    configurations : Configurations
        What ran; usually one worker.
    download_s, compute_s, upload_s, update_s : float
        Receiving parameters; forward and backward pass; sending the gradient; applying it at the server.
    compute_variation, transfer_variation : float
        Coefficients of variation; negative = not known.
    hidden_s : float
        Transfer time that ran while the worker computed.
    steps : int
        Steps that the means were taken over; 0 = not known.
    """

    UNKNOWN_NUMBERS: ClassVar = PHASE_DEFAULTS

    download_s: Floats
    compute_s: Floats
    upload_s: Floats
    update_s: Floats
    compute_variation: Floats
    transfer_variation: Floats
    hidden_s: Floats
    steps: Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Observations(_Runs):
    """Measured runs as columns.

    Attributes
    ----------
    configurations : Configurations
        What ran.
    steps_per_s : float
        ASYNC: mini-batches applied per second by all workers together; else global steps per second.
    measured_at_s : float
        Seconds since 1970; 0 = not known.
    steps : int
        Steps counted; 0 = not known.
    step_variation : float
        Coefficient of variation of the step time; negative = not known.
    exposed_sync_s : float
        Synchronisation not hidden by compute per step; negative = not known.
    measured_memory_bytes : float
        Peak memory of the fullest device, context and the allocator's cache included; 0 = not known.
    number : int
        Number within the profile, from 1; 0 = not stored.
    """

    UNKNOWN_NUMBERS: ClassVar = {**OBSERVATION_DEFAULTS, "number": 0}

    steps_per_s: Floats
    measured_at_s: Floats
    steps: Ints
    step_variation: Floats
    exposed_sync_s: Floats
    measured_memory_bytes: Floats
    number: Ints

    @staticmethod
    def of(configurations: Configurations, steps_per_s: Floats) -> Observations:
        """Observations with throughputs alone."""
        return Observations._unknown(configurations, steps_per_s=steps_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReference:
    """A reference to a trace in the trace store, by the hash of its bytes.

    ``format`` is a reader's name, or ``auto`` for the reader that recognises it; ``rank`` -1 and
    ``world_size`` 0 are taken from the trace.
    """

    content_sha256: str
    format: str
    rank: int
    world_size: int
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Profile:
    """The evidence and facts of a job at one revision.

    Attributes
    ----------
    profile_id : str
        Name; empty for an inline profile.
    revision : int
        Grows with every commit; 0 for an inline profile, whose revision is its digest.
    digest : str
        SHA-256 of the content: same digest, same content.
    phase_timing_numbers : int
        Number of each phase timing within the profile, from 1; empty for an inline profile.
    memory_runs : Observations
        Runs of a table without a rate (0): a device's peak memory, or 0 bytes where it ran out of memory.
    display_name, labels : str, mapping of str to str
        Display name and labels; not a part of the content.
    """

    profile_id: str = ""
    uid: str = ""
    revision: int = 0
    digest: str = ""
    workload: Workload = field(default_factory=Workload)
    network: Network = field(default_factory=Network)
    phase_timings: PhaseTimings = field(default_factory=PhaseTimings.none)
    phase_timing_numbers: Ints = field(default_factory=lambda: constant_ints(0, 0))
    observations: Observations = field(default_factory=Observations.none)
    memory_runs: Observations = field(default_factory=Observations.none)
    traces: tuple[TraceReference, ...] = ()
    shared_runs: tuple[SharedDeviceRun, ...] = ()
    create_time_s: float = 0.0
    update_time_s: float = 0.0
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """Changes with every revision."""
        return f"{self.uid}-{self.revision}"

    @property
    def is_empty(self) -> bool:
        """Whether there is neither timing, observation, trace nor fact."""
        return (
            not len(self.phase_timings)
            and not len(self.observations)
            and not len(self.memory_runs)
            and not self.shared_runs
            and not self.traces
            and self.workload == Workload()
            and self.network == Network()
        )
