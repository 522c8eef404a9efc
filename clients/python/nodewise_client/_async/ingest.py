"""The ingest writer for asyncio: it batches, numbers and resends rows, so that each acknowledged one is stored once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import BinaryIO, Final, Self

from nodewise_client._async import seam
from nodewise_client._errors import CallCancelledError, Code, DeadlineExceededError, InternalError, NodewiseError
from nodewise_client._ingest_core import CommitResult, IngestCore, trace_chunks
from nodewise_client._measured_rows import Piece
from nodewise_client._resume import ResumePolicy
from nodewise_protos.v1 import profile_service_pb2 as wire
from nodewise_values import Network, Workload


class _Stream:
    """The state of one stream."""

    def __init__(self) -> None:
        self.call: seam.IngestCall | None = None
        self.ready = False
        """The server has reported what it stores."""
        self.is_finished = False

    def cancel(self) -> None:
        """End the stream from here."""
        if self.call is not None:
            self.call.cancel()
            self.call = None


class AsyncIngestWriter:
    """Writes one session into a profile; made by `AsyncClient.ingest`, used in an `async with` block.

    Rows are sent in batches of 1,000 or after 100 ms, whichever comes first. Batches that are not acknowledged stay in
    a bounded buffer and are sent again under the same numbers after a reconnect; when the buffer is full, calls wait.
    The end of the block commits pending rows, unless it ends with an exception: then nothing since the last commit
    counts.
    """

    def __init__(
        self,
        core: IngestCore,
        open_stream: seam.OpenStream,
        *,
        explain: Callable[[seam.Failure], NodewiseError],
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
        self._notifier: Final = seam.Notifier()
        self._runner: seam.Runner | None = None
        self._stream = _Stream()
        self._failure: NodewiseError | None = None
        self._closing = False

    # --- use -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._runner is not None:
            raise RuntimeError("a writer can be used only once; get another one from the client")
        self._runner = seam.Runner(self._run, "nodewise-ingest")
        try:
            async with self._notifier:
                await self._wait(lambda: self._core.is_open, "the session to open")
        except BaseException:
            await self._shut(cancel=True)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            await self._shut(cancel=True)
        else:
            await self.close()

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
        """Number of the last batch that is durable on the server, with all batches before it."""
        return self._core.durable

    async def observe(self, observations: seam.ManyObservations) -> None:
        """Add measured runs: one, many by columns, or any iterable of them."""
        async for part in seam.parts(observations):
            for piece in self._core.pieces(part):
                await self._add(piece)

    async def phases(self, timings: seam.ManyPhases) -> None:
        """Add timed phases: rows by columns, or any iterable of them."""
        async for part in seam.parts(timings):
            for piece in self._core.pieces(part):
                await self._add(piece)

    async def facts(self, *, workload: Workload | None = None, network: Network | None = None) -> None:
        """Add facts of the workload or of the network. They must agree with facts that are already stored."""
        async with self._notifier:
            await self._make_room()
            self._core.add_facts(workload, network, self._clock())
            self._notifier.notify_all()

    async def trace(
        self,
        source: BinaryIO,
        *,
        trace_id: str,
        trace_format: str = "kineto",
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        """Add a trace, read to its end; `redacted` takes paths and names out of it before.

        Args:
            source: its bytes, best compressed with gzip.
            trace_id: a name within the session, one per trace.
            trace_format: "kineto" for PyTorch's Chrome JSON.
            rank: the process that recorded it; None = as the trace says.
            world_size: processes of the job; None = as the trace says.
        """
        for chunk in trace_chunks(
            source, trace_id=trace_id, trace_format=trace_format, rank=rank, world_size=world_size
        ):
            async with self._notifier:
                await self._make_room()
                self._core.add_chunk(chunk)
                self._notifier.notify_all()

    async def flush(self, *, timeout_s: float | None = None) -> int:
        """Send pending rows and wait until they are durable; returns the durable number. They count after a commit."""
        async with self._notifier:
            self._check()
            self._core.seal()
            self._notifier.notify_all()
            number = self._core.last_number
            await self._wait(lambda: self._core.durable >= number, f"batch {number} to be durable", timeout_s)
            return self._core.durable

    async def commit(self, *, timeout_s: float | None = None) -> CommitResult:
        """Commit everything added so far, and wait until it is durable.

        Without `timeout_s` it waits as long as the server makes progress. After a DeadlineExceededError it may be
        called again: it then waits for the same commit. With nothing to commit it returns the current state.
        """
        async with self._notifier:
            self._check()
            number = self._core.request_commit()
            self._notifier.notify_all()
            await self._wait(lambda: self._core.committed_number >= number, f"the commit in batch {number}", timeout_s)
            return self._core.commit_result()

    async def close(self) -> None:
        """Commit pending rows, and end the session's stream; the end of an `async with` block does so too."""
        if self._closing:
            return
        try:
            self._check()
            if self._core.has_uncommitted:
                await self.commit()
        except BaseException:
            await self._shut(cancel=True)
            raise
        await self._shut(cancel=False)

    # --- waiting, under the lock of what is awaited ----------------------------------------------------------------

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._runner is None or self._closing:
            raise RuntimeError("the writer is not open; use it in an async with block")

    async def _make_room(self) -> None:
        self._check()
        await self._wait(lambda: self._core.has_room, "room in the buffer")
        self._check()

    async def _wait(self, condition: Callable[[], bool], what: str, timeout_s: float | None = None) -> None:
        start = self._clock()
        while not condition():
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
                    metadata={"durableSequenceNumber": str(self._core.durable)},
                )
            hung_at = self._core.hung_at(self._acknowledge_timeout_s) if self._stream.call is not None else None
            if hung_at is not None and now >= hung_at:
                self._stream.cancel()
            # Sending does not wake this task: check again before a reply can be overdue.
            again = now + self._acknowledge_timeout_s
            if hung_at is not None and hung_at > now:
                again = hung_at
            await self._notifier.wait(min(limit, again) - now)

    # --- the stream, beside the user -------------------------------------------------------------------------------

    async def _add(self, piece: Piece) -> None:
        async with self._notifier:
            await self._make_room()
            if self._core.add(piece, self._clock()):
                self._notifier.notify_all()

    async def _run(self) -> None:
        try:
            while await self._may_stream():
                error = await self._one_stream()
                async with self._notifier:
                    if self._closing:
                        return
                    pause = self._core.stream_ended(error, self._clock())
                    self._notifier.notify_all()
                    await self._notifier.wait_for(lambda: self._closing, pause)
        except NodewiseError as error:
            await self._fail(error)
        finally:
            # No task may wait for a stream after its task ended, whatever the reason.
            await self._fail(InternalError("the writer ended unexpectedly", code=Code.INTERNAL))

    async def _may_stream(self) -> bool:
        async with self._notifier:
            await self._notifier.wait_for(lambda: self._closing or self._core.wants_stream)
            return not self._closing

    async def _one_stream(self) -> NodewiseError | None:
        """Run one stream to its end; returns why it ended. Raises errors that another stream would not resolve."""
        stream = _Stream()
        call = self._open_stream(self._requests(stream))
        async with self._notifier:
            stream.call, self._stream = call, stream
            if self._closing:
                stream.cancel()
        try:
            async for reply in seam.replies(call):
                await self._hear(stream, reply)
        except seam.RpcError as failure:
            return self._explain(failure)
        finally:
            call.cancel()
            async with self._notifier:
                stream.is_finished = True
                stream.call = None
                self._notifier.notify_all()
        return None

    async def _hear(self, stream: _Stream, reply: wire.IngestProfileResponse) -> None:
        async with self._notifier:
            if stream.ready:
                self._core.acknowledge(reply.state, self._clock())
            else:
                self._core.stream_opened(reply.state, self._clock())
                stream.ready = True
            self._notifier.notify_all()

    async def _requests(self, stream: _Stream) -> AsyncIterator[wire.IngestProfileRequest]:
        """Yield the requests of one stream, never under the lock: gRPC decides when to read them."""
        async with self._notifier:
            request: wire.IngestProfileRequest | None = self._core.open_request(self._clock())
        while request is not None:
            yield request
            request = await self._next_request(stream)

    async def _next_request(self, stream: _Stream) -> wire.IngestProfileRequest | None:
        async with self._notifier:
            while not stream.is_finished:
                now = self._clock()
                request = self._core.next_request(now) if stream.ready else None
                if request is not None:
                    return request
                await self._notifier.wait(self._core.linger_left(now) if stream.ready else None)
        return None

    async def _fail(self, error: NodewiseError) -> None:
        async with self._notifier:
            if self._failure is None and not self._closing:
                self._failure = error
            self._notifier.notify_all()

    async def _shut(self, *, cancel: bool) -> None:
        async with self._notifier:
            self._closing = True
            self._stream.is_finished = True
            if cancel:
                self._stream.cancel()
            self._notifier.notify_all()
        if self._runner is None:
            return
        await self._runner.join(self._acknowledge_timeout_s)
        async with self._notifier:
            self._stream.cancel()
        await self._runner.end(self._acknowledge_timeout_s)
