"""What the lines of a JAX or TensorFlow profile mean: shared by both files that the profiler writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nodewise.plugin import EventKind, Trace, TraceSource
from nodewise_traces.events.header import header_of
from nodewise_traces.events.rows import Rows
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = ["COMMUNICATION", "Line", "Profile", "device_of"]

COMMUNICATION: Final = (
    r"^(?:ragged-)?(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast)"
    r"(?:-start)?(?:\.\d+)*$"
)
"""Operations of XLA that are exchanges; NCCL's kernels are known by themselves."""
_DEVICE: Final = re.compile(r"^/device:(?:GPU|TPU|CUSTOM:\w+?):?(\d+)")
_STREAM: Final = re.compile(r"^Stream #(\d+)")
_WORK_LINE: Final = re.compile(r"^(?:Async )?XLA Ops")
_STEPS_LINE: Final = "Steps"
_MOVES: Final = re.compile(r"memcpy|^copy(?:-start)?(?:\.\d+)*$", re.IGNORECASE)
_FILLS: Final = re.compile(r"memset", re.IGNORECASE)
_CALL: Final = re.compile(r"^(?:cu|hip)[A-Z]")
_STEP_ARGUMENT: Final = "step_num"
_MISSING: Final = "the profile holds no event; record steps between jax.profiler.start_trace and stop_trace"


def device_of(process: str) -> int:
    """Number of the device that a process or plane represents; -1 = the host."""
    match = _DEVICE.match(process)
    return int(match.group(1)[:6]) if match else -1


@dataclass(frozen=True, slots=True)
class Line:
    """Events one after the other: a thread of the host, or a line of a device (-1 = the host)."""

    device: int
    number: int
    name: str


@dataclass(slots=True)
class Profile:
    """The events of one process, and the steps that it marks."""

    rows: Rows = field(default_factory=Rows)
    _steps: set[str] = field(default_factory=set)

    def lines_of_work(self, lines: Iterable[Line]) -> set[Line]:
        """Lines on which devices work: streams, or where a device has none, its operations.

        The others (modules, name scopes, sources) repeat what these say.
        """
        lines = list(lines)
        stream_devices = {line.device for line in lines if _STREAM.match(line.name)}
        return {
            line
            for line in lines
            if line.device >= 0 and (_STREAM if line.device in stream_devices else _WORK_LINE).match(line.name)
        }

    def take(
        self, line: Line, name: str, begin_ns: int, duration_ns: int, arguments: Mapping[str, Any], *, works: bool
    ) -> None:
        """Take an event.

        Parameters
        ----------
        arguments : mapping
            ``correlation_id`` and ``step_num`` are looked at.
        works : bool
            Whether the line is one of ``lines_of_work``.
        """
        rows = self.rows
        correlation = small_or(arguments.get("correlation_id"), -1)
        if line.device >= 0:
            if not works:
                if line.name == _STEPS_LINE:
                    self._step("device step", name, rows.lane(-1, -1), begin_ns, duration_ns)
                else:
                    rows.table.counts["dropped_derived_lines"] += 1
                return
            kind = EventKind.COPY if _MOVES.search(name) else EventKind.KERNEL
            kind = EventKind.FILL if _FILLS.search(name) else kind
            match = _STREAM.match(line.name)
            lane = rows.lane(line.device, int(match.group(1)[:9]) if match else line.number)
            moved_bytes = small_or(arguments.get("bytes_transferred", arguments.get("num_bytes")), -1)
            rows.add(name, lane, kind, begin_ns, duration_ns, correlation=correlation, moved_bytes=moved_bytes)
            return
        lane = rows.lane(-1, line.number)
        rows.table.lanes.thread_names[0, line.number] = line.name.partition("/")[0]
        if name.startswith("$"):  # the Python tracer's
            rows.frame(name[1:], lane, begin_ns, duration_ns)
        elif _STEP_ARGUMENT in arguments:
            self._step(name, arguments[_STEP_ARGUMENT], lane, begin_ns, duration_ns)
        else:
            kind = EventKind.CALL if correlation >= 0 or _CALL.match(name) else EventKind.OPERATOR
            rows.add(name, lane, kind, begin_ns, duration_ns, correlation=correlation)

    def _step(self, name: str, number: Any, lane: int, begin_ns: int, duration_ns: int) -> None:
        self._steps.add(name)
        self.rows.add(f"{name}#{integer_or(number, 0)}", lane, EventKind.ANNOTATION, begin_ns, duration_ns)

    def trace(self, source: TraceSource, reader: str) -> Trace:
        """Make the trace; of steps that hosts and devices mark, the hosts' are taken."""
        names = self._steps - {"device step"} or self._steps
        steps = rf"^(?:{'|'.join(map(re.escape, sorted(names)))})#(\d+)$" if names else ""
        mapping = {"communication": COMMUNICATION, **source.mapping}
        source = TraceSource(name=source.name, rank=source.rank, world_size=source.world_size, mapping=mapping)
        return self.rows.trace(header_of({}, source), source, reader, missing=_MISSING, steps=steps)
