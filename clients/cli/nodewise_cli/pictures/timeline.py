"""The picture of a timeline: lanes of every rank, colours by kind, waiting told apart from transfer."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nodewise_cli.failures import CommandError
from nodewise_cli.outputs import checked_output, needs_matplotlib, writing
from nodewise_cli.pictures.drawing import drawing_of
from nodewise_cli.pictures.timeline_html import draw_html
from nodewise_client import Timeline

__all__ = ["checked_picture", "draw_timeline"]

SUFFIXES: Final = (".html", ".png")


def checked_picture(path: Path | None) -> None:
    """Refuse before the work what would fail after it.

    Raises
    ------
    InputError
        If the file cannot be of that name.
    CommandError
        If matplotlib is needed and not installed.
    """
    checked_output(path, "--picture", SUFFIXES)
    if path is not None and path.suffix.lower() == ".png":
        needs_matplotlib("--picture", "; HTML does not need it")


def draw_timeline(path: Path, timeline: Timeline | None, title: str) -> None:
    """Draw a timeline into a file, by the file's ending.

    Raises
    ------
    CommandError
        If there is nothing to draw, or the file cannot be written.
    """
    if timeline is None or not len(timeline):
        raise CommandError(f"{path}: not drawn: the answer holds no timeline")
    drawing = drawing_of(timeline)
    with writing(path):
        if path.suffix.lower() == ".png":
            # Only here: an extra, and slow to import.
            from nodewise_cli.pictures.timeline_png import draw_png

            draw_png(path, drawing, title)
        else:
            draw_html(path, drawing, title)
