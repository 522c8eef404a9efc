"""Why a change cannot be applied."""

from __future__ import annotations

from nodewise.plugin import NodewiseError, Reason, Violation

__all__ = ["invalid", "unsupported_error"]


def invalid(field: str, description: str) -> NodewiseError:
    """A change that makes no sense."""
    return NodewiseError.invalid([Violation(f"changes.{field}", description)])


def unsupported_error(message: str, *missing: str) -> NodewiseError:
    """A change that the traces do not support; ``missing`` names what would."""
    return NodewiseError(
        Reason.EVIDENCE_MISSING,
        message,
        {"missing_fields": ",".join(missing)} if missing else {},
        (Violation("changes.kind", message),),
    )
