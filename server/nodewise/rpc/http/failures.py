"""Statuses over HTTP: in the Connect protocol, and in REST by AIP-193."""

from __future__ import annotations

import base64
import math
from types import MappingProxyType
from typing import Any, Final

import orjson
from google.protobuf import json_format
from google.rpc import code_pb2, error_details_pb2, status_pb2

__all__ = ["connect_error", "headers_of", "http_code", "rest_error"]

_HTTP_CODES: Final = MappingProxyType(
    {
        "CANCELLED": 499,
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
        "UNAVAILABLE": 503,
        "UNAUTHENTICATED": 401,
    }
)
"""HTTP codes, by the mappings of Connect and google.rpc.Code; others are 500."""


def _name_of(status: status_pb2.Status) -> str:
    """Of the code."""
    return code_pb2.Code.Name(status.code) if 0 < status.code <= max(code_pb2.Code.values()) else "UNKNOWN"


def http_code(status: status_pb2.Status) -> int:
    """Of the response."""
    return _HTTP_CODES.get(_name_of(status), 500)


def connect_error(status: status_pb2.Status) -> dict[str, Any]:
    """A status in the Connect protocol, in a body or at the end of a stream."""
    name = _name_of(status)
    error: dict[str, Any] = {"code": "canceled" if name == "CANCELLED" else name.lower(), "message": status.message}
    details = []
    for detail, as_json in zip(status.details, json_format.MessageToDict(status).get("details", ())):
        kind = as_json.pop("@type").rpartition("/")[2]
        value = base64.b64encode(detail.value).decode("ascii").rstrip("=")
        details.append({"type": kind, "value": value, "debug": as_json})
    return error | ({"details": details} if details else {})


def rest_error(status: status_pb2.Status, code: int | None = None) -> bytes:
    """The body by AIP-193; ``code`` replaces that of the status."""
    error = {"code": code or http_code(status), "message": status.message, "status": _name_of(status)}
    return orjson.dumps({"error": json_format.MessageToDict(status) | error})


def headers_of(status: status_pb2.Status) -> dict[str, str]:
    """Headers of a response with this status: the delay of a retry, and how to authenticate."""
    headers = {}
    if status.code == code_pb2.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    retry = error_details_pb2.RetryInfo()
    if any(detail.Unpack(retry) for detail in status.details):
        delay = retry.retry_delay
        headers["Retry-After"] = str(max(1, math.ceil(delay.seconds + delay.nanos / 1e9)))
    return headers
