"""The condition of a store: why it cannot be read or written."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason

__all__ = [
    "CORRUPT",
    "DELETED",
    "FULL",
    "LOCKED",
    "READ_ONLY",
    "REPLACED",
    "UNREACHABLE",
    "StoreCondition",
    "disk_cause",
    "store_unavailable",
]

DELETED: Final = "deleted"
REPLACED: Final = "replaced"
CORRUPT: Final = "corrupt"
LOCKED: Final = "locked"
FULL: Final = "full"
READ_ONLY: Final = "read_only"
UNREACHABLE: Final = "unreachable"

_TEXTS: Final = {
    DELETED: "the store's file is missing; put it back, or restart the server",
    REPLACED: "the store's file was replaced; put the original back, or restart the server",
    CORRUPT: "the store is damaged; restore it from a backup",
    LOCKED: "another program holds the lock of the store; retry later",
    FULL: "the store is full, and the request was not stored; free space, then retry",
    READ_ONLY: "the store is read-only; make it writable, then retry",
    UNREACHABLE: "the store does not answer; retry later",
}
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PASSING: Final = frozenset({LOCKED, FULL, READ_ONLY, UNREACHABLE})
"""Causes that end with the next successful write."""


def disk_cause(error: OSError) -> str:
    """The cause of an error of a disk; empty = unknown."""
    return FULL if error.errno in _FULL else ""


def store_unavailable(cause: str = "") -> NodewiseError:
    """The caller's error where the store does not answer; the log has the details, and the caller may retry."""
    message = _TEXTS.get(cause, "the store cannot be read or written now; retry later")
    return NodewiseError(Reason.STORE_UNAVAILABLE, message, {"cause": cause} if cause else {})


class StoreCondition:
    """The fault of a store, as one process knows it. Safe from many threads.

    Parameters
    ----------
    types : tuple of type
        Exception types of the database.
    cause_of : callable
        Returns the cause of an exception, one of the words above; empty = unknown.

    Attributes
    ----------
    cause : str
        The current fault of the store; empty = none is known.
    """

    def __init__(self, types: tuple[type[Exception], ...], cause_of: Callable[[Exception], str]) -> None:
        self.types = types
        self._cause_of = cause_of
        self.cause = ""

    def note(self, error: Exception) -> str:
        """Note and return the cause of an exception of a database, a disk or damaged content."""
        if isinstance(error, self.types):
            cause = self._cause_of(error)
        elif isinstance(error, OSError):
            cause = disk_cause(error)
        else:
            cause = CORRUPT
        self.cause = cause or self.cause
        return cause

    def record_write(self) -> None:
        """Note a successful write, which ends the faults of writes."""
        self.over(*_PASSING)

    def over(self, *causes: str) -> None:
        """End the current fault, if it is one of these causes."""
        if self.cause in causes:
            self.cause = ""
