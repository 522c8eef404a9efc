"""Batches: numbered messages of an ingest session, and the hash that identifies a resent batch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from nodewise.domain.errors import invalid_field
from nodewise.domain.profile import Observations, PhaseTimings
from nodewise.domain.sharing import SharedDeviceRun
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.codec import FORMAT_VERSION, facts_to_json, runs_to_json, shared_run_to_json
from nodewise.profiles.naming import UNNAMED, Naming
from nodewise.profiles.stated_facts import NO_NETWORK, NO_WORKLOAD, StatedFacts

__all__ = ["Batch", "EncodedBatch", "TraceChunk", "content_hash", "encode_batch"]

_ROW_BYTES: Final = 256
_BATCH_BYTES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceChunk:
    """A piece of a trace; the pieces of one trace come in order of their offset.

    Attributes
    ----------
    trace_id : str
        Chosen by the sender, one per trace and session.
    data : bytes
        The piece.
    offset_bytes : int
        Its position in the trace.
    last : bool
        Whether the trace ends here.
    format, rank, world_size : str, int, int
        Format, e.g. ``kineto``; which process recorded it and of how many. Read from the first chunk only.
    """

    trace_id: str
    data: bytes
    offset_bytes: int = 0
    last: bool = False
    format: str = ""
    rank: int = 0
    world_size: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Batch:
    """A numbered part of a session.

    Attributes
    ----------
    sequence_number : int
        1 for the first batch of a session, then one more each.
    workload, network : Workload, Network
        Facts; must agree with those already known.
    phase_timings, observations : PhaseTimings, Observations
        Rows; the observations' own ``number`` is ignored, the store assigns it at the commit.
    shared_runs : tuple of SharedDeviceRun
        Runs beside another job on one device.
    trace_chunks : tuple of TraceChunk
        Pieces of traces.
    naming : Naming
        Display name and labels from this unit on.
    commit : bool
        Ends the unit: this and all batches since the session's last commit count from then on.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a sequence number below 1.
    """

    sequence_number: int
    workload: Workload = NO_WORKLOAD
    network: Network = NO_NETWORK
    phase_timings: PhaseTimings = field(default_factory=PhaseTimings.none)
    observations: Observations = field(default_factory=Observations.none)
    shared_runs: tuple[SharedDeviceRun, ...] = ()
    trace_chunks: tuple[TraceChunk, ...] = ()
    naming: Naming = UNNAMED
    commit: bool = False

    def __post_init__(self) -> None:
        if self.sequence_number < 1:
            raise invalid_field("sequence_number", f"must be 1 or more, found {self.sequence_number}")

    @property
    def has_facts(self) -> bool:
        """Whether any fact is stated."""
        return self.workload != NO_WORKLOAD or self.network != NO_NETWORK

    @property
    def facts(self) -> StatedFacts:
        """Facts and names of the batch."""
        return StatedFacts(workload=self.workload, network=self.network, naming=self.naming)

    @property
    def has_content(self) -> bool:
        """Whether there is anything to store besides the commit."""
        rows = len(self.observations) + len(self.phase_timings) + len(self.shared_runs)
        return bool(rows or self.trace_chunks or self.has_facts or self.naming)

    @property
    def estimated_bytes(self) -> int:
        """Approximate bytes in memory, to bound queues."""
        rows = len(self.observations) + len(self.phase_timings) + len(self.shared_runs)
        return _BATCH_BYTES + _ROW_BYTES * rows + sum(len(chunk.data) for chunk in self.trace_chunks)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedBatch:
    """A batch with its canonical content and the SHA-256 of that."""

    batch: Batch
    payload: bytes
    content_hash: bytes


def _chunk_to_json(chunk: TraceChunk) -> dict[str, Any]:
    description: dict[str, Any] = {"size_bytes": len(chunk.data), "sha256": hashlib.sha256(chunk.data).hexdigest()}
    for name in ("trace_id", "offset_bytes", "last", "format", "rank", "world_size"):
        if value := getattr(chunk, name):
            description["id" if name == "trace_id" else name] = value
    return description


def encode_batch(batch: Batch) -> EncodedBatch:
    """The batch as canonical JSON: same content, same bytes, whatever its sequence number.

    Columns that hold one value everywhere are that value, columns of defaults are left out, dictionaries hold what is
    used in order of first use. The bytes of trace chunks are not in it, but their hashes are.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a number that is not finite, and for what JSON cannot hold.
    """
    content: dict[str, Any] = {"v": FORMAT_VERSION}
    for name, nothing in (("workload", NO_WORKLOAD), ("network", NO_NETWORK)):
        if (facts := getattr(batch, name)) != nothing:
            content[name] = facts_to_json(facts, name)
    for name in ("phase_timings", "observations"):
        if len(runs := getattr(batch, name)):
            content[name] = runs_to_json(runs, name)
    if batch.shared_runs:
        content["shared_runs"] = [shared_run_to_json(run) for run in batch.shared_runs]
    if batch.trace_chunks:
        content["trace_chunks"] = [_chunk_to_json(chunk) for chunk in batch.trace_chunks]
    if batch.naming.display_name is not None:
        content["display_name"] = batch.naming.display_name
    if batch.naming.labels:
        content["labels"] = dict(batch.naming.labels)
    if batch.commit:
        content["commit"] = True
    try:
        payload = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        raise invalid_field("batch", "must hold valid Unicode, and whole numbers of at most 64 bits") from None
    return EncodedBatch(batch, payload, hashlib.sha256(payload).digest())


def content_hash(batch: Batch) -> bytes:
    """SHA-256 of the canonical content without the sequence number: the same batch sent again has the same hash."""
    return encode_batch(batch).content_hash
