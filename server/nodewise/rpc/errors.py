"""The one place where failures become gRPC statuses: google.rpc.Status with ErrorInfo and BadRequest."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from nodewise.domain.errors import Kind, NodewiseError, Reason

__all__ = ["DOMAIN", "grpc_code", "internal_error", "status_of"]

DOMAIN: Final = "nodewise"
"""``domain`` of every ErrorInfo."""

_CODES: Final = MappingProxyType(
    {
        Kind.INVALID: code_pb2.INVALID_ARGUMENT,
        Kind.NOT_FOUND: code_pb2.NOT_FOUND,
        Kind.CONFLICT: code_pb2.ABORTED,
        Kind.PRECONDITION: code_pb2.FAILED_PRECONDITION,
        Kind.UNIMPLEMENTED: code_pb2.UNIMPLEMENTED,
        Kind.UNAVAILABLE: code_pb2.UNAVAILABLE,
        Kind.EXHAUSTED: code_pb2.RESOURCE_EXHAUSTED,
        Kind.DEADLINE: code_pb2.DEADLINE_EXCEEDED,
        Kind.INTERNAL: code_pb2.INTERNAL,
    }
)
_RETRY_AFTER_S: Final = 1
"""Delay suggested where a retry helps: a store that is locked or a process that is replaced needs about that long."""

_BY_NUMBER: Final = MappingProxyType({code.value[0]: code for code in grpc.StatusCode})


def status_of(error: NodewiseError) -> status_pb2.Status:
    """The status of an error: message, ErrorInfo (reason, domain, metadata), field violations, retry delay."""
    info = error_details_pb2.ErrorInfo(reason=str(error.reason), domain=DOMAIN, metadata=dict(error.metadata))
    packed = [_packed(info)]
    if error.violations:
        packed.append(
            _packed(
                error_details_pb2.BadRequest(
                    field_violations=[
                        error_details_pb2.BadRequest.FieldViolation(
                            field=violation.field, description=violation.description, reason=str(error.reason)
                        )
                        for violation in error.violations
                    ]
                )
            )
        )
    if error.kind in (Kind.UNAVAILABLE, Kind.EXHAUSTED):
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.seconds = _RETRY_AFTER_S
        packed.append(_packed(retry))
    return status_pb2.Status(code=_CODES[error.kind], message=error.message, details=packed)


def internal_error() -> NodewiseError:
    """What a caller learns of a fault of ours: nothing but that there was one."""
    return NodewiseError(Reason.INTERNAL, "the server failed; its log has the details under this call's x-request-id")


def grpc_code(status: status_pb2.Status) -> grpc.StatusCode:
    """The code of a status as grpcio's enumeration."""
    return _BY_NUMBER[status.code]


def _packed(
    detail: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest | error_details_pb2.RetryInfo,
) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
