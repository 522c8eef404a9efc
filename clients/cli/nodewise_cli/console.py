"""Where a command writes: answers on standard output, everything else on standard error."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, Final

import orjson
from rich.console import Console
from rich.text import Text

from nodewise_cli.recording import RecordedText, is_silent, record

__all__ = [
    "complain",
    "print_error",
    "print_json",
    "print_line",
    "print_title",
    "say",
    "visible",
    "wide_tables",
    "width_of_output",
]

_ENOUGH: Final = 100_000
_WIDTH: Final[ContextVar[int | None]] = ContextVar("width", default=None)
PIPED_WIDTH: Final = 200
"""Columns where neither a window nor COLUMNS tells."""

_COMMANDS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys instead of showing them, ends of lines apart, and those that turn its direction."""


def print_json(value: Any) -> None:
    """One JSON object on standard output; NaN and infinities become null."""
    _write(sys.stdout.buffer, orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS) + b"\n")


def _write(stream: BinaryIO, data: bytes) -> None:
    """Write all of it. With PYTHONUNBUFFERED a write may end early, and the text layer would drop the rest."""
    left = memoryview(data)
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def print_error(value: dict[str, Any]) -> None:
    """One JSON object on standard error."""
    sys.stderr.write(orjson.dumps({"error": value}).decode() + "\n")
    sys.stderr.flush()


def visible(text: str) -> str:
    """A text in which what a terminal would obey is spelt out: names in what others recorded may hold anything."""
    return _COMMANDS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(text: str = "", *, bold: bool = False) -> None:
    """A sentence on standard output, folded between words where the width is known."""
    record(RecordedText(visible(text)))
    _print_folded(text, bold=bold)


def print_title(text: str) -> None:
    """The title of a table on standard output."""
    _print_folded(text, bold=True)


def _print_folded(text: str, *, bold: bool) -> None:
    width = _told_width()
    for line in (text,) if width is None else _fold(text, width):
        print_line(line, bold=bold)


def print_line(text: str = "", *, bold: bool = False) -> None:
    """A line on standard output, as it is."""
    if is_silent():
        return
    _console(sys.stdout).print(Text(visible(text), style="bold" if bold else ""), soft_wrap=True)


def complain(text: str) -> None:
    """An error, or something worth knowing, on standard error."""
    text = f"nodewise: {text}"
    lines = _fold(text, shutil.get_terminal_size().columns) if sys.stderr.isatty() else [text]
    for line in lines:
        _console(sys.stderr).print(Text(visible(line)), soft_wrap=True)


@contextmanager
def wide_tables() -> Iterator[None]:
    """Give tables all the columns that they need, whatever the window has."""
    token = _WIDTH.set(_ENOUGH)
    try:
        yield
    finally:
        _WIDTH.reset(token)


def width_of_output() -> int:
    """Columns of a table: those of `wide_tables`, else as COLUMNS says, else the window's, else plenty."""
    return _WIDTH.get() or _told_width() or PIPED_WIDTH


def _told_width() -> int | None:
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def _fold(text: str, width: int) -> list[str]:
    indent = text[: len(text) - len(text.lstrip())]
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def _console(stream: Any) -> Console:
    # Made anew: tests and pipes exchange the streams.
    return Console(file=stream, highlight=False)
