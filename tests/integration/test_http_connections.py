"""Connections over HTTP: one whose reply nobody reads is let go, and one too many is told so."""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from patience import PATIENCE_S

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.groups_of_settings import ConnectionSettings
from nodewise.runtime.http_connections import LEAST_READ_BYTES, STOPPING_S, HttpServer
from nodewise.runtime.settings import Settings

MOST = 2
DOCUMENT = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNREAD_DOCUMENTS = 100
"""More than buffers of the kernel hold."""


@contextmanager
def serving(grace_s: float = 0.1, **connections: float) -> Iterator[EmbeddedServer]:
    found = ConnectionSettings(**connections)  # type: ignore[arg-type]
    with EmbeddedServer(Settings(store="memory:", http="127.0.0.1:0", grace_s=grace_s, connections=found)) as server:
        yield server


@contextmanager
def connected(server: EmbeddedServer) -> Iterator[socket.socket]:
    """With as little room for what is not read as there can be."""
    host, _, port = server.http_target.rpartition(":")
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.settimeout(PATIENCE_S)
        wire.connect((host, int(port)))
        yield wire


def answered(wire: socket.socket, request: bytes = HEALTH) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next reply."""
    wire.sendall(request)
    reader = wire.makefile("rb")
    status = int(reader.readline().split()[1])
    headers = {}
    while line := reader.readline().strip():
        name, _, value = line.decode().partition(": ")
        headers[name] = value
    return status, headers, reader.read(int(headers["Content-Length"]))


def wait_until_reset(wire: socket.socket) -> None:
    """Read nothing until the other end lets go."""
    poll = select.poll()
    poll.register(wire, 0)  # errors and the end are told in any case
    assert poll.poll(PATIENCE_S * 1e3), "it was not let go"


def test_a_reply_that_is_never_read_is_let_go() -> None:
    with serving(idle_s=0.5) as server, connected(server) as wire:
        wire.sendall(DOCUMENT * UNREAD_DOCUMENTS)
        wait_until_reset(wire)
        with connected(server) as other:
            assert answered(other)[0] == 200


def test_a_server_stops_though_a_reply_is_never_read() -> None:
    with serving(grace_s=2 * PATIENCE_S, idle_s=2 * PATIENCE_S) as server, ExitStack() as stack:
        wire = stack.enter_context(connected(server))
        wire.sendall(DOCUMENT * UNREAD_DOCUMENTS)
        wire.recv(1)
        # Leaving stops the server: within its grace of ten minutes this test would time out.
        stack.pop_all()
    wire.close()


def test_the_document_comes_whole() -> None:
    with serving() as server, connected(server) as wire:
        for _ in range(2):
            status, headers, body = answered(wire, DOCUMENT)
            assert (status, headers["Content-Type"]) == (200, "application/json")
            assert "/v1/predictions:predict" in json.loads(body)["paths"]
        status, headers, _ = answered(wire, HEALTH)
        assert status == 200


def test_one_too_many_is_closed_at_once() -> None:
    with serving(most=MOST) as server, ExitStack() as stack:
        served = [stack.enter_context(connected(server)) for _ in range(MOST)]
        assert [answered(each)[0] for each in served] == [200, 200]
        for _ in range(3):
            with suppress(ConnectionError), connected(server) as wire:
                assert wire.recv(1) == b""
        assert [answered(each)[0] for each in served] == [200, 200]


class Wire(asyncio.Transport):
    """A transport whose buffer the test empties."""

    def __init__(self) -> None:
        super().__init__()
        self.held_bytes = 0
        self.aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 1, "whatever is in the buffer pauses writing"

    def get_write_buffer_size(self) -> int:
        return self.held_bytes

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        pass


class Clock:
    """The loop's timers, run by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []
        loop = asyncio.get_running_loop()

        def call_later(delay: float, callback: Callable[..., Any], *_: Any, **__: Any) -> asyncio.TimerHandle:
            handle = asyncio.TimerHandle(0.0, callback, (), loop)
            self.waiting.append((delay, callback, handle))
            return handle

        monkeypatch.setattr(loop, "call_later", call_later)

    def passes(self) -> float:
        """Run the only timer; returns for how long it waited."""
        ((delay, callback, _),) = [each for each in self.waiting if not each[2].cancelled()]
        self.waiting.clear()
        callback()
        return delay


def test_who_reads_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        async def none(_: Any) -> Any:
            raise AssertionError("nothing is asked")

        server = HttpServer(none, ConnectionSettings(idle_s=7.0))
        connection, wire = server(), Wire()
        clock = Clock(monkeypatch)
        connection.connection_made(wire)
        wire.held_bytes = 10 * LEAST_READ_BYTES
        connection.pause_writing()
        for _ in range(9):
            wire.held_bytes -= LEAST_READ_BYTES
            assert clock.passes() == 7.0
            assert not wire.aborted
        server.hurry()
        wire.held_bytes -= 1
        assert clock.passes() == STOPPING_S
        assert wire.aborted
        connection.connection_lost(None)

    asyncio.run(steps())


def test_what_is_read_in_time_is_not_watched_any_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        async def none(_: Any) -> Any:
            raise AssertionError("nothing is asked")

        connection, wire = HttpServer(none, ConnectionSettings(idle_s=7.0))(), Wire()
        clock = Clock(monkeypatch)
        connection.connection_made(wire)
        connection.pause_writing()
        connection.resume_writing()
        assert all(handle.cancelled() for _, _, handle in clock.waiting)
        connection.connection_lost(None)

    asyncio.run(steps())
