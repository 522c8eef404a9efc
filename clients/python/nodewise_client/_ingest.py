"""The ingest writer: batches, numbers, resends and resumes, so that what it acknowledged is there exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, Final, Protocol, Self

import grpc

from nodewise_client._errors import CallCancelledError, Code, DeadlineExceededError, InternalError, NodewiseError
from nodewise_client._ingest_core import CommitResult, Given, GivenPhases, IngestCore, trace_chunks
from nodewise_client._resume import ResumePolicy
from nodewise_client._workload import Network, Workload
from nodewise_protos.v1 import profile_service_pb2 as wire


class _Call(Protocol):
    """A stream that was opened."""

    def __iter__(self) -> Iterator[wire.IngestProfileResponse]: ...
    def cancel(self) -> object: ...


OpenStream = Callable[[Iterator[wire.IngestProfileRequest]], _Call]


class _Feed:
    """What one stream sends. gRPC reads it from a thread of its own."""

    def __init__(self, core: IngestCore, changed: threading.Condition, clock: Callable[[], float]) -> None:
        self._core: Final = core
        self._changed: Final = changed
        self._clock: Final = clock
        self._opening = True
        self.ready = False
        """The server has told what it holds."""
        self.finished = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> wire.IngestProfileRequest:
        with self._changed:
            if self._opening:
                self._opening = False
                return self._core.open_request(self._clock())
            while not self.finished:
                now = self._clock()
                if self.ready:
                    request = self._core.next_request(now)
                    if request is not None:
                        return request
                self._changed.wait(self._core.linger_left(now) if self.ready else None)
        raise StopIteration


class IngestWriter:
    """Writes one session into a profile; made by `Client.ingest`, used in a `with` block.

    Rows are sent in batches of 1,000 or after 100 ms, whichever comes first. Whatever is not acknowledged is kept, in a
    bounded buffer, and sent again under the same number when the server comes back; when the buffer is full, calls
    wait. Leaving the block commits what is not committed, unless an exception leaves it: then nothing since the last
    commit counts.
    """

    def __init__(
        self,
        core: IngestCore,
        open_stream: OpenStream,
        *,
        explain: Callable[[grpc.RpcError], NodewiseError],
        policy: ResumePolicy,
        acknowledge_timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._core: Final = core
        self._open_stream: Final = open_stream
        self._explain: Final = explain
        self._policy: Final = policy
        self._acknowledge_timeout_s: Final = acknowledge_timeout_s
        self._clock: Final = clock
        self._changed: Final = threading.Condition()
        self._thread: threading.Thread | None = None
        self._call: _Call | None = None
        self._feed: _Feed | None = None
        self._failure: NodewiseError | None = None
        self._closing = False

    # --- use -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("a writer is used once; ask the client for another one")
        self._thread = threading.Thread(target=self._run, name="nodewise-ingest", daemon=True)
        self._thread.start()
        try:
            with self._changed:
                self._wait(lambda: self._core.opened, "the session to open")
        except BaseException:
            self._shut(cancel=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._shut(cancel=True)
        else:
            self.close()

    @property
    def profile_id(self) -> str:
        """The profile that is written to."""
        return self._core.profile_id

    @property
    def session_id(self) -> str:
        """The session; one writer at a time may use it."""
        return self._core.session_id

    @property
    def durable_sequence_number(self) -> int:
        """Number of the last batch that the server holds durably together with all before it."""
        return self._core.durable

    def observe(self, observations: Given) -> None:
        """Add measured runs: one, many by columns, or any iterable of them."""
        for piece in self._core.pieces(observations):
            with self._changed:
                self._make_room()
                if self._core.add(piece, self._clock()):
                    self._changed.notify_all()

    def phases(self, timings: GivenPhases) -> None:
        """Add timed phases: rows by columns, or any iterable of them."""
        for piece in self._core.pieces(timings):
            with self._changed:
                self._make_room()
                if self._core.add(piece, self._clock()):
                    self._changed.notify_all()

    def facts(self, *, workload: Workload | None = None, network: Network | None = None) -> None:
        """Add facts of the workload or of the network. Facts already known must agree."""
        with self._changed:
            self._make_room()
            self._core.add_facts(workload, network, self._clock())
            self._changed.notify_all()

    def trace(
        self, source: BinaryIO, *, trace_id: str, trace_format: str = "kineto", rank: int = 0, world_size: int = 1
    ) -> None:
        """Add a trace, read to its end; `redacted` takes paths and names out of it before.

        Args:
            source: its bytes, best compressed with gzip.
            trace_id: a name within the session, one per trace.
            trace_format: "kineto" for PyTorch's Chrome JSON.
            rank: the process that recorded it.
            world_size: processes of the job.
        """
        for chunk in trace_chunks(
            source, trace_id=trace_id, trace_format=trace_format, rank=rank, world_size=world_size
        ):
            with self._changed:
                self._make_room()
                self._core.add_chunk(chunk)
                self._changed.notify_all()

    def flush(self, *, timeout_s: float | None = None) -> int:
        """Send what waits, and wait until it is durable; returns the durable number. It counts after a commit only."""
        with self._changed:
            self._check()
            self._core.seal()
            self._changed.notify_all()
            number = self._core.last_number
            self._wait(lambda: self._core.durable >= number, f"batch {number} to be durable", timeout_s)
            return self._core.durable

    def commit(self, *, timeout_s: float | None = None) -> CommitResult:
        """End the unit: wait until everything added so far is durable and counts.

        Without `timeout_s` it waits as long as the server makes progress. After a DeadlineExceededError it may be
        called again: the same commit is then waited for. With nothing to commit it answers what is known.
        """
        with self._changed:
            self._check()
            number = self._core.request_commit()
            self._changed.notify_all()
            self._wait(lambda: self._core.committed >= number, f"the commit in batch {number}", timeout_s)
            return self._core.commit_result()

    def close(self) -> None:
        """Commit what is not committed, and end the session's stream. A `with` block does this."""
        if self._closing:
            return
        try:
            self._check()
            if self._core.uncommitted:
                self.commit()
        except BaseException:
            self._shut(cancel=True)
            raise
        self._shut(cancel=False)

    # --- waiting, under the lock -----------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._thread is None or self._closing:
            raise RuntimeError("the writer is not open; use it in a with block")

    def _make_room(self) -> None:
        self._check()
        self._wait(lambda: self._core.has_room, "room in the buffer")
        self._check()

    def _wait(self, done: Callable[[], bool], what: str, timeout_s: float | None = None) -> None:
        start = self._clock()
        while not done():
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise CallCancelledError("the writer was closed meanwhile", code=Code.CANCELLED)
            now = self._clock()
            limit = max(start, self._core.progress_at or start) + self._policy.deadline_s
            if timeout_s is not None:
                limit = min(limit, start + timeout_s)
            if now >= limit:
                raise DeadlineExceededError(
                    f"waited {now - start:.1f} s for {what}; batches up to {self._core.durable} are durable",
                    code=Code.DEADLINE_EXCEEDED,
                    metadata={"durable_sequence_number": str(self._core.durable)},
                )
            hung_at = self._core.hung_at(self._acknowledge_timeout_s) if self._call is not None else None
            if hung_at is not None and now >= hung_at and self._call is not None:
                self._call.cancel()
                self._call = None
            # What is sent meanwhile wakes nobody here: look again before it can be overdue.
            again = now + self._acknowledge_timeout_s
            if hung_at is not None and hung_at > now:
                again = hung_at
            self._changed.wait(min(limit, again) - now)

    # --- the stream, in a thread of its own ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._may_stream():
                error = self._stream()
                with self._changed:
                    if self._closing:
                        return
                    pause = self._core.stream_ended(error, self._clock())
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closing, pause)
        except NodewiseError as error:
            self._fail(error)
        finally:
            # Nobody may wait for a thread that is gone, whatever ended it.
            self._fail(InternalError("the writer's thread ended unexpectedly", code=Code.INTERNAL))

    def _may_stream(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._core.wants_stream)
            return not self._closing

    def _stream(self) -> NodewiseError | None:
        """Run one stream to its end; returns why it ended. Raises what a further stream would not help."""
        feed = _Feed(self._core, self._changed, self._clock)
        call = self._open_stream(feed)
        with self._changed:
            self._call, self._feed = call, feed
            if self._closing:
                call.cancel()
        try:
            self._read(call, feed)
        except grpc.RpcError as failure:
            return self._explain(failure)
        finally:
            call.cancel()
            with self._changed:
                feed.finished = True
                self._call = self._feed = None
                self._changed.notify_all()
        return None

    def _read(self, call: Iterable[wire.IngestProfileResponse], feed: _Feed) -> None:
        for reply in call:
            with self._changed:
                if feed.ready:
                    self._core.acknowledge(reply, self._clock())
                else:
                    self._core.stream_opened(reply, self._clock())
                    feed.ready = True
                self._changed.notify_all()

    def _fail(self, error: NodewiseError) -> None:
        with self._changed:
            if self._failure is None and not self._closing:
                self._failure = error
            self._changed.notify_all()

    def _shut(self, *, cancel: bool) -> None:
        with self._changed:
            self._closing = True
            if self._feed is not None:
                self._feed.finished = True
            if cancel and self._call is not None:
                self._call.cancel()
            self._changed.notify_all()
        if self._thread is None:
            return
        self._thread.join(self._acknowledge_timeout_s)
        with self._changed:
            if self._call is not None:
                self._call.cancel()
        self._thread.join(self._acknowledge_timeout_s)
