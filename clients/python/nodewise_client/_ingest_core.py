"""What an ingest writer decides, without a transport: batches, numbers, what is acknowledged, when to resume."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias, TypeVar

from nodewise_client._columns import absent, broadcast
from nodewise_client._configurations import Columns, configurations, count_rows, row_columns
from nodewise_client._errors import Code, ConflictError, InternalError, NodewiseError, UnavailableError
from nodewise_client._requests import message_of
from nodewise_client._resume import ResumePolicy, resumable
from nodewise_protos.v1 import profile_pb2
from nodewise_protos.v1 import profile_service_pb2 as wire
from nodewise_values import Configurations, Network, Observations, PhaseTimings, Workload
from nodewise_values.fact import Fact
from nodewise_values.facts import OBSERVATIONS, PHASE_TIMINGS

Rows = TypeVar("Rows", Observations, PhaseTimings)

BATCH_ROWS: Final = 1000
LINGER_S: Final = 0.1
MAX_UNACKNOWLEDGED: Final = 64
# A piece of a trace is a batch of its own: well below what a gRPC message may have, and a full buffer is bearable.
CHUNK_BYTES: Final = 512 << 10

Given: TypeAlias = Observations | Iterable[Observations]
GivenPhases: TypeAlias = PhaseTimings | Iterable[PhaseTimings]

# Columns whose absence can be written row by row. Rows that differ in any other column cannot share a batch: there,
# absence means "as in the job's evidence", which no value says.
OPTIONAL: Final = frozenset({
    "measured_at_unix_seconds", "steps_counts", "step_variation", "exposed_sync_seconds", "compute_variation",
    "transfer_variation", "hidden_seconds",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """A profile after a commit."""

    revision: int
    """Revision of the profile."""
    observations_count: int
    """Observations that count in it."""
    sequence_number: int
    """Number of the last batch that is part of it."""


@dataclass(slots=True)
class _Rows:
    """Rows that wait for their batch, by columns. All rows have the same required columns."""

    count: int
    configurations: dict[str, list[Any]]
    measured: dict[str, list[Any]]

    @classmethod
    def empty(cls) -> _Rows:
        return cls(0, {}, {})

    def fits(self, configurations: Columns, measured: Columns) -> bool:
        return not self.count or (
            self.configurations.keys() == configurations.keys()
            and self.measured.keys() - OPTIONAL == measured.keys() - OPTIONAL
        )

    def add(self, piece: Piece, begin: int, end: int) -> None:
        for name, values in piece.configurations.items():
            self.configurations.setdefault(name, []).extend(values[begin:end])
        for name in self.measured.keys() | piece.measured.keys():
            nothing = absent(piece.facts, name)
            column = self.measured.setdefault(name, [nothing] * self.count)
            column.extend(piece.measured[name][begin:end] if name in piece.measured else [nothing] * (end - begin))
        self.count += end - begin

    def value(self, kind: type[Rows]) -> Rows:
        """The rows as a value."""
        columns: dict[str, Any] = {"configurations": configurations(**self.configurations), **self.measured}
        return kind(**columns)


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that go into one batch together."""

    facts: Mapping[str, Fact]
    configurations: Columns
    measured: Columns
    begin: int
    end: int

    @property
    def phases(self) -> bool:
        """Whether they are timed phases."""
        return self.facts is PHASE_TIMINGS


def trace_chunks(
    source: BinaryIO, trace_id: str, *, trace_format: str, rank: int, world_size: int
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
            rank=0 if offset else rank,
            world_size=0 if offset else world_size,
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
            raise ValueError("batch_rows and max_unacknowledged are at least 1")
        self.profile_id = profile_id
        self.session_id = session_id
        self.durable = 0
        self.committed = 0
        self.revision = 0
        self.observations_count = 0
        self.opened = False
        """Whether the server has ever told what it holds; numbers are given from then on."""
        self.progress_at: float | None = None
        """Since when the server is waited for without anything new being acknowledged; None = it is not waited for."""
        self._policy = policy
        self._batch_rows = batch_rows
        self._linger_s = linger_s
        self._max_unacknowledged = max_unacknowledged
        self._last_number = 0
        self._unacknowledged: deque[wire.ProfileBatch] = deque()
        self._sent = 0
        self._highest_sent = 0
        self._heard_at = 0.0
        self._stream_open = False
        self._attempts = 0
        self._observations = _Rows.empty()
        self._phases = _Rows.empty()
        self._workload: Workload | None = None
        self._network: Network | None = None
        self._pending_since: float | None = None
        self._commit_number = 0

    # --- what comes in ---------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether more may be added before something is acknowledged."""
        return len(self._unacknowledged) < self._max_unacknowledged

    def pieces(self, given: Given | GivenPhases) -> Iterator[Piece]:
        """What was given, cut so that no piece is larger than a batch. Reads iterables lazily."""
        if isinstance(given, Observations):
            if given.numbers:
                raise ValueError("observations are numbered by the server: leave numbers empty in what is sent")
            yield from self._cut(given, OBSERVATIONS)
        elif isinstance(given, PhaseTimings):
            yield from self._cut(given, PHASE_TIMINGS)
        else:
            for one in given:
                yield from self.pieces(one)

    def add(self, piece: Piece, now: float) -> bool:
        """Put rows into the batch that is being filled; True where that is news to whoever sends."""
        started, number = self._pending_since is None, self._last_number
        rows = self._phases if piece.phases else self._observations
        if not rows.fits(piece.configurations, piece.measured):
            self.seal()
        begin = piece.begin
        while begin < piece.end:
            rows = self._phases if piece.phases else self._observations
            end = min(piece.end, begin + self._batch_rows - self._pending_rows)
            rows.add(piece, begin, end)
            self._touch(now)
            if self._pending_rows >= self._batch_rows:
                self.seal()
            begin = end
        return started or self._last_number > number

    def add_facts(self, workload: Workload | None, network: Network | None, now: float) -> None:
        """Put facts into the batch that is being filled."""
        if (workload is not None and self._workload is not None) or (network is not None and self._network is not None):
            self.seal()
        if workload is not None:
            message_of(workload)  # what cannot be sent fails here, at the caller
            self._workload = workload
        if network is not None:
            message_of(network)
            self._network = network
        if workload is not None or network is not None:
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
        return not self.opened or self._outstanding or self._pending_since is not None

    @property
    def uncommitted(self) -> bool:
        """Whether something was added, here or by an earlier writer of the session, that no commit covers."""
        return self._pending_since is not None or self._last_number > max(self.committed, self._commit_number)

    def linger_left(self, now: float) -> float | None:
        """Seconds until what is pending must go; None = nothing is pending."""
        return None if self._pending_since is None else max(0.0, self._pending_since + self._linger_s - now)

    def hung_at(self, timeout_s: float) -> float | None:
        """When the stream counts as hung unless the server says something before; None = nothing is expected of it."""
        awaited = self._sent > 0 or not self._stream_open
        return self._heard_at + timeout_s if awaited else None

    def open_request(self, now: float) -> wire.IngestProfileRequest:
        """The first message of a stream."""
        self._heard_at = now
        self._stream_open = False
        self._sent = 0
        opening = wire.OpenSession(profile_id=self.profile_id, session_id=self.session_id)
        return wire.IngestProfileRequest(open=opening)

    def next_request(self, now: float) -> wire.IngestProfileRequest | None:
        """The next batch to be sent on this stream; None = not yet."""
        if self._sent == len(self._unacknowledged) and self.linger_left(now) == 0.0:
            self.seal()
        if self._sent == len(self._unacknowledged):
            return None
        batch = self._unacknowledged[self._sent]
        if not self._sent:
            self._heard_at = now
        self._sent += 1
        self._highest_sent = max(self._highest_sent, batch.sequence_number)
        if self.progress_at is None:
            self.progress_at = now
        return wire.IngestProfileRequest(batch=batch)

    # --- what comes back -------------------------------------------------------------------------------------------

    def stream_opened(self, reply: wire.IngestProfileResponse, now: float) -> None:
        """The first reply of a stream says what is durable; sending goes on after it."""
        if not self.opened:
            self.opened = True
            self._last_number = self._highest_sent = self.durable = reply.durable_sequence_number
            self._commit_number = reply.committed_sequence_number
            self._progress(now)
        if reply.durable_sequence_number < self.durable:
            raise InternalError(
                f"the server acknowledged batch {self.durable} of session {self.session_id} and now knows only "
                f"{reply.durable_sequence_number}",
                code=Code.DATA_LOSS,
                metadata={
                    "session_id": self.session_id,
                    "sequence_number": str(reply.durable_sequence_number),
                },
            )
        self._stream_open = True
        self._sent = 0
        self.acknowledge(reply, now)

    def acknowledge(self, reply: wire.IngestProfileResponse, now: float) -> None:
        """Forget what is durable."""
        durable = reply.durable_sequence_number
        # Compared with what was sent, not with what is queued: a batch that was never sent cannot be durable, and
        # dropping it would lose it.
        if durable > self._highest_sent:
            raise ConflictError(
                f"session {self.session_id} holds batch {durable}, which this writer has not written: another writer "
                "uses the same session; give every writer a session of its own",
                code=Code.ABORTED,
                metadata={"session_id": self.session_id, "sequence_number": str(durable)},
            )
        progress = durable > self.durable or reply.committed_sequence_number > self.committed
        while self._unacknowledged and self._unacknowledged[0].sequence_number <= durable:
            self._unacknowledged.popleft()
            self._sent = max(0, self._sent - 1)
        self.durable = max(self.durable, durable)
        self.committed = max(self.committed, reply.committed_sequence_number)
        self.revision = reply.revision
        self.observations_count = reply.observations_count
        if progress:
            self._progress(now)
        self._heard_at = now
        if not self._outstanding:
            self._attempts = 0
            self.progress_at = None

    def commit_result(self) -> CommitResult:
        """What the server last said of the profile."""
        return CommitResult(
            revision=self.revision, observations_count=self.observations_count, sequence_number=self.committed
        )

    def stream_ended(self, error: NodewiseError | None, now: float) -> float:
        """Seconds to pause before the session is opened again; raises the error where that would not help."""
        self._sent = 0
        self._stream_open = False
        if error is not None and not resumable(error):
            raise error
        if self.opened and self.linger_left(now) == 0.0:
            self.seal()
        if not self.wants_stream:
            self._attempts = 0
            self.progress_at = None
            return 0.0
        if self.progress_at is None:
            self.progress_at = now
        self._attempts += 1
        pause = self._policy.pause_s(self._attempts, error)
        elapsed = now - self.progress_at
        patience = self._policy.patience_s(opened=self.opened)
        if self._attempts < self._policy.max_attempts and elapsed + pause <= patience:
            return pause
        if error is not None and not self.opened:
            raise error
        last = "the server ended the stream" if error is None else error.message
        raise UnavailableError(
            f"gave up after {self._attempts} streams in {elapsed:.1f} s without progress; batches up to {self.durable} "
            f"are durable, {len(self._unacknowledged)} after them are not acknowledged. Last: {last}",
            code=Code.UNAVAILABLE if error is None else error.code,
            reason="" if error is None else error.reason,
            metadata={"session_id": self.session_id, "durable_sequence_number": str(self.durable)},
        ) from error

    # --- within ----------------------------------------------------------------------------------------------------

    @property
    def _outstanding(self) -> bool:
        return bool(self._unacknowledged) or self.committed < self._commit_number

    @property
    def _pending_rows(self) -> int:
        return self._observations.count + self._phases.count

    def _cut(self, given: Observations | PhaseTimings, facts: Mapping[str, Fact]) -> Iterator[Piece]:
        # What cannot be sent fails here, at the caller, and not later in whatever sends it.
        message_of(given)
        ran = given.configurations or Configurations()
        rows = max(count_rows(ran), *(len(getattr(given, name)) for name in facts))
        configurations = row_columns(ran, rows)
        columns = {name: broadcast(tuple(getattr(given, name)), rows, name) for name in facts}
        measured = {name: column for name, column in columns.items() if column}
        for begin in range(0, rows, self._batch_rows):
            yield Piece(facts, configurations, measured, begin, min(rows, begin + self._batch_rows))

    def _touch(self, now: float) -> None:
        if self._pending_since is None:
            self._pending_since = now

    def _progress(self, now: float) -> None:
        self._attempts = 0
        self.progress_at = now

    def _take(self) -> wire.ProfileBatch:
        batch = wire.ProfileBatch()
        if self._workload is not None:
            batch.workload.CopyFrom(message_of(self._workload))
        if self._network is not None:
            batch.network.CopyFrom(message_of(self._network))
        if self._phases.count:
            batch.phase_timings.CopyFrom(message_of(self._phases.value(PhaseTimings)))
        if self._observations.count:
            batch.observations.CopyFrom(message_of(self._observations.value(Observations)))
        self._phases = _Rows.empty()
        self._observations = _Rows.empty()
        self._workload = self._network = self._pending_since = None
        return batch

    def _queue(self, batch: wire.ProfileBatch) -> None:
        self._last_number += 1
        batch.sequence_number = self._last_number
        self._unacknowledged.append(batch)
