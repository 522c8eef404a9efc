"""Evidence: timed phases, measured runs, and a profile's content as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from nodewise_client._columns import broadcast, frozen
from nodewise_client._configurations import (
    Configurations,
    columns_of,
    columns_to_wire,
    configurations_from_wire,
    configurations_to_wire,
)
from nodewise_client._time import from_unix_seconds, to_unix_seconds
from nodewise_client._workload import (
    Network,
    Workload,
    network_from_wire,
    network_to_wire,
    workload_from_wire,
    workload_to_wire,
)
from nodewise_protos.v1 import profile_pb2

NOT_KNOWN: Final = -1.0

# Attribute here -> field there.
PHASE_COLUMNS: Final = {
    "download_s": "download_seconds",
    "compute_s": "compute_seconds",
    "upload_s": "upload_seconds",
    "update_s": "update_seconds",
    "compute_cv": "compute_variation",
    "transfer_cv": "transfer_variation",
    "hidden_s": "hidden_seconds",
    "steps": "steps_counts",
}
OBSERVATION_COLUMNS: Final = {
    "steps_per_s": "steps_per_second",
    "measured_at": "measured_at_unix_seconds",
    "steps": "steps_counts",
    "step_cv": "step_variation",
    "exposed_sync_s": "exposed_sync_seconds",
}
# What the wire writes where a row's value is not known.
ABSENT: Final[Mapping[str, Any]] = {
    "compute_cv": NOT_KNOWN,
    "transfer_cv": NOT_KNOWN,
    "step_cv": NOT_KNOWN,
    "exposed_sync_s": NOT_KNOWN,
}

Columns = dict[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimings:
    """Phases of one worker's step by columns, one row per run that was timed; a single row needs no sequences.

    `PhaseTimings(compute_s=0.21, download_s=0.03, upload_s=0.03, update_s=0.002)`
    """

    compute_s: float | Iterable[float]
    """Mean seconds of forward and backward pass."""
    download_s: float | Iterable[float] = ()
    """Mean seconds to receive the parameters."""
    upload_s: float | Iterable[float] = ()
    """Mean seconds to send the gradient, the update not included."""
    update_s: float | Iterable[float] = ()
    """Mean seconds to apply the gradient at the server."""
    compute_cv: float | Iterable[float | None] | None = ()
    """Coefficient of variation of the compute time; None = not known."""
    transfer_cv: float | Iterable[float | None] | None = ()
    """Coefficient of variation of the transfer times; None = not known."""
    hidden_s: float | Iterable[float] = ()
    """Seconds of transfer that ran while the worker computed."""
    steps: int | Iterable[int] = ()
    """Steps the means were taken over."""
    configurations: Configurations | None = None
    """What ran; None = one worker of the job."""

    def __post_init__(self) -> None:
        for name in PHASE_COLUMNS:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return _rows(self, PHASE_COLUMNS, self.configurations)

    @classmethod
    def one(
        cls,
        *,
        compute_s: float,
        download_s: float = 0.0,
        upload_s: float = 0.0,
        update_s: float = 0.0,
        compute_cv: float | None = None,
        transfer_cv: float | None = None,
        hidden_s: float = 0.0,
        steps: int = 0,
        configuration: Configurations | None = None,
    ) -> PhaseTimings:
        """The phases of one run."""
        return cls(
            compute_s=compute_s,
            download_s=download_s,
            upload_s=upload_s,
            update_s=update_s,
            compute_cv=compute_cv,
            transfer_cv=transfer_cv,
            hidden_s=hidden_s,
            steps=steps,
            configurations=configuration,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A run that was measured."""

    configuration: Configurations
    """What ran, as one row."""
    steps_per_s: float
    """Measured throughput. Asynchronous: mini-batches applied per second by all workers together; else global steps."""
    measured_at: datetime | None = None
    steps: int = 0
    """Steps that were counted; 0 = not known."""
    step_cv: float | None = None
    """Coefficient of variation of the step time; None = not known."""
    exposed_sync_s: float | None = None
    """Synchronisation not hidden by compute, seconds per step; None = not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Runs that were measured, by columns."""

    configurations: Configurations
    """What ran."""
    steps_per_s: float | Iterable[float]
    """Measured throughput. Asynchronous: mini-batches applied per second by all workers together; else global steps."""
    measured_at: datetime | Iterable[datetime | None] | None = ()
    steps: int | Iterable[int] = ()
    """Steps that were counted; 0 = not known."""
    step_cv: float | Iterable[float | None] | None = ()
    """Coefficient of variation of the step time; None = not known."""
    exposed_sync_s: float | Iterable[float | None] | None = ()
    """Synchronisation not hidden by compute, seconds per step; None = not known."""
    numbers: Iterable[int] = ()
    """Number of each observation within its profile, given by the server; stays empty in what is sent."""

    def __post_init__(self) -> None:
        for name in (*OBSERVATION_COLUMNS, "numbers"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return _rows(self, OBSERVATION_COLUMNS, self.configurations)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReference:
    """A trace that the server holds."""

    content_sha256: str
    format: str = ""
    rank: int = 0
    world_size: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileContent:
    """What is known of a job. It may stand wherever a stored profile's name may."""

    workload: Workload | None = None
    network: Network | None = None
    phase_timings: PhaseTimings | None = None
    observations: Observations | Iterable[Observation] | None = None
    traces: Iterable[TraceReference] = ()
    """Traces by reference."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "traces", tuple(self.traces))
        if self.observations is not None and not isinstance(self.observations, Observations):
            object.__setattr__(self, "observations", tuple(self.observations))


def phase_columns(timings: PhaseTimings) -> tuple[Columns, Columns]:
    """The columns present, one value per row: of the configurations, and of the phases."""
    return _expand(timings, PHASE_COLUMNS, timings.configurations, len(timings))


def observation_columns(observations: Observations) -> tuple[Columns, Columns]:
    """The columns present, one value per row: of the configurations, and of the measurements."""
    if observations.numbers:
        raise ValueError("observations are numbered by the server: leave numbers empty in what is sent")
    return _expand(observations, OBSERVATION_COLUMNS, observations.configurations, len(observations))


def one_observation(observation: Observation) -> Observations:
    """An observation as columns of one row."""
    if len(observation.configuration) > 1:
        raise ValueError(f"an observation is one run; its configuration has {len(observation.configuration)} rows")
    return Observations(
        configurations=observation.configuration,
        steps_per_s=observation.steps_per_s,
        measured_at=observation.measured_at,
        steps=observation.steps,
        step_cv=observation.step_cv,
        exposed_sync_s=observation.exposed_sync_s,
    )


def phases_message(
    configurations: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[Any]]
) -> profile_pb2.PhaseTimings:
    """Columns of phases as their message."""
    message = profile_pb2.PhaseTimings(configurations=columns_to_wire(configurations))
    for name, field in PHASE_COLUMNS.items():
        getattr(message, field).extend(_values(name, measured.get(name, ())))
    return message


def observations_message(
    configurations: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[Any]]
) -> profile_pb2.Observations:
    """Columns of observations as their message."""
    message = profile_pb2.Observations(configurations=columns_to_wire(configurations))
    for name, field in OBSERVATION_COLUMNS.items():
        getattr(message, field).extend(_values(name, measured.get(name, ())))
    return message


def phases_to_wire(timings: PhaseTimings) -> profile_pb2.PhaseTimings:
    """Phase timings as their message."""
    message = profile_pb2.PhaseTimings()
    if timings.configurations is not None:
        message.configurations.CopyFrom(configurations_to_wire(timings.configurations))
    for name, field in PHASE_COLUMNS.items():
        getattr(message, field).extend(_values(name, getattr(timings, name)))
    return message


def observations_to_wire(observations: Observations | Iterable[Observation]) -> profile_pb2.Observations:
    """Observations as their message. Single ones must all know the same columns of their configurations."""
    if isinstance(observations, Observations):
        return observations_message(*observation_columns(observations))
    configurations: dict[str, list[Any]] = {}
    measured: dict[str, list[Any]] = {name: [] for name in OBSERVATION_COLUMNS}
    for row, observation in enumerate(observations):
        more_configurations, more_measured = observation_columns(one_observation(observation))
        if row and configurations.keys() != more_configurations.keys():
            odd = sorted(configurations.keys() ^ more_configurations.keys())
            raise ValueError(f"observation {row} and those before it differ in what they state: {', '.join(odd)}")
        for name, values in more_configurations.items():
            configurations.setdefault(name, []).extend(values)
        for name, column in measured.items():
            column.extend(more_measured.get(name, (None,)))
    return observations_message(configurations, measured)


def content_to_wire(content: ProfileContent) -> profile_pb2.ProfileContent:
    """A profile's content as its message."""
    return profile_pb2.ProfileContent(
        workload=None if content.workload is None else workload_to_wire(content.workload),
        network=None if content.network is None else network_to_wire(content.network),
        phase_timings=None if content.phase_timings is None else phases_to_wire(content.phase_timings),
        observations=None if content.observations is None else observations_to_wire(content.observations),
        traces=[
            profile_pb2.TraceReference(
                content_sha256=trace.content_sha256,
                format=trace.format,
                rank=trace.rank,
                world_size=trace.world_size,
                size_bytes=trace.size_bytes,
            )
            for trace in content.traces
        ],
    )


def content_from_wire(message: profile_pb2.ProfileContent) -> ProfileContent:
    """The content that a message holds."""
    return ProfileContent(
        workload=workload_from_wire(message.workload) if message.HasField("workload") else None,
        network=network_from_wire(message.network) if message.HasField("network") else None,
        phase_timings=_phases_from_wire(message.phase_timings) if message.HasField("phase_timings") else None,
        observations=_observations_from_wire(message.observations) if message.HasField("observations") else None,
        traces=[
            TraceReference(
                content_sha256=trace.content_sha256,
                format=trace.format,
                rank=trace.rank,
                world_size=trace.world_size,
                size_bytes=trace.size_bytes,
            )
            for trace in message.traces
        ],
    )


def source_to_wire(profile: str | ProfileContent, minimum_revision: int) -> profile_pb2.ProfileSource:
    """A stored profile by its name, or the profile itself."""
    if isinstance(profile, str):
        return profile_pb2.ProfileSource(profile_id=profile, minimum_revision=minimum_revision)
    return profile_pb2.ProfileSource(inline=content_to_wire(profile), minimum_revision=minimum_revision)


def _phases_from_wire(message: profile_pb2.PhaseTimings) -> PhaseTimings:
    columns: dict[str, Any] = {name: _known(name, getattr(message, field)) for name, field in PHASE_COLUMNS.items()}
    present = message.HasField("configurations")
    return PhaseTimings(configurations=configurations_from_wire(message.configurations) if present else None, **columns)


def _observations_from_wire(message: profile_pb2.Observations) -> Observations:
    columns: dict[str, Any] = {
        name: _known(name, getattr(message, field)) for name, field in OBSERVATION_COLUMNS.items()
    }
    return Observations(
        configurations=configurations_from_wire(message.configurations), numbers=message.numbers, **columns
    )


def _rows(owner: object, names: Iterable[str], configurations: Configurations | None) -> int:
    longest = max(len(getattr(owner, name)) for name in names)
    return max(longest, 0 if configurations is None else len(configurations))


def _expand(
    owner: object, names: Iterable[str], configurations: Configurations | None, rows: int
) -> tuple[Columns, Columns]:
    measured: Columns = {}
    for name in names:
        values = cast("tuple[Any, ...]", getattr(owner, name))
        if values:
            measured[name] = broadcast(values, rows, name)
    return ({} if configurations is None else columns_of(configurations, rows)), measured


def _values(name: str, values: Sequence[Any]) -> Iterable[Any]:
    """A column as the wire writes it; empty where no row's value is known."""
    if name == "measured_at":
        return map(to_unix_seconds, values) if any(value is not None for value in values) else ()
    if name in ABSENT:
        known = any(value is not None for value in values)
        return [ABSENT[name] if value is None else value for value in values] if known else ()
    return [0 if value is None else value for value in values]


def _known(name: str, values: Sequence[Any]) -> list[Any]:
    if name == "measured_at":
        return [from_unix_seconds(value) for value in values]
    if name in ABSENT:
        return [None if value < 0 else value for value in values]
    return list(values)
