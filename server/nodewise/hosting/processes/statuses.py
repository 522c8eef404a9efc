"""Refusals and failures of plugins as statuses of calls, and back.

A refusal is a status with an ErrorInfo whose reason is in the catalogue of errors. A failure has the reason FAILED,
the name of the exception and its traceback. Any other status is a failure without details.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["FAILED", "FORGOTTEN", "GONE", "read_error", "status_of", "status_with"]

DOMAIN: Final = "nodewise"
FAILED: Final = "FAILED"
"""Reason of a status with the exception of a plugin."""
GONE: Final = "OBJECT_GONE"
"""Reason of a status of a model that the server no longer has."""
FORGOTTEN: Final = "EVIDENCE_FORGOTTEN"
"""Reason of a status of a profile or catalogue that was never sent, or was dropped."""


def status_with(code: str, message: str, reason: str, metadata: Mapping[str, str], *more: Any) -> grpc.Status:
    """A status with an ErrorInfo and further details."""
    status = status_pb2.Status(code=code_pb2.Code.Value(code), message=message)
    for each in (error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata), *more):
        status.details.add().Pack(each)
    result: grpc.Status = rpc_status.to_status(status)
    return result


def status_of(error: NodewiseError) -> grpc.Status:
    """The status of a refusal. Raises ValueError for invalid text, and any exception of a plugin's own class."""
    reason = Reason(error.reason)
    more: list[Any] = []
    if error.violations:
        violation = error_details_pb2.BadRequest.FieldViolation
        violations = [violation(field=each.field, description=each.description) for each in error.violations]
        more.append(error_details_pb2.BadRequest(field_violations=violations))
    if error.retry_after_s is not None:
        more.append(error_details_pb2.RetryInfo())
        more[-1].retry_delay.FromNanoseconds(int(error.retry_after_s * 1e9))
    return status_with(error.kind.value, error.message, reason.value, error.metadata, *more)


def read_error(error: grpc.RpcError) -> NodewiseError | Mapping[str, str]:
    """A refusal, else the metadata of a failure, with its reason as "reason": empty where there is none."""
    try:
        status: Any = rpc_status.from_call(error)
        return {"reason": ""} if status is None else _read_status(status)
    except Exception:  # noqa: BLE001  # any sender may have made it
        return {"reason": ""}


def _read_status(status: status_pb2.Status) -> NodewiseError | Mapping[str, str]:
    info, request, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    for each in status.details:
        for detail in (info, request, retry):
            each.Unpack(detail)  # those of its own type alone
    if info.reason not in Reason.__members__:
        return {**info.metadata, "reason": info.reason}
    violations = tuple(Violation(each.field, each.description) for each in request.field_violations)
    retry_after_s = retry.retry_delay.ToNanoseconds() / 1e9 if retry.HasField("retry_delay") else None
    return NodewiseError(Reason(info.reason), status.message, dict(info.metadata), violations, retry_after_s)
