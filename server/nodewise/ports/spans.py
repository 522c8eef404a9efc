"""Spans of a distributed trace. Without tracing a span costs one function call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

__all__ = ["NO_SPAN", "set_span_starter", "span"]

NO_SPAN: Final[AbstractContextManager[Any]] = nullcontext()

Starter = Callable[[str, Mapping[str, str | int]], AbstractContextManager[Any]]

_starters: Final[list[Starter]] = []


def set_span_starter(start: Starter | None) -> None:
    """Start spans with a function of their name and attributes; None = record none."""
    _starters[:] = [] if start is None else [start]


def span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """A span around a block: a child of the recorded span that is current in this context; without one none."""
    return _starters[0](name, attributes) if _starters else NO_SPAN
