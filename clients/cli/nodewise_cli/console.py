"""Where a command writes: tables and JSON on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from typing import Any, Final

import orjson
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

__all__ = ["complain", "print_json", "print_table", "say", "shown"]

PIPED_WIDTH: Final = 200
"""Columns where nobody's window tells: a table that goes into a file is not cut."""


def print_json(value: Any) -> None:
    """One JSON object on standard output; NaN and infinities become null."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
    sys.stdout.flush()


def say(text: str = "") -> None:
    """A line on standard output."""
    _output().print(Text(text), soft_wrap=True)


def print_table(columns: list[tuple[str, bool]], rows: list[list[str]], title: str = "") -> None:
    """A table on standard output.

    Parameters
    ----------
    columns : list of (str, bool)
        Headings, and whether the column holds numbers.
    """
    table = RichTable(box=box.SIMPLE_HEAD, title=Text(title) if title else None, title_justify="left", pad_edge=False)
    for heading, numeric in columns:
        table.add_column(Text(heading), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    _output().print(table)


def complain(text: str) -> None:
    """An error, or something worth knowing, on standard error."""
    _errors().print(Text(f"nodewise: {text}"), soft_wrap=True)


def shown(value: float | None, digits: int = 4) -> str:
    """A number for people; a dash where it is not known."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if abs(value) < 1e-3 else _fixed(value, digits)


def _fixed(value: float, digits: int) -> str:
    """So many significant digits without an exponent."""
    before = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(digits - before, 0)}f}"


def _output() -> Console:
    # Made anew: tests and pipes exchange the streams.
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)


def _errors() -> Console:
    return Console(file=sys.stderr, width=None if sys.stderr.isatty() else PIPED_WIDTH, highlight=False)
