"""The port is had whatever a former server left behind, and never while somebody listens on it."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from nodewise.runtime.listening import reserve_port
from nodewise.runtime.starting import StartError


def left_behind(*, shared: bool) -> int:
    """A port with connections in TIME_WAIT: a server answered there, closed first, and is gone."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(shared))
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port: int = listener.getsockname()[1]
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as client:
                answered, _ = listener.accept()
                answered.close()
                assert client.recv(1) == b""
    return port


@pytest.mark.parametrize("shared", [False, True])
def test_connections_of_the_past_do_not_matter(*, shared: bool) -> None:
    port = left_behind(shared=shared)
    with socket.socket() as bare, pytest.raises(OSError, match="in use"):
        bare.bind(("127.0.0.1", port))  # they are there, and refuse who asks for nothing
    holder, listen = reserve_port(f"127.0.0.1:{port}", 0.0)
    with holder, socket.socket() as worker:
        assert listen == f"127.0.0.1:{port}"
        worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        worker.bind(("127.0.0.1", port))
        worker.listen()


@pytest.mark.parametrize("shared", [False, True])
def test_a_listening_socket_of_somebody_else_is_respected(*, shared: bool) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(shared))
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(StartError, match=f"cannot listen on {listen}: the port is in use"):
            reserve_port(listen, 0.0)


def test_a_port_that_another_server_holds_is_taken_while_none_of_its_workers_listens() -> None:
    holder, listen = reserve_port("127.0.0.1:0", 0.0)
    with holder, pytest.raises(StartError):
        reserve_port(listen, 0.0)
    again, _ = reserve_port(listen, 0.0)
    again.close()


def test_workers_that_are_about_to_end_are_waited_for() -> None:
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    threading.Timer(0.2, other.close).start()
    holder, _ = reserve_port(f"127.0.0.1:{other.getsockname()[1]}", 60.0)
    holder.close()


def test_an_address_of_another_machine_is_refused_at_once() -> None:
    started_s = time.monotonic()
    with pytest.raises(StartError, match="this machine lacks the address"):
        reserve_port("192.0.2.1:0", 600.0)
    assert time.monotonic() - started_s < 600.0
