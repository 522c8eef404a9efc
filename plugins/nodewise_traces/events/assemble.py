"""From gathered columns to a Trace: order, links, steps, collectives, synchronisations, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import EventKind, Ints, Trace, TraceReport, TraceSource
from nodewise_traces.events.collectives import Spans, collectives_of
from nodewise_traces.events.correlations import forward_lanes, launches, with_external
from nodewise_traces.events.events import Columns, EventTable
from nodewise_traces.events.header import Header
from nodewise_traces.events.impossible import cut_outlasting, cut_overruns, moved_to_launches, without_stub
from nodewise_traces.events.parents import parents
from nodewise_traces.events.side_records import memory_of, syncs_of
from nodewise_traces.events.step_spans import pattern_of, steps_of
from nodewise_traces.refusals import unusable_error

__all__ = ["assemble_trace"]

_LATEST_NS: Final = 2**62
"""Times beyond this (the year 2116) are damaged; sums of two below it fit 64 bits."""


def assemble_trace(table: EventTable, columns: Columns, header: Header, source: TraceSource, reader: str) -> Trace:
    """Make the trace of one rank from everything that was scanned.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if no span is left.
    """
    counts, warnings = table.counts, list(header.warnings)
    ends = columns.begin_ns.astype(np.float64) + columns.duration_ns + header.base_ns
    sane = (ends < _LATEST_NS) & (columns.begin_ns > -_LATEST_NS) & (ends > -_LATEST_NS)
    counts["malformed"] += int(np.count_nonzero(~sane))
    rows = np.flatnonzero(sane)
    order = rows[_order(columns.rows(rows))]
    if not len(order):
        raise unusable_error(
            source, "no event has a time and a duration; send what torch.profiler's export_chrome_trace wrote"
        )
    names = table.names.public(header.hosts)
    columns, again, launch = _repair(columns.rows(order), names, counts, warnings)
    order = order[again]
    place = np.full(len(sane), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    exchanges = {int(place[row]): exchange for row, exchange in table.exchanges.items() if place[row] >= 0}
    kind, lane, name, duration_ns = columns.kind, columns.lane, columns.name, columns.duration_ns
    begin_ns = columns.begin_ns + header.base_ns
    syncs = syncs_of(table.syncs, table.lanes, counts)
    frames = table.frames(header.base_ns)
    lanes = table.lanes.values_by_number()
    spans = Spans(
        names=names,
        name=name,
        kind=kind,
        begin_ns=begin_ns,
        parent=parents(lane.astype(np.int64), begin_ns, begin_ns + duration_ns, len(lanes)),
        launch=launch,
    )
    collectives = collectives_of(
        spans, exchanges, table.groups, pattern=pattern_of(source, "communication"), counts=counts
    )
    steps = without_stub(steps_of(spans, duration_ns, source), kind, begin_ns, warnings)
    work = np.flatnonzero((kind == EventKind.KERNEL) | (kind == EventKind.COPY) | (kind == EventKind.FILL))
    duration_ns, far = cut_outlasting(name.astype(np.int64), begin_ns, duration_ns, steps, work)
    counts["durations_outlasting"] = far
    memory = memory_of(table.memory(header.base_ns), counts, warnings)
    forward_lane = forward_lanes(columns.forward_thread, columns.sequence, lane, counts)
    for each in EventKind:
        counts[f"{each.name.lower()}_events"] = int(np.count_nonzero(kind == each))
    counts["kept"] = len(order)
    counts["steps"] = len(steps)
    return Trace(
        rank=max(header.rank, 0),
        world_size=header.world_size,
        format=reader,
        names=spans.names,
        name=name,
        lanes=lanes,
        lane=lane,
        kind=kind,
        begin_ns=begin_ns,
        duration_ns=duration_ns,
        correlation=columns.correlation,
        sequence=columns.sequence,
        forward_lane=forward_lane,
        bytes=columns.bytes,
        steps=steps,
        collectives=collectives,
        syncs=syncs,
        memory=memory,
        frames=frames,
        devices=header.devices,
        report=TraceReport(
            counts={name: count for name, count in sorted(counts.items()) if count or name in _ALWAYS},
            warnings=(*warnings, *_warnings(counts)),
        ),
    )


def _order(columns: Columns) -> Ints:
    """The order of Trace; where spans are equal within the clock's resolution, calls are inside operators."""
    return np.lexsort((columns.kind == EventKind.CALL, -columns.duration_ns, columns.begin_ns))


def _repair(
    columns: Columns, names: Sequence[str], counts: Counter[str], warnings: list[str]
) -> tuple[Columns, Ints, Ints]:
    """Sorted columns with links by operator and without impossible times of devices' work.

    Returns
    -------
    (columns, order, launch)
        Sorted again; their indexes among the given rows; the call that launched each.
    """
    link_warnings: list[str] = []
    correlation = with_external(names, columns.name, columns.kind, columns.correlation, columns.external)
    columns, order = replace(columns, correlation=correlation), np.arange(len(columns.kind))
    launch = launches(columns.kind, correlation, counts, link_warnings)
    begin_ns, sane = moved_to_launches(columns.begin_ns, launch, np.ones(len(order), dtype=np.bool_), warnings)
    if begin_ns is not columns.begin_ns:
        order = np.flatnonzero(sane)
        columns = replace(columns, begin_ns=begin_ns).rows(order)
        again = _order(columns)
        columns, order = columns.rows(again), order[again]
        link_warnings.clear()
        launch = launches(columns.kind, columns.correlation, counts, link_warnings)
    warnings += link_warnings
    serial = (columns.kind == EventKind.KERNEL) | (columns.kind == EventKind.COPY) | (columns.kind == EventKind.FILL)
    if counts["work_of_other_categories"]:
        serial[:] = False  # other makers' streams may run concurrently
    lane = columns.lane.astype(np.int64)
    duration_ns, cut = cut_overruns(
        lane, columns.begin_ns, columns.duration_ns, columns.correlation, np.flatnonzero(serial)
    )
    counts["durations_overrunning"] = cut
    return replace(columns, duration_ns=duration_ns), order, launch


_ALWAYS: Final = frozenset(
    {
        "malformed",
        "device_events",
        "device_events_linked",
        "device_events_unlinked",
        "collectives",
        "collectives_sized",
        "forward_backward_found",
        "syncs",
        "steps",
        *(f"{kind.name.lower()}_events" for kind in EventKind),
    }
)
"""Counts that are reported even where they are 0."""


def _warnings(counts: Counter[str]) -> list[str]:
    """Warnings of the report, in words."""
    unsized_count = counts["collectives"] - counts["collectives_sized"]
    lost_count = counts["durations_negative"] + counts["durations_missing"]
    cases = (
        (counts["truncated"], "the file ends inside the list of events: later events are missing"),
        (counts["malformed"], f"{counts['malformed']} malformed events were ignored"),
        (
            counts["members_left_out"],
            (f"{counts['members_left_out']} members of the document beside the events cannot be read"),
        ),
        (not counts["steps"], "no steps are marked: only the whole recording can be replayed"),
        (unsized_count, f"{unsized_count} of {counts['collectives']} collectives do not state their size"),
        (
            counts["collectives_of_unknown_kind"],
            f"the kind of {counts['collectives_of_unknown_kind']} collectives is not known",
        ),
        (
            over := counts["durations_overrunning"],
            (f"{over} events overlap the next event of their serial stream: their ends were cut"),
        ),
        (
            far := counts["durations_outlasting"],
            f"{far} events last far longer than the steps: the usual duration is used instead",
        ),
        (
            other := counts["work_of_other_categories"],
            f"{other} events have unknown categories and count as device work",
        ),
        (lost_count, f"{lost_count} durations are missing or negative: 0 is used"),
    )
    return [text for applies, text in cases if applies]
