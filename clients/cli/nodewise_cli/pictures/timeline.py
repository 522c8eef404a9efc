"""The picture of a timeline: lanes of every rank, colours by kind, waiting told apart from transfer."""

from __future__ import annotations

import html
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from nodewise_cli.failures import CommandError
from nodewise_cli.outputs import checked_output, needs_matplotlib, writing
from nodewise_cli.pictures.drawing import COLOURS, Drawing, DrawnLane, drawing_of
from nodewise_client import Timeline

__all__ = ["checked_picture", "draw_timeline"]


def checked_picture(path: Path | None) -> None:
    """Refuse before the work what would fail after it.

    Raises
    ------
    InputError
        If the file cannot be of that name.
    CommandError
        If matplotlib is needed and not installed.
    """
    checked_output(path, "--picture", (".html", ".png"))
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
            _draw_html(path, drawing, title)


def _draw_html(path: Path, drawing: Drawing, title: str) -> None:
    """One HTML file that needs nothing else: a canvas, its data, and a script that zooms. Raises OSError."""
    page = resources.files("nodewise_cli.pictures").joinpath("timeline.html").read_text(encoding="utf-8")
    # Data stand in a script element: nothing in them may end it.
    data = orjson.dumps(_data(drawing)).decode().replace("<", "\\u003c")
    page = page.replace("{{title}}", html.escape(title)).replace("{{note}}", html.escape(_note(drawing)))
    path.write_text(page.replace("{{data}}", data), encoding="utf-8")


def _data(drawing: Drawing) -> dict[str, Any]:
    return {
        "begin": drawing.begin_us,
        "end": drawing.end_us,
        "names": drawing.names,
        "kinds": drawing.kinds,
        "colours": COLOURS,
        "lanes": [_lane(lane) for lane in drawing.lanes],
    }


def _lane(lane: DrawnLane) -> dict[str, Any]:
    told = {each.name.removesuffix("_us"): getattr(lane, each.name) for each in fields(lane)}
    return told | ({} if any(lane.waiting_us) else {"waiting": []})


def _note(drawing: Drawing) -> str:
    """What is drawn, and what is not."""
    text = f"{drawing.drawn:,} of {drawing.events:,} events"
    if drawing.shortest_us:
        text += f"; others are shorter than {drawing.shortest_us:.3g} us"
    if drawing.lanes_left_out:
        text += f"; {drawing.lanes_left_out} more lanes are not drawn"
    return text
