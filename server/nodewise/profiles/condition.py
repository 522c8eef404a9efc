"""What ails a store: why it cannot be read or written."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason

__all__ = ["CORRUPT", "DELETED", "FULL", "LOCKED", "READ_ONLY", "REPLACED", "UNREACHABLE", "Faults", "StoreCondition"]

DELETED: Final = "deleted"
REPLACED: Final = "replaced"
CORRUPT: Final = "corrupt"
LOCKED: Final = "locked"
FULL: Final = "full"
READ_ONLY: Final = "read_only"
UNREACHABLE: Final = "unreachable"

_TEXTS: Final = {
    DELETED: "the file of the store is gone: put it back, or restart the server",
    REPLACED: "the file of the store is another than the server opened: put it back, or restart the server",
    CORRUPT: "what is stored is damaged: restore it from a backup",
    LOCKED: "another program holds the lock of the store; retry later",
    FULL: "the store is full, nothing of this was stored; retry when there is room",
    READ_ONLY: "the store can be read but not written; retry once that is mended",
    UNREACHABLE: "the store does not answer; retry later",
}
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PASSING: Final = frozenset({LOCKED, FULL, READ_ONLY, UNREACHABLE})
"""What is over as soon as something can be written again."""


class StoreCondition:
    """Of one process's store. Safe from many threads.

    Attributes
    ----------
    cause : str
        What ails it now, one of the words above; empty = nothing that was met.
    """

    def __init__(self) -> None:
        self.cause = ""

    def note(self, cause: str) -> None:
        """Something failed of this cause; empty = of none that is known."""
        self.cause = cause or self.cause

    def written(self) -> None:
        """Something was written: what kept it from being written is over."""
        if self.cause in _PASSING:
            self.over(self.cause)

    def over(self, *causes: str) -> None:
        """What ailed it is over, if it is one of these."""
        if self.cause in causes:
            self.cause = ""

    @staticmethod
    def error(cause: str = "") -> NodewiseError:
        """What a caller is told: the log says more."""
        message = _TEXTS.get(cause, "the store cannot be read or written now; retry later")
        return NodewiseError(Reason.STORE_UNAVAILABLE, message, {"cause": cause} if cause else {})


@dataclass(frozen=True, slots=True)
class Faults:
    """What a database raises, and what that says of the store.

    Attributes
    ----------
    types : tuple of type
        What it raises.
    cause_of : callable
        The cause of what was raised; empty = none that is known.
    noted : callable
        Told the cause of whatever was raised.
    """

    types: tuple[type[Exception], ...]
    cause_of: Callable[[Exception], str]
    noted: Callable[[str], None]

    def cause(self, error: Exception) -> str:
        """Of what a database, a disk or damaged content raised; it is noted."""
        if isinstance(error, self.types):
            cause = self.cause_of(error)
        elif isinstance(error, OSError):
            cause = FULL if error.errno in _FULL else ""
        else:
            cause = CORRUPT
        self.noted(cause)
        return cause
