"""Statuses with details, as the server writes them: made from what a scenario says, read, and planted with lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.rpc import error_details_pb2, status_pb2

__all__ = ["DETAILS_KEY", "DOMAIN", "PLANTS", "PUSHBACK_KEY", "Details", "code_named", "planted", "status_of"]

DOMAIN: Final = "nodewise"
DETAILS_KEY: Final = "grpc-status-details-bin"
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
PLANTS: Final = ("wrong-code", "missing-reason", "wrong-delay", "lost-acknowledgement")
"""Regressions that the server between can be planted with."""
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_WRONG: Final = grpc.StatusCode.DATA_LOSS


def code_named(name: str) -> grpc.StatusCode:
    """The code of a name such as INVALID_ARGUMENT. Raises KeyError for others."""
    return grpc.StatusCode[name]


def status_of(document: Mapping[str, Any]) -> status_pb2.Status:
    """The status that a scenario describes, by the keys of PROTOCOL.md."""
    status = status_pb2.Status(
        code=code_named(document["code"]).value[0], message=document.get("message", "injected by the conformance")
    )
    details: list[Any] = []
    if document.get("reason"):
        domain = document.get("domain", DOMAIN)
        metadata = document.get("metadata", {})
        details.append(error_details_pb2.ErrorInfo(reason=document["reason"], domain=domain, metadata=metadata))
    if document.get("violations"):
        bad = error_details_pb2.BadRequest()
        for violation in document["violations"]:
            bad.field_violations.add(field=violation["field"], description=violation["description"])
        details.append(bad)
    if document.get("retry_delay_seconds") is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromNanoseconds(round(document["retry_delay_seconds"] * 1e9))
        details.append(retry)
    for detail in details:
        packed_detail = Packed()
        packed_detail.Pack(detail)
        status.details.append(packed_detail)
    return status


def planted(status: status_pb2.Status, plant: str | None) -> status_pb2.Status:
    """The status as a server with this regression would tell it."""
    new_status = status_pb2.Status()
    new_status.CopyFrom(status)
    if plant == "wrong-code":
        new_status.code = _WRONG.value[0]
    elif plant == "missing-reason":
        other_details = [each for each in status.details if not each.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
        del new_status.details[:]
        new_status.details.extend(other_details)
    elif plant == "wrong-delay":
        for detail in new_status.details:
            retry = error_details_pb2.RetryInfo()
            if detail.Unpack(retry):
                retry.retry_delay.FromNanoseconds(2 * retry.retry_delay.ToNanoseconds() + 1_000_000_000)
                detail.Pack(retry)
    return new_status


class Details:
    """What a status says to a caller.

    Attributes
    ----------
    code, reason, message : str
        Name of the code, reason of ErrorInfo (empty where there is none of ours), text.
    metadata : dict
        Of ErrorInfo.
    violations : list of dict
        `field` and `description`.
    retry_delay_seconds : float or None
        Of RetryInfo.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        self.code = _CODES[status.code].name
        self.message = status.message
        self.reason = ""
        self.metadata: dict[str, str] = {}
        self.violations: list[dict[str, str]] = []
        self.retry_delay_seconds: float | None = None
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        for detail in status.details:
            if detail.Unpack(info) and info.domain == DOMAIN:
                self.reason, self.metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad):
                self.violations += [
                    {"field": each.field, "description": each.description} for each in bad.field_violations
                ]
            elif detail.Unpack(retry):
                self.retry_delay_seconds = retry.retry_delay.ToNanoseconds() / 1e9
