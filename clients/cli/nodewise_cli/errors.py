"""Errors of the service as exit statuses and lines for people."""

from __future__ import annotations

from nodewise_cli.failures import ExitStatus
from nodewise_client import (
    InvalidArgumentError,
    NodewiseError,
    NotFoundError,
    RefusedError,
)

__all__ = ["explained", "status_of"]


def status_of(error: NodewiseError) -> ExitStatus:
    """The exit status that says what kind of failure it was."""
    if isinstance(error, RefusedError):
        return ExitStatus.REFUSED
    if isinstance(error, InvalidArgumentError | NotFoundError):
        return ExitStatus.BAD_INPUT
    return ExitStatus.FAILURE


def explained(error: NodewiseError) -> str:
    """One line: the reason, what is wrong, where, and what would be right."""
    text = str(error)
    if isinstance(error, RefusedError):
        missing = [field for field in error.missing_fields if field not in text]
        if missing:
            text += f"; missing: {', '.join(missing)}"
    return text
