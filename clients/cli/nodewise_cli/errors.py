"""Errors as exit statuses, lines for people, and JSON for programs."""

from __future__ import annotations

from typing import Any

from nodewise_cli.failures import CommandError, ExitStatus
from nodewise_client import InvalidArgumentError, NodewiseError, NotFoundError, RefusedError

__all__ = ["error_document", "explained", "status_of"]


def status_of(error: CommandError | NodewiseError) -> ExitStatus:
    """The exit status that says what kind of failure it was."""
    match error:
        case CommandError():
            return error.status
        case RefusedError():
            return ExitStatus.REFUSED
        case InvalidArgumentError() | NotFoundError():
            return ExitStatus.BAD_INPUT
        case _:
            return ExitStatus.FAILURE


def explained(error: CommandError | NodewiseError) -> str:
    """One line: the reason, what is wrong, where, and what would be right."""
    text = str(error)
    if isinstance(error, RefusedError):
        missing = [field for field in error.missing_fields if field not in text]
        if missing:
            text += f"; missing: {', '.join(missing)}"
    return text


def error_document(error: CommandError | NodewiseError) -> dict[str, Any]:
    """The JSON of an error: a status code of gRPC, a stable reason, words, and the fields at fault."""
    if isinstance(error, CommandError):
        message, violations = str(error), list(error.violations)
    else:
        message, violations = error.message, [(each.field, each.description) for each in error.violations]
        if isinstance(error, RefusedError):
            violations += [(field, "is not known, and an answer needs it") for field in error.missing_fields]
    return {
        "code": str(error.code),
        "reason": error.reason,
        "message": message,
        "violations": [{"field": field, "description": description} for field, description in violations],
    }
