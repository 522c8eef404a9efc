"""The trace-viewer JSON of JAX's and TensorFlow's profiler (``*.trace.json.gz``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from nodewise.plugin import Trace, TraceSource
from nodewise_traces.formats.xla_lines import Line, Profile, device_of
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.decode import starts_json
from nodewise_traces.scanning.fields import DUR, MISSING, TS
from nodewise_traces.scanning.numbers import integer_or
from nodewise_traces.scanning.stream import ChromeStream

__all__ = ["XlaJsonReader"]

NAME: Final = "xla-json"
_PROCESS: Final = re.compile(rb'"name"\s*:\s*"/(?:host:CPU|device:(?:GPU|TPU|CUSTOM))')


class XlaJsonReader:
    """Reads what ``jax.profiler.trace`` writes beside its xplane, also with ``create_perfetto_trace``."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """Trace events of processes that are called after hosts and devices, unless the mapping asks for more."""
        if not starts_json(head) or source.mapping.keys() - {"step", "communication"}:
            return 0.0
        return 0.7 if _PROCESS.search(head) and b'"process_name"' in head else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read the events of one process. See TraceReader."""
        document = ChromeStream(stream)
        profile = Profile()
        devices: dict[int, int] = {}
        names: dict[tuple[int, int], str] = {}
        waiting: list[tuple[int, int, str, int, int, Mapping[str, Any]]] = []
        for event, begin_ns, duration_ns in _events(document):
            process, thread = integer_or(event.get("pid"), 0), integer_or(event.get("tid"), 0)
            arguments = event.get("args")
            arguments = arguments if isinstance(arguments, dict) else {}
            if event.get("ph") == "M":
                if event.get("name") == "process_name":
                    devices[process] = device_of(str(arguments.get("name", "")))
                elif event.get("name") == "thread_name":
                    names[process, thread] = str(arguments.get("name", ""))
            elif event.get("ph") == "X" and MISSING not in {begin_ns, duration_ns}:
                waiting.append((process, thread, str(event.get("name", "")), begin_ns, duration_ns, arguments))
            elif event:
                profile.rows.table.counts["dropped_other_phases"] += 1
        if not document.has_events:
            raise unusable_error(source, "the stream has no list of events, as jax.profiler.trace writes it")
        lines = {key: Line(devices.get(key[0], -1), key[1], name) for key, name in names.items()}
        work = profile.lines_of_work(lines.values())
        for process, thread, name, begin_ns, duration_ns, arguments in waiting:
            line = lines.setdefault((process, thread), Line(devices.get(process, -1), thread, ""))
            profile.take(line, name, begin_ns, duration_ns, arguments, works=line in work)
        profile.rows.table.counts.update({key: document.counts[key] for key in ("malformed", "truncated")})
        return [profile.trace(source, NAME)]


def _events(document: ChromeStream) -> Iterator[tuple[dict[str, Any], int, int]]:
    for batch in document.batches():
        for row, (begin_ns, duration_ns) in enumerate(batch.rows[:, [TS, DUR]].tolist()):
            yield batch.event(row), begin_ns, duration_ns
