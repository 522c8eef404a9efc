"""The service that a command asks: the one named by ``--server``, else one embedded in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from nodewise_cli.failures import CommandError, InputError
from nodewise_client import Client

__all__ = ["checked_address", "connected", "starting"]

MAX_RECEIVE_BYTES: Final = 64 * 1024 * 1024
"""A backtest of the largest table that a server takes answers with about six columns of a hundred thousand rows."""
LONGEST_WAIT_S: Final = 1e6
"""Longest wait that gRPC's clock takes for a deadline and not for one that is over (about eleven days)."""
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/]+):(\d{1,5})", re.ASCII)


def checked_address(server: str) -> str:
    """A server's HOST:PORT.

    Raises
    ------
    InputError
        If it is none.
    """
    match = _ADDRESS.fullmatch(server)
    if match is None or not 1 <= int(match[2]) <= 65_535:
        raise InputError(
            f"--server: must be HOST:PORT with a port of 1 to 65535, such as 127.0.0.1:50551, found {server!r}"
        )
    return server


@contextmanager
def connected(server: str | None, timeout_s: float) -> Iterator[Client]:
    """A client of the named server, or of one that serves from this process and keeps nothing after the block.

    Raises
    ------
    CommandError
        If no server can be embedded.
    """
    if not 0 < timeout_s <= LONGEST_WAIT_S:
        raise InputError(f"--timeout-s: must be above 0 and at most {LONGEST_WAIT_S:g}, found {timeout_s:g}")
    with _target(server) as target, Client(target, timeout_s=timeout_s, max_receive_bytes=MAX_RECEIVE_BYTES) as client:
        yield client


@contextmanager
def _target(server: str | None) -> Iterator[str]:
    if server is not None:
        yield checked_address(server)
        return
    # Only here: whoever asks another server should not wait for this one's imports.
    from nodewise.runtime.embedded import embedded_target

    with starting(), embedded_target() as target:
        yield target


@contextmanager
def starting() -> Iterator[None]:
    """What keeps the server's code in this process from starting, as an error of the command.

    Raises
    ------
    CommandError
    """
    from nodewise.runtime.starting import StartError

    try:
        yield
    except StartError as error:
        raise (InputError if error.of_input else CommandError)(str(error)) from None
