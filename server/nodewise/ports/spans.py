"""Spans of a distributed trace. Without a tracer a span costs one function call."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

__all__ = ["set_tracer", "span"]

_tracers: Final[list[Any]] = []
_NO_SPAN: Final[AbstractContextManager[Any]] = nullcontext()


def set_tracer(tracer: Any) -> None:
    """Record spans with a tracer of OpenTelemetry; None = record none."""
    _tracers[:] = [] if tracer is None else [tracer]


def span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """A span around a block: a child of the span that is current in this context."""
    return _tracers[0].start_as_current_span(name, attributes=attributes) if _tracers else _NO_SPAN
