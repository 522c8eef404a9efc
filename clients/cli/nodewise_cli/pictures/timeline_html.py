"""A timeline as one HTML file that needs nothing else: a canvas, its data, and a script that zooms."""

from __future__ import annotations

import html
from importlib import resources
from pathlib import Path
from typing import Any, Final

import orjson

from nodewise_cli.pictures.drawing import COLOURS, Drawing, DrawnLane

__all__ = ["draw_html"]

_PAGE: Final = "timeline.html"


def draw_html(path: Path, drawing: Drawing, title: str) -> None:
    """Write the page. Raises OSError."""
    page = resources.files("nodewise_cli.pictures").joinpath(_PAGE).read_text(encoding="utf-8")
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
    return {
        "rank": lane.rank,
        "name": lane.name,
        "begin": lane.begin_us,
        "duration": lane.duration_us,
        "waiting": lane.waiting_us if any(lane.waiting_us) else [],
        "depth": lane.depth,
        "event": lane.event,
        "kind": lane.kind,
    }


def _note(drawing: Drawing) -> str:
    """What is drawn, and what is not."""
    text = f"{drawing.drawn:,} of {drawing.events:,} events"
    if drawing.shortest_us:
        text += f"; others are shorter than {drawing.shortest_us:.3g} us"
    if drawing.lanes_left_out:
        text += f"; {drawing.lanes_left_out} more lanes are not drawn"
    return text
