"""Chrome traces of any recorder, with a mapping of names to meanings; TensorFlow's and JAX's exports among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.assemble import assemble_trace
from nodewise_traces.events.events import Columns, scan
from nodewise_traces.events.header import header_of
from nodewise_traces.events.step_spans import pattern_of
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.decode import starts_json

__all__ = ["ChromeReader"]

NAME: Final = "chrome"
MAPPING_KEYS: Final = ("step", "communication", "compute", "device", "stream")
_OWN_KEYS: Final = frozenset({"compute", "device", "stream"})
"""Keys that no other reader takes."""
_DEVICE: Final = r"^/device:(?!CPU)"
"""Processes that TensorFlow and XLA name after devices."""


class ChromeReader:
    """Reads complete events (``ph`` X) of Chrome traces.

    ``TraceSource.mapping`` holds regular expressions, each optional, searched for in names:

    - ``step``: spans that are training steps; a first group is the step's number;
    - ``communication``: spans that are exchanges between ranks;
    - ``compute``: spans of devices that are work, and spans of the host that are operators (left out: all);
    - ``device``: processes that represent devices;
    - ``stream``: their threads that run one piece of work after the other (left out: all).
    """

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A JSON document or list of trace events, unless the mapping asks for what only this reader supports."""
        if not starts_json(head) or not (b'"traceEvents"' in head or b'"ph"' in head):
            return 0.0
        return 1.0 if source.mapping.keys() & _OWN_KEYS else 0.1

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read the events of one rank. See TraceReader."""
        unknown = sorted(set(source.mapping) - set(MAPPING_KEYS))
        if unknown:
            raise unusable_error(source, f"mapping.{unknown[0]} is not known; known are {', '.join(MAPPING_KEYS)}")
        patterns = {key: pattern_of(source, key, _DEVICE if key == "device" else "") for key in MAPPING_KEYS}
        table, members = scan(stream, source)
        lanes = table.lanes
        device = patterns["device"]
        devices = sorted(pid for pid, text in lanes.process_names.items() if device and device.search(text))
        lanes.device_processes.update((pid, number) for number, pid in enumerate(devices))
        stream_pattern = patterns["stream"]
        runs = [
            first in lanes.device_processes
            and (stream_pattern is None or bool(stream_pattern.search(lanes.thread_names.get((first, second), ""))))
            for _, first, second in lanes
        ]
        columns = table.columns()
        compute = patterns["compute"]
        works = np.array(
            [compute is None or bool(compute.search(text)) for text in table.names.texts()], dtype=np.bool_
        )
        columns = replace(columns, kind=_kinds(columns, np.array(runs, dtype=np.bool_), works, lanes.device_lanes()))
        return [assemble_trace(table, columns, header_of(members, source), source, NAME)]


def _kinds(
    columns: Columns, runs: NDArray[np.bool_], works: NDArray[np.bool_], on_device: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """What events are that no category tells: by the lane they ran on, and by their name."""
    kind = columns.kind.copy()
    if not len(kind):
        return kind
    open_kind = (kind == EventKind.OTHER) & works[columns.name]
    kind[open_kind & runs[columns.lane]] = EventKind.KERNEL
    kind[open_kind & ~on_device[columns.lane]] = EventKind.OPERATOR
    return kind
