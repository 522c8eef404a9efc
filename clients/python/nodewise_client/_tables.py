"""Rows as tables of other libraries and of notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from html import escape
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from nodewise_client._rows import Row

SHOWN_ROWS: Final = 50
"""Rows of a table in a notebook."""
_PLURALS: Final = (("_ids", "_id"), ("_indexes", "_index"), ("_counts", "_count"), ("_ratios", "_ratio"))
_MEANS: Final = "_means"
_DIGITS: Final = 6


def library(name: str) -> Any:
    """Import an optional library. Raises ImportError, which says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}, which cannot be imported ({error}): pip install {name}") from None


def column_table(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows as columns, by the names that rows have for them.

    Values by name, such as the parts of a step, become a column each (``breakdown_seconds.compute``). Enumerations
    become text. A column that no row states is left out.
    """
    columns: dict[str, list[Any]] = {}
    for place, row in enumerate(rows):
        for name, value in _plain(row):
            columns.setdefault(name, [None] * place).append(value)
        for column in columns.values():
            if len(column) == place:
                column.append(None)
    return {name: column for name, column in columns.items() if any(value is not None for value in column)}


def _plain(row: Row) -> list[tuple[str, Any]]:
    """A row's values, by name."""
    pairs: list[tuple[str, Any]] = []
    for name, value in row.values_by_column().items():
        if isinstance(value, Mapping):
            pairs += [(f"{name}.{key}", each) for key, each in value.items()]
        elif isinstance(value, Enum):
            pairs.append((name, str(value)))
        elif value is None or isinstance(value, str | int | float):
            pairs.append((_singular(name), value))
        else:
            problem = getattr(value, "problem", None)  # a refusal
            pairs.append((name, str(value) if problem is None else problem.reason))
    return pairs


def _singular(column: str) -> str:
    for plural, singular in _PLURALS:
        if column.endswith(plural):
            return column.removesuffix(plural) + singular
    return column.removesuffix("s") if column == "costs" or column.endswith(_MEANS) else column


def html_table(rows: Sequence[Row], marked: int | None = None) -> str:
    """Rows as an HTML table: at most SHOWN_ROWS, with the row ``marked`` in bold. All text is escaped."""
    columns = column_table(list(islice(rows, SHOWN_ROWS)))
    if not columns:
        return "<p>no rows</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = []
    for place, cells in enumerate(zip(*columns.values(), strict=True)):
        style = ' style="font-weight:bold"' if place == marked else ""
        lines.append(f"<tr{style}>{''.join(f'<td>{escape(_cell(cell))}</td>' for cell in cells)}</tr>")
    more = f"<p>{len(rows) - SHOWN_ROWS:,} more rows</p>" if len(rows) > SHOWN_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.{_DIGITS}g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
