"""Converts errors to statuses and problems on the wire, and notices to their messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2

from nodewise.domain.errors import Kind, NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Notice
from nodewise.profiles.condition import FULL
from nodewise_protos.v1 import problem_pb2

__all__ = [
    "DOMAIN",
    "below",
    "grpc_code",
    "internal_error",
    "retry_after_s",
    "status_of",
    "with_durable",
    "with_prefix",
    "write_notice",
    "write_problem",
    "write_refusal",
]

DOMAIN: Final = "nodewise"
"""``domain`` of every ErrorInfo."""

_RETRY_AFTER_S: Final = 1.0
"""Suggested delay of a retry: a locked store or a process that restarts needs about that long."""
_KINDS_TO_RETRY: Final = frozenset({Kind.UNAVAILABLE, Kind.EXHAUSTED})

_BY_NUMBER: Final = MappingProxyType({code.value[0]: code for code in grpc.StatusCode})
_UNDERSCORE: Final = re.compile("_([a-z0-9])")


def status_of(error: NodewiseError) -> status_pb2.Status:
    """The status of an error: message, ErrorInfo (reason, domain, metadata), field violations, retry delay."""
    reason = str(error.reason)
    details = [_pack(error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=_metadata(error)))]
    if error.violations:
        violation = error_details_pb2.BadRequest.FieldViolation
        violations = [violation(field=v.field, description=v.description, reason=reason) for v in error.violations]
        details.append(_pack(error_details_pb2.BadRequest(field_violations=violations)))
    if error.reason == Reason.QUOTA_EXCEEDED:
        details.append(_pack(_quota_failure(error)))
    delay_s = retry_after_s(error)
    if delay_s is not None:
        whole = int(delay_s)
        delay = duration_pb2.Duration(seconds=whole, nanos=int((delay_s - whole) * 1e9))
        details.append(_pack(error_details_pb2.RetryInfo(retry_delay=delay)))
    return status_pb2.Status(code=code_pb2.Code.Value(error.kind.value), message=error.message, details=details)


def write_problem(error: NodewiseError) -> problem_pb2.Problem:
    """The problem of a job or of a message of a stream, with what a status says about a whole call."""
    return problem_pb2.Problem(
        reason=str(error.reason),
        message=error.message,
        missing_fields=error.missing_fields,
        violations=[problem_pb2.FieldViolation(field=v.field, description=v.description) for v in error.violations],
        metadata=_metadata(error),
        retry_delay_seconds=retry_after_s(error),
    )


def write_refusal(refusal: Refusal) -> problem_pb2.Problem:
    """The problem of refused rows, or of a refused job."""
    return problem_pb2.Problem(
        reason=str(refusal.reason), message=refusal.message, missing_fields=refusal.missing_fields
    )


def write_notice(notice: Notice, rows: Sequence[int] | None = None) -> problem_pb2.Notice:
    """A notice; ``rows`` replace its own."""
    return problem_pb2.Notice(
        reason=str(notice.reason), message=notice.message, rows=notice.rows if rows is None else rows
    )


def with_prefix(error: NodewiseError, prefix: str) -> NodewiseError:
    """The same error with its field paths below ``prefix``."""
    if not error.violations:
        return error
    violations = tuple(replace(violation, field=prefix + violation.field) for violation in error.violations)
    return replace(NodewiseError.invalid(violations, error.reason), metadata=error.metadata)


def with_durable(error: NodewiseError, durable_sequence_number: int) -> NodewiseError:
    """The error of an ingest session with the number of its last durable batch, where the session can resume later."""
    if error.kind not in _KINDS_TO_RETRY:
        return error
    number = durable_sequence_number
    durable = f"batches up to {number} of the session are durable" if number else "no batch of the session is durable"
    message = f"{error.message}; {durable}; resume with batch {number + 1}"
    return replace(error, message=message, metadata={**error.metadata, "durable_sequence_number": str(number)})


@contextmanager
def below(prefix: str) -> Iterator[None]:
    """Prefix the field paths of errors that are raised within."""
    try:
        yield
    except NodewiseError as error:
        raise with_prefix(error, prefix) from None


def internal_error() -> NodewiseError:
    """The error of a fault of the server, without details, which the log has."""
    return NodewiseError(Reason.INTERNAL, "the server failed; its log has the details under this call's x-request-id")


def grpc_code(status: status_pb2.Status) -> grpc.StatusCode:
    """The code of a status as grpcio's enumeration."""
    return _BY_NUMBER[status.code]


def _metadata(error: NodewiseError) -> dict[str, str]:
    return {_UNDERSCORE.sub(lambda match: match[1].upper(), key): value for key, value in error.metadata.items()}


def retry_after_s(error: NodewiseError) -> float | None:
    """Delay of a retry; None = a retry does not help."""
    is_full = error.reason == Reason.QUOTA_EXCEEDED or error.metadata.get("cause") == FULL  # stored content stays
    if error.retry_after_s is not None or is_full:
        return error.retry_after_s
    return _RETRY_AFTER_S if error.kind in _KINDS_TO_RETRY else None


def _quota_failure(error: NodewiseError) -> error_details_pb2.QuotaFailure:
    """The quota, its subject, and how much it allows."""
    metadata = error.metadata
    violation = error_details_pb2.QuotaFailure.Violation(
        subject=metadata.get("caller") or f"namespace:{metadata.get('namespace', '')}",
        description=error.message,
        api_service=DOMAIN,
        quota_metric=metadata.get("quota", ""),
        quota_id=f"quotas.{metadata.get('quota', '')}",
        quota_value=int(metadata.get("limit", 0)),
    )
    return error_details_pb2.QuotaFailure(violations=[violation])


def _pack(detail: Message) -> any_pb2.Any:
    message = any_pb2.Any()
    message.Pack(detail)
    return message
