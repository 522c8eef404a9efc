"""The picture of a timeline: lanes of every rank, colours by kind, waiting separate from transfer."""

from __future__ import annotations

import html
import textwrap
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from nodewise_cli.failures import CommandError
from nodewise_cli.outputs import checked_output, needs_matplotlib, writing
from nodewise_cli.pictures.drawing import COLOURS, Drawing, DrawnLane, drawing_of
from nodewise_cli.pictures.figures import plain_axes
from nodewise_client import Timeline

__all__ = ["checked_picture", "draw_timeline"]

INCHES_A_LANE: Final = 0.28
MOST_INCHES: Final = 40.0
TITLE_WIDTH: Final = 110


def checked_picture(path: Path | None) -> None:
    """Check that the picture can be drawn, before the command starts its work.

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
        raise CommandError(f"{path}: not drawn: the answer has no timeline")
    drawing = drawing_of(timeline)
    with writing(path):
        draw = _draw_png if path.suffix.lower() == ".png" else _draw_html
        draw(path, drawing, title)


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
    columns = {each.name.removesuffix("_us"): getattr(lane, each.name) for each in fields(lane) if each.name != "part"}
    return columns | ({} if any(lane.waiting_us) else {"waiting": []})


def _note(drawing: Drawing) -> str:
    """What is drawn, and what is not."""
    text = f"{drawing.drawn:,} of {drawing.events:,} events"
    if drawing.shortest_us:
        text += f"; others are shorter than {drawing.shortest_us:.3g} us"
    if drawing.lanes_left_out:
        text += f"; {drawing.lanes_left_out} more lanes are not drawn"
    return text


def _draw_png(path: Path, drawing: Drawing, title: str) -> None:
    """One picture through matplotlib. Raises OSError."""
    # Only here: an extra, and slow to import.
    from matplotlib.patches import Patch

    height = min(1.8 + INCHES_A_LANE * len(drawing.lanes), MOST_INCHES)
    figure, axes = plain_axes(12, height, dpi=130)
    axes.grid(visible=False, axis="y")
    kinds: dict[str, None] = {}
    for place, lane in enumerate(drawing.lanes):
        begin, duration = np.array(lane.begin_us) / 1e3, np.array(lane.duration_us) / 1e3
        depth, kind = np.array(lane.depth), np.array(lane.kind)
        # Nested events lie on the lower part of what they are nested in.
        for own_kind, own_depth in sorted(set(zip(kind.tolist(), depth.tolist())), key=lambda pair: pair[1]):
            rows = (kind == own_kind) & (depth == own_depth)
            word = drawing.kinds[own_kind]
            kinds.setdefault(word)
            tall = 0.8 / (own_depth + 1)
            axes.broken_barh(
                list(zip(begin[rows], duration[rows])), (place - 0.4, tall), color=COLOURS.get(word), linewidth=0
            )
        waiting = np.array(lane.waiting_us) / 1e3
        if waiting.any():
            kinds.setdefault("waiting")
            rows = waiting > 0
            spans = list(zip(begin[rows], waiting[rows]))
            axes.broken_barh(spans, (place - 0.4, 0.8), color=COLOURS["waiting"], linewidth=0)
    axes.set_yticks(range(len(drawing.lanes)), [f"rank {lane.rank}  {lane.name}"[:48] for lane in drawing.lanes])
    axes.invert_yaxis()
    axes.set_xlim(drawing.begin_us / 1e3, drawing.end_us / 1e3)
    axes.set_xlabel("ms since the first step began")
    axes.set_title("\n".join(textwrap.wrap(title, TITLE_WIDTH)), loc="left", fontsize=10)
    axes.tick_params(labelsize=8)
    patches = [Patch(color=COLOURS.get(word, COLOURS["other"]), label=word) for word in kinds]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches) or 1, frameon=False, fontsize=8)
    figure.savefig(path)
