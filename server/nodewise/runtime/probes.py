"""Probes over HTTP: whether a worker is alive, accepts calls, and is ready."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

import orjson

from nodewise.rpc.http.front import Page
from nodewise.runtime.health import Health

__all__ = ["probes"]

Reply = tuple[int, bytes, str]


def probes(health: Health) -> Mapping[str, Page]:
    """``/livez``: the event loop runs. ``/healthz``: the worker accepts calls. ``/readyz``: so, and no check fails.

    A store that is away fails ``/readyz`` alone: a restart of the worker would not bring the store back.
    """

    async def live(_query: str) -> Reply:
        return _reply(ok=True)

    async def healthy(_query: str) -> Reply:
        return _reply(ok=await health.is_serving())

    async def ready(query: str) -> Reply:
        checks = await health.checks()
        verbose = "verbose" in parse_qs(query, keep_blank_values=True)
        return _reply(ok=all(each == "ok" for each in checks.values()), **({"checks": checks} if verbose else {}))

    return {"/livez": live, "/healthz": healthy, "/readyz": ready}


def _reply(*, ok: bool, **more: object) -> Reply:
    body = orjson.dumps({"status": "SERVING" if ok else "NOT_SERVING", **more})
    return 200 if ok else 503, body, "application/json; charset=utf-8"
