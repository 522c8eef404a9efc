"""The one place where failures become statuses and problems of the wire, and what is noticed its notices."""

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
from nodewise_protos.v1 import problem_pb2

__all__ = [
    "DOMAIN",
    "below",
    "grpc_code",
    "internal_error",
    "retry_after_s",
    "status_of",
    "with_prefix",
    "write_notice",
    "write_problem",
    "write_refusal",
]

DOMAIN: Final = "nodewise"
"""``domain`` of every ErrorInfo."""

_RETRY_AFTER_S: Final = 1.0
"""Delay suggested where a retry helps: a store that is locked or a process that is replaced needs about that long."""
_RETRIED: Final = frozenset({Kind.UNAVAILABLE, Kind.EXHAUSTED})

_BY_NUMBER: Final = MappingProxyType({code.value[0]: code for code in grpc.StatusCode})
_UNDERSCORED: Final = re.compile("_([a-z0-9])")


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
    """Why a job, or a message of a stream, could not be answered: what a status would say of the whole call."""
    return problem_pb2.Problem(
        reason=str(error.reason),
        message=error.message,
        missing_fields=error.missing_fields,
        violations=[problem_pb2.FieldViolation(field=v.field, description=v.description) for v in error.violations],
        metadata=_metadata(error),
        retry_delay_seconds=retry_after_s(error),
    )


def write_refusal(refusal: Refusal) -> problem_pb2.Problem:
    """Why rows, or a whole job, were refused."""
    return problem_pb2.Problem(
        reason=str(refusal.reason), message=refusal.message, missing_fields=refusal.missing_fields
    )


def write_notice(notice: Notice, rows: Sequence[int] | None = None) -> problem_pb2.Notice:
    """Something that the reader should know; ``rows`` stand in place of its own."""
    return problem_pb2.Notice(
        reason=str(notice.reason), message=notice.message, rows=notice.rows if rows is None else rows
    )


def with_prefix(error: NodewiseError, prefix: str) -> NodewiseError:
    """The same error with its field paths below ``prefix``."""
    if not error.violations:
        return error
    violations = tuple(replace(violation, field=prefix + violation.field) for violation in error.violations)
    return replace(NodewiseError.invalid(violations, error.reason), metadata=error.metadata)


@contextmanager
def below(prefix: str) -> Iterator[None]:
    """What is raised within has its field paths below ``prefix``."""
    try:
        yield
    except NodewiseError as error:
        raise with_prefix(error, prefix) from None


def internal_error() -> NodewiseError:
    """What a caller learns of a fault of ours: nothing but that there was one."""
    return NodewiseError(Reason.INTERNAL, "the server failed; its log has the details under this call's x-request-id")


def grpc_code(status: status_pb2.Status) -> grpc.StatusCode:
    """The code of a status as grpcio's enumeration."""
    return _BY_NUMBER[status.code]


def _metadata(error: NodewiseError) -> dict[str, str]:
    return {_UNDERSCORED.sub(lambda match: match[1].upper(), key): value for key, value in error.metadata.items()}


def retry_after_s(error: NodewiseError) -> float | None:
    """Delay of a retry; None = none helps."""
    if error.retry_after_s is not None or error.reason == Reason.QUOTA_EXCEEDED:  # what is stored does not go by itself
        return error.retry_after_s
    return _RETRY_AFTER_S if error.kind in _RETRIED else None


def _quota_failure(error: NodewiseError) -> error_details_pb2.QuotaFailure:
    """Which quota it was, whose, and how much it allows."""
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
