"""The console: static files of the package ``nodewise_console``, which any server with HTTP serves.

It is at ``/``, its page of methods at ``/docs``.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from importlib import resources

from nodewise.rpc.http.front import Page

__all__ = ["console_pages"]


def console_pages() -> Mapping[str, Page]:
    """Pages by path. Empty = the package is not installed."""
    try:
        files = resources.files("nodewise_console") / "static"
    except ModuleNotFoundError:
        return {}
    pages = {f"/{each.name}": _page(each.read_bytes(), each.name) for each in files.iterdir()}
    return pages | {"/": pages["/index.html"], "/docs": pages["/methods.html"]}


def _page(data: bytes, name: str) -> Page:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"

    async def reply(_query: str) -> tuple[int, bytes, str]:
        return 200, data, f"{kind}; charset=utf-8"

    return reply
