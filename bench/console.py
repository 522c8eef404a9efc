"""The console in a browser: its size, its first paint, and frames while a timeline of a million events moves.

The events are made here: the browser gets them in the place of the server's reply. The baseline of the frames is the
same movement of the mouse where nothing is drawn; that of the paint is a page without a script. Frames for each second
depend on what else the machine does; CPU time for each frame, of the page's main thread, hardly does.
"""

from __future__ import annotations

import base64
import gzip
import json
import statistics
import struct
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

from results import Result

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as pb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from browser import Page, page

RANKS: Final = 8
LANES: Final = 4
EVENTS: Final = 1_000_000
PIECE: Final = 50_000
MOVES: Final = 240
PAINTS: Final = 5
ZOOMS: Final = 2
"""Turns of the wheel, each by a factor of 20."""
KIBIBYTES: Final = 300
"""What the console's files may have, compressed."""
_RECORD: Final = "window.frames_=[];(function step(t){frames_.push(t);window.moving_=requestAnimationFrame(step)})(0)"


def _timeline() -> bytes:
    """A stream of the Connect protocol: pieces with a million events, then a result."""
    messages: list[pb.DiagnoseResponse] = []
    per_lane = EVENTS // (RANKS * LANES)
    parts = ["computation: gemm", "transfer: all_reduce", "waiting: all_reduce", "launch: host"]
    for rank in range(RANKS):
        for lane in range(LANES):
            for first in range(0, per_lane, PIECE):
                count = min(PIECE, per_lane - first)
                piece = pb.TimelinePiece(
                    rank_numbers=[rank] * count,
                    lane_indexes=[lane] * count,
                    name_indexes=[0] * count,
                    part_indexes=[(first + each) % len(parts) for each in range(count)],
                    begin_nanoseconds=[(first + each) * 8_000 for each in range(count)],
                    duration_nanoseconds=[6_000 + 1_000 * (each % 2) for each in range(count)],
                )
                if not messages:
                    piece.names.append("kernel")
                    piece.lanes.extend(f"stream {each}" for each in range(LANES))
                    piece.parts.extend(parts)
                messages.append(pb.DiagnoseResponse(timeline=piece))
    messages.append(pb.DiagnoseResponse(result=pb.DiagnosisResult(verdict="made", complete=True)))
    bodies = [b"\x00" + struct.pack(">I", each.ByteSize()) + each.SerializeToString() for each in messages]
    return b"".join(bodies) + b"\x02" + struct.pack(">I", 2) + b"{}"


class _Browser:
    """A page that is opened by its URL."""

    def __init__(self, browser: Page) -> None:
        self._page = browser
        browser.open(Path("/dev/null"))
        self.call, self.run = browser.call, browser.run

    def go(self, url: str) -> None:
        self._page.go(url)

    def until(self, condition: str) -> None:
        self.run(f"new Promise(done => (function look() {{ ({condition}) ? done(1) : setTimeout(look, 20) }})())")

    def paint_ms(self, url: str) -> float:
        """Median time from a navigation to the first paint with content."""
        times = []
        for _ in range(PAINTS):
            self.go("about:blank")
            self.go(url)
            self.until("performance.getEntriesByName('first-contentful-paint').length")
            times.append(float(self.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")))
        return statistics.median(times)

    def drag(self, selector: str) -> tuple[float, float]:
        """Frames for each second, and milliseconds of CPU for each frame, while the mouse drags over an element."""
        box: dict[str, Any] = json.loads(
            self.run(
                f"(e => {{ e.scrollIntoView(); return JSON.stringify(e.getBoundingClientRect()) }})"
                f"(document.querySelector('{selector}'))"
            )
        )
        y = box["y"] + min(40, box["height"] / 2)
        self._mouse("mousePressed", box["x"] + box["width"] / 2, y)
        before = self._main_thread_s()
        self.run(_RECORD)
        for move in range(MOVES):
            along = 0.5 + 0.3 * (-1) ** (move // 30) * (move % 30) / 30
            self._mouse("mouseMoved", box["x"] + box["width"] * along, y)
        times: list[float] = json.loads(self.run("cancelAnimationFrame(moving_),JSON.stringify(frames_.slice(2))"))
        cpu_s = self._main_thread_s() - before
        self._mouse("mouseReleased", box["x"], y)
        return 1e3 * (len(times) - 1) / (times[-1] - times[0]), 1e3 * cpu_s / len(times)

    def _main_thread_s(self) -> float:
        """CPU time of the tasks of the page's main thread so far."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    def _mouse(self, kind: str, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


def run() -> Iterator[Result]:
    """Yield the figures."""
    files = resources.files("nodewise_console") / "static"
    size = sum(len(gzip.compress(each.read_bytes(), 9)) for each in files.iterdir())
    yield Result("console_kib_compressed", size / 1024, "KiB", KIBIBYTES)
    settings = Settings(store="memory:", http="127.0.0.1:0", grace_s=1.0)
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(settings) as server, page(Path(folder)) as opened:
        url = f"http://{server.http_target}"
        browser = _Browser(opened)
        bare = browser.paint_ms(f"{url}/livez")
        yield Result("console_first_paint_ms", browser.paint_ms(f"{url}/#/jobs"), "ms", bare)
        opened.replies["/Diagnose"] = base64.b64encode(_timeline()).decode()
        browser.call("Fetch.enable", patterns=[{"urlPattern": "*Diagnose"}])
        browser.go("about:blank")  # a change after # alone loads nothing
        browser.go(f"{url}/#/diagnosis?job=a")
        browser.until("document.querySelector('canvas.lanes')")
        browser.call("Performance.enable", timeDomain="threadTicks")
        (still, still_ms), (moving, moving_ms) = browser.drag("main h1"), browser.drag("canvas.lanes")
        yield Result("console_timeline_frames_per_s", moving, "1/s", still)
        yield Result("console_timeline_cpu_ms_per_frame", moving_ms, "ms", still_ms)
        for _ in range(ZOOMS):
            browser.run(
                "document.querySelector('canvas.lanes').dispatchEvent("
                "new WheelEvent('wheel', {deltaY: -1200, cancelable: true}))"
            )
        _, zoomed_ms = browser.drag("canvas.lanes")
        yield Result("console_timeline_zoomed_cpu_ms_per_frame", zoomed_ms, "ms", still_ms)
