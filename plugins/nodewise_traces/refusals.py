"""How readers refuse a stream."""

from __future__ import annotations

from nodewise.plugin import NodewiseError, Reason, TraceSource, Violation

__all__ = ["contradiction_error", "unusable_error"]


def unusable_error(source: TraceSource, message: str) -> NodewiseError:
    """An error for a stream of which nothing usable is left."""
    return _error(Reason.INVALID_FIELD, source, message)


def contradiction_error(source: TraceSource, message: str) -> NodewiseError:
    """An error for a stream that contradicts its sender."""
    return _error(Reason.CONTRADICTORY_FACTS, source, message)


def _error(reason: Reason, source: TraceSource, message: str) -> NodewiseError:
    return NodewiseError.invalid([Violation("trace", f"{source.name}: {message}" if source.name else message)], reason)
