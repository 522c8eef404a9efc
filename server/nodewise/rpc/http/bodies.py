"""Bodies of requests and responses: received within limits, compressed with gzip if the caller accepts that."""

from __future__ import annotations

import asyncio
import re
import zlib
from typing import Final

from aiohttp.web import BaseRequest, RequestPayloadError

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.caps import above_cap

__all__ = ["GZIP", "accepts_gzip", "decode_body", "encode_body", "read_body"]

GZIP: Final = "gzip"
IDENTITY: Final = "identity"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_GZIP_WINDOW: Final = 31
"""zlib's number for the format of gzip."""
_LEVEL: Final = 1
"""Compression level; the numbers of a reply hardly become smaller with a higher one."""
_WORTH_BYTES: Final = 8 * 1024
"""Least bytes of a reply to compress; for smaller ones compression costs more than it saves on most networks."""
_ACCEPTED: Final = re.compile(r"(?:^|,)\s*gzip\s*(?:$|,|;(?!\s*q\s*=\s*0(?:\.0*)?\s*(?:,|$)))", re.IGNORECASE)
"""A list of encodings with gzip, unless its weight is 0."""


def _too_large(most_bytes: int, size_bytes: int) -> NodewiseError:
    return above_cap("bytes of request", "request_bytes", most_bytes, size_bytes)


async def read_body(request: BaseRequest, most_bytes: int) -> bytes:
    """The body as received.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED as soon as it is known to be larger; MALFORMED_MESSAGE where it does not arrive whole.
    """
    length = request.content_length
    if length is not None and length > most_bytes:
        raise _too_large(most_bytes, length)
    if not request.body_exists:
        return b""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(_CONTINUE)
        request.writer.output_size = 0  # else the response's headers count as sent
    parts, size = list[bytes](), 0
    try:
        while not request.content.at_eof():
            parts.append(await request.content.readany())
            size += len(parts[-1])
            if size > most_bytes:
                raise _too_large(most_bytes, size)
    except RequestPayloadError:
        text = "the body does not have the chunks that its headers state"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, text) from None
    return b"".join(parts)


async def decode_body(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """The content of a body, which a header states to be compressed with gzip, or (identity, or empty) not at all.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED, MALFORMED_MESSAGE, NOT_IMPLEMENTED.
    """
    kind = encoding.strip().lower() or IDENTITY
    if kind not in (GZIP, IDENTITY):
        text = f"the encoding of a body must be {GZIP} or {IDENTITY}, found {kind[:20]!r}"
        raise NodewiseError(Reason.NOT_IMPLEMENTED, text, {"encoding": kind[:20]})
    return await asyncio.to_thread(_gunzip, body, most_bytes) if body and kind == GZIP else body


def _gunzip(body: bytes, most_bytes: int) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = unpacking.decompress(body, most_bytes + 1)
    except zlib.error:
        raise NodewiseError(Reason.MALFORMED_MESSAGE, "the header says that the body is gzip, but it is not") from None
    if len(content) > most_bytes:
        raise _too_large(most_bytes, len(content))
    if not unpacking.eof or unpacking.unused_data:
        raise NodewiseError(Reason.MALFORMED_MESSAGE, "the header says that the body is gzip, but its end is missing")
    return content


def accepts_gzip(header: str) -> bool:
    """Whether a header of accepted encodings has gzip."""
    return _ACCEPTED.search(header) is not None


async def encode_body(body: bytes) -> bytes | None:
    """A body compressed with gzip; None = not worth it."""
    return await asyncio.to_thread(zlib.compress, body, _LEVEL, _GZIP_WINDOW) if len(body) >= _WORTH_BYTES else None
