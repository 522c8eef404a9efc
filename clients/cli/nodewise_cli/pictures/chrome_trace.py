"""Timelines as a Chrome trace, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from nodewise_cli.failures import CommandError
from nodewise_cli.outputs import writing
from nodewise_client import Timeline

__all__ = ["write_chrome_trace"]

REPLAYED: Final = "replayed"
ORIGINAL: Final = "original"
FIRST_ORIGINAL: Final = 1_000_000
"""Process of rank 0 as recorded; as replayed, a rank's process has its number."""


def write_chrome_trace(path: Path, replayed: Timeline | None, original: Timeline | None) -> None:
    """Write timelines into one file: each rank a process, each lane a thread; replayed above original.

    Raises
    ------
    CommandError
        If there is nothing to write, or it cannot be written.
    """
    parts = [
        (timeline, word, first)
        for timeline, word, first in ((replayed, REPLAYED, 0), (original, ORIGINAL, FIRST_ORIGINAL))
        if timeline is not None
    ]
    if not parts:
        raise CommandError(f"{path}: not written: the answer has no timeline")
    with writing(path), path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[')
        for number, event in enumerate(event for part in parts for event in _events(*part)):
            file.write((",\n" if number else "\n") + orjson.dumps(event).decode())
        file.write("\n]}\n")


def _events(timeline: Timeline, word: str, first_process: int) -> Iterator[dict[str, Any]]:
    lanes = sorted(set(zip(timeline.rank_numbers, timeline.lane_indexes)))
    for rank in sorted({rank for rank, _ in lanes}):
        process = first_process + rank
        yield _name_event("process_name", process, 0, name=f"rank {rank} {word}")
        yield _name_event("process_sort_index", process, 0, sort_index=2 * rank + (word == ORIGINAL))
    for rank, lane in lanes:
        yield _name_event("thread_name", first_process + rank, lane, name=timeline.lanes[lane])
        yield _name_event("thread_sort_index", first_process + rank, lane, sort_index=lane)
    waiting: Sequence[int] = timeline.waiting_nanoseconds
    for row, begin_ns in enumerate(timeline.begin_nanoseconds):
        duration_ns = timeline.duration_nanoseconds[row]
        event: dict[str, Any] = {
            "ph": "X",
            "pid": first_process + timeline.rank_numbers[row],
            "tid": timeline.lane_indexes[row],
            "ts": begin_ns / 1000,
            "dur": duration_ns / 1000,
            "name": timeline.names[timeline.name_indexes[row]],
        }
        if timeline.kind_indexes:
            event["cat"] = timeline.kinds[timeline.kind_indexes[row]]
        if waiting and waiting[row]:
            event["args"] = {"waiting_us": waiting[row] / 1000, "transfer_us": (duration_ns - waiting[row]) / 1000}
        yield event


def _name_event(kind: str, process: int, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": arguments}
