"""What pictures that matplotlib draws share: whether they can be drawn, colours, and axes without ornament."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodewise_cli.outputs import checked_output, needs_matplotlib, writing
from nodewise_client.plots import DASHED, INK, write_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "DASHED", "INK", "bare", "checked_plot", "plain_axes", "save", "write_numbers"]

COLOURS: Final = ("#1f5fa8", "#d1495b", "#2e8b57", "#e0a030", "#6a4c93", "#4a4a4a", "#00838f", "#8d6e63")


def checked_plot(path: Path | None, option: str = "--plot", formats: Sequence[str] = (".pdf", ".png", ".svg")) -> None:
    """Check before the work that the picture can be drawn.

    Raises
    ------
    InputError
        If the file cannot be of that name.
    CommandError
        If matplotlib is not installed.
    """
    checked_output(path, option, formats)
    if path is not None:
        needs_matplotlib(option)


def plain_axes(width: float, height: float, dpi: float = 160) -> tuple[Figure, Axes]:
    """A figure of so many inches, and its axes with a grid."""
    # Only here: an extra, and slow to import.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    axes = bare(figure.add_subplot())
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def save(figure: Figure, path: Path, title: str = "") -> None:
    """Write a figure into a file; one named ``.html`` is a page with this title.

    Text in SVG stays text, so that it can be searched, copied and read by screen readers.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    from matplotlib import rc_context

    with writing(path), rc_context({"svg.fonttype": "none"}):
        if path.suffix.lower() != ".html":
            figure.savefig(path)
            return
        text = StringIO()
        figure.savefig(text, format="svg")
        svg = text.getvalue()
        page = f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title>{svg[svg.index('<svg') :]}"
        path.write_text(page, encoding="utf-8")


def bare(axes: Axes) -> Axes:
    """The axes without a frame at the top and at the right."""
    axes.spines[["top", "right"]].set_visible(False)
    return axes
