"""Bodies of requests and responses: received within limits, which are looked at first; packed by gzip where asked."""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from aiohttp import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import BaseRequest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.caps import above_cap

__all__ = ["GZIP", "accepts_gzip", "packed", "received", "understood", "unpacked"]

GZIP: Final = "gzip"
IDENTITY: Final = "identity"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_GZIP_WINDOW: Final = 31
"""As zlib numbers gzip's format."""
_LEVEL: Final = 1
"""Numbers of a reply hardly become smaller with more work."""
_WORTH_BYTES: Final = 8 * 1024
"""Replies below are sent as they are: packing one costs more than it saves on most ways."""
_ASIDE_BYTES: Final = 256 * 1024


def _too_large(most_bytes: int, found: int) -> NodewiseError:
    return above_cap("bytes of request", "request_bytes", most_bytes, found)


async def received(request: BaseRequest, most_bytes: int) -> bytes:
    """The body as it came.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED as soon as it is known to be larger; MALFORMED_MESSAGE where it does not arrive whole.
    """
    stated = request.content_length
    if stated is not None and stated > most_bytes:
        raise _too_large(most_bytes, stated)
    if not request.body_exists:
        return b""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(_CONTINUE)
        request.writer.output_size = 0  # else the response's headers count as sent
    content = request.content
    try:
        body = await content.readany()
        if content.at_eof():
            return body
        parts, size = [body], len(body)
        while not content.at_eof():
            parts.append(await content.readany())
            size += len(parts[-1])
            if size > most_bytes:
                raise _too_large(most_bytes, size)
    except (ClientPayloadError, HttpProcessingError):
        raise NodewiseError(Reason.MALFORMED_MESSAGE, "the body ended before all of it had come") from None
    return b"".join(parts)


async def unpacked(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """A body that is packed as stated: gzip, or identity.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED, MALFORMED_MESSAGE.
    """
    if encoding != GZIP or not body:
        return body
    return (
        await asyncio.to_thread(_gunzipped, body, most_bytes)
        if len(body) > _ASIDE_BYTES
        else _gunzipped(body, most_bytes)
    )


def _gunzipped(body: bytes, most_bytes: int) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = unpacking.decompress(body, most_bytes + 1)
    except zlib.error:
        raise NodewiseError(Reason.MALFORMED_MESSAGE, "the body is said to be packed by gzip, and is not") from None
    if len(found) > most_bytes:
        raise _too_large(most_bytes, len(found))
    if not unpacking.eof or unpacking.unused_data:
        raise NodewiseError(Reason.MALFORMED_MESSAGE, "the body is said to be packed by gzip, and is no whole of it")
    return found


def understood(encoding: str) -> str:
    """How a body is packed, as a header says. Raises NodewiseError."""
    found = encoding.strip().lower() or IDENTITY
    if found not in (GZIP, IDENTITY):
        text = f"bodies may be packed by {GZIP} or not at all ({IDENTITY}), found {found[:20]!r}"
        raise NodewiseError(Reason.NOT_IMPLEMENTED, text, {"encoding": found[:20]})
    return found


def accepts_gzip(told: str) -> bool:
    """Whether a header of encodings that are understood has gzip."""
    if GZIP not in told:
        return False
    parts = (each.split(";") for each in told.lower().split(","))
    return any(name.strip() == GZIP and not any(_refuses(each) for each in rest) for name, *rest in parts)


def _refuses(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and not value.strip().strip("0.")


async def packed(body: bytes) -> bytes | None:
    """By gzip; None = it is not worth it."""
    if len(body) < _WORTH_BYTES:
        return None
    return await asyncio.to_thread(_gzipped, body) if len(body) > _ASIDE_BYTES else _gzipped(body)


def _gzipped(body: bytes) -> bytes:
    return zlib.compress(body, _LEVEL, _GZIP_WINDOW)
