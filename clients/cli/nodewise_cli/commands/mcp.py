"""`nodewise mcp`: a server of the Model Context Protocol, through which agents ask."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import Annotated, Final

from typer import Option

from nodewise_cli.commands.options import Call
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.service import Access, checked_address, connect, serving_target
from nodewise_client import Client

__all__ = ["mcp"]

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
TWO_MINUTES: Final = Call(timeout_s=120.0)


def mcp(
    http: Annotated[
        str | None,
        Option(metavar="HOST:PORT", help="Serve streamable HTTP at /mcp instead of standard input; port 0 picks one."),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        Option("--allowed-host", metavar="NAME", help="http: name that callers address, if not loopback; repeatable."),
    ] = None,
    allow_writes: Annotated[bool, Option("--allow-writes", help="Offer a tool that stores measured runs.")] = False,
    call: Call = TWO_MINUTES,
) -> None:
    """Serve agents by the Model Context Protocol (MCP) on standard input and output, or over HTTP.

    Tools: predict, fits, recommend, plan, card, diagnose, suggest_measurement. On standard input the token is --token;
    over HTTP each caller sends its own, which goes to --server unchanged. Needs `pip install nodewise[mcp]`.
    """
    try:
        import anyio

        from nodewise_cli.agents.server import http_server, mcp_server, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "mcp", "mcp_types", "uvicorn"):
            raise
        raise CommandError("mcp needs the SDK of the protocol: pip install 'nodewise[mcp]'") from None
    listener = None if http is None else _listener(http, allowed_hosts or [], call)
    with ExitStack() as stack:
        lock = threading.Lock()

        @cache
        def target() -> str:
            # With the first question: agents list tools of many servers that they never ask.
            return stack.enter_context(serving_target(call.server))

        @contextmanager
        def connect_as(token: str | None) -> Iterator[Client]:
            access = call.access if token is None else replace(call.access, token=token)
            with lock:
                address = target()
            with connect(address, call.timeout_s, access if call.server else Access()) as client:
                yield client

        server = mcp_server(connect_as, call.timeout_s, allow_writes=allow_writes)
        if listener is None:
            anyio.run(serve_stdio, server)
            return
        host, port = listener.getsockname()[:2]
        sys.stdout.write(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}/mcp\n")
        sys.stdout.flush()
        http_server(server, port, allowed_hosts or []).run(sockets=[listener])


def _listener(address: str, allowed_hosts: list[str], call: Call) -> socket.socket:
    """The socket of an address.

    Raises
    ------
    InputError
        If others could call it by a name that is not stated, or with the token of this process.
    """
    host, _, port = (checked_address(address, "--http") if not address.endswith(":0") else address).rpartition(":")
    if call.token:
        raise InputError("--token: must be left out with --http (and NODEWISE_TOKEN): each caller sends its own")
    if host not in LOOPBACK and not allowed_hosts:
        raise InputError("--allowed-host: must be given if --http is not loopback: the name that callers address")
    bare = host.strip("[]")
    try:
        return socket.create_server((bare, int(port)), family=socket.AF_INET6 if ":" in bare else socket.AF_INET)
    except (OSError, ValueError) as error:
        raise CommandError(
            f"--http: cannot listen on {address!r}: {getattr(error, 'strerror', None) or error}"
        ) from None
