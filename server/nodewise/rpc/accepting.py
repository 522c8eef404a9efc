"""More than one call of a method accepted in each turn of the event loop.

grpcio's server for asyncio asks gRPC for one call, is told of it by a thread, hands it to its handler, and asks for the
next: one call for each turn of the loop, and none while the loop computes. What arrives meanwhile waits where nobody
can count or refuse it. With several requests open at a time gRPC hands calls over while the loop is at work, and its
next turn finds them all.

The parts of grpcio that this stands on are private. Where they look different nothing is opened, and calls are accepted
one by one as before: overload is then noticed later, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
import structlog

__all__ = ["ACCEPTED_AT_ONCE", "accept_more"]

_log = structlog.get_logger("nodewise.rpc")

ACCEPTED_AT_ONCE: Final = 64
"""Calls of a method that gRPC hands over between two turns of the loop: what arrives at six thousand a second within
ten milliseconds, about the longest that one call holds up the loop."""
_HANDLE: Final = ("method_name", "method_resolver", "interceptors", "rpc_state", "loop", "concurrency_exceeded")
_SCHEDULE: Final = ("rpc_coro", "rpc_state", "loop", "method_name")
_REQUEST: Final = ("self", "method")


class _Resolver:
    """Finds the handler of a call of one method."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self.resolve_handler = find


def accept_more(server: grpc.aio.Server, find: Callable[[Any], Any], paths: Sequence[str]) -> bool:
    """Accept more calls of some methods, beside the server's own way; returns whether that can be done.

    Parameters
    ----------
    server : Server
        Started; this ends when it stops.
    find : callable
        The handler of a call, by its details.
    paths : sequence of str
        Methods that were registered with the server.
    """
    inner, cygrpc = getattr(server, "_server", None), importlib.import_module("grpc._cython.cygrpc")
    if not (
        _takes(getattr(cygrpc, "_handle_rpc", None), _HANDLE)
        and _takes(getattr(cygrpc, "_schedule_rpc_coro", None), _SCHEDULE)
        and _takes(getattr(inner, "_request_registered_call", None), _REQUEST)
    ):
        _log.info("accepting_one_by_one", grpcio=grpc.__version__)
        return False
    loop = asyncio.get_running_loop()
    for path in paths:
        for _ in range(ACCEPTED_AT_ONCE):
            loop.create_task(_accepting(inner, cygrpc, path, _Resolver(find))).add_done_callback(_ended)
    return True


def _takes(function: Any, names: tuple[str, ...]) -> bool:
    """Whether a function is there and takes these arguments first."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[: len(names)] == names


async def _accepting(server: Any, cygrpc: Any, path: str, resolver: _Resolver) -> None:
    """One request for a call after the other, as grpcio's own loop does it."""
    method, loop = path.encode(), asyncio.get_running_loop()
    while server.is_running():
        state = await server._request_registered_call(method)  # noqa: SLF001  # there is no public way
        handling = cygrpc._handle_rpc(path, resolver, (), state, loop, False)  # noqa: FBT003, SLF001
        # The running handler is held by gRPC's state of the call.
        loop.create_task(cygrpc._schedule_rpc_coro(handling, state, loop, path))  # noqa: SLF001


def _ended(task: asyncio.Task[None]) -> None:
    """A request that is open when the server stops fails: that is its end."""
    if not task.cancelled():
        task.exception()
