"""More than one call of a method accepted in each turn of the event loop.

grpcio's server for asyncio asks gRPC for one call, is told of it by a thread, hands it to its handler, and asks for the
next: one call for each turn of the loop, and none while the loop computes. What arrives meanwhile waits where nobody
can count or refuse it. With several requests open at a time gRPC hands calls over while the loop is at work, and its
next turn finds them all.

Where a method's lane would refuse a call anyway, it is told so by its status alone, without a handler, which costs two
thirds.

The parts of grpcio that this stands on are private. Where they look different nothing is opened, and calls are accepted
one by one as before: overload is then noticed later, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

import grpc
import structlog

from nodewise.rpc.gate import Told

__all__ = ["ACCEPTED_AT_ONCE", "accept_more"]

_log = structlog.get_logger("nodewise.rpc")

ACCEPTED_AT_ONCE: Final = 256
"""Calls of a method that gRPC hands over between two turns of the loop: what arrives at six thousand a second within
forty milliseconds, four of the longest turns. With 64 a server at twenty times its capacity took in fewer than came,
and who was refused waited for seconds first."""
_HANDLE: Final = ("method_name", "method_resolver", "interceptors", "rpc_state", "loop", "concurrency_exceeded")
_SCHEDULE: Final = ("rpc_coro", "rpc_state", "loop", "method_name")
_REQUEST: Final = ("self", "method")
_SEND: Final = ("grpc_call_wrapper", "code", "details", "trailing_metadata", "send_initial_metadata_op", "loop")
_EXHAUSTED: Final[int] = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]


class Arrivals(Protocol):
    """Where calls arrive."""

    @property
    def paths(self) -> list[str]:
        """Methods that were registered with the server, and may have to wait."""

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a call, by its details."""

    def overloaded(self, path: str) -> bool:
        """Whether calls of a method may not be taken now: only then is :meth:`refused` asked."""

    def refused(self, path: str, context: Any) -> Told | None:
        """Text and trailers for a call that will not be taken; None = it may come."""


class _Resolver:
    """Finds the handler of a call of one method."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self.resolve_handler = find


def accept_more(server: grpc.aio.Server, door: Arrivals) -> bool:
    """Accept more calls of some methods, beside the server's own way; returns whether that can be done.

    Parameters
    ----------
    server : Server
        Started; this ends when it stops.
    door : Arrivals
        Where they go.
    """
    inner, cygrpc = getattr(server, "_server", None), importlib.import_module("grpc._cython.cygrpc")
    if not (
        _takes(getattr(cygrpc, "_handle_rpc", None), _HANDLE)
        and _takes(getattr(cygrpc, "_schedule_rpc_coro", None), _SCHEDULE)
        and _takes(getattr(inner, "_request_registered_call", None), _REQUEST)
        and _takes(getattr(cygrpc, "_send_error_status_from_server", None), _SEND)
        and hasattr(cygrpc, "_ServicerContext")
    ):
        _log.info("accepting_one_by_one", grpcio=grpc.__version__)
        return False
    loop = asyncio.get_running_loop()
    for path in door.paths:
        for _ in range(ACCEPTED_AT_ONCE):
            loop.create_task(_accepting(inner, cygrpc, path, door)).add_done_callback(_ended)
    return True


def _takes(function: Any, names: tuple[str, ...]) -> bool:
    """Whether a function is there and takes these arguments first."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[: len(names)] == names


async def _accepting(server: Any, cygrpc: Any, path: str, door: Arrivals) -> None:
    """One request for a call after the other, as grpcio's own loop does it."""
    method, loop, resolver = path.encode(), asyncio.get_running_loop(), _Resolver(door.service)
    while server.is_running():
        state = await server._request_registered_call(method)  # noqa: SLF001  # there is no public way
        told = None
        if door.overloaded(path):
            told = _told(door, path, cygrpc._ServicerContext(state, None, None, loop))  # noqa: SLF001
        if told is not None:
            nothing = cygrpc.SendInitialMetadataOperation((), 0)
            with suppress(Exception):  # its caller has gone
                await cygrpc._send_error_status_from_server(state, _EXHAUSTED, *told, nothing, loop)  # noqa: SLF001
            continue
        handling = cygrpc._handle_rpc(path, resolver, (), state, loop, False)  # noqa: FBT003, SLF001
        # The running handler is held by gRPC's state of the call.
        loop.create_task(cygrpc._schedule_rpc_coro(handling, state, loop, path))  # noqa: SLF001


def _told(door: Arrivals, path: str, context: Any) -> Told | None:
    """As the door says; a fault of it must not end what accepts calls."""
    try:
        return door.refused(path, context)
    except Exception:  # noqa: BLE001  # logged
        _log.exception("refusing_failed", method=path)
        return None


def _ended(task: asyncio.Task[None]) -> None:
    """A request that is open when the server stops fails: that is its end."""
    if not task.cancelled():
        task.exception()
