"""The ingest writer for asyncio; what it does is told in `_ingest`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable
from types import TracebackType
from typing import BinaryIO, Final, Protocol, Self

import grpc

from nodewise_client._errors import CallCancelledError, Code, DeadlineExceededError, InternalError, NodewiseError
from nodewise_client._evidence import Observation, Observations, PhaseTimings
from nodewise_client._ingest_core import CommitResult, Given, GivenPhases, IngestCore, Piece, trace_chunks
from nodewise_client._resume import ResumePolicy
from nodewise_client._workload import Network, Workload
from nodewise_protos.v1 import profile_service_pb2 as wire


class _Call(Protocol):
    """A stream that was opened."""

    def __aiter__(self) -> AsyncIterator[wire.IngestProfileResponse]: ...
    def cancel(self) -> object: ...


AioOpenStream = Callable[[AsyncIterator[wire.IngestProfileRequest]], _Call]


class _Signal:
    """Wakes all that wait. Within one event loop nothing is missed between looking and waiting."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, timeout_s: float | None) -> None:
        event = self._event
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()


class _Stream:
    """The state of one stream."""

    def __init__(self) -> None:
        self.call: _Call | None = None
        self.ready = False
        """The server has told what it holds."""
        self.finished = False
        self.given_up = False
        """Cancelled from here because the server no longer said anything."""


class AsyncIngestWriter:
    """Writes one session into a profile; made by `AsyncClient.ingest`, used in an `async with` block.

    Rows are sent in batches of 1,000 or after 100 ms, whichever comes first. Whatever is not acknowledged is kept, in a
    bounded buffer, and sent again under the same number when the server comes back; when the buffer is full, calls
    wait. Leaving the block commits what is not committed, unless an exception leaves it: then nothing since the last
    commit counts.
    """

    def __init__(
        self,
        core: IngestCore,
        open_stream: AioOpenStream,
        *,
        explain: Callable[[grpc.aio.AioRpcError], NodewiseError],
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
        self._changed: Final = _Signal()
        self._task: asyncio.Task[None] | None = None
        self._stream = _Stream()
        self._failure: NodewiseError | None = None
        self._closing = False

    # --- use -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise RuntimeError("a writer is used once; ask the client for another one")
        self._task = asyncio.create_task(self._run(), name="nodewise-ingest")
        try:
            await self._wait(lambda: self._core.opened, "the session to open")
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
        """Number of the last batch that the server holds durably together with all before it."""
        return self._core.durable

    async def observe(self, observations: Given | AsyncIterable[Observation | Observations]) -> None:
        """Add measured runs: one, many by columns, or any iterable of them, an asynchronous one too."""
        if isinstance(observations, AsyncIterable):
            async for one in observations:
                await self.observe(one)
            return
        for piece in self._core.pieces(observations):
            await self._add(piece)

    async def phases(self, timings: GivenPhases | AsyncIterable[PhaseTimings]) -> None:
        """Add timed phases: rows by columns, or any iterable of them, an asynchronous one too."""
        if isinstance(timings, AsyncIterable):
            async for one in timings:
                await self.phases(one)
            return
        for piece in self._core.pieces(timings):
            await self._add(piece)

    async def facts(self, *, workload: Workload | None = None, network: Network | None = None) -> None:
        """Add facts of the workload or of the network. Facts already known must agree."""
        await self._make_room()
        self._core.add_facts(workload, network, self._clock())
        self._changed.notify()

    async def trace(
        self, source: BinaryIO, *, trace_id: str, trace_format: str = "kineto", rank: int = 0, world_size: int = 1
    ) -> None:
        """Add a trace, read to its end; `IngestWriter.trace` says more."""
        for chunk in trace_chunks(
            source, trace_id=trace_id, trace_format=trace_format, rank=rank, world_size=world_size
        ):
            await self._make_room()
            self._core.add_chunk(chunk)
            self._changed.notify()

    async def flush(self, *, timeout_s: float | None = None) -> int:
        """Send what waits, and wait until it is durable; returns the durable number. It counts after a commit only."""
        self._check()
        self._core.seal()
        self._changed.notify()
        number = self._core.last_number
        await self._wait(lambda: self._core.durable >= number, f"batch {number} to be durable", timeout_s)
        return self._core.durable

    async def commit(self, *, timeout_s: float | None = None) -> CommitResult:
        """End the unit: wait until everything added so far is durable and counts.

        Without `timeout_s` it waits as long as the server makes progress. After a DeadlineExceededError it may be
        called again: the same commit is then waited for. With nothing to commit it answers what is known.
        """
        self._check()
        number = self._core.request_commit()
        self._changed.notify()
        await self._wait(lambda: self._core.committed >= number, f"the commit in batch {number}", timeout_s)
        return self._core.commit_result()

    async def close(self) -> None:
        """Commit what is not committed, and end the session's stream. An `async with` block does this."""
        if self._closing:
            return
        try:
            self._check()
            if self._core.uncommitted:
                await self.commit()
        except BaseException:
            await self._shut(cancel=True)
            raise
        await self._shut(cancel=False)

    # --- waiting ---------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._task is None or self._closing:
            raise RuntimeError("the writer is not open; use it in an async with block")

    async def _add(self, piece: Piece) -> None:
        await self._make_room()
        if self._core.add(piece, self._clock()):
            self._changed.notify()

    async def _make_room(self) -> None:
        self._check()
        await self._wait(lambda: self._core.has_room, "room in the buffer")
        self._check()

    async def _wait(self, done: Callable[[], bool], what: str, timeout_s: float | None = None) -> None:
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
            stream = self._stream
            usable = stream.call is not None and not stream.given_up
            hung_at = self._core.hung_at(self._acknowledge_timeout_s) if usable else None
            if hung_at is not None and now >= hung_at and stream.call is not None:
                stream.given_up = True
                stream.call.cancel()
            # What is sent meanwhile wakes nobody here: look again before it can be overdue.
            again = now + self._acknowledge_timeout_s
            if hung_at is not None and hung_at > now:
                again = hung_at
            await self._changed.wait(min(limit, again) - now)

    # --- the stream, in a task of its own --------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while await self._may_stream():
                error = await self._one_stream()
                if self._closing:
                    return
                pause = self._core.stream_ended(error, self._clock())
                self._changed.notify()
                await self._pause(pause)
        except NodewiseError as error:
            self._fail(error)
        finally:
            # Nobody may wait for a task that is gone, whatever ended it.
            self._fail(InternalError("the writer's task ended unexpectedly", code=Code.INTERNAL))

    async def _may_stream(self) -> bool:
        while not self._closing and not self._core.wants_stream:
            await self._changed.wait(None)
        return not self._closing

    async def _pause(self, seconds: float) -> None:
        end = self._clock() + seconds
        while not self._closing and (left := end - self._clock()) > 0:
            await self._changed.wait(left)

    async def _one_stream(self) -> NodewiseError | None:
        """Run one stream to its end; returns why it ended. Raises what a further stream would not help."""
        stream = self._stream = _Stream()
        stream.call = call = self._open_stream(self._feed(stream))
        try:
            await self._read(call, stream)
        except grpc.aio.AioRpcError as failure:
            return self._explain(failure)
        except asyncio.CancelledError:
            # Cancelled from here because the server was silent: the same as a stream that was cut.
            if not stream.given_up or self._closing:
                raise
            return None
        finally:
            stream.finished = True
            stream.call = None
            call.cancel()
            self._changed.notify()
        return None

    async def _read(self, call: _Call, stream: _Stream) -> None:
        async for reply in call:
            if stream.ready:
                self._core.acknowledge(reply, self._clock())
            else:
                self._core.stream_opened(reply, self._clock())
                stream.ready = True
            self._changed.notify()

    async def _feed(self, stream: _Stream) -> AsyncIterator[wire.IngestProfileRequest]:
        """What one stream sends."""
        yield self._core.open_request(self._clock())
        while not stream.finished:
            now = self._clock()
            if stream.ready:
                request = self._core.next_request(now)
                if request is not None:
                    yield request
                    continue
            await self._changed.wait(self._core.linger_left(now) if stream.ready else None)

    def _fail(self, error: NodewiseError) -> None:
        if self._failure is None and not self._closing:
            self._failure = error
        self._changed.notify()

    async def _shut(self, *, cancel: bool) -> None:
        self._closing = True
        self._stream.finished = True
        self._changed.notify()
        if self._task is None:
            return
        if not cancel:
            await asyncio.wait([self._task], timeout=self._acknowledge_timeout_s)
        if not self._task.done():
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
