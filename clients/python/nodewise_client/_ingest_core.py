"""What an ingest writer decides, without a transport: batches, numbers, what is acknowledged, when to resume."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias

import nodewise_values as values
from nodewise_client._errors import Code, ConflictError, InternalError, NodewiseError, UnavailableError
from nodewise_client._measured_rows import GatheredRows, Piece, pieces
from nodewise_client._requests import message_of
from nodewise_client._resume import ResumePolicy, resumable
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as wire
from nodewise_values import Network, Observations, PhaseTimings, Workload

BATCH_ROWS: Final = 1000
LINGER_S: Final = 0.1
MAX_UNACKNOWLEDGED: Final = 64
# A piece of a trace is a batch of its own: well below what a gRPC message may have, and a full buffer is bearable.
CHUNK_BYTES: Final = 512 << 10

Given: TypeAlias = Observations | Iterable[Observations]
GivenPhases: TypeAlias = PhaseTimings | Iterable[PhaseTimings]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """A profile after a commit."""

    revision: int
    """Revision of the profile."""
    observations_count: int
    """Observations that count in it."""
    sequence_number: int
    """Number of the last batch that is part of it."""


def trace_chunks(
    source: BinaryIO, trace_id: str, *, trace_format: str, rank: int | None, world_size: int | None
) -> Iterator[profile_pb2.TraceChunk]:
    """Yield a trace in pieces, read as they are asked for. Raises ValueError where it has no bytes."""
    offset = 0
    piece = source.read(CHUNK_BYTES)
    if not piece:
        raise ValueError(f"trace {trace_id!r} has no bytes")
    while piece:
        following = source.read(CHUNK_BYTES)
        yield profile_pb2.TraceChunk(
            trace_id=trace_id,
            format="" if offset else trace_format,
            rank=None if offset else rank,
            world_size=None if offset else world_size,
            offset_bytes=offset,
            data=piece,
            last=not following,
        )
        offset += len(piece)
        piece = following


class IngestCore:
    """The state of one session. Not thread-safe: its writer guards it. Times are seconds of a monotonic clock."""

    def __init__(
        self,
        profile_id: str,
        session_id: str,
        *,
        policy: ResumePolicy,
        batch_rows: int = BATCH_ROWS,
        linger_s: float = LINGER_S,
        max_unacknowledged: int = MAX_UNACKNOWLEDGED,
    ) -> None:
        if batch_rows < 1 or max_unacknowledged < 1:
            raise ValueError("batch_rows and max_unacknowledged must be at least 1")
        self.profile_id = profile_id
        self.session_id = session_id
        self.durable = 0
        self.committed_number = 0
        self.revision = 0
        self.observations_count = 0
        self.is_open = False
        """Whether the server has reported what it stores; batches are numbered from then on."""
        self.progress_at: float | None = None
        """Since when the server is waited for without anything new being acknowledged; None = it is not waited for."""
        self._policy = policy
        self._batch_rows = batch_rows
        self._linger_s = linger_s
        self._max_unacknowledged = max_unacknowledged
        self._last_number = 0
        self._unacknowledged: deque[wire.ProfileBatch] = deque()
        self._sent_count = 0
        self._highest_sent = 0
        self._heard_at = 0.0
        self._stream_open = False
        self._attempts = 0
        self._rows: dict[type, GatheredRows] = {PhaseTimings: GatheredRows(), Observations: GatheredRows()}
        self._facts: dict[str, Any] = {}
        self._pending_since: float | None = None
        self._commit_number = 0

    # --- what comes in ---------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether more may be added before something is acknowledged."""
        return len(self._unacknowledged) < self._max_unacknowledged

    def pieces(self, rows: Given | GivenPhases) -> Iterator[Piece]:
        """What was given, cut so that no piece is larger than a batch. Reads iterables lazily."""
        if isinstance(rows, Observations | PhaseTimings):
            message_of(rows)  # what cannot be sent fails here, at the caller, and not later in whatever sends it
            yield from pieces(rows, self._batch_rows)
        else:
            for one in rows:
                yield from self.pieces(one)

    def add(self, piece: Piece, now: float) -> bool:
        """Add rows to the current batch; True if the sender must be woken."""
        was_empty, number = self._pending_since is None, self._last_number
        if not self._rows[piece.kind].fits(piece):
            self.seal()
        begin = piece.begin
        while begin < piece.end:
            rows = self._rows[piece.kind]
            end = min(piece.end, begin + self._batch_rows - self._pending_rows)
            rows.add(piece, begin, end)
            self._touch(now)
            if self._pending_rows >= self._batch_rows:
                self.seal()
            begin = end
        return was_empty or self._last_number > number

    def add_facts(self, workload: Workload | None, network: Network | None, now: float) -> None:
        """Put facts into the batch that is being filled."""
        facts_by_name = {
            name: facts for name, facts in (("workload", workload), ("network", network)) if facts is not None
        }
        for facts in facts_by_name.values():
            message_of(facts)  # what cannot be sent fails here, at the caller
        if facts_by_name.keys() & self._facts.keys():
            self.seal()
        if facts_by_name:
            self._facts |= facts_by_name
            self._touch(now)

    def add_chunk(self, chunk: profile_pb2.TraceChunk) -> None:
        """Queue a piece of a trace, after what is pending."""
        self.seal()
        self._queue(wire.ProfileBatch(trace_chunks=[chunk]))

    def seal(self) -> None:
        """Number what is pending, if anything is, and queue it."""
        if self._pending_since is not None:
            self._queue(self._take())

    def request_commit(self) -> int:
        """Queue the end of the unit; returns the number whose commit is to be waited for, 0 where nothing is open.

        Asked again before the first is answered, it is the same commit: no second one is queued.
        """
        if self._pending_since is None and self._commit_number == self._last_number:
            return self._commit_number
        batch = self._take()
        batch.commit = True
        self._queue(batch)
        self._commit_number = self._last_number
        return self._commit_number

    # --- what goes out ---------------------------------------------------------------------------------------------

    @property
    def last_number(self) -> int:
        """Number of the last batch that was queued."""
        return self._last_number

    @property
    def wants_stream(self) -> bool:
        """Whether there is anything to say to the server."""
        return not self.is_open or self._outstanding or self._pending_since is not None

    @property
    def has_uncommitted(self) -> bool:
        """Whether something was added, here or by an earlier writer of the session, that no commit covers."""
        return self._pending_since is not None or self._last_number > max(self.committed_number, self._commit_number)

    def linger_left(self, now: float) -> float | None:
        """Seconds until what is pending must go; None = nothing is pending."""
        return None if self._pending_since is None else max(0.0, self._pending_since + self._linger_s - now)

    def hung_at(self, timeout_s: float) -> float | None:
        """When the stream counts as hung unless the server says something before; None = nothing is expected of it."""
        expects_reply = self._sent_count > 0 or not self._stream_open
        return self._heard_at + timeout_s if expects_reply else None

    def open_request(self, now: float) -> wire.IngestProfileRequest:
        """The first message of a stream."""
        self._heard_at = now
        self._stream_open = False
        self._sent_count = 0
        opening = wire.OpenSession(profile_id=self.profile_id, session_id=self.session_id)
        return wire.IngestProfileRequest(open=opening)

    def next_request(self, now: float) -> wire.IngestProfileRequest | None:
        """The next batch to be sent on this stream; None = not yet."""
        if self._sent_count == len(self._unacknowledged) and self.linger_left(now) == 0.0:
            self.seal()
        if self._sent_count == len(self._unacknowledged):
            return None
        batch = self._unacknowledged[self._sent_count]
        if not self._sent_count:
            self._heard_at = now
        self._sent_count += 1
        self._highest_sent = max(self._highest_sent, batch.sequence_number)
        if self.progress_at is None:
            self.progress_at = now
        return wire.IngestProfileRequest(batch=batch)

    # --- what comes back -------------------------------------------------------------------------------------------

    def stream_opened(self, state: wire.IngestState, now: float) -> None:
        """The first reply of a stream says what is durable; sending goes on after it."""
        if not self.is_open:
            self.is_open = True
            self._last_number = self._highest_sent = self.durable = state.durable_sequence_number
            self._commit_number = state.committed_sequence_number
            self._progress(now)
        if state.durable_sequence_number < self.durable:
            raise InternalError(
                f"the server acknowledged batch {self.durable} of session {self.session_id} and now has only "
                f"{state.durable_sequence_number}",
                code=Code.DATA_LOSS,
                metadata={"sessionId": self.session_id, "sequenceNumber": str(state.durable_sequence_number)},
            )
        self._stream_open = True
        self._sent_count = 0
        self.acknowledge(state, now)

    def acknowledge(self, state: wire.IngestState, now: float) -> None:
        """Forget what is durable."""
        durable = state.durable_sequence_number
        # Compared with what was sent, not with what is queued: a batch that was never sent cannot be durable, and
        # dropping it would lose it.
        if durable > self._highest_sent:
            raise ConflictError(
                f"session {self.session_id} holds batch {durable}, which this writer has not written: another writer "
                "uses the same session; give every writer a session of its own",
                code=Code.ABORTED,
                metadata={"sessionId": self.session_id, "sequenceNumber": str(durable)},
            )
        progress = durable > self.durable or state.committed_sequence_number > self.committed_number
        while self._unacknowledged and self._unacknowledged[0].sequence_number <= durable:
            self._unacknowledged.popleft()
            self._sent_count = max(0, self._sent_count - 1)
        self.durable = max(self.durable, durable)
        self.committed_number = max(self.committed_number, state.committed_sequence_number)
        self.revision = state.revision
        self.observations_count = state.observations_count
        if progress:
            self._progress(now)
        self._heard_at = now
        if not self._outstanding:
            self._attempts = 0
            self.progress_at = None

    def commit_result(self) -> CommitResult:
        """What the server last said of the profile."""
        return CommitResult(
            revision=self.revision, observations_count=self.observations_count, sequence_number=self.committed_number
        )

    def stream_ended(self, error: NodewiseError | None, now: float) -> float:
        """Seconds to pause before the session is opened again; raises the error where that would not help."""
        self._sent_count = 0
        self._stream_open = False
        if error is not None and not resumable(error):
            raise error
        if self.is_open and self.linger_left(now) == 0.0:
            self.seal()
        if not self.wants_stream:
            self._attempts = 0
            self.progress_at = None
            return 0.0
        if self.progress_at is None:
            self.progress_at = now
        self._attempts += 1
        pause = self._policy.pause_s(self._attempts, error)
        elapsed_s = now - self.progress_at
        patience = self._policy.patience_s(opened=self.is_open)
        if self._attempts < self._policy.max_attempts and elapsed_s + pause <= patience:
            return pause
        if error is not None and not self.is_open:
            raise error
        last = "the server ended the stream" if error is None else error.message
        raise UnavailableError(
            f"gave up after {self._attempts} streams in {elapsed_s:.1f} s without progress; batches up to "
            f"{self.durable} are durable, {len(self._unacknowledged)} after them are not acknowledged. Last: {last}",
            code=Code.UNAVAILABLE if error is None else error.code,
            reason="" if error is None else error.reason,
            metadata={"sessionId": self.session_id, "durableSequenceNumber": str(self.durable)},
        ) from error

    # --- within ----------------------------------------------------------------------------------------------------

    @property
    def _outstanding(self) -> bool:
        return bool(self._unacknowledged) or self.committed_number < self._commit_number

    @property
    def _pending_rows(self) -> int:
        return sum(rows.count for rows in self._rows.values())

    def _touch(self, now: float) -> None:
        if self._pending_since is None:
            self._pending_since = now

    def _progress(self, now: float) -> None:
        self._attempts = 0
        self.progress_at = now

    def _take(self) -> wire.ProfileBatch:
        batch: wire.ProfileBatch = message_of(
            values.ProfileBatch(  # its module has all of the service's messages: only a writer needs them
                phase_timings=self._rows[PhaseTimings].value(PhaseTimings),
                observations=self._rows[Observations].value(Observations),
                **self._facts,
            )
        )
        self._rows, self._facts, self._pending_since = {kind: GatheredRows() for kind in self._rows}, {}, None
        return batch

    def _queue(self, batch: wire.ProfileBatch) -> None:
        self._last_number += 1
        batch.sequence_number = self._last_number
        self._unacknowledged.append(batch)
