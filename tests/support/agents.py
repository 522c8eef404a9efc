"""Agents for tests: the SDK's own client on `nodewise mcp` as a process, over its standard input or over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from patience import PATIENCE_S
from serving import COMMAND

__all__ = ["http_agent", "mcp_process", "stdio_agent", "text_of"]

_SECONDS: Final = str(PATIENCE_S)


@asynccontextmanager
async def stdio_agent(*arguments: str) -> AsyncIterator[Client]:
    """An agent that starts the server itself."""
    parameters = StdioServerParameters(
        command=COMMAND[0], args=["mcp", "--timeout-s", _SECONDS, *arguments], env=dict(os.environ)
    )
    async with Client(stdio_client(parameters), read_timeout_seconds=PATIENCE_S) as client:
        yield client


@asynccontextmanager
async def http_agent(url: str, token: str | None = None) -> AsyncIterator[Client]:
    """An agent that calls a server over HTTP with its own token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(url, http_client=http), read_timeout_seconds=PATIENCE_S) as client,
    ):
        yield client


@contextmanager
def mcp_process(*arguments: str) -> Iterator[str]:
    """The URL of a server over HTTP, which ends with the block."""
    command = [*COMMAND, "mcp", "--http", "127.0.0.1:0", "--timeout-s", _SECONDS, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line
            yield line.removeprefix("listening on ").strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def text_of(result: Any) -> str:
    """The text of a tool's answer."""
    text: str = result.content[0].text
    return text
