"""The service that a command asks: the one named by ``--server``, else one embedded in this process."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from nodewise.cli.failures import CommandError, InputError
from nodewise_client import Client

__all__ = ["checked_address", "connected"]

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
    if server is not None:
        with Client(checked_address(server), timeout_s=timeout_s, max_receive_bytes=MAX_RECEIVE_BYTES) as client:
            yield client
        return
    # Only here: whoever asks another server should not wait for this one's imports.
    from nodewise.hosting.registry import PluginConflictError
    from nodewise.runtime.embedded import EmbeddedServer
    from nodewise.runtime.logging import configure_logging
    from nodewise.runtime.settings import SettingsError, load_settings

    configure_logging("error")
    with ExitStack() as stack:
        try:
            # Traces may be larger than memory: they lie in a directory for as long as the block runs.
            traces = stack.enter_context(tempfile.TemporaryDirectory(prefix="nodewise-", ignore_cleanup_errors=True))
            settings = load_settings(
                store="memory:", traces=traces, workers=1, grace_s=1.0, drain_delay_s=0.0, scoring=False
            )
            embedded = stack.enter_context(EmbeddedServer(settings))
        except SettingsError as error:
            raise InputError(str(error)) from None
        except PluginConflictError as error:
            raise CommandError(str(error)) from None
        yield stack.enter_context(Client(embedded.target, timeout_s=timeout_s, max_receive_bytes=MAX_RECEIVE_BYTES))
