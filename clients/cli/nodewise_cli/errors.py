"""Errors as exit statuses, lines for people, and JSON for programs."""

from __future__ import annotations

import re
from typing import Any, Final

from nodewise_cli.failures import CommandError, ExitStatus
from nodewise_client import InvalidArgumentError, NodewiseError, NotFoundError, RefusedError

__all__ = ["convert_error", "error_document", "explain_error", "status_of"]


_JOINT: Final = re.compile(r"(?<! was answered: )no estimator can answer \((?P<reasons>.*; .*)\)")
_ESTIMATOR: Final = re.compile(r"; (?=[a-z][a-z0-9-]*: )")
_WITH_SERVER: Final = {"nodewise": "the server", "numpy": "NumPy", "scipy": "SciPy"}
"""Packages that the command line alone does without, and what they are called."""
_BATCHES: Final = {"--global-batch": "global_batch", "--batch-per-worker": "batch_per_worker"}


def convert_error(error: Exception) -> CommandError | NodewiseError | None:
    """The error whose text a command prints rather than a traceback; None = there is none."""
    if isinstance(error, ModuleNotFoundError) and (package := (error.name or "").partition(".")[0]) in _WITH_SERVER:
        return CommandError(f"this needs {_WITH_SERVER[package]}, which is not installed: pip install nodewise")
    return error if isinstance(error, CommandError | NodewiseError) else None


def status_of(error: CommandError | NodewiseError) -> ExitStatus:
    """The exit status of this kind of failure."""
    match error:
        case CommandError():
            return error.status
        case RefusedError():
            return ExitStatus.REFUSED
        case InvalidArgumentError() | NotFoundError():
            return ExitStatus.BAD_INPUT
        case _:
            return ExitStatus.FAILURE


def explain_error(error: CommandError | NodewiseError, *, verbose: bool = False) -> str:
    """One line: the reason, what is wrong, where, and what would be right.

    If no estimator can answer, the line has the reason of the nearest one; with ``verbose`` the reason of each.
    """
    text = str(error)
    if not verbose and (joint := _JOINT.search(text)):
        nearest, *others = _ESTIMATOR.split(joint["reasons"])
        is_missing = error.reason == "EVIDENCE_MISSING"
        fields = error.missing_fields if isinstance(error, RefusedError) and is_missing else ()
        options = [option for option, field in _BATCHES.items() if field in fields and "batch" in nearest]
        what = f"state {' or '.join(options)}: " if options else ""
        count = f"{len(others)} other estimator{'' if len(others) == 1 else 's'}"
        summary = f"{what}no estimator can answer ({nearest}; {count}: see --verbose)"
        return f"{text[: joint.start()]}{summary}{text[joint.end() :]}"
    if error.reason == "UNAUTHENTICATED":
        text += "; the command line sends the token of --token @FILE or NODEWISE_TOKEN"
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
            violations += [(field, "is missing, and an answer needs it") for field in error.missing_fields]
    return {
        "code": str(error.code),
        "reason": error.reason,
        "message": message,
        "violations": [{"field": field, "description": description} for field, description in violations],
    }
