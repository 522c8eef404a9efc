"""Appends that wait for more than the database: each session in its order, and none for another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.store import AppendRequest

__all__ = ["PreparingLanes"]

_THREADS: Final = 4

_Waiting = tuple[AppendRequest, int, Future[Any]]


class PreparingLanes:
    """Prepares appends in threads of its own, then hands them on to who writes.

    Parameters
    ----------
    prepare : callable
        As :meth:`ProfileStore.prepare`.
    submit : callable
        Writes what is prepared.
    most_waiting_bytes : int
        Roughly what the requests may hold that wait; more are refused at once with STORE_UNAVAILABLE.
    """

    def __init__(
        self,
        prepare: Callable[[AppendRequest], None],
        submit: Callable[[AppendRequest], Future[Any]],
        most_waiting_bytes: int,
    ) -> None:
        self._prepare = prepare
        self._submit = submit
        self._most_waiting_bytes = most_waiting_bytes
        self._lock = threading.Lock()
        self._lanes: dict[tuple[str, str], deque[_Waiting]] = {}
        self._waiting_bytes = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="nodewise-store-lane")

    def append(self, request: AppendRequest, size_bytes: int) -> Future[Any]:
        """Like the writer's; one that brings no trace goes on at once, unless its session waits."""
        future: Future[Any] = Future()
        session = (request.profile_id, request.session_id)
        with self._lock:
            lane = self._lanes.get(session)
            if lane is None and not any(batch.trace_chunks for batch in request.batches):
                return self._submit(request)
            if self._waiting_bytes and self._waiting_bytes + size_bytes > self._most_waiting_bytes:
                full = "too many writes are waiting; retry later"
                future.set_exception(NodewiseError(Reason.STORE_UNAVAILABLE, full))
                return future
            self._waiting_bytes += size_bytes
            if lane is not None:
                lane.append((request, size_bytes, future))
                return future
            self._lanes[session] = deque([(request, size_bytes, future)])
            try:
                self._threads.submit(self._run, session)
            except RuntimeError:  # closed
                del self._lanes[session]
                self._waiting_bytes -= size_bytes
                stopping = "the server is shutting down; retry later"
                future.set_exception(NodewiseError(Reason.STORE_UNAVAILABLE, stopping))
        return future

    def close(self) -> None:
        """Write what waits."""
        self._threads.shutdown(wait=True)

    def _run(self, session: tuple[str, str]) -> None:
        lane = self._lanes[session]
        while True:
            request, size_bytes, future = lane[0]
            if future.set_running_or_notify_cancel():
                try:
                    self._prepare(request)
                    future.set_result(self._submit(replace(request, prepared=True)).result())
                except BaseException as error:  # noqa: BLE001  # a fault fails its request, never the lane
                    future.set_exception(error)
            with self._lock:
                lane.popleft()
                self._waiting_bytes -= size_bytes
                if not lane:
                    del self._lanes[session]
                    return
