"""The service that a command asks: the one named by ``--server``, else one embedded in this process."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nodewise_cli.failures import CommandError, InputError

if TYPE_CHECKING:
    from nodewise_client import Client

__all__ = ["Access", "checked_address", "connect", "serving_target", "starting"]

MAX_RECEIVE_BYTES: Final = 64 * 1024 * 1024
"""A backtest of the largest table that a server takes answers with about six columns of a hundred thousand rows."""
LONGEST_WAIT_S: Final = 1e6
"""Longest wait that gRPC's clock takes for a deadline and not for one that is over (about eleven days)."""
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/]+):(\d{1,5})", re.ASCII)


def checked_address(server: str, option: str = "--server") -> str:
    """A server's HOST:PORT, by the option that states it.

    Raises
    ------
    InputError
        If it is none.
    """
    match = _ADDRESS.fullmatch(server)
    if match is None or not 1 <= int(match[2]) <= 65_535:
        raise InputError(
            f"{option}: must be HOST:PORT with a port of 1 to 65535, such as 127.0.0.1:50551, found {server!r}"
        )
    return server


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Credentials of the caller, and how the connection is protected; None = not stated.

    Attributes
    ----------
    token : str or None
        A bearer token, or @FILE that holds one.
    tls_ca, tls_cert, tls_key : str or None
        Files in PEM: root certificates, or `system` for those of the system; the client's certificate; its key.
    """

    token: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def options(self) -> dict[str, Any]:
        """Of a client. Raises InputError."""
        options: dict[str, Any] = {}
        if self.token:
            options["token"] = self.token
        if self.token and self.token.startswith("@"):
            from nodewise_client import TokenFile

            options["token"] = TokenFile(self.token[1:])
            _read_file("--token", self.token[1:])
        if self.tls_ca or self.tls_cert:
            options["tls"] = _read_file("--tls-ca", self.tls_ca) if self.tls_ca and self.tls_ca != "system" else True
        if bool(self.tls_cert) != bool(self.tls_key):
            raise InputError("--tls-cert, --tls-key: must be given together")
        if self.tls_cert and self.tls_key:
            options["tls_certificate"] = _read_file("--tls-cert", self.tls_cert)
            options["tls_key"] = _read_file("--tls-key", self.tls_key)
        return options


NOBODY: Final = Access()


@contextmanager
def connect(server: str | None, timeout_s: float, access: Access = NOBODY) -> Iterator[Client]:
    """A client of the named server, or of a server in this process, whose store ends with the block.

    Raises
    ------
    CommandError
        If no server can be embedded.
    """
    if not 0 < timeout_s <= LONGEST_WAIT_S:
        raise InputError(f"--timeout-s: must be above 0 and at most {LONGEST_WAIT_S:g}, found {timeout_s:g}")
    # Only here: `serve` needs no client, and importing it takes a tenth of the server's start.
    from nodewise_client import Client

    # An embedded server has no authentication, so it gets no token.
    options = {} if server is None else access.options()
    with (
        serving_target(server) as target,
        Client(target, timeout_s=timeout_s, max_receive_bytes=MAX_RECEIVE_BYTES, **options) as client,
    ):
        yield client


def _read_file(option: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{option}: {path} cannot be read ({error.strerror})") from None


@contextmanager
def serving_target(server: str | None) -> Iterator[str]:
    """HOST:PORT of the named server, or of one in this process, whose store ends with the block.

    Raises
    ------
    CommandError
        If no server can be embedded.
    InputError
        If no server is installed.
    """
    if server is not None:
        yield checked_address(server)
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(starting())
        except ModuleNotFoundError:
            raise InputError("--server: must be given, as no server is installed here (pip install nodewise)") from None
        # What is imported stays: no use in looking for garbage among it, which takes a tenth of a short command.
        gc.disable()
        try:
            # Only here: a call to another server should not wait for the imports of the server's code.
            from nodewise.runtime.embedded_server import embedded_target

            target = stack.enter_context(embedded_target())
        finally:
            gc.freeze()
            gc.enable()
        yield target


@contextmanager
def starting() -> Iterator[None]:
    """Turn an error in the start of the server's code in this process into an error of the command.

    Raises
    ------
    CommandError
    """
    from nodewise.runtime.starting import StartError

    try:
        yield
    except StartError as error:
        raise (InputError if error.of_input else CommandError)(str(error)) from None
