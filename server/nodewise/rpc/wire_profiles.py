"""Profiles on the wire: facts, timings, observations and batches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodewise.domain.columns import constant_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.workload import Layer, Network, Transformer, Workload
from nodewise.ports.limits import Limits
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import ProfileSummary
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_configurations import read_evidence, write_configurations
from nodewise_protos.v1 import profile_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2 as service_pb
from nodewise_protos.v1 import workload_pb2
from nodewise_values.fact import Fact
from nodewise_values.facts import LAYER, NETWORK, OBSERVATIONS, PHASE_TIMINGS, TRANSFORMER, WORKLOAD

__all__ = [
    "read_batch",
    "read_content",
    "read_network",
    "read_phase_columns",
    "read_phase_timings",
    "read_workload",
    "timestamp",
    "write_profile",
    "write_summary",
]

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


def _reference(message: pb.TraceReference, path: str, reader: Reader) -> TraceReference:
    if not _SHA256.fullmatch(message.content_sha256):
        reader.wrong(f"{path}.content_sha256", "must be 64 hexadecimal digits in lower case")
    return TraceReference(
        content_sha256=message.content_sha256,
        format=reader.text(message.format, f"{path}.format", 64),
        rank=reader.whole(message.rank, f"{path}.rank", least=-1),
        world_size=reader.whole(message.world_size, f"{path}.world_size"),
        size_bytes=reader.whole(message.size_bytes, f"{path}.size_bytes"),
    )


def read_workload(message: workload_pb2.Workload, path: str, reader: Reader) -> Workload:
    """What is trained."""
    if not message.ByteSize():
        return Workload()

    def known(name: str) -> Any:
        return reader.stated(getattr(message, name), f"{path}.{name}", WORKLOAD[name]) if _has(message, name) else None

    def text(name: str) -> str | None:
        return reader.text(getattr(message, name), f"{path}.{name}", WORKLOAD[name].maximum_length or 256) or None

    layers = tuple(_layer(layer, f"{path}.layers[{index}]", reader) for index, layer in enumerate(message.layers))
    found = Workload(
        model_name=text("model_name"),
        parameter_bytes=known("parameter_bytes"),
        tensors=known("tensors_count"),
        flops_per_sample=known("flops_per_sample"),
        samples_per_epoch=known("samples_per_epoch"),
        epochs=known("epochs_count"),
        transformer=_transformer(message.transformer, f"{path}.transformer", reader)
        if message.HasField("transformer")
        else None,
        layers=layers or None,
        framework=text("framework"),
        optimizer=text("optimizer"),
        precision=text("precision"),
        shard_bytes=_shards(message, "shard_bytes", path, reader),
        shard_tensors=_shards(message, "shard_tensors_counts", path, reader),
    )
    if reader.clean:
        for violation in found.violations(path):
            reader.contradicts(violation.field, violation.description)
    return found


def _layer(message: workload_pb2.Layer, path: str, reader: Reader) -> Layer:
    def number(name: str) -> Any:
        return reader.stated(getattr(message, name), f"{path}.{name}", LAYER[name])

    return Layer(
        name=reader.text(message.name, f"{path}.name"),
        kind=reader.text(message.kind, f"{path}.kind", 64),
        forward_flops_per_sample=number("forward_flops_per_sample"),
        parameter_bytes=number("parameter_bytes"),
        activation_bytes_per_sample=number("activation_bytes_per_sample"),
        halo_bytes_per_sample=number("halo_bytes_per_sample") if message.HasField("halo_bytes_per_sample") else None,
    )


def _shards(message: workload_pb2.Workload, name: str, path: str, reader: Reader) -> tuple[int, ...] | None:
    """One entry per server; None = not known."""
    values = getattr(message, name)
    if len(values) > MOST_SERVERS:
        reader.wrong(f"{path}.{name}", f"must have at most {MOST_SERVERS} entries, one per server, found {len(values)}")
        return None
    fact = WORKLOAD[name]
    return tuple(reader.stated(value, f"{path}.{name}[{index}]", fact) for index, value in enumerate(values)) or None


def _transformer(message: workload_pb2.Transformer, path: str, reader: Reader) -> Transformer:
    def number(fact: Fact) -> Any:
        return reader.stated(getattr(message, fact.field), f"{path}.{fact.field}", fact)

    return Transformer(
        **{fact.row: number(fact) for fact in TRANSFORMER.values()},
        gated_feed_forward=message.gated_feed_forward,
        untied_embeddings=message.untied_embeddings,
    )


def read_network(message: workload_pb2.Network, path: str, reader: Reader) -> Network:
    """Over what links."""
    if not message.ByteSize():
        return Network()

    def known(name: str) -> Any:
        return reader.stated(getattr(message, name), f"{path}.{name}", NETWORK[name]) if _has(message, name) else None

    return Network(
        link_bytes_per_s=known("link_bytes_per_second"),
        half_duplex=message.half_duplex if message.HasField("half_duplex") else None,
        worker_link_bytes_per_s=known("worker_link_bytes_per_second"),
        per_message_s=known("per_message_seconds"),
        round_trip_s=known("round_trip_seconds"),
    )


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
    """The columns of runs by the domain's names."""
    return {
        fact.row: reader.column(getattr(message, field), f"{path}.{field}", rows, fact) for field, fact in facts.items()
    }


def read_batch(message: service_pb.ProfileBatch, limits: Limits) -> Batch:
    """A numbered batch of an ingest stream.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    reader = Reader()
    batch = Batch(
        sequence_number=reader.whole(message.sequence_number, "batch.sequence_number", least=1),
        workload=read_workload(message.workload, "batch.workload", reader),
        network=read_network(message.network, "batch.network", reader),
        phase_timings=read_phase_timings(message.phase_timings, "batch.phase_timings", reader, limits),
        observations=read_observations(message.observations, "batch.observations", reader, limits),
        trace_chunks=tuple(
            _chunk(chunk, f"batch.trace_chunks[{index}]", reader) for index, chunk in enumerate(message.trace_chunks)
        ),
        commit=message.commit,
    )
    reader.finish()
    return batch


def _chunk(message: pb.TraceChunk, path: str, reader: Reader) -> TraceChunk:
    return TraceChunk(
        trace_id=reader.identifier(message.trace_id, f"{path}.trace_id"),
        format=reader.text(message.format, f"{path}.format", 64),
        rank=reader.whole(message.rank, f"{path}.rank", least=-1),
        world_size=reader.whole(message.world_size, f"{path}.world_size"),
        offset_bytes=reader.whole(message.offset_bytes, f"{path}.offset_bytes"),
        data=message.data,
        last=message.last,
    )


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


def _has(message: workload_pb2.Workload | workload_pb2.Network, name: str) -> bool:
    return bool(message.HasField(name))


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
    )


def write_profile(profile: Profile) -> pb.Profile:
    """A profile with its content."""
    return pb.Profile(
        profile_id=profile.profile_id,
        uid=profile.uid,
        revision=profile.revision,
        etag=profile.etag,
        digest=profile.digest,
        create_time=timestamp(profile.create_time_s),
        update_time=timestamp(profile.update_time_s),
        observations_count=len(profile.observations),
        content=pb.ProfileContent(
            workload=_write_workload(profile.workload),
            network=_write_network(profile.network),
            phase_timings=_write_phases(profile.phase_timings) if len(profile.phase_timings) else None,
            observations=_write_observations(profile.observations) if len(profile.observations) else None,
            traces=[
                pb.TraceReference(
                    content_sha256=trace.content_sha256,
                    format=trace.format,
                    rank=trace.rank,
                    world_size=trace.world_size,
                    size_bytes=trace.size_bytes,
                )
                for trace in profile.traces
            ],
        ),
    )


def _write_workload(workload: Workload) -> workload_pb2.Workload | None:
    if workload == Workload():
        return None
    shape = workload.transformer
    return workload_pb2.Workload(
        model_name=workload.model_name or "",
        parameter_bytes=workload.parameter_bytes,
        tensors_count=workload.tensors,
        flops_per_sample=workload.flops_per_sample,
        samples_per_epoch=workload.samples_per_epoch,
        epochs_count=workload.epochs,
        transformer=None
        if shape is None
        else workload_pb2.Transformer(
            layers_count=shape.layers,
            hidden_size=shape.hidden_size,
            attention_heads_count=shape.attention_heads,
            sequence_length_tokens=shape.sequence_length,
            vocabulary_size=shape.vocabulary_size,
            key_value_heads_count=shape.key_value_heads,
            feed_forward_size=shape.feed_forward_size,
            experts_count=shape.experts,
            experts_per_token_count=shape.experts_per_token,
            head_size=shape.head_size,
            gated_feed_forward=shape.gated_feed_forward,
            untied_embeddings=shape.untied_embeddings,
            expert_feed_forward_size=shape.expert_feed_forward_size,
            shared_expert_feed_forward_size=shape.shared_expert_feed_forward_size,
            expert_layers_count=shape.expert_layers,
        ),
        layers=[
            workload_pb2.Layer(
                name=layer.name,
                kind=layer.kind,
                forward_flops_per_sample=layer.forward_flops_per_sample,
                parameter_bytes=layer.parameter_bytes,
                activation_bytes_per_sample=layer.activation_bytes_per_sample,
                halo_bytes_per_sample=layer.halo_bytes_per_sample,
            )
            for layer in workload.layers or ()
        ],
        framework=workload.framework or "",
        optimizer=workload.optimizer or "",
        precision=workload.precision or "",
        shard_bytes=workload.shard_bytes or (),
        shard_tensors_counts=workload.shard_tensors or (),
    )


def _write_network(network: Network) -> workload_pb2.Network | None:
    if network == Network():
        return None
    message = workload_pb2.Network(
        link_bytes_per_second=network.link_bytes_per_s,
        worker_link_bytes_per_second=network.worker_link_bytes_per_s,
        per_message_seconds=network.per_message_s,
        round_trip_seconds=network.round_trip_s,
    )
    if network.half_duplex is not None:
        message.half_duplex = network.half_duplex
    return message


def _write_phases(phases: PhaseTimings) -> pb.PhaseTimings:
    return pb.PhaseTimings(
        configurations=write_configurations(phases.configurations),
        download_seconds=phases.download_s.tolist(),
        compute_seconds=phases.compute_s.tolist(),
        upload_seconds=phases.upload_s.tolist(),
        update_seconds=phases.update_s.tolist(),
        compute_variation=phases.compute_variation.tolist(),
        transfer_variation=phases.transfer_variation.tolist(),
        hidden_seconds=phases.hidden_s.tolist(),
        steps_counts=phases.steps.tolist(),
    )


def _write_observations(observations: Observations) -> pb.Observations:
    return pb.Observations(
        configurations=write_configurations(observations.configurations),
        steps_per_second=observations.steps_per_s.tolist(),
        measured_at_unix_seconds=observations.measured_at_s.tolist(),
        steps_counts=observations.steps.tolist(),
        step_variation=observations.step_variation.tolist(),
        exposed_sync_seconds=observations.exposed_sync_s.tolist(),
        numbers=observations.number.tolist(),
    )
