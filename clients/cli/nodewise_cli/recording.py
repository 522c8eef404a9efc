"""Records what a command prints, so that a report shows the same texts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["RecordedCode", "RecordedTable", "RecordedText", "Recording", "is_silent", "record", "record_output"]


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """A table as it was printed, before columns were folded."""

    title: str
    headings: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class RecordedText:
    """A sentence as it was printed."""

    text: str


@dataclass(frozen=True, slots=True)
class RecordedCode:
    """Lines to copy, as they were printed."""

    text: str


Recording: TypeAlias = list[RecordedTable | RecordedText | RecordedCode]
_recording: Final[ContextVar[Recording | None]] = ContextVar("recording", default=None)
_is_silent: Final[ContextVar[bool]] = ContextVar("is_silent", default=False)


@contextmanager
def record_output(*, silent: bool = False) -> Iterator[Recording]:
    """Record texts and tables that are printed within; ``silent``: record them without printing."""
    recording: Recording = []
    tokens = _recording.set(recording), _is_silent.set(silent)
    try:
        yield recording
    finally:
        _recording.reset(tokens[0])
        _is_silent.reset(tokens[1])


def is_silent() -> bool:
    """Whether standard output is recorded without being printed."""
    return _is_silent.get()


def record(element: RecordedTable | RecordedText | RecordedCode) -> None:
    """Add an element, if a recording is under way."""
    recording = _recording.get()
    if recording is not None:
        recording.append(element)
