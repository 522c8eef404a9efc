"""Errors as values: every reason of Nodewise, with its kind, in one catalogue.

The boundary (``rpc/errors.py``) turns a :class:`NodewiseError` into a gRPC status; nothing below it knows gRPC. The
text of any other exception never reaches a caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, Final

__all__ = ["CATALOGUE", "Kind", "NodewiseError", "Reason", "ReasonEntry", "Refusal", "Violation", "invalid_field"]


class Kind(Enum):
    """Kind of a reason; its value names the gRPC status code (google.rpc.Code)."""

    INVALID = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    EXISTS = "ALREADY_EXISTS"
    CONFLICT = "ABORTED"
    PRECONDITION = "FAILED_PRECONDITION"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    UNAVAILABLE = "UNAVAILABLE"
    EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "PERMISSION_DENIED"
    DEADLINE = "DEADLINE_EXCEEDED"
    INTERNAL = "INTERNAL"


class Reason(StrEnum):
    """Stable names of failures. Callers switch on them; they are never renamed after the first release."""

    INVALID_FIELD = "INVALID_FIELD"
    CONTRADICTORY_FACTS = "CONTRADICTORY_FACTS"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    MALFORMED_MESSAGE = "MALFORMED_MESSAGE"
    PROFILE_NOT_FOUND = "PROFILE_NOT_FOUND"
    EVIDENCE_NOT_FOUND = "EVIDENCE_NOT_FOUND"
    ESTIMATOR_NOT_FOUND = "ESTIMATOR_NOT_FOUND"
    POLICY_NOT_FOUND = "POLICY_NOT_FOUND"
    DIAGNOSER_NOT_FOUND = "DIAGNOSER_NOT_FOUND"
    SHARING_MODEL_NOT_FOUND = "SHARING_MODEL_NOT_FOUND"
    REVISION_NOT_REACHED = "REVISION_NOT_REACHED"
    REVISION_NOT_FOUND = "REVISION_NOT_FOUND"
    MODEL_NOT_CACHED = "MODEL_NOT_CACHED"
    ETAG_MISMATCH = "ETAG_MISMATCH"
    SESSION_NOT_OPEN = "SESSION_NOT_OPEN"
    BATCH_OUT_OF_ORDER = "BATCH_OUT_OF_ORDER"
    BATCH_CONFLICT = "BATCH_CONFLICT"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    EVIDENCE_MISSING = "EVIDENCE_MISSING"
    UNSUPPORTED_CONFIGURATION = "UNSUPPORTED_CONFIGURATION"
    OBJECTIVE_UNREACHABLE = "OBJECTIVE_UNREACHABLE"
    ESTIMATOR_FAILED = "ESTIMATOR_FAILED"
    ESTIMATOR_INVALID_RESULT = "ESTIMATOR_INVALID_RESULT"
    ESTIMATOR_TIMEOUT = "ESTIMATOR_TIMEOUT"
    ESTIMATOR_UNAVAILABLE = "ESTIMATOR_UNAVAILABLE"
    POLICY_FAILED = "POLICY_FAILED"
    POLICY_INVALID_RESULT = "POLICY_INVALID_RESULT"
    READER_FAILED = "READER_FAILED"
    READER_INVALID_RESULT = "READER_INVALID_RESULT"
    DIAGNOSER_FAILED = "DIAGNOSER_FAILED"
    DIAGNOSER_INVALID_RESULT = "DIAGNOSER_INVALID_RESULT"
    SHARING_MODEL_FAILED = "SHARING_MODEL_FAILED"
    SHARING_MODEL_INVALID_RESULT = "SHARING_MODEL_INVALID_RESULT"
    GENERATION_NOT_FOUND = "GENERATION_NOT_FOUND"
    TOKEN_NOT_FOUND = "TOKEN_NOT_FOUND"  # noqa: S105  # a reason, no secret
    GENERATION_BUSY = "GENERATION_BUSY"
    PRIOR_NOT_FOUND = "PRIOR_NOT_FOUND"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    COMPUTE_LOST = "COMPUTE_LOST"
    OVERLOADED = "OVERLOADED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """One entry of the catalogue: the kind of a reason and its meaning for callers."""

    kind: Kind
    meaning: str


_ENTRIES: Final[Mapping[Reason, tuple[Kind, str]]] = {
    Reason.INVALID_FIELD: (Kind.INVALID, "A field holds an invalid value; the violations name the field."),
    Reason.CONTRADICTORY_FACTS: (
        Kind.INVALID,
        "Fields contradict each other or stored facts; the violations name both.",
    ),
    Reason.LIMIT_EXCEEDED: (
        Kind.INVALID,
        "The call exceeds a size limit; split it, or use the stream that the message names.",
    ),
    Reason.MALFORMED_MESSAGE: (Kind.INVALID, "The bytes are not a request message of this method."),
    Reason.PROFILE_NOT_FOUND: (Kind.NOT_FOUND, "No profile of that name is stored."),
    Reason.EVIDENCE_NOT_FOUND: (Kind.NOT_FOUND, "The profile does not hold the evidence that the request names."),
    Reason.ESTIMATOR_NOT_FOUND: (Kind.NOT_FOUND, "No estimator of that name and version is loaded."),
    Reason.POLICY_NOT_FOUND: (Kind.NOT_FOUND, "No policy of that name is loaded."),
    Reason.DIAGNOSER_NOT_FOUND: (Kind.NOT_FOUND, "No diagnoser of that name is loaded."),
    Reason.SHARING_MODEL_NOT_FOUND: (Kind.NOT_FOUND, "No sharing model of that name is loaded."),
    Reason.REVISION_NOT_REACHED: (Kind.UNAVAILABLE, "The profile has not reached the requested revision yet; retry."),
    Reason.REVISION_NOT_FOUND: (
        Kind.NOT_FOUND,
        "The profile never had the requested revision, or no longer has it.",
    ),
    Reason.MODEL_NOT_CACHED: (
        Kind.PRECONDITION,
        "No model is fitted yet, and the call does not wait for one; the fit has begun.",
    ),
    Reason.ETAG_MISMATCH: (Kind.CONFLICT, "The profile changed since the etag was read."),
    Reason.SESSION_NOT_OPEN: (Kind.PRECONDITION, "The first message of an ingest stream must open a session."),
    Reason.BATCH_OUT_OF_ORDER: (Kind.PRECONDITION, "A batch before this one is missing; resend from the named batch."),
    Reason.BATCH_CONFLICT: (Kind.EXISTS, "A batch with this number is stored with other content."),
    Reason.REQUEST_ID_REUSED: (Kind.EXISTS, "This request id was used for a request with other content."),
    Reason.EVIDENCE_MISSING: (Kind.PRECONDITION, "The answer needs more evidence; the error names the missing fields."),
    Reason.UNSUPPORTED_CONFIGURATION: (Kind.PRECONDITION, "The estimator does not support this kind of configuration."),
    Reason.OBJECTIVE_UNREACHABLE: (Kind.PRECONDITION, "None of the requested configurations meets the objective."),
    Reason.ESTIMATOR_FAILED: (
        Kind.INTERNAL,
        "The estimator raised an exception, or its process died or exceeded its budget; the log has the details.",
    ),
    Reason.ESTIMATOR_INVALID_RESULT: (Kind.INTERNAL, "The estimator's answer is invalid; the server discarded it."),
    Reason.ESTIMATOR_TIMEOUT: (Kind.DEADLINE, "The estimator did not answer within its budget."),
    Reason.ESTIMATOR_UNAVAILABLE: (
        Kind.UNAVAILABLE,
        "The estimator is busy, still loading, or paused after failures; retry later.",
    ),
    Reason.POLICY_FAILED: (Kind.INTERNAL, "The policy raised an exception; the server's log has the details."),
    Reason.POLICY_INVALID_RESULT: (Kind.INTERNAL, "The policy's allocation is invalid; the server discarded it."),
    Reason.READER_FAILED: (Kind.INTERNAL, "The trace reader raised an exception; the server's log has the details."),
    Reason.READER_INVALID_RESULT: (Kind.INTERNAL, "The trace reader's columns are invalid; the server discarded them."),
    Reason.DIAGNOSER_FAILED: (Kind.INTERNAL, "The diagnoser raised an exception; the server's log has the details."),
    Reason.DIAGNOSER_INVALID_RESULT: (Kind.INTERNAL, "The diagnoser's answer is invalid; the server discarded it."),
    Reason.SHARING_MODEL_FAILED: (Kind.INTERNAL, "The sharing model raised an exception; the log has the details."),
    Reason.SHARING_MODEL_INVALID_RESULT: (
        Kind.INTERNAL,
        "The sharing model's answer is invalid; the server discarded it.",
    ),
    Reason.GENERATION_NOT_FOUND: (
        Kind.NOT_FOUND,
        "No such generation of plugins exists, or none to return to.",
    ),
    Reason.TOKEN_NOT_FOUND: (Kind.NOT_FOUND, "No token of that id is stored."),
    Reason.GENERATION_BUSY: (Kind.CONFLICT, "Another change of plugins is in progress; retry."),
    Reason.PRIOR_NOT_FOUND: (Kind.NOT_FOUND, "The namespace has no prior, or none of that name."),
    Reason.STORE_UNAVAILABLE: (
        Kind.UNAVAILABLE,
        "The store cannot be read or written now; `cause` says why where that is known. Retry.",
    ),
    Reason.COMPUTE_LOST: (Kind.UNAVAILABLE, "The process that computed the answer died, and a new one started; retry."),
    Reason.OVERLOADED: (Kind.EXHAUSTED, "Too many calls of this kind wait already; retry after the named delay."),
    Reason.QUOTA_EXCEEDED: (
        Kind.EXHAUSTED,
        "The call would exceed a quota; the message names the quota and its limit. Retry where a delay is named.",
    ),
    Reason.UNAUTHENTICATED: (
        Kind.UNAUTHENTICATED,
        "The call has no credentials that this server accepts, or they have expired; the message says which.",
    ),
    Reason.PERMISSION_DENIED: (Kind.FORBIDDEN, "The caller may not call this method, or not for this profile."),
    Reason.NOT_IMPLEMENTED: (Kind.UNIMPLEMENTED, "This release does not implement the method."),
    Reason.DEADLINE_EXCEEDED: (Kind.DEADLINE, "The call's deadline passed before the answer was ready."),
    Reason.INTERNAL: (Kind.INTERNAL, "The server failed; its log has the details under the request id."),
}
CATALOGUE: Final[Mapping[Reason, ReasonEntry]] = MappingProxyType(
    {reason: ReasonEntry(*entry) for reason, entry in _ENTRIES.items()}
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A field, and what it must hold. ``field`` is a path such as ``configurations.nodes[3]``."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why rows (or a whole job) cannot be answered: reason, text for people, and the fields that would help."""

    reason: Reason
    message: str
    missing_fields: tuple[str, ...] = ()

    @staticmethod
    def missing(message: str, *fields: str) -> Refusal:
        """A refusal for missing evidence; ``fields`` would make an answer possible."""
        return Refusal(Reason.EVIDENCE_MISSING, message, fields)

    @staticmethod
    def unsupported(message: str, *fields: str) -> Refusal:
        """A refusal of a kind of configuration that is not supported."""
        return Refusal(Reason.UNSUPPORTED_CONFIGURATION, message, fields)


@dataclass(eq=False)
class NodewiseError(Exception):
    """A failure with a reason from the catalogue.

    Attributes
    ----------
    message : str
        Text for the caller; holds no internals of the server.
    metadata : mapping of str to str
        Every dynamic part of the message. Names as in Python; the wire spells them in lowerCamelCase.
    retry_after_s : float or None
        Delay after which a retry may succeed; None = the default of the reason's kind.
    """

    reason: Reason
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    retry_after_s: float | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its fields; the default would keep only the text."""
        return type(self), (self.reason, self.message, dict(self.metadata), self.violations, self.retry_after_s)

    @property
    def kind(self) -> Kind:
        """The kind of its reason."""
        return CATALOGUE[self.reason].kind

    @classmethod
    def invalid(cls, violations: Iterable[Violation], reason: Reason = Reason.INVALID_FIELD) -> NodewiseError:
        """An error that carries violations; its message is the first of them and how many there are."""
        several = tuple(violations)
        first = several[0]
        more = f" (and {len(several) - 1} more)" if len(several) > 1 else ""
        return cls(reason, f"{first.field}: {first.description}{more}", {"field": first.field}, several)

    @classmethod
    def refused(cls, refusal: Refusal) -> NodewiseError:
        """The error of a refusal."""
        metadata = {"missing_fields": ",".join(refusal.missing_fields)} if refusal.missing_fields else {}
        return cls(refusal.reason, refusal.message, metadata)

    @property
    def missing_fields(self) -> tuple[str, ...]:
        """Fields that would make an answer possible."""
        names = self.metadata.get("missing_fields", "")
        return tuple(names.split(",")) if names else ()

    @property
    def refusal(self) -> Refusal:
        """The error as the refusal of a job or of rows."""
        return Refusal(self.reason, self.message, self.missing_fields)


def invalid_field(path: str, description: str) -> NodewiseError:
    """The error for one field with an invalid value."""
    return NodewiseError.invalid([Violation(path, description)])
