"""What a picture shows of a timeline: the lanes of every rank, its longest events and its exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nodewise_client import Timeline

__all__ = ["COLOURS", "MOST_DRAWN", "MOST_LANES", "Drawing", "DrawnLane", "drawing_of"]

MOST_DRAWN: Final = 8_000
"""Events of a picture: of at most 40 bytes each in HTML, 320 kB."""
MOST_LANES: Final = 256
MOST_DEPTH: Final = 4
"""Rows of a lane: what is nested deeper is not drawn."""
COLLECTIVE: Final = "collective"
UNKNOWN: Final = "event"

COLOURS: Final = {
    "kernel": "#2f6db5",
    COLLECTIVE: "#c8553d",
    "waiting": "#f0c7a0",
    "copy": "#7a9e3f",
    "fill": "#a9b665",
    "operator": "#8f9fb3",
    "annotation": "#c9cfd8",
    "call": "#9a7fb8",
    "gap": "#e6e6e6",
    "other": "#b5b5b5",
    UNKNOWN: "#6f8faf",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DrawnLane:
    """One lane of a picture; columns have an entry per event; ``depth`` is its row, ``event`` indexes the names.

    ``part`` indexes the parts of a step; -1 = none.
    """

    rank: int
    name: str
    begin_us: Sequence[float]
    duration_us: Sequence[float]
    waiting_us: Sequence[float]
    depth: Sequence[int]
    event: Sequence[int]
    kind: Sequence[int]
    part: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Drawing:
    """What is drawn of a timeline, and of how much."""

    lanes: tuple[DrawnLane, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    parts: tuple[str, ...]
    begin_us: float
    end_us: float
    drawn: int
    events: int
    shortest_us: float
    """What is shorter is left out, exchanges apart."""
    lanes_left_out: int


def drawing_of(
    timeline: Timeline,
    *,
    window_ns: tuple[int, int] | None = None,
    most: int = MOST_DRAWN,
    most_depth: int = MOST_DEPTH,
) -> Drawing:
    """The longest events of a timeline, and its exchanges, lane by lane.

    Parameters
    ----------
    window_ns : (int, int) or None
        Only what is in it, in part or whole, and times since its begin; None = all, and times as they are.
    most, most_depth : int
        Most events, and rows of a lane.
    """
    rank, lane, begin, duration, waiting, name, kind, part = _columns(timeline, window_ns)
    kinds = tuple(timeline.kinds) if timeline.kind_indexes else (UNKNOWN,)
    depth = _depths(rank, lane, begin, duration)
    lanes = np.unique(np.stack([rank, lane], axis=1), axis=0)
    kept_lanes = lanes[:MOST_LANES]
    drawn_count, shortest = _select_rows(
        duration, kind == (kinds.index(COLLECTIVE) if COLLECTIVE in kinds else -1), depth < most_depth, most
    )
    times = {"begin_us": begin, "duration_us": duration, "waiting_us": waiting}
    names: dict[str, int] = {}
    lanes_drawn = []
    for own_rank, own_lane in kept_lanes.tolist():
        rows = drawn_count[(rank[drawn_count] == own_rank) & (lane[drawn_count] == own_lane)]
        if not len(rows):
            continue
        rows = rows[np.argsort(begin[rows], kind="stable")]
        lanes_drawn.append(
            DrawnLane(
                rank=own_rank,
                name=timeline.lanes[own_lane],
                **{name: np.round(column[rows], 3).tolist() for name, column in times.items()},
                depth=depth[rows].tolist(),
                event=[names.setdefault(timeline.names[each], len(names)) for each in name[rows].tolist()],
                kind=kind[rows].tolist(),
                part=part[rows].tolist(),
            )
        )
    return Drawing(
        lanes=tuple(lanes_drawn),
        names=tuple(names),
        kinds=kinds,
        parts=tuple(timeline.parts),
        begin_us=float(begin.min()) if window_ns is None else 0.0,
        end_us=float((begin + duration).max()) if window_ns is None else (window_ns[1] - window_ns[0]) / 1e3,
        drawn=sum(len(each.begin_us) for each in lanes_drawn),
        events=len(begin),
        shortest_us=shortest,
        lanes_left_out=len(lanes) - len(kept_lanes),
    )


def _columns(timeline: Timeline, window_ns: tuple[int, int] | None) -> tuple[Any, ...]:
    """Rank, lane, begin, duration, waiting (us), name, kind and part of the events in a window."""
    begin, duration = np.array(timeline.begin_nanoseconds), np.array(timeline.duration_nanoseconds)
    first, end = (0, 0) if window_ns is None else window_ns
    rows = np.arange(len(begin))
    if window_ns is not None:
        rows = np.flatnonzero((begin < end) & (begin + duration > first))
    nothing = np.zeros(len(begin), dtype=np.int64)

    def column(values: Sequence[int], otherwise: Any) -> Any:
        return (np.array(values) if len(values) else otherwise)[rows]

    return (
        np.array(timeline.rank_numbers)[rows],
        np.array(timeline.lane_indexes)[rows],
        (begin[rows] - first) / 1e3,
        duration[rows] / 1e3,
        column(timeline.waiting_nanoseconds, nothing) / 1e3,
        np.array(timeline.name_indexes)[rows],
        column(timeline.kind_indexes, nothing),
        column(timeline.part_indexes, nothing - 1),
    )


def _select_rows(duration: Any, exchange: Any, is_shallow: Any, most: int) -> tuple[Any, float]:
    """Rows that are drawn, and the duration below which others are not."""
    shallow = np.flatnonzero(is_shallow)
    if len(shallow) <= most:
        return shallow, 0.0
    # Exchanges first, then what is longest.
    order = np.lexsort((-duration[shallow], ~exchange[shallow]))
    rows = shallow[order[:most]]
    others = rows[~exchange[rows]]
    return rows, float(duration[others].min()) if len(others) else float(duration.max())


def _depths(rank: Any, lane: Any, begin: Any, duration: Any) -> Any:
    """How many events of its lane an event lies within; events that overlap without nesting count as nested."""
    depth = np.zeros(len(begin), dtype=np.int64)
    order = np.lexsort((-duration, begin, lane, rank))
    ends: list[float] = []
    before: tuple[int, int] | None = None
    for row, own_rank, own_lane, start, lasts in zip(
        order.tolist(), rank[order].tolist(), lane[order].tolist(), begin[order].tolist(), duration[order].tolist()
    ):
        if (own_rank, own_lane) != before:
            before, ends = (own_rank, own_lane), []
        while ends and ends[-1] <= start:
            ends.pop()
        depth[row] = len(ends)
        ends.append(start + lasts)
    return depth
