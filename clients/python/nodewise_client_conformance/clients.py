"""One client for each distinct target with options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from nodewise_client import AsyncClient


class Clients:
    """The clients of this process, made when they are first asked for."""

    def __init__(self) -> None:
        self._clients: dict[str, AsyncClient] = {}

    def of(self, line: dict[str, Any]) -> AsyncClient:
        """The client that a line asks for; the time of a call is no option of it."""
        options = {name: value for name, value in line.get("options", {}).items() if name != "timeout_seconds"}
        key = json.dumps([line["target"], options], sort_keys=True)
        if key not in self._clients:
            self._clients[key] = _client(line["target"], options)
        return self._clients[key]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients.values():
            await client.close()


def _client(target: str, options: dict[str, Any]) -> AsyncClient:
    tls = options.get("tls")
    settings: dict[str, Any] = {name: options[name] for name in ("retry", "token", "user_agent") if name in options}
    if tls is not None:
        settings["tls"] = Path(tls["ca"]).read_bytes() if "ca" in tls else True
        if "certificate" in tls:
            settings |= {"tls_certificate": Path(tls["certificate"]).read_bytes()}
            settings |= {"tls_key": Path(tls["key"]).read_bytes()}
    if "max_receive_bytes" in options:
        settings["max_receive_bytes"] = options["max_receive_bytes"]
    return AsyncClient(target, **settings)
