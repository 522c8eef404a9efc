"""The PyTorch profiler's (Kineto's) Chrome trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

import orjson

from nodewise.plugin import NodewiseError, Reason, Trace, TraceSource, Violation
from nodewise_replay.readers.assemble import assembled
from nodewise_replay.readers.categories import DROPPED_CATEGORIES
from nodewise_replay.readers.events import EventTable
from nodewise_replay.readers.header import header_of

__all__ = ["KinetoReader"]

NAME: Final = "kineto"


class KinetoReader:
    """Reads Chrome traces of the PyTorch profiler: CUDA, ROCm and CPU; names of today and of older releases."""

    def recognises(self, head: bytes, source: TraceSource) -> bool:
        """A JSON document of trace events, or a bare list of them."""
        del source
        start = head.lstrip()[:1]
        return start in {b"{", b"["} and (b'"ph"' in head or b'"traceEvents"' in head or b'"schemaVersion"' in head)

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read the events of one rank. See TraceReader."""
        try:
            document = orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise _refused("the stream is no JSON") from error
        members: dict[str, Any] = document if isinstance(document, dict) else {"traceEvents": document}
        events = members.pop("traceEvents", None)
        if not isinstance(events, list):
            raise _refused("the stream has no traceEvents")
        table = EventTable()
        table.counts["events"] = len(events)
        dropped = Counter(event.get("cat") for event in events)
        for category in DROPPED_CATEGORIES:
            if dropped[category]:
                table.counts[f"dropped_{category}"] = dropped[category]
        events = [event for event in events if event.get("cat") not in DROPPED_CATEGORIES]
        times = [round(event.get("ts", 0) * 1000) for event in events]
        table.add(events, times, [round(event.get("dur", 0) * 1000) for event in events])
        return [assembled(table, header_of(members, source), source, NAME)]


def _refused(message: str) -> NodewiseError:
    return NodewiseError.invalid([Violation("trace", message)], Reason.INVALID_FIELD)
