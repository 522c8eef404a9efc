"""Profiles as messages and back: facts, timings and observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from nodewise.domain.columns import as_ints, constant_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.domain.workload import Network, Workload
from nodewise.mapper.configurations import read_evidence
from nodewise.mapper.mapping import from_message, to_message
from nodewise.mapper.reading import Reader, TrustingReader
from nodewise.ports.limits import Limits, too_much
from nodewise_protos.v1 import profile_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2, sharing_pb2, workload_pb2

__all__ = [
    "read_content_parts",
    "read_mode",
    "read_observations",
    "read_phase_timings",
    "read_profile",
    "read_traces",
    "read_workload",
    "write_facts",
    "write_profile",
]

RunsT = TypeVar("RunsT", PhaseTimings, Observations)

_MODE_NAMES: Final = tuple(f"SHARING_MODE_{mode.name}" for mode in SharingMode)
_MODES: Final = MappingProxyType(
    {0: SharingMode.TIME_SLICED, **{sharing_pb2.SharingMode.Value(f"SHARING_MODE_{m.name}"): m for m in SharingMode}}
)
_UNLIMITED: Final = Limits(rows_per_batch=2**31, backtest_rows=2**31)
MOST_SERVERS: Final = 1 << 16
"""Shards of a model: one per parameter server."""


def read_content_parts(
    message: pb.ProfileContent | profile_service_pb2.ProfileBatch, path: str, reader: Reader, limits: Limits
) -> dict[str, Any]:
    """Facts and runs, by their names in a profile and in a batch."""
    return {
        "workload": read_workload(message.workload, f"{path}.workload", reader),
        "network": from_message(message.network, Network, f"{path}.network.", reader),
        "phase_timings": read_phase_timings(message.phase_timings, f"{path}.phase_timings", reader, limits),
        "observations": read_observations(message.observations, f"{path}.observations", reader, limits),
        "shared_runs": _shared_runs(message.shared_runs, f"{path}.shared_runs", reader, limits),
    }


def read_traces(message: pb.ProfileContent, path: str, reader: Reader) -> tuple[TraceReference, ...]:
    """Traces by reference."""
    traces = []
    for index, trace in enumerate(message.traces):
        place = f"{path}.traces[{index}]"
        reader.sha256(trace.content_sha256, f"{place}.content_sha256")
        reader.text(trace.format, f"{place}.format", 64)
        reader.whole(trace.size_bytes, f"{place}.size_bytes")
        traces.append(from_message(trace, TraceReference, f"{place}.", reader))
    return tuple(traces)


def _shared_runs(
    messages: Sequence[sharing_pb2.SharedDeviceRun], path: str, reader: Reader, limits: Limits
) -> tuple[SharedDeviceRun, ...]:
    """Runs beside other jobs."""
    _check_rows(len(messages), path, limits)
    return tuple(_shared_run(message, f"{path}[{index}].", reader) for index, message in enumerate(messages))


def _shared_run(message: sharing_pb2.SharedDeviceRun, path: str, reader: Reader) -> SharedDeviceRun:
    mode = read_mode(message.mode, f"{path}mode", reader)
    if not message.device_name:
        reader.wrong(f"{path}device_name", "must name an accelerator")
    partner = reader.identifier(message.partner_profile_id, f"{path}partner_profile_id")
    return from_message(message, SharedDeviceRun, path, reader, mode=mode, partner_profile_id=partner)


def read_mode(value: int, path: str, reader: Reader) -> SharingMode:
    """How processes share a device; unspecified = they take turns."""
    mode = _MODES.get(value)
    if mode is None:
        reader.wrong(path, f"must be one of {', '.join(_MODE_NAMES)}; found {value}")
    return mode or SharingMode.TIME_SLICED


def read_workload(message: workload_pb2.Workload, path: str, reader: Reader) -> Workload:
    """What is trained."""
    if not message.ByteSize():
        return Workload()
    for name in ("shard_bytes", "shard_tensors_counts"):
        count = len(getattr(message, name))
        if count > MOST_SERVERS:
            reader.wrong(f"{path}.{name}", f"must have at most {MOST_SERVERS} entries, one per server, found {count}")
            return Workload()
    workload = from_message(message, Workload, f"{path}.", reader)
    if reader.clean:
        for violation in workload.violations(path):
            reader.contradicts(violation.field, violation.description)
    return workload


def read_phase_timings(
    message: pb.PhaseTimings, path: str, reader: Reader, limits: Limits, configurations: Configurations | None = None
) -> PhaseTimings:
    """Timed phases; their configurations may be known already."""
    if configurations is None:
        if not message.ByteSize():
            return PhaseTimings.none()
        configurations = read_evidence(message.configurations, f"{path}.configurations", reader, limits)
    timings = _runs(message, PhaseTimings, path, reader, limits, configurations, "timed")
    if reader.clean and len(timings):
        total = timings.download_s + timings.compute_s + timings.upload_s + timings.update_s
        if (total <= 0).any():
            text = "all four phases are 0: nothing was timed"
            reader.wrong(f"{path}.compute_seconds[{int((total <= 0).argmax())}]", text)
        over = timings.hidden_s > timings.download_s + timings.upload_s
        if over.any():
            row = int(over.argmax())
            transfers_s = timings.download_s[row] + timings.upload_s[row]
            text = f"is {timings.hidden_s[row]:g} s, more than the {transfers_s:g} s of transfers"
            reader.contradicts(f"{path}.hidden_seconds[{row}]", text)
    return timings


def read_observations(message: pb.Observations, path: str, reader: Reader, limits: Limits) -> Observations:
    """Measured runs."""
    if not message.ByteSize():
        return Observations.none()
    configurations = read_evidence(message.configurations, f"{path}.configurations", reader, limits)
    # Numbers are the server's to give.
    number = constant_ints(len(configurations), 0)
    return _runs(message, Observations, path, reader, limits, configurations, "measured", number=number)


def _runs(
    message: Any,
    kind: type[RunsT],
    path: str,
    reader: Reader,
    limits: Limits,
    configurations: Configurations,
    what: str,
    **others: Any,
) -> RunsT:
    rows = len(configurations)
    _check_rows(rows, path, limits)
    if not rows:
        reader.wrong(f"{path}.configurations", f"must have one row per {what} run")
    return from_message(message, kind, f"{path}.", reader, row_count=rows, configurations=configurations, **others)


def _check_rows(rows: int, path: str, limits: Limits) -> None:
    most = limits.rows_per_batch
    if rows > most:
        text = f"{path}: {rows} rows, one message takes rows_per_batch = {most}; send them as several batches over "
        raise too_much(f"{text}IngestProfile", "rows_per_batch", most, rows, "IngestProfile")


def write_facts(profile: Profile) -> pb.ProfileContent:
    """The content without its observations."""
    phases, numbers = profile.phase_timings, profile.phase_timing_numbers.tolist()
    return to_message(
        profile,
        pb.ProfileContent,
        workload=None if profile.workload == Workload() else to_message(profile.workload, workload_pb2.Workload),
        network=None if profile.network == Network() else to_message(profile.network, workload_pb2.Network),
        phase_timings=to_message(phases, pb.PhaseTimings, numbers=numbers) if len(phases) else None,
        observations=None,
    )


def write_profile(profile: Profile) -> pb.ProfileContent:
    """The whole content, numbers of its runs included."""
    message = write_facts(profile)
    if len(profile.observations):
        message.observations.CopyFrom(to_message(profile.observations, pb.Observations))
    return message


def read_profile(message: pb.ProfileContent) -> Profile:
    """The profile whose content :func:`write_profile` wrote: its numbers hold, no bound is looked at."""
    reader, limits = TrustingReader(), _UNLIMITED
    parts = read_content_parts(message, "", reader, limits)
    if len(parts["observations"]):
        parts["observations"] = replace(parts["observations"], number=as_ints(message.observations.numbers))
    numbers = as_ints(message.phase_timings.numbers)
    return Profile(**parts, phase_timing_numbers=numbers, traces=read_traces(message, "", reader))
