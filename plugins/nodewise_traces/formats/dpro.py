"""dPRO's JSON: one event per operator or message, several ranks in one file.

Names and fields are those of dPRO's traces (H. Hu et al., "dPRO: A Generic Performance Diagnosis and Optimization
Toolkit for Expediting Distributed DNN Training", MLSys 2022): ``name`` is "category.operator.part", ``pid`` is
"host.rank".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import numpy as np

from nodewise.plugin import NO_EVENT, CollectiveKind, EventKind, Lane, Trace, TraceReport, TraceSource
from nodewise_traces.events.collectives import collectives_table
from nodewise_traces.events.exchange_arguments import Exchange
from nodewise_traces.events.names import KeyNumbers, public_name
from nodewise_traces.events.step_spans import steps_table
from nodewise_traces.refusals import contradiction_error, unusable_error
from nodewise_traces.scanning.decode import starts_json
from nodewise_traces.scanning.fields import DUR, MISSING, TS
from nodewise_traces.scanning.numbers import integer_or
from nodewise_traces.scanning.stream import ChromeStream

__all__ = ["DproReader"]

NAME: Final = "dpro"
_RANK: Final = re.compile(r"rank(\d{1,9})$")
_RANKED: Final = re.compile(rb'"pid"\s*:\s*"[^"]*rank\d+"')
_LANES: Final = (
    Lane(device=0, number=0, name="compute"),
    Lane(device=0, number=1, name="send"),
    Lane(device=0, number=2, name="receive"),
    Lane(device=0, number=3, name="communication"),
    Lane(device=-1, number=0, name="input"),
)
"""One queue each for computation, both directions of the link and its coordination, and the loader."""
_PARTS: Final = {
    "SEND": (1, CollectiveKind.SEND),
    "RECV": (2, CollectiveKind.RECEIVE),
    "PUSH_REQ": (1, CollectiveKind.PUSH),
    "PUSH_RES": (2, CollectiveKind.PUSH),
    "PULL_REQ": (1, CollectiveKind.PULL),
    "PULL_RES": (2, CollectiveKind.PULL),
}
"""Lane and kind of the parts of a communication."""


@dataclass(slots=True)
class _Rank:
    """Rows of one rank: begin, duration, name, lane, kind, exchange or -1."""

    rows: list[tuple[int, int, str, int, int, int]] = field(default_factory=list)
    steps: dict[int, tuple[int, int]] = field(default_factory=dict)


class DproReader:
    """Reads dPRO's traces: durations of operators and messages; dPRO's graph files are not part of them."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """Trace events of processes that are called after hosts and ranks."""
        del source
        return 0.9 if starts_json(head) and _RANKED.search(head) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read the events of all ranks. See TraceReader."""
        document = ChromeStream(stream)
        counts: Counter[str] = Counter()
        ranks: dict[int, _Rank] = {}
        for batch in document.batches():
            times = batch.rows[:, [TS, DUR]].tolist()
            for row, (begin_ns, duration_ns) in enumerate(times):
                _take(batch.event(row), begin_ns, duration_ns, ranks, counts)
        counts.update(document.counts)
        if not ranks:
            raise unusable_error(source, 'no event belongs to a rank: "pid" must end in "rank" and a number')
        if source.rank >= 0 and list(ranks) != [source.rank]:
            raise contradiction_error(
                source, f"was sent as rank {source.rank}, but holds {', '.join(map(str, sorted(ranks)))}"
            )
        return [_trace(number, ranks[number], source, counts) for number in sorted(ranks)]


def _take(
    event: dict[str, Any], begin_ns: int, duration_ns: int, ranks: dict[int, _Rank], counts: Counter[str]
) -> None:
    if event.get("ph", "X") != "X":
        counts["dropped_other_phases"] += 1
        return
    match = _RANK.search(str(event.get("pid", "")))
    name = event.get("name")
    if match is None or not isinstance(name, str) or MISSING in {begin_ns, duration_ns} or duration_ns < 0:
        counts["malformed"] += 1
        return
    category, _, rest = name.partition(".")
    rank = ranks.setdefault(int(match.group(1)), _Rank())
    exchange = NO_EVENT
    kind, lane = EventKind.KERNEL, 0
    if category == "Comm":
        lane, exchange = _PARTS.get(rest.rpartition(".")[2], (3, NO_EVENT))
    elif category == "I/O":
        kind, lane = EventKind.OPERATOR, 4
    rank.rows.append((begin_ns, duration_ns, name, lane, int(kind), int(exchange)))
    arguments = event.get("args")
    step = integer_or(arguments.get("step"), -1) if isinstance(arguments, dict) else -1
    if step >= 0:
        begin, end = rank.steps.get(step, (begin_ns, begin_ns + duration_ns))
        rank.steps[step] = (min(begin, begin_ns), max(end, begin_ns + duration_ns))


def _trace(number: int, rank: _Rank, source: TraceSource, counts: Counter[str]) -> Trace:
    rows = sorted(rank.rows, key=lambda row: (row[0], -row[1]))
    begin, duration, lane, kind, _ = np.array([(*row[:2], *row[3:]) for row in rows], dtype=np.int64).T
    names: KeyNumbers[str] = KeyNumbers()
    name = np.array([names[row[2]] for row in rows], dtype=np.int32)
    none = np.full(len(rows), NO_EVENT, dtype=np.int64)
    messages = [
        (place, NO_EVENT, NO_EVENT, Exchange(kind=CollectiveKind(row[5])))
        for place, row in enumerate(rows)
        if row[5] != NO_EVENT
    ]
    report_counts = {
        **counts,
        "events": len(rows),  # a file holds several ranks: each counts its own
        "kept": len(rows),
        "collectives": len(messages),
        "collectives_sized": 0,
        "steps": len(rank.steps),
        "malformed": counts["malformed"],
    }
    warnings = ["messages do not state their size"] if messages else []
    if counts["malformed"]:
        warnings.append(f"{counts['malformed']} malformed events were ignored")
    if counts["truncated"]:
        warnings.append("the file ends inside the list of events: later events are missing")
    return Trace(
        rank=number,
        world_size=source.world_size,
        format=NAME,
        names=tuple(public_name(text) for text in names),
        name=name,
        lanes=_LANES,
        lane=lane.astype(np.int32),
        kind=kind.astype(np.int8),
        begin_ns=np.ascontiguousarray(begin),
        duration_ns=np.ascontiguousarray(duration),
        correlation=none,
        sequence=none,
        forward_lane=none.astype(np.int32),
        bytes=none,
        steps=steps_table(rank.steps),
        collectives=collectives_table(messages),
        report=TraceReport(counts=dict(sorted(report_counts.items())), warnings=tuple(warnings)),
    )
