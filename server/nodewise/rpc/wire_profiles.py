"""Profiles on the wire: facts, timings and observations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import constant_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.sharing import SharedDeviceRun, SharingMode
from nodewise.domain.workload import Network, Workload
from nodewise.ports.limits import Limits
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import ProfileSummary
from nodewise.rpc.caps import too_much
from nodewise.rpc.errors import write_notice
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_configurations import read_evidence, write_configurations
from nodewise.rpc.wire_rows import read_row, read_time, timestamp, written
from nodewise_protos.v1 import profile_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2, sharing_pb2, workload_pb2
from nodewise_values.fact import Fact
from nodewise_values.facts import OBSERVATIONS, PHASE_TIMINGS

__all__ = [
    "SHARING_MODES",
    "SHARING_MODE_NAMES",
    "known_rows",
    "read_content",
    "read_content_parts",
    "read_hash",
    "read_network",
    "read_phase_columns",
    "read_workload",
    "write_facts",
    "write_observations",
    "write_summary",
]

_KNOWN: Final = MappingProxyType(
    {
        "compute_variation": "compute_variation_known",
        "transfer_variation": "transfer_variation_known",
        "step_variation": "step_variation_known",
        "exposed_sync_seconds": "exposed_sync_known",
    }
)
"""Columns in which 0 is a value, and those beside them that say which rows are known."""
SHARING_MODE_NAMES: Final = tuple(f"SHARING_MODE_{mode.name}" for mode in SharingMode)
SHARING_MODES: Final = MappingProxyType(
    {0: SharingMode.TIME_SLICED, **{sharing_pb2.SharingMode.Value(f"SHARING_MODE_{m.name}"): m for m in SharingMode}}
)
"""Modes by their numbers on the wire."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
MOST_SERVERS: Final = 1 << 16
"""Shards of a model: one per parameter server."""


def read_content(message: pb.ProfileContent, path: str, limits: Limits) -> Profile:
    """An inline profile; its digest is its revision.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    reader = Reader()
    profile = Profile(
        **read_content_parts(message, path, reader, limits),
        traces=tuple(
            _reference(trace, f"{path}.traces[{index}]", reader) for index, trace in enumerate(message.traces)
        ),
    )
    reader.finish()
    return replace(profile, digest=content_digest(profile))


def read_content_parts(
    message: pb.ProfileContent | profile_service_pb2.ProfileBatch, path: str, reader: Reader, limits: Limits
) -> dict[str, Any]:
    """Facts and runs, by their names in a profile and in a batch."""
    return {
        "workload": read_workload(message.workload, f"{path}.workload", reader),
        "network": read_network(message.network, f"{path}.network", reader),
        "phase_timings": _phase_timings(message.phase_timings, f"{path}.phase_timings", reader, limits),
        "observations": _observations(message.observations, f"{path}.observations", reader, limits),
        "shared_runs": _shared_runs(message.shared_runs, f"{path}.shared_runs", reader, limits),
    }


def _shared_runs(
    messages: Sequence[sharing_pb2.SharedDeviceRun], path: str, reader: Reader, limits: Limits
) -> tuple[SharedDeviceRun, ...]:
    """Runs beside other jobs."""
    _capped(len(messages), path, limits)
    return tuple(_shared_run(message, f"{path}[{index}]", reader) for index, message in enumerate(messages))


def _shared_run(message: sharing_pb2.SharedDeviceRun, path: str, reader: Reader) -> SharedDeviceRun:
    mode = SHARING_MODES.get(message.mode)
    if mode is None:
        reader.wrong(f"{path}.mode", f"must be one of {', '.join(SHARING_MODE_NAMES)}; found {message.mode}")
    if not message.device_name:
        reader.wrong(f"{path}.device_name", "must name an accelerator")
    reader.identifier(message.partner_profile_id, f"{path}.partner_profile_id")
    said = reader.stated(message, f"{path}.", but=("device_name", "partner_profile_id", "content_sha256"))
    return SharedDeviceRun(
        device=reader.text(message.device_name, f"{path}.device_name", 64),
        mode=mode or SharingMode.TIME_SLICED,
        partner_profile_id=message.partner_profile_id,
        share=said["share"],
        partner_share=said["partner_share"],
        measured_at_s=read_time(message.measured_time) if message.HasField("measured_time") else 0.0,
    )


def read_hash(value: str, path: str, reader: Reader) -> str:
    """The SHA-256 of a trace."""
    if not _SHA256.fullmatch(value):
        reader.wrong(path, "must be 64 hexadecimal digits in lower case")
    return value


def _reference(message: pb.TraceReference, path: str, reader: Reader) -> TraceReference:
    read_hash(message.content_sha256, f"{path}.content_sha256", reader)
    reader.text(message.format, f"{path}.format", 64)
    reader.whole(message.size_bytes, f"{path}.size_bytes")
    return read_row(TraceReference, message, f"{path}.", reader)


def read_workload(message: workload_pb2.Workload, path: str, reader: Reader) -> Workload:
    """What is trained."""
    if not message.ByteSize():
        return Workload()
    for name in ("shard_bytes", "shard_tensors_counts"):
        found = len(getattr(message, name))
        if found > MOST_SERVERS:
            reader.wrong(f"{path}.{name}", f"must have at most {MOST_SERVERS} entries, one per server, found {found}")
            return Workload()
    workload = read_row(Workload, message, f"{path}.", reader)
    if reader.clean:
        for violation in workload.violations(path):
            reader.contradicts(violation.field, violation.description)
    return workload


def read_network(message: workload_pb2.Network, path: str, reader: Reader) -> Network:
    """Over what links."""
    return read_row(Network, message, f"{path}.", reader)


def _phase_timings(message: pb.PhaseTimings, path: str, reader: Reader, limits: Limits) -> PhaseTimings:
    """Timed phases."""
    if not message.ByteSize():
        return PhaseTimings.none()
    configurations = read_evidence(message.configurations, f"{path}.configurations", reader, limits)
    return read_phase_columns(message, path, reader, limits, configurations)


def read_phase_columns(
    message: pb.PhaseTimings, path: str, reader: Reader, limits: Limits, configurations: Configurations
) -> PhaseTimings:
    """The columns of phase timings whose configurations are known already."""
    rows = len(configurations)
    _capped(rows, path, limits)
    if not rows:
        reader.wrong(f"{path}.configurations", "must have one row per timed run")

    columns = _columns(message, path, reader, rows, PHASE_TIMINGS)
    found = PhaseTimings(configurations=configurations, **columns)
    if reader.clean and rows:
        total = found.download_s + found.compute_s + found.upload_s + found.update_s
        if (total <= 0).any():
            reader.wrong(
                f"{path}.compute_seconds[{int((total <= 0).argmax())}]", "all four phases are 0: nothing was timed"
            )
        over = found.hidden_s > found.download_s + found.upload_s
        if over.any():
            row = int(over.argmax())
            transfers_s = found.download_s[row] + found.upload_s[row]
            reader.contradicts(
                f"{path}.hidden_seconds[{row}]",
                f"is {found.hidden_s[row]:g} s, more than the {transfers_s:g} s of transfers",
            )
    return found


def _observations(message: pb.Observations, path: str, reader: Reader, limits: Limits) -> Observations:
    """Measured runs."""
    if not message.ByteSize():
        return Observations.none()
    configurations = read_evidence(message.configurations, f"{path}.configurations", reader, limits)
    rows = len(configurations)
    _capped(rows, path, limits)
    if not rows:
        reader.wrong(f"{path}.configurations", "must have one row per measured run")
    columns = _columns(message, path, reader, rows, OBSERVATIONS)
    return Observations(configurations=configurations, **columns, number=constant_ints(rows, 0))


def _columns(message: Any, path: str, reader: Reader, rows: int, facts: Mapping[str, Fact]) -> dict[str, Any]:
    """The columns of runs by the domain's names; numbers are the server's to give."""
    return {
        fact.row: reader.column(getattr(message, field), f"{path}.{field}", rows, fact, known_rows(message, field))
        for field, fact in facts.items()
    }


def known_rows(message: Any, field: str) -> Sequence[bool]:
    """Which rows of a column are known, as the column beside it says; empty = all, or there is no such column."""
    return getattr(message, _KNOWN.get(field, ""), ())


def _capped(rows: int, path: str, limits: Limits) -> None:
    most = limits.rows_per_batch
    if rows > most:
        text = f"{path}: {rows} rows, one message takes rows_per_batch = {most}; send them as several batches over "
        raise too_much(f"{text}IngestProfile", "rows_per_batch", most, rows, "IngestProfile")


def write_summary(summary: ProfileSummary, doubts: Iterable[Notice] = ()) -> pb.Profile:
    """A profile without its content."""
    return written(pb.Profile, summary, content=None, warnings=map(write_notice, doubts))


def write_facts(profile: Profile) -> pb.ProfileContent:
    """The content without its observations."""
    phases = profile.phase_timings
    return pb.ProfileContent(
        workload=None if profile.workload == Workload() else written(workload_pb2.Workload, profile.workload),
        network=None if profile.network == Network() else written(workload_pb2.Network, profile.network),
        phase_timings=_write_phases(phases, profile.phase_timing_numbers.tolist()) if len(phases) else None,
        traces=[written(pb.TraceReference, trace) for trace in profile.traces],
        shared_runs=[
            written(
                sharing_pb2.SharedDeviceRun,
                run,
                mode=f"SHARING_MODE_{run.mode.name}",
                measured_time=timestamp(run.measured_at_s),
            )
            for run in profile.shared_runs
        ],
    )


def _write_phases(phases: PhaseTimings, numbers: Sequence[int]) -> pb.PhaseTimings:
    return pb.PhaseTimings(
        configurations=write_configurations(phases.configurations), numbers=numbers, **_written(phases, PHASE_TIMINGS)
    )


def write_observations(observations: Observations) -> pb.Observations:
    """Runs with their numbers."""
    return pb.Observations(
        configurations=write_configurations(observations.configurations),
        numbers=observations.number.tolist(),
        **_written(observations, OBSERVATIONS),
    )


def _written(runs: Any, facts: Mapping[str, Fact]) -> dict[str, Any]:
    """The columns of runs by the wire's names; those of which no row is known are left out."""
    found: dict[str, Any] = {}
    for field, fact in facts.items():
        column, mask = getattr(runs, fact.row), _KNOWN.get(field)
        if mask is not None:
            known = column >= 0.0
            if not known.any():
                continue
            if not known.all():
                found[mask] = known.tolist()
                column = np.where(known, column, 0.0)
        found[field] = column.tolist()
    return found
