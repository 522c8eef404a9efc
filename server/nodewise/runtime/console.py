"""The console: files and conversions of ``nodewise_console``, which any server with HTTP serves.

It is at ``/``, its page of methods at ``/docs``.
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Mapping
from importlib import resources
from urllib.parse import parse_qs

from nodewise.rpc.http.front import Page

__all__ = ["console_pages"]


def console_pages() -> Mapping[str, Page]:
    """Pages by path. Empty = the package is not installed."""
    try:
        files = resources.files("nodewise_console") / "static"
        pages = {f"/{each.name}": _file(each.read_bytes(), each.name) for each in files.iterdir()}
    except ModuleNotFoundError:
        return {}
    one_at_a_time = asyncio.Lock()
    conversions = {f"/console/{name}": _conversion(name, one_at_a_time) for name in ("model", "launches", "memory")}
    return pages | {"/": pages["/index.html"], "/docs": pages["/methods.html"]} | conversions


def _file(data: bytes, name: str) -> Page:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"

    async def reply(_query: str) -> tuple[int, bytes, str]:
        return 200, data, f"{kind}; charset=utf-8"

    return reply


def _conversion(name: str, one_at_a_time: asyncio.Lock) -> Page:
    """A conversion in a thread; as anyone may ask, there is never more than one."""

    def answer(query: str) -> tuple[int, bytes, str]:
        from nodewise_console.conversions import ConversionError, convert  # noqa: PLC0415  # only the page Plan needs it

        try:
            status, reply = 200, convert(name, parse_qs(query).get("q", [""])[-1])
        except ConversionError as error:
            status, reply = 400, {"message": str(error)}
        return status, json.dumps(reply).encode(), "application/json"

    async def page(query: str) -> tuple[int, bytes, str]:
        async with one_at_a_time:
            return await asyncio.to_thread(answer, query)

    return page
