"""What is drawn of a timeline, and what is not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nodewise_cli.failures import CommandError
from nodewise_cli.pictures.chrome_trace import write_chrome_trace
from nodewise_cli.pictures.drawing import MOST_DRAWN, MOST_LANES, drawing_of
from nodewise_cli.pictures.timeline import draw_timeline
from nodewise_client import Timeline


def timeline(rows: list[tuple[int, int, int, int, int]], **more: Any) -> Timeline:
    """Rows of rank, lane, begin, duration (us) and kind."""
    rank, lane, begin, duration, kind = map(list, zip(*rows)) if rows else ([], [], [], [], [])
    columns: dict[str, Any] = {
        "rank_numbers": rank,
        "lane_indexes": lane,
        "name_indexes": [0] * len(rows),
        "kind_indexes": kind,
        "begin_nanoseconds": [1000 * each for each in begin],
        "duration_nanoseconds": [1000 * each for each in duration],
        "waiting_nanoseconds": [],
        "lanes": [f"lane {place}" for place in range(max(lane, default=0) + 1)],
        "names": ["<b>"],
        "kinds": ["kernel", "collective"],
    }
    return Timeline(**(columns | more))


def test_nested_events_have_rows_of_their_own_and_deep_ones_are_left_out() -> None:
    rows = [(0, 0, depth, 100 - 2 * depth, 0) for depth in range(6)]
    drawing = drawing_of(timeline([*rows, (0, 0, 200, 5, 0), (1, 0, 0, 5, 0)]))
    first, second = drawing.lanes
    assert list(first.depth) == [0, 1, 2, 3, 0]
    assert (second.rank, list(second.begin_us)) == (1, [0.0])
    assert (drawing.begin_us, drawing.end_us) == (0.0, 205.0)
    assert (drawing.drawn, drawing.events, drawing.shortest_us) == (6, 8, 0.0)


def test_the_longest_are_drawn_and_exchanges_in_any_case() -> None:
    rows = [(0, 0, 1000 * place, 10 + place % 100, 0) for place in range(2 * MOST_DRAWN)]
    rows += [(0, 1, 1000 * place, 1, 1) for place in range(50)]
    drawing = drawing_of(timeline(rows))
    kernels, exchanges = drawing.lanes
    assert drawing.drawn == MOST_DRAWN
    assert len(exchanges.begin_us) == 50
    assert drawing.shortest_us == min(kernels.duration_us) > 50


def test_lanes_are_bounded() -> None:
    drawing = drawing_of(timeline([(rank, 0, 0, 1, 0) for rank in range(MOST_LANES + 7)]))
    assert (len(drawing.lanes), drawing.lanes_left_out) == (MOST_LANES, 7)


def test_the_page_holds_its_data_and_little_else(tmp_path: Path) -> None:
    rows = [(place % 8, place % 3, 37 * place, 1 + place % 1000, place % 2) for place in range(40_000)]
    path = tmp_path / "page.html"
    draw_timeline(path, timeline(rows, waiting_nanoseconds=[500] * len(rows)), "Bound by <network> & co")
    assert path.stat().st_size < 600_000
    page = path.read_text(encoding="utf-8")
    assert "Bound by &lt;network&gt; &amp; co" in page
    assert "{{" not in page
    data = json.loads(re.findall(r'type="application/json">(.*?)</script>', page, re.DOTALL)[0])
    assert data["names"] == ["<b>"]
    assert sum(len(lane["begin"]) for lane in data["lanes"]) == MOST_DRAWN
    assert all(len(lane["waiting"]) == len(lane["begin"]) for lane in data["lanes"])
    draw_timeline(tmp_path / "page.png", timeline(rows[:200], kind_indexes=[], kinds=[]), "t" * 300)
    assert (tmp_path / "page.png").stat().st_size > 1000


@pytest.mark.parametrize("nothing", [None, timeline([])])
def test_nothing_is_not_drawn(tmp_path: Path, nothing: Timeline | None) -> None:
    with pytest.raises(CommandError, match="has no timeline"):
        draw_timeline(tmp_path / "page.html", nothing, "title")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    one = timeline([(0, 0, 0, 1, 0)])
    for write in (lambda path: draw_timeline(path, one, ""), lambda path: write_chrome_trace(path, one, None)):
        with pytest.raises(CommandError, match="cannot be written"):
            write(tmp_path / "none" / "x.html")
    with pytest.raises(CommandError, match="has no timeline"):
        write_chrome_trace(tmp_path / "x.json", None, None)


def test_a_chrome_trace_says_what_runs_where(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_chrome_trace(path, timeline([(3, 1, -2, 4, 1)], waiting_nanoseconds=[1500]), timeline([(3, 0, 0, 1, 0)]))
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    named = {(event["name"], event["pid"], event["tid"]): event["args"] for event in events if event["ph"] == "M"}
    assert named["process_name", 3, 0] == {"name": "rank 3 replayed"}
    assert named["process_name", 1_000_003, 0] == {"name": "rank 3 original"}
    assert named["thread_name", 3, 1] == {"name": "lane 1"}
    sort = [named["process_sort_index", process, 0]["sort_index"] for process in (3, 1_000_003)]
    assert sort == [6, 7]
    assert [event for event in events if event["ph"] == "X"] == [
        {
            "ph": "X", "pid": 3, "tid": 1, "ts": -2.0, "dur": 4.0, "name": "<b>", "cat": "collective",
            "args": {"waiting_us": 1.5, "transfer_us": 2.5},
        },
        {"ph": "X", "pid": 1_000_003, "tid": 0, "ts": 0.0, "dur": 1.0, "name": "<b>", "cat": "kernel"},
    ]  # fmt: skip
