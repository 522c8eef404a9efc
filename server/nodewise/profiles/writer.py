"""One thread per store that writes for all callers: off the event loop, many requests per transaction."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.ports.spans import span
from nodewise.profiles.batches import Batch
from nodewise.profiles.sql_incoming import brings_traces
from nodewise.profiles.store import (
    AppendRequest,
    DeleteRequest,
    Evidence,
    Outcome,
    ProfileStore,
    ProfileSummary,
    RetractRequest,
    SessionStatus,
    UndeleteRequest,
    WriteRequest,
)

__all__ = ["StoreWriter"]

_REQUEST_BYTES: Final = 512
_LANES: Final = 4

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Waiting:
    request: WriteRequest
    bytes: int
    future: Future[Any] = field(default_factory=Future)
    context: Context = field(default_factory=copy_context)


def _estimated_bytes(request: AppendRequest) -> int:
    return _REQUEST_BYTES + sum(batch.estimated_bytes for batch in request.batches)


class StoreWriter:
    """Queues writes and answers each by a future once it is durable.

    Requests are written in the order in which they came. Those that wait together share a transaction; each has its own
    outcome. Cancelling a future drops its request if its transaction has not begun.

    Parameters
    ----------
    store : ProfileStore
        Written to by the thread; the caller closes it, after the writer.
    most_waiting, most_waiting_bytes : int
        Requests, and roughly the bytes they hold, that may wait. More are refused at once with STORE_UNAVAILABLE.
    most_together, most_together_bytes : int
        Size of one transaction; it holds at least one request.
    """

    def __init__(
        self,
        store: ProfileStore,
        *,
        most_waiting: int = 4096,
        most_waiting_bytes: int = 256 << 20,
        most_together: int = 256,
        most_together_bytes: int = 8 << 20,
    ) -> None:
        self._store = store
        self._most_waiting = most_waiting
        self._most_waiting_bytes = most_waiting_bytes
        self._most_together = most_together
        self._most_together_bytes = most_together_bytes
        self._queue: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._closing = False
        self.writes = self.rows = 0
        """Transactions so far, and observations that they wrote."""
        self.write_s = 0.0
        """Total time of transactions so far, in seconds."""
        self._lock = threading.RLock()
        self._thread = ThreadPoolExecutor(1, "nodewise-store-writer")
        self._preparing: Counter[tuple[str, str]] = Counter()
        lanes = _LANES if store.traces.away else 0
        self._lanes = [ThreadPoolExecutor(1, "nodewise-store-lane") for _ in range(lanes)]

    def append(self, profile_id: str, session_id: str, batches: Sequence[Batch]) -> Future[SessionStatus]:
        """Like :meth:`ProfileStore.append`; the future fails as that raises.

        Where traces are in a bucket, a request with chunks is prepared in other threads, and later requests of its
        session wait for it.
        """
        request, session = AppendRequest(profile_id, session_id, tuple(batches)), (profile_id, session_id)
        size = _estimated_bytes(request)
        with self._lock:
            waits = self._lanes and (brings_traces(request) or self._preparing[session])
            if not waits or self._refusal(size):
                return self._submit(request, size)
            self._preparing[session] += 1
            self._waiting_bytes += size
            return self._lanes[hash(session) % _LANES].submit(self._prepare, request, session, size)

    def _prepare(self, request: AppendRequest, session: tuple[str, str], size: int) -> SessionStatus:
        try:
            self._store.prepare(request)
            status: SessionStatus = self._submit(replace(request, prepared=True), 0).result()
            return status
        finally:
            with self._lock:
                self._preparing -= Counter([session])
                self._waiting_bytes -= size

    def retract(self, profile_id: str, request_id: str, evidence: Evidence, reason: str = "") -> Future[ProfileSummary]:
        """Like :meth:`ProfileStore.retract`; the future fails as that raises."""
        return self._submit(RetractRequest(profile_id, request_id, evidence, reason))

    def delete(self, profile_id: str, etag: str | None = None) -> Future[ProfileSummary]:
        """Like :meth:`ProfileStore.delete`; the future fails as that raises."""
        return self._submit(DeleteRequest(profile_id, etag))

    def undelete(self, profile_id: str) -> Future[ProfileSummary]:
        """Like :meth:`ProfileStore.undelete`; the future fails as that raises."""
        return self._submit(UndeleteRequest(profile_id))

    @property
    def waiting(self) -> int:
        """Number of waiting requests, for metrics."""
        return len(self._queue)

    def close(self) -> None:
        """Write what waits, then stop. Later requests fail with STORE_UNAVAILABLE."""
        with self._lock:
            self._closing = True
        for lane in self._lanes:
            lane.shutdown()
        self._thread.shutdown()

    def _submit(self, request: WriteRequest, size: int = _REQUEST_BYTES) -> Future[Any]:
        waiting = _Waiting(request, size)
        with self._lock:
            if refusal := self._refusal(size):
                waiting.future.set_exception(refusal)
                return waiting.future
            self._queue.append(waiting)
            self._waiting_bytes += size
            if len(self._queue) == 1:
                self._thread.submit(self._write_all)
        return waiting.future

    def _refusal(self, size: int) -> NodewiseError | None:
        """The error of a request that may not wait. Any request may wait alone; one of size 0 was admitted before."""
        if not size:
            return None
        full = self._waiting_bytes and self._waiting_bytes + size > self._most_waiting_bytes
        if not (self._closing or full or len(self._queue) >= self._most_waiting):
            return None
        why = "the server is shutting down" if self._closing else "too many writes are waiting"
        return NodewiseError(Reason.STORE_UNAVAILABLE, f"{why}; retry later")

    def _write_all(self) -> None:
        while together := self._next():
            # The span of a transaction belongs to the first of its requests.
            context = together[0].context
            context.run(self._write, [each for each in together if each.future.set_running_or_notify_cancel()])

    def _next(self) -> list[_Waiting]:
        """The requests of the next transaction; empty = none waits."""
        with self._lock:
            together: list[_Waiting] = []
            size = 0
            while self._queue and len(together) < self._most_together:
                size += self._queue[0].bytes
                if together and size > self._most_together_bytes:
                    break
                together.append(self._queue.popleft())
                self._waiting_bytes -= together[-1].bytes
            return together

    def _write(self, together: list[_Waiting]) -> None:
        if not together:
            return
        outcomes: Sequence[Outcome]
        began_s = time.monotonic()
        try:
            with span("store.write", requests=len(together)):
                outcomes = self._store.apply([waiting.request for waiting in together])
        except Exception as error:  # noqa: BLE001 - a fault fails its request, never the thread
            if len(together) > 1:  # it was rolled back as a whole; only the faulty request fails
                for waiting in together:
                    self._write([waiting])
                return
            _log.exception("write_failed", error=type(error).__name__)
            outcomes = [NodewiseError(Reason.INTERNAL, "the write failed; the server's log has the details")]
        self.writes += 1
        self.write_s += time.monotonic() - began_s
        for waiting, outcome in zip(together, outcomes):
            if isinstance(waiting.request, AppendRequest) and not isinstance(outcome, NodewiseError):
                self.rows += sum(len(batch.observations) for batch in waiting.request.batches)
            if isinstance(outcome, NodewiseError):
                waiting.future.set_exception(outcome)
            else:
                waiting.future.set_result(outcome)
