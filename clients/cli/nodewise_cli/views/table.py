"""Tables of the width of the output: columns that do not fit are folded beneath the row; numbers are never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len

from nodewise_cli.console import print_line, print_title, visible, width_of_output
from nodewise_cli.recording import RecordedTable, is_silent, record

__all__ = ["Column", "figures", "names", "print_columns", "print_table", "words"]

ELLIPSIS: Final = "..."
GAP: Final = "  "
INDENT: Final = "    "
MOST_LINES: Final = 3
"""Lines of a long name: its middle is left out where it needs more."""
NARROWEST: Final = 20
"""Characters below which a column of words is folded beneath its row sooner than it is made narrower."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: numbers are right-aligned and never broken; the largest ``priority`` is folded first.

    Words of a column with ``most_lines`` may be broken anywhere, so that a long one takes no room from others; what
    needs more lines loses its middle. 0 = words stay whole.
    """

    heading: str
    numeric: bool
    priority: float | None = None
    """None = its place in the table, from 0."""
    most_lines: int = 0


def figures(heading: str, priority: float | None = None) -> Column:
    """A column of numbers."""
    return Column(heading, numeric=True, priority=priority)


def words(heading: str, priority: float | None = None) -> Column:
    """A column of words."""
    return Column(heading, numeric=False, priority=priority)


def names(heading: str, priority: float | None = None, *, most_lines: int = MOST_LINES) -> Column:
    """A column of foreign names of any length, such as those of kernels."""
    return Column(heading, numeric=False, priority=priority, most_lines=most_lines)


def print_columns(*columns: tuple[Column, Sequence[str]], title: str = "") -> None:
    """A table on standard output, by its columns and their cells."""
    print_table([column for column, _ in columns], list(zip(*(cells for _, cells in columns), strict=True)), title)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on standard output.

    Columns that find no room go beneath their row, each value with its heading; those that say nothing are left out.
    """
    width = width_of_output()
    rows = [[visible(cell) for cell in row] for row in rows]
    headings, numeric = [column.heading for column in columns], [column.numeric for column in columns]
    record(RecordedTable(title, headings, numeric, rows))
    if is_silent():
        return
    least = [_least(column, place, rows) for place, column in enumerate(columns)]
    columns_shown = list(range(len(columns)))
    priorities = [place if column.priority is None else column.priority for place, column in enumerate(columns)]
    order = sorted(columns_shown, key=lambda place: (priorities[place], place))
    while len(columns_shown) > 1 and sum(least[place] + len(GAP) for place in columns_shown) - len(GAP) > width:
        columns_shown.remove(order.pop())
    widths = _widths(columns, rows, columns_shown, least, width)
    if title:
        print_title(title)
    for line in _lines(columns, widths, [column.heading for column in columns]):
        print_line(line, bold=True)
    print_line("─" * (sum(widths.values()) + len(GAP) * (len(widths) - 1)))
    for row in rows:
        for line in (*_lines(columns, widths, row), *_fold(columns, columns_shown, row, width)):
            print_line(line)
    print_line()


def _least(column: Column, place: int, rows: Sequence[Sequence[str]]) -> int:
    """The narrowest that a column may be."""
    heading = max(map(cell_len, column.heading.split()), default=0)
    widest = max((cell_len(row[place]) for row in rows), default=0)
    if column.numeric:
        return max(heading, widest)
    if column.most_lines:
        return max(heading, min(widest, NARROWEST))
    longest = max((cell_len(word) for row in rows for word in row[place].split()), default=0)
    return max(heading, longest, min(widest, NARROWEST))


def _widths(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    columns_shown: Sequence[int],
    least: Sequence[int],
    width_left: int,
) -> dict[int, int]:
    """The width of each kept column: those that need the least extra come first."""
    widest = {
        place: max(least[place], cell_len(columns[place].heading), *(cell_len(row[place]) for row in rows), 0)
        for place in columns_shown
    }
    widths = {place: least[place] for place in columns_shown}
    spare = width_left - sum(widths.values()) - len(GAP) * (len(columns_shown) - 1)
    for place in sorted(columns_shown, key=lambda place: widest[place] - least[place]):
        more = max(0, min(spare, widest[place] - least[place]))
        widths[place] += more
        spare -= more
    return widths


def _lines(columns: Sequence[Column], widths: dict[int, int], row: Sequence[str]) -> Iterator[str]:
    """A row's lines: as many as its tallest cell has."""
    cell_lines = (
        _break_name(row[place], width, columns[place].most_lines)
        if columns[place].most_lines
        else _wrap(row[place], width)
        for place, width in widths.items()
    )
    for texts in zip_longest(*cell_lines, fillvalue=""):
        parts = []
        for text, (place, width) in zip(texts, widths.items()):
            blank = " " * (width - cell_len(text))
            parts.append(blank + text if columns[place].numeric else text + blank)
        yield GAP.join(parts).rstrip()


def _wrap(text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _break_name(text: str, width: int, most: int) -> list[str]:
    """Lines of a name, without its middle where it is longer."""
    lines = _fill(text, width)
    half = (most * width - len(ELLIPSIS)) // 2
    while half > 1 and len(lines) > most:
        lines = _fill(f"{text[:half]}{ELLIPSIS}{text[-half:]}", width)
        half -= 1
    return lines


def _fill(text: str, width: int) -> list[str]:
    """Lines as full as words allow; a word that is longer than a line is broken."""
    lines, length = [""], 0
    for word in text.split():
        size = cell_len(word)
        if lines[-1] and length + 1 + size <= width:
            lines[-1], length = f"{lines[-1]} {word}", length + 1 + size
            continue
        if lines[-1]:
            lines.append("")
        length = 0
        for character in word:
            size = cell_len(character)
            if lines[-1] and length + size > width:
                lines.append("")
                length = 0
            lines[-1], length = lines[-1] + character, length + size
    return lines


def _fold(
    columns: Sequence[Column], columns_shown: Sequence[int], row: Sequence[str], output_width: int
) -> Iterator[str]:
    """Columns that do not fit, folded beneath the others."""
    values = [
        f"{column.heading} {row[place]}".strip()
        for place, column in enumerate(columns)
        if place not in columns_shown and row[place] not in ("", "-")
    ]
    width = output_width - len(INDENT)
    # A value stays in the line of its heading where both fit into one.
    text = "; ".join(value.replace(" ", "\0") if len(value) < width else value for value in values)
    breaks = any(column.most_lines for place, column in enumerate(columns) if place not in columns_shown)
    for line in textwrap.wrap(text, max(width, 1), break_long_words=breaks, break_on_hyphens=False):
        yield INDENT + line.replace("\0", " ")
