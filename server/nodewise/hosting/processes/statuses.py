"""Refusals and failures of plugins as statuses of calls, and back.

A refusal is a status with an ErrorInfo whose reason is in the catalogue of errors. A failure has the reason FAILED,
the name of what was raised and its traceback. Any other status is a failure of which nothing more is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["FAILED", "FORGOTTEN", "GONE", "read_error", "status_of", "status_with"]

DETAILS: Final = "grpc-status-details-bin"
DOMAIN: Final = "nodewise"
FAILED: Final = "FAILED"
"""Reason of a status that tells what a plugin raised."""
GONE: Final = "OBJECT_GONE"
"""Reason of a status that tells that a model is not kept any more."""
FORGOTTEN: Final = "EVIDENCE_FORGOTTEN"
"""Reason of a status that tells that a profile or catalogue was never sent, or was dropped."""


class _Status(grpc.Status):
    """What a servicer's context takes."""

    def __init__(self, status: status_pb2.Status) -> None:
        self.code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
        self.details = status.message
        self.trailing_metadata = ((DETAILS, status.SerializeToString()),)


def status_with(code: str, message: str, reason: str, **metadata: str) -> grpc.Status:
    """A status with an ErrorInfo."""
    return _Status(_status(code, message, reason, metadata))


def _status(code: str, message: str, reason: str, metadata: Mapping[str, str], *more: Any) -> status_pb2.Status:
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata)
    details = []
    for each in (info, *more):
        details.append(AnyMessage())
        details[-1].Pack(each)
    return status_pb2.Status(code=code_pb2.Code.Value(code), message=message, details=details)


def status_of(error: NodewiseError) -> grpc.Status:
    """Of a refusal. Raises what a plugin's own class raises where it is looked at, or ValueError for no text."""
    reason = Reason(error.reason)
    more: list[Any] = []
    if error.violations:
        violation = error_details_pb2.BadRequest.FieldViolation
        found = [violation(field=each.field, description=each.description) for each in error.violations]
        more.append(error_details_pb2.BadRequest(field_violations=found))
    if error.retry_after_s is not None:
        delay = Duration()
        delay.FromNanoseconds(int(error.retry_after_s * 1e9))
        more.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return _Status(_status(error.kind.value, error.message, reason.value, error.metadata, *more))


def read_error(error: grpc.RpcError) -> NodewiseError | Mapping[str, str] | None:
    """A refusal, else what is told of a failure, its reason as "reason"; None = the call itself failed."""
    metadata: Any = error.trailing_metadata()
    for key, value in metadata or ():
        if key == DETAILS:
            try:
                return _read_status(status_pb2.Status.FromString(value))
            except Exception:  # noqa: BLE001  # whoever made it
                return {"reason": ""}
    return None


def _read_status(status: status_pb2.Status) -> NodewiseError | Mapping[str, str]:
    info = error_details_pb2.ErrorInfo()
    violations: tuple[Violation, ...] = ()
    retry_after_s = None
    for each in status.details:
        if each.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            each.Unpack(info)
        elif each.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            request = error_details_pb2.BadRequest()
            each.Unpack(request)
            violations = tuple(Violation(found.field, found.description) for found in request.field_violations)
        elif each.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            each.Unpack(retry)
            retry_after_s = retry.retry_delay.ToNanoseconds() / 1e9
    if info.reason in Reason.__members__:
        return NodewiseError(Reason(info.reason), status.message, dict(info.metadata), violations, retry_after_s)
    return {**info.metadata, "reason": info.reason}
