"""Statuses as HTTP tells them, read and written: of the Connect protocol, and of REST as AIP-193 has it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2

__all__ = ["HTTP_CODES", "connect_error", "read_error", "rest_error"]

HTTP_CODES: Final[Mapping[str, int]] = {
    "CANCELLED": 499, "UNKNOWN": 500, "INVALID_ARGUMENT": 400, "DEADLINE_EXCEEDED": 504, "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409, "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429, "FAILED_PRECONDITION": 400,
    "ABORTED": 409, "OUT_OF_RANGE": 400, "UNIMPLEMENTED": 501, "INTERNAL": 500, "UNAVAILABLE": 503, "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}  # fmt: skip
"""HTTP status by the code's name, the same in both."""
_NAMES: Final = {code.value[0]: code.name for code in grpc.StatusCode}
_NUMBERS: Final = {code.name: code.value[0] for code in grpc.StatusCode}
_DETAILS: Final[Mapping[str, Any]] = {
    kind.DESCRIPTOR.full_name: kind
    for kind in (
        error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo,
        error_details_pb2.QuotaFailure,
    )
}  # fmt: skip


def connect_error(status: status_pb2.Status) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of the Connect protocol."""
    name = _NAMES[status.code]
    details = [
        {"type": each.type_url.rpartition("/")[2], "value": base64.b64encode(each.value).decode().rstrip("=")}
        for each in status.details
    ]
    code = "canceled" if name == "CANCELLED" else name.lower()
    return HTTP_CODES[name], {"code": code, "message": status.message, "details": details}


def rest_error(status: status_pb2.Status) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of REST."""
    name = _NAMES[status.code]
    details = []
    for each in status.details:
        kind = _DETAILS[each.type_url.rpartition("/")[2]]
        details.append({"@type": each.type_url, **json_format.MessageToDict(kind.FromString(each.value))})
    error = {"code": HTTP_CODES[name], "message": status.message, "status": name, "details": details}
    return HTTP_CODES[name], {"error": error}


def read_error(body: Any) -> status_pb2.Status | None:
    """The status that a body of either kind holds; None = it is none."""
    if not isinstance(body, Mapping):
        return None
    rest = body.get("error")
    error = rest if isinstance(rest, Mapping) else body
    name = error.get("status") if error is rest else str(error.get("code", "")).upper().replace("CANCELED", "CANCELLED")
    if name not in _NUMBERS:
        return None
    status = status_pb2.Status(code=_NUMBERS[name], message=error.get("message", ""))
    for each in error.get("details", ()):
        if "@type" in each:
            kind = _DETAILS.get(each["@type"].rpartition("/")[2])
            if kind is not None:
                fields = {key: value for key, value in each.items() if key != "@type"}
                status.details.add().Pack(json_format.ParseDict(fields, kind()))
        else:
            value = each["value"]
            packed = status.details.add(type_url=f"type.googleapis.com/{each['type']}")
            packed.value = base64.b64decode(value + "=" * (-len(value) % 4))
    return status
