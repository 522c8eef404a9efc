"""Problems and notices: why something was not done, and what the reader of an answer should know.

For what an absent or empty value means, see configuration.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise_values.value import Value

__all__ = [
    "FieldViolation",
    "Notice",
    "Problem",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Problem(Value):
    """Why a job, a row or a message of a stream could not be answered.

    A call that fails as a whole ends with a status, whose details (google.rpc.ErrorInfo, BadRequest, RetryInfo) hold
    the same information.
    """

    reason: str = ""
    """Stable reason from the catalogue of errors, e.g. "EVIDENCE_MISSING". Each reason has one status code."""
    message: str = ""
    """What is wrong, for people."""
    missing_fields: tuple[str, ...] = ()
    """Fields that would make an answer possible."""
    violations: tuple[FieldViolation, ...] = ()
    """Fields that hold invalid values."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Further facts about the reason, e.g. "limit". Keys are in lowerCamelCase."""
    retry_delay_seconds: float | None = None
    """A retry may succeed after this many seconds. Absent = the same question fails again."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FieldViolation(Value):
    """An invalid field and what it may hold."""

    field: str = ""
    """Path of the field from the request, e.g. "configurations.nodes[3]"."""
    description: str = ""
    """What is valid, and what the field held."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Notice(Value):
    """Something the reader of an answer should know."""

    reason: str = ""
    """Stable reason.

    Stable reason: EXTRAPOLATES, OBJECTIVE_UNREACHABLE, NO_SPREAD or NOT_SIMULATED; about evidence, EVIDENCE_DISAGREES,
    STEPS_TOO_SHORT, FASTER_THAN_PEAK, MORE_THAN_LINEAR, RUNS_CONTRADICT or THROUGHPUT_COLLAPSES; or a reason of the
    plugin.
    """
    message: str = ""
    """The notice, for people."""
    rows: tuple[int, ...] = ()
    """The rows that the notice is about. Empty = all rows, or the answer has no rows."""
