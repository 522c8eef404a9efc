"""Profiles on the wire: facts, timings and observations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise.domain.columns import constant_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.workload import Layer, Network, Transformer, Workload
from nodewise.ports.limits import Limits
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import ProfileSummary
from nodewise.rpc.reading import Reader, stated_fields
from nodewise.rpc.wire_configurations import read_evidence, write_configurations
from nodewise_protos.v1 import profile_pb2 as pb
from nodewise_protos.v1 import workload_pb2
from nodewise_values.fact import Fact
from nodewise_values.facts import (
    LAYER,
    NETWORK,
    OBSERVATIONS,
    PHASE_TIMINGS,
    TRACE_REFERENCE,
    TRANSFORMER,
    WORKLOAD,
)

__all__ = [
    "WHOLE_TRACE",
    "known_rows",
    "read_content",
    "read_hash",
    "read_network",
    "read_observations",
    "read_phase_columns",
    "read_phase_timings",
    "read_workload",
    "timestamp",
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
WHOLE_TRACE: Final = MappingProxyType({"rank": -1, "world_size": 0})
"""Rank and number of ranks where the trace says them itself."""
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
        workload=read_workload(message.workload, f"{path}.workload", reader),
        network=read_network(message.network, f"{path}.network", reader),
        phase_timings=read_phase_timings(message.phase_timings, f"{path}.phase_timings", reader, limits),
        observations=read_observations(message.observations, f"{path}.observations", reader, limits),
        traces=tuple(
            _reference(trace, f"{path}.traces[{index}]", reader) for index, trace in enumerate(message.traces)
        ),
    )
    reader.finish()
    return Profile(
        digest=content_digest(profile),
        workload=profile.workload,
        network=profile.network,
        phase_timings=profile.phase_timings,
        observations=profile.observations,
        traces=profile.traces,
    )


def read_hash(value: str, path: str, reader: Reader) -> str:
    """The SHA-256 of a trace."""
    if not _SHA256.fullmatch(value):
        reader.wrong(path, "must be 64 hexadecimal digits in lower case")
    return value


def _reference(message: pb.TraceReference, path: str, reader: Reader) -> TraceReference:
    return TraceReference(
        content_sha256=read_hash(message.content_sha256, f"{path}.content_sha256", reader),
        format=reader.text(message.format, f"{path}.format", 64),
        size_bytes=reader.whole(message.size_bytes, f"{path}.size_bytes"),
        **WHOLE_TRACE | reader.stated(message, TRACE_REFERENCE, f"{path}."),
    )


def read_workload(message: workload_pb2.Workload, path: str, reader: Reader) -> Workload:
    """What is trained."""
    if not message.ByteSize():
        return Workload()
    shape = None
    if message.HasField("transformer"):
        shape = _transformer(message.transformer, f"{path}.transformer", reader)
    layers = tuple(_layer(layer, f"{path}.layers[{index}]", reader) for index, layer in enumerate(message.layers))
    found = Workload(
        transformer=shape,
        layers=layers or None,
        shard_bytes=_shards(message, "shard_bytes", path, reader),
        shard_tensors=_shards(message, "shard_tensors_counts", path, reader),
        **reader.stated(message, WORKLOAD, f"{path}."),
    )
    if reader.clean:
        for violation in found.violations(path):
            reader.contradicts(violation.field, violation.description)
    return found


def _layer(message: workload_pb2.Layer, path: str, reader: Reader) -> Layer:
    return Layer(**{"name": "", "kind": ""} | reader.stated(message, LAYER, f"{path}."))


def _shards(message: workload_pb2.Workload, name: str, path: str, reader: Reader) -> tuple[int, ...] | None:
    """One entry per server; None = not known."""
    values = getattr(message, name)
    if len(values) > MOST_SERVERS:
        reader.wrong(f"{path}.{name}", f"must have at most {MOST_SERVERS} entries, one per server, found {len(values)}")
        return None
    fact = WORKLOAD[name]
    return tuple(reader.single(value, f"{path}.{name}[{index}]", fact) for index, value in enumerate(values)) or None


def _transformer(message: workload_pb2.Transformer, path: str, reader: Reader) -> Transformer:
    return Transformer(
        gated_feed_forward=message.gated_feed_forward,
        untied_embeddings=message.untied_embeddings,
        **reader.stated(message, TRANSFORMER, f"{path}."),
    )


def read_network(message: workload_pb2.Network, path: str, reader: Reader) -> Network:
    """Over what links."""
    return Network(**reader.stated(message, NETWORK, f"{path}.")) if message.ByteSize() else Network()


def read_phase_timings(message: pb.PhaseTimings, path: str, reader: Reader, limits: Limits) -> PhaseTimings:
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


def read_observations(message: pb.Observations, path: str, reader: Reader, limits: Limits) -> Observations:
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
    if rows > limits.rows_per_batch:
        raise NodewiseError(
            Reason.LIMIT_EXCEEDED,
            f"{path}: {rows} rows, one message takes rows_per_batch = {limits.rows_per_batch}; "
            "send them as several batches over IngestProfile",
            {
                "limit": "rows_per_batch",
                "value": str(limits.rows_per_batch),
                "found": str(rows),
                "alternative": "IngestProfile",
            },
        )


def timestamp(seconds: float) -> Timestamp | None:
    """A wire time, None for one that is not known."""
    if not seconds:
        return None
    whole = int(seconds)
    return Timestamp(seconds=whole, nanos=int((seconds - whole) * 1e9))


def write_summary(summary: ProfileSummary) -> pb.Profile:
    """A profile without its content."""
    return pb.Profile(
        profile_id=summary.profile_id,
        uid=summary.uid,
        revision=summary.revision,
        etag=summary.etag,
        digest=summary.digest,
        create_time=timestamp(summary.create_time_s),
        update_time=timestamp(summary.update_time_s),
        observations_count=summary.observations_count,
        display_name=summary.display_name,
        labels=summary.labels,
        delete_time=timestamp(summary.delete_time_s),
        purge_time=timestamp(summary.purge_time_s),
    )


def write_facts(profile: Profile) -> pb.ProfileContent:
    """The content without its observations."""
    phases = profile.phase_timings
    return pb.ProfileContent(
        workload=_write_workload(profile.workload),
        network=_write_network(profile.network),
        phase_timings=_write_phases(phases, profile.phase_timing_numbers.tolist()) if len(phases) else None,
        traces=[
            pb.TraceReference(
                content_sha256=trace.content_sha256,
                format=trace.format,
                rank=trace.rank if trace.rank >= 0 else None,
                world_size=trace.world_size or None,
                size_bytes=trace.size_bytes,
            )
            for trace in profile.traces
        ],
    )


def _write_workload(workload: Workload) -> workload_pb2.Workload | None:
    if workload == Workload():
        return None
    shape = workload.transformer
    return workload_pb2.Workload(
        transformer=None if shape is None else _write_transformer(shape),
        layers=[workload_pb2.Layer(**stated_fields(layer, LAYER)) for layer in workload.layers or ()],
        **stated_fields(workload, WORKLOAD),
    )


def _write_transformer(shape: Transformer) -> workload_pb2.Transformer:
    return workload_pb2.Transformer(
        gated_feed_forward=shape.gated_feed_forward,
        untied_embeddings=shape.untied_embeddings,
        **stated_fields(shape, TRANSFORMER),
    )


def _write_network(network: Network) -> workload_pb2.Network | None:
    return None if network == Network() else workload_pb2.Network(**stated_fields(network, NETWORK))


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
