"""Reads changes of profiles: batches, names, labels and retractions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from nodewise.domain.errors import NodewiseError
from nodewise.mapper.mapping import from_message
from nodewise.mapper.profiles import read_content_parts
from nodewise.mapper.reading import Reader, quote
from nodewise.ports.limits import Limits
from nodewise.profiles.batches import Batch, TraceChunk
from nodewise.profiles.naming import UNNAMED, Naming
from nodewise.profiles.store import Evidence, Label
from nodewise_protos.v1 import profile_pb2, workload_pb2
from nodewise_protos.v1 import profile_service_pb2 as pb
from nodewise_values.facts import NETWORK, PROFILE, RETRACT_EVIDENCE_REQUEST, WORKLOAD

__all__ = ["not_found_on_the_wire", "read_batch", "read_naming", "read_retracted", "read_wanted_labels"]

_LABEL_KEY: Final = re.compile(r"[A-Za-z0-9._/-]{1,63}")
LONGEST_LABEL: Final = 128
FACT_PATHS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{part}.{field.name}": f"{part}.{facts[field.name].row if field.name in facts else field.name}"
        for part, message, facts in (
            ("workload", workload_pb2.Workload, WORKLOAD),
            ("network", workload_pb2.Network, NETWORK),
        )
        for field in message.DESCRIPTOR.fields
    }
)
"""Paths of a profile's facts on the wire, and their paths in the store."""


def read_batch(message: pb.ProfileBatch, limits: Limits) -> Batch:
    """A numbered batch of an ingest stream.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS or LIMIT_EXCEEDED.
    """
    reader = Reader()
    batch = Batch(
        sequence_number=reader.whole(message.sequence_number, "batch.sequence_number", least=1),
        **read_content_parts(message, "batch", reader, limits),
        trace_chunks=tuple(
            _chunk(chunk, f"batch.trace_chunks[{index}]", reader) for index, chunk in enumerate(message.trace_chunks)
        ),
        naming=read_naming(message, "batch.", reader),
        commit=message.commit,
    )
    reader.finish()
    return batch


def read_naming(message: pb.ProfileBatch | pb.AppendProfileRequest, path: str, reader: Reader) -> Naming:
    """The new display name and labels of a profile."""
    name = None
    if message.HasField("display_name"):
        name = reader.text(message.display_name, f"{path}display_name", PROFILE["display_name"].maximum_length or 0)
    for key, value in message.labels.items():
        _label(key, value, f"{path}labels", reader)
    return Naming(display_name=name, labels=dict(message.labels)) if message.labels or name is not None else UNNAMED


def _label(key: str, value: str, path: str, reader: Reader) -> None:
    if not _LABEL_KEY.fullmatch(key):
        reader.wrong(path, f"must have keys of 1 to 63 letters, digits and - . _ /; found {quote(key)}")
    if len(value) > LONGEST_LABEL:
        reader.wrong(path, f"must have values of at most {LONGEST_LABEL} characters, found {len(value)} at {key!r}")


def read_wanted_labels(texts: Sequence[str]) -> list[Label]:
    """Labels that listed profiles must have: "key" or "key=value".

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    reader = Reader()
    labels: list[Label] = []
    for index, text in enumerate(texts):
        key, separator, value = text.partition("=")
        _label(key, value, f"labels[{index}]", reader)
        labels.append((key, value if separator else None))
    reader.finish()
    return labels


def read_retracted(message: pb.RetractEvidenceRequest) -> Evidence:
    """The evidence to retract.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for an empty request, and for an invalid fact path or hash.
    """
    reader = Reader()
    facts = []
    for index, path in enumerate(message.fact_paths):
        if path in FACT_PATHS:
            facts.append(FACT_PATHS[path])
        else:
            text = f"must be the path of a fact, such as workload.parameter_bytes; found {quote(path)}"
            reader.wrong(f"fact_paths[{index}]", text)
    for name in ("trace_sha256s", "shared_run_sha256s"):
        for index, sha256 in enumerate(getattr(message, name)):
            reader.sha256(sha256, f"{name}[{index}]")
    reader.text(message.reason, "reason", RETRACT_EVIDENCE_REQUEST["reason"].maximum_length or 0)
    evidence = Evidence.of(
        message.observation_numbers,
        message.phase_timing_numbers,
        facts,
        message.trace_sha256s,
        message.shared_run_sha256s,
    )
    if not (evidence or message.fact_paths):
        reader.wrong("observation_numbers", "must name an observation unless another field names evidence")
    reader.finish()
    return evidence


def not_found_on_the_wire(error: NodewiseError) -> NodewiseError:
    """The same error with the paths of facts on the wire."""
    paths = error.metadata.get("fact_paths")
    if paths is None:
        return error
    wire_paths = {row: path for path, row in FACT_PATHS.items()}
    text = ",".join(wire_paths.get(path, path) for path in paths.split(","))
    return replace(error, message=error.message.replace(paths, text), metadata={**error.metadata, "fact_paths": text})


def _chunk(message: profile_pb2.TraceChunk, path: str, reader: Reader) -> TraceChunk:
    reader.identifier(message.trace_id, f"{path}.trace_id")
    reader.text(message.format, f"{path}.format", 64)
    reader.whole(message.offset_bytes, f"{path}.offset_bytes")
    return from_message(message, TraceChunk, f"{path}.", reader)
