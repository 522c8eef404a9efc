"""Problems and notices: why something was not done, and what a reader should know of what was.

Absence, as on the whole wire: see configuration.proto.
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

    A call that fails as a whole ends with a status instead, whose details (google.rpc.ErrorInfo, BadRequest, RetryInfo)
    say the same.
    """

    reason: str = ""
    """Stable reason of the catalogue of errors, e.g. "EVIDENCE_MISSING". It implies the status code."""
    message: str = ""
    """For people."""
    missing_fields: tuple[str, ...] = ()
    """Fields that would make an answer possible."""
    violations: tuple[FieldViolation, ...] = ()
    """Fields that hold what they must not."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What else the reason says, e.g. "limit"; keys in lowerCamelCase."""
    retry_delay_seconds: float | None = None
    """Asking again may succeed after so many seconds. Absent = the same question fails again."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FieldViolation(Value):
    """A field and what would be right in it."""

    field: str = ""
    """Path from the request, e.g. "configurations.nodes[3]"."""
    description: str = ""
    """What would be right, and what was found."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Notice(Value):
    """Something the reader of an answer should know."""

    reason: str = ""
    """Stable reason.

    Stable reason: EXTRAPOLATES, OBJECTIVE_UNREACHABLE, NO_SPREAD, NOT_SIMULATED; of evidence EVIDENCE_DISAGREES,
    STEPS_TOO_SHORT, FASTER_THAN_PEAK, MORE_THAN_LINEAR, RUNS_CONTRADICT, THROUGHPUT_COLLAPSES; or one of the plugin's
    own.
    """
    message: str = ""
    """For people."""
    rows: tuple[int, ...] = ()
    """The rows concerned. Empty = all, or the answer has no rows."""
