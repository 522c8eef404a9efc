"""Statuses as HTTP tells them: of the Connect protocol, and of REST as AIP-193 has it."""

from __future__ import annotations

import base64
import math
from types import MappingProxyType
from typing import Any, Final

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

__all__ = ["CONNECT_CODES", "HTTP_CODES", "connect_error", "headers_of", "http_code", "rest_error"]

_NAMES: Final = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
"""Of google.rpc.Code, by number."""
HTTP_CODES: Final = MappingProxyType(
    {
        "CANCELLED": 499,
        "UNKNOWN": 500,
        "INVALID_ARGUMENT": 400,
        "DEADLINE_EXCEEDED": 504,
        "NOT_FOUND": 404,
        "ALREADY_EXISTS": 409,
        "PERMISSION_DENIED": 403,
        "RESOURCE_EXHAUSTED": 429,
        "FAILED_PRECONDITION": 400,
        "ABORTED": 409,
        "OUT_OF_RANGE": 400,
        "UNIMPLEMENTED": 501,
        "INTERNAL": 500,
        "UNAVAILABLE": 503,
        "DATA_LOSS": 500,
        "UNAUTHENTICATED": 401,
    }
)
"""As both Connect and google.rpc.Code map them."""
CONNECT_CODES: Final = MappingProxyType(
    {name: "canceled" if name == "CANCELLED" else name.lower() for name in HTTP_CODES}
)
_DETAILS: Final = MappingProxyType(
    {
        each.DESCRIPTOR.full_name: each
        for each in (
            error_details_pb2.ErrorInfo,
            error_details_pb2.BadRequest,
            error_details_pb2.QuotaFailure,
            error_details_pb2.RetryInfo,
        )
    }
)
"""That the house's statuses carry."""


def name_of(status: status_pb2.Status) -> str:
    """Of the code."""
    return _NAMES[status.code] if 0 < status.code < len(_NAMES) else "UNKNOWN"


def http_code(status: status_pb2.Status) -> int:
    """Of the response."""
    return HTTP_CODES[name_of(status)]


def connect_error(status: status_pb2.Status) -> dict[str, Any]:
    """As the Connect protocol writes it, in a body or at the end of a stream."""
    error: dict[str, Any] = {"code": CONNECT_CODES[name_of(status)], "message": status.message}
    details = []
    for packed in status.details:
        name = packed.type_url.rpartition("/")[2]
        detail = {"type": name, "value": base64.b64encode(packed.value).decode("ascii").rstrip("=")}
        shown = _shown(name, packed.value)
        details.append(detail if shown is None else detail | {"debug": shown})
    return error | ({"details": details} if details else {})


def rest_error(status: status_pb2.Status, code: int | None = None) -> bytes:
    """The body that AIP-193 has; ``code`` stands in place of that of the status."""
    details = []
    for packed in status.details:
        name = packed.type_url.rpartition("/")[2]
        details.append({"@type": packed.type_url} | (_shown(name, packed.value) or {}))
    error: dict[str, Any] = {"code": code or http_code(status), "message": status.message, "status": name_of(status)}
    return orjson.dumps({"error": error | ({"details": details} if details else {})})


def headers_of(status: status_pb2.Status) -> dict[str, str]:
    """That a response with this status has besides: when to come back, how to say who one is."""
    headers = {}
    if name_of(status) == "UNAUTHENTICATED":
        headers["WWW-Authenticate"] = "Bearer"
    for packed in status.details:
        if packed.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            told = error_details_pb2.RetryInfo()
            packed.Unpack(told)
            delay = told.retry_delay
            headers["Retry-After"] = str(max(1, math.ceil(delay.seconds + delay.nanos / 1e9)))
    return headers


def _shown(name: str, value: bytes) -> dict[str, Any] | None:
    """A detail as JSON; None = it is none of the usual ones."""
    known = _DETAILS.get(name)
    if known is None:
        return None
    try:
        found: dict[str, Any] = json_format.MessageToDict(known.FromString(value))
    except DecodeError:
        return None
    return found
