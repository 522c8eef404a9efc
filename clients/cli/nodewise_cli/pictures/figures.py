"""What pictures that matplotlib draws share: whether they can be drawn, colours, and axes without ornament."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodewise_cli.outputs import checked_output, needs_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "DASHED", "bare", "checked_plot", "plain_axes"]

COLOURS: Final = ("#1f5fa8", "#d1495b", "#2e8b57", "#e0a030", "#6a4c93", "#4a4a4a", "#00838f", "#8d6e63")
DASHED: Final = (0, (4, 3))


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


def bare(axes: Axes) -> Axes:
    """The axes without a frame at the top and at the right."""
    axes.spines[["top", "right"]].set_visible(False)
    return axes
