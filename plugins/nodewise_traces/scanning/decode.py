"""JSON of single events, as well as it can be decoded."""

from __future__ import annotations

import json
from typing import Any

import orjson

__all__ = ["decode_json", "starts_json", "text_of"]


def decode_json(text: bytes) -> Any:
    """A JSON value; None if it is none. Bytes that are no UTF-8 are replaced, NaN and huge integers are taken."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text.decode("utf-8", errors="replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def starts_json(head: bytes) -> bool:
    """Whether a file that begins so may be a JSON document or list."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"{", b"["}


def text_of(inner: bytes) -> str:
    """The text of a JSON string without its quotes."""
    if b"\\" not in inner:
        return inner.decode("utf-8", errors="replace")
    value = decode_json(b'"' + inner + b'"')
    return value if isinstance(value, str) else inner.decode("utf-8", errors="replace")
