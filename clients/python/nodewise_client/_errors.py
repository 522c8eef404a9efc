"""Errors: one class per kind of failure, distinguished by the reason that the server states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Protocol

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from nodewise_values import FieldViolation, Problem

DOMAIN: Final = "nodewise"
DETAILS_KEY: Final = "grpc-status-details-bin"
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
MISSING_FIELDS: Final = "missingFields"
# What grpc.aio says when a stream ends under a write: it overwrites the status that the server gave (grpc/grpc#36066,
# open). No server writes this text, so it means no more than that the stream is over.
LOST_IN_AIO: Final = "Internal error from Core"


class Code(StrEnum):
    """Status codes of gRPC."""

    OK = "OK"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
    UNAUTHENTICATED = "UNAUTHENTICATED"


class NodewiseError(Exception):
    """A call that failed. Programs branch on `reason`, which is stable; `message` is for people."""

    def __init__(
        self,
        message: str,
        *,
        code: Code = Code.UNKNOWN,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: Iterable[FieldViolation] = (),
        retry_delay_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message: Final = message
        self.code: Final = code
        """Status code."""
        self.reason: Final = reason
        """Reason from the server's catalogue, e.g. "PROFILE_NOT_FOUND"; empty where the server gave none."""
        self.metadata: Final[Mapping[str, str]] = dict(metadata or {})
        """The dynamic parts of the message, by name."""
        self.violations: Final = tuple(violations)
        """Fields that hold what they must not."""
        self.retry_delay_s: Final = retry_delay_s
        """Seconds after which the server asks to be tried again; None where it did not say."""

    def __str__(self) -> str:
        lines = [f"{self.reason or self.code}: {self.message}"]
        lines += [
            f"{violation.field}: {violation.description}"
            for violation in self.violations
            if violation.description not in self.message
        ]
        if self.retry_delay_s is not None:
            lines.append(f"try again in {self.retry_delay_s:g} s")
        return "; ".join(lines)


class InvalidArgumentError(NodewiseError):
    """The request is wrong; `violations` say where. Sending it again does not help."""


class LimitExceededError(InvalidArgumentError):
    """The call is larger than a stated cap: split it, or use the stream."""


class NotFoundError(NodewiseError):
    """There is no profile, revision, evidence, estimator, policy or diagnoser of that name."""


class ConflictError(NodewiseError):
    """The state has moved on: another etag, or other content under the same number or request id."""


class FailedPreconditionError(NodewiseError):
    """The request is right, but not now or not in this state."""


class RefusedError(FailedPreconditionError):
    """Nodewise cannot answer from the available evidence, and does not guess. Callers may go on without an answer."""

    @property
    def missing_fields(self) -> tuple[str, ...]:
        """Fields of the profile that would make an answer possible."""
        fields = self.metadata.get(MISSING_FIELDS, "")
        return tuple(field.strip() for field in fields.split(",") if field.strip())


class UnauthenticatedError(NodewiseError):
    """The server requires a token, or another one."""


class PermissionDeniedError(NodewiseError):
    """The token does not allow this call."""


class ResourceExhaustedError(NodewiseError):
    """The server is overloaded (try again after `retry_delay_s`), or a message is too large."""


class UnavailableError(NodewiseError):
    """The server is unavailable, shuts down, or cannot reach its store. Idempotent calls were already retried."""


class CallCancelledError(NodewiseError):
    """The call was cancelled: by `close()`, or by a server that stopped before it started the call."""


class DeadlineExceededError(NodewiseError):
    """The deadline passed before the answer."""


class UnimplementedError(NodewiseError):
    """The server does not offer this call (yet)."""


class InternalError(NodewiseError):
    """A fault of the server or of a plugin in it, or an answer that cannot be true."""


# Reasons decide first: they are more exact than codes, and stay when a code is improved.
_REASONS: Final[dict[tuple[type[NodewiseError], Code], tuple[str, ...]]] = {
    (InvalidArgumentError, Code.INVALID_ARGUMENT): ("INVALID_FIELD", "CONTRADICTORY_FACTS", "MALFORMED_MESSAGE"),
    (LimitExceededError, Code.INVALID_ARGUMENT): ("LIMIT_EXCEEDED",),
    (NotFoundError, Code.NOT_FOUND): (
        "PROFILE_NOT_FOUND", "REVISION_NOT_FOUND", "EVIDENCE_NOT_FOUND", "ESTIMATOR_NOT_FOUND", "POLICY_NOT_FOUND",
        "DIAGNOSER_NOT_FOUND", "SHARING_MODEL_NOT_FOUND", "GENERATION_NOT_FOUND", "TOKEN_NOT_FOUND",
        "PRIOR_NOT_FOUND",
    ),
    (ConflictError, Code.ABORTED): ("ETAG_MISMATCH", "GENERATION_BUSY"),
    (ConflictError, Code.ALREADY_EXISTS): ("BATCH_CONFLICT", "REQUEST_ID_REUSED"),
    (FailedPreconditionError, Code.FAILED_PRECONDITION): ("SESSION_NOT_OPEN", "BATCH_OUT_OF_ORDER"),
    (RefusedError, Code.FAILED_PRECONDITION): (
        "EVIDENCE_MISSING", "OBJECTIVE_UNREACHABLE", "UNSUPPORTED_CONFIGURATION", "MODEL_NOT_CACHED",
    ),
    (InternalError, Code.INTERNAL): (
        "ESTIMATOR_FAILED", "ESTIMATOR_INVALID_RESULT", "POLICY_FAILED", "POLICY_INVALID_RESULT", "READER_FAILED",
        "READER_INVALID_RESULT", "DIAGNOSER_FAILED", "DIAGNOSER_INVALID_RESULT", "SHARING_MODEL_FAILED",
        "SHARING_MODEL_INVALID_RESULT", "INTERNAL",
    ),
    (UnavailableError, Code.UNAVAILABLE): (
        "REVISION_NOT_REACHED", "ESTIMATOR_UNAVAILABLE", "STORE_UNAVAILABLE", "COMPUTE_LOST",
    ),
    (ResourceExhaustedError, Code.RESOURCE_EXHAUSTED): ("OVERLOADED", "QUOTA_EXCEEDED"),
    (UnauthenticatedError, Code.UNAUTHENTICATED): ("UNAUTHENTICATED",),
    (PermissionDeniedError, Code.PERMISSION_DENIED): ("PERMISSION_DENIED",),
    (UnimplementedError, Code.UNIMPLEMENTED): ("NOT_IMPLEMENTED",),
    (DeadlineExceededError, Code.DEADLINE_EXCEEDED): ("DEADLINE_EXCEEDED", "ESTIMATOR_TIMEOUT"),
}  # fmt: skip
BY_REASON: Final = {reason: kind_and_code for kind_and_code, reasons in _REASONS.items() for reason in reasons}
"""Classes and status codes by the reasons of the catalogue."""
BY_CODE: Final[Mapping[Code, type[NodewiseError]]] = {
    **{code: kind for kind, code in reversed(_REASONS)},
    Code.CANCELLED: CallCancelledError,
    Code.UNKNOWN: InternalError,
    Code.OUT_OF_RANGE: InvalidArgumentError,
    Code.DATA_LOSS: InternalError,
}
"""Classes by codes alone: of several with one code the first above."""
CODES_BY_NUMBER: Final = {status.value[0]: Code(status.name) for status in grpc.StatusCode}


class FailedCall(Protocol):
    """What a finished call can be asked, in grpc and in grpc.aio alike."""

    def code(self) -> grpc.StatusCode | None:
        """Status code."""

    def details(self) -> str | None:
        """Text of the status."""

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """What the server sent at the end."""


def from_call(call: FailedCall, *, target: str, method: str) -> NodewiseError:
    """The error of a call that failed."""
    status = call.code() or grpc.StatusCode.UNKNOWN
    trailers = dict(call.trailing_metadata() or ())
    delay = _pushback(trailers.get(PUSHBACK_KEY))
    data = trailers.get(DETAILS_KEY)
    if isinstance(data, bytes):
        try:
            detailed_status = status_pb2.Status.FromString(data)
        except DecodeError:
            pass
        else:
            if detailed_status.details:
                return from_status(detailed_status, retry_delay_s=delay)
    code = Code(status.name)
    text = call.details() or "no details were given"
    if code is Code.INTERNAL and text == LOST_IN_AIO:
        code, text = Code.UNAVAILABLE, "the stream ended while a message was being sent, and its status was lost"
    return BY_CODE.get(code, NodewiseError)(_explain(code, text, target, method), code=code, retry_delay_s=delay)


def from_status(status: status_pb2.Status, *, retry_delay_s: float | None = None) -> NodewiseError:
    """The error that the details of a call's status describe."""
    code = CODES_BY_NUMBER.get(status.code, Code.UNKNOWN)
    reason = ""
    metadata: dict[str, str] = {}
    violations: list[FieldViolation] = []
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        try:
            if detail.Unpack(info) and info.domain == DOMAIN:
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad):
                violations += [
                    FieldViolation(field=violation.field, description=violation.description)
                    for violation in bad.field_violations
                ]
            elif detail.Unpack(retry):
                retry_delay_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
        except DecodeError:
            continue
    kind, _ = BY_REASON.get(reason) or (BY_CODE.get(code, NodewiseError), code)
    return kind(
        status.message,
        code=code,
        reason=reason,
        metadata=metadata,
        violations=violations,
        retry_delay_s=retry_delay_s,
    )


def from_problem(problem: Problem) -> NodewiseError:
    """The error of one job of a call, or of one question of a stream."""
    kind, code = BY_REASON.get(problem.reason, (NodewiseError, Code.UNKNOWN))
    missing = {MISSING_FIELDS: ",".join(problem.missing_fields)} if problem.missing_fields else {}
    return kind(
        problem.message,
        code=code,
        reason=problem.reason,
        metadata={**missing, **problem.metadata},
        violations=problem.violations,
        retry_delay_s=problem.retry_delay_seconds,
    )


def _explain(code: Code, text: str, target: str, method: str) -> str:
    if code is Code.UNAVAILABLE:
        return (
            f"no answer from a Nodewise server at {target} ({text}). Check that it runs (`nodewise serve` prints where "
            "it listens), that host and port are right and reachable from here, and that both sides agree on TLS"
        )
    if code is Code.DEADLINE_EXCEEDED:
        return f"{method} at {target} was not answered in time ({text}); allow more with timeout_s"
    if code is Code.RESOURCE_EXHAUSTED and "message larger than max" in text:
        return f"{text}; ask for fewer rows, use stream_predict, or allow more with max_receive_bytes"
    if code is Code.UNIMPLEMENTED:
        return f"the server at {target} does not offer {method} ({text})"
    return text


def _pushback(value: str | bytes | None) -> float | None:
    try:
        milliseconds = int(value or -1)
    except ValueError:
        return None
    return milliseconds / 1e3 if milliseconds >= 0 else None
