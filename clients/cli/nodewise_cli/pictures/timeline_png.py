"""A timeline as PNG, through matplotlib."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.patches import Patch

from nodewise_cli.pictures.drawing import COLOURS, Drawing
from nodewise_cli.pictures.figures import plain_axes

__all__ = ["draw_png"]

INCHES_A_LANE: Final = 0.28
MOST_INCHES: Final = 40.0
TITLE_WIDTH: Final = 110


def draw_png(path: Path, drawing: Drawing, title: str) -> None:
    """Draw the picture. Raises OSError."""
    height = min(1.8 + INCHES_A_LANE * len(drawing.lanes), MOST_INCHES)
    figure, axes = plain_axes(12, height, dpi=130)
    axes.grid(visible=False, axis="y")
    used: dict[str, None] = {}
    for place, lane in enumerate(drawing.lanes):
        begin, duration = np.array(lane.begin_us) / 1e3, np.array(lane.duration_us) / 1e3
        depth, kind = np.array(lane.depth), np.array(lane.kind)
        # Nested events lie on the lower part of what they are nested in.
        for own_kind, own_depth in sorted(set(zip(kind.tolist(), depth.tolist())), key=lambda pair: pair[1]):
            rows = (kind == own_kind) & (depth == own_depth)
            word = drawing.kinds[own_kind]
            used.setdefault(word)
            tall = 0.8 / (own_depth + 1)
            axes.broken_barh(
                list(zip(begin[rows], duration[rows])), (place - 0.4, tall), color=COLOURS.get(word), linewidth=0
            )
        waiting = np.array(lane.waiting_us) / 1e3
        if waiting.any():
            used.setdefault("waiting")
            rows = waiting > 0
            spans = list(zip(begin[rows], waiting[rows]))
            axes.broken_barh(spans, (place - 0.4, 0.8), color=COLOURS["waiting"], linewidth=0)
    axes.set_yticks(range(len(drawing.lanes)), [f"rank {lane.rank}  {lane.name}"[:48] for lane in drawing.lanes])
    axes.invert_yaxis()
    axes.set_xlim(drawing.begin_us / 1e3, drawing.end_us / 1e3)
    axes.set_xlabel("ms since the first step began")
    axes.set_title("\n".join(textwrap.wrap(title, TITLE_WIDTH)), loc="left", fontsize=10)
    axes.tick_params(labelsize=8)
    patches = [Patch(color=COLOURS.get(word, COLOURS["other"]), label=word) for word in used]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches) or 1, frameon=False, fontsize=8)
    figure.savefig(path)
