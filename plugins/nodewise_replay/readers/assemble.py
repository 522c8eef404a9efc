"""From gathered columns to a Trace: order, links, steps, collectives, synchronisations, and the report."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    NO_EVENT,
    EventKind,
    Ints,
    MemorySamples,
    SyncKind,
    SyncRecords,
    Trace,
    TraceReport,
    TraceSource,
    TraceSteps,
)
from nodewise_replay.readers.events import EventTable
from nodewise_replay.readers.exchanges import collectives_of
from nodewise_replay.readers.header import Header
from nodewise_replay.readers.nesting import parents
from nodewise_replay.readers.numbers import integer_or, small_or

__all__ = ["assembled"]

_STEP: Final = r"^ProfilerStep#(\d+)$"
_SYNCS: Final = (
    ("wait", SyncKind.STREAM_WAIT),
    ("event", SyncKind.EVENT),
    ("stream", SyncKind.STREAM),
    ("context", SyncKind.DEVICE),
    ("device", SyncKind.DEVICE),
)


def assembled(table: EventTable, header: Header, source: TraceSource, reader: str) -> Trace:
    """Make the trace of one rank from everything that was decoded."""
    counts: Counter[str] = Counter(table.counts)
    warnings: list[str] = []
    columns = table.columns()
    order = np.lexsort((columns.kind == EventKind.CALL, -columns.duration_ns, columns.begin_ns))
    row = np.empty(len(order), dtype=np.int64)
    row[order] = np.arange(len(order))
    kind, lane, name = columns.kind[order], columns.lane[order], columns.name[order]
    begin_ns, duration_ns = columns.begin_ns[order] + header.base_ns, columns.duration_ns[order]
    correlation, sequence = columns.correlation[order], columns.sequence[order]
    syncs = _syncs(table)
    lanes = table.lane_values()
    names = table.names.public(header.hosts)
    parent = parents(lane.astype(np.int64), begin_ns, begin_ns + duration_ns, len(lanes))
    calls = _calls(kind, correlation, counts, warnings)
    collectives = collectives_of(
        names,
        name,
        kind,
        begin_ns,
        lane,
        parent,
        calls,
        {int(row[old]): a for old, a in table.arguments.items()},
        header,
        counts,
    )
    forward_lane = _forward_lanes(columns.forward_thread[order], sequence, lane, counts)
    steps = _steps(names, name, kind, begin_ns, duration_ns, source)
    for each in EventKind:
        counts[f"{each.name.lower()}_events"] = int(np.count_nonzero(kind == each))
    counts["kept"] = len(order)
    counts["steps"] = len(steps)
    if not len(steps):
        warnings.append("no steps are marked: only the whole window can be replayed")
    if header.rank < 0:
        warnings.append("the trace does not say which rank recorded it; it is taken for rank 0")
    return Trace(
        rank=max(header.rank, 0),
        world_size=header.world_size,
        format=reader,
        names=names,
        name=name,
        lanes=lanes,
        lane=lane,
        kind=kind,
        begin_ns=begin_ns,
        duration_ns=duration_ns,
        correlation=correlation,
        sequence=sequence,
        forward_lane=forward_lane,
        bytes=columns.bytes[order],
        steps=steps,
        collectives=collectives,
        syncs=syncs,
        memory=_memory(table, header, counts, warnings),
        devices=header.devices,
        report=TraceReport(counts=dict(counts), warnings=tuple(warnings)),
    )


def _calls(kind: NDArray[np.int8], correlation: Ints, counts: Counter[str], warnings: list[str]) -> Ints:
    """The call that launched each event of a device; -1 = it was not recorded."""
    call_rows = np.flatnonzero((kind == EventKind.CALL) & (correlation >= 0))
    device_rows = np.flatnonzero((kind == EventKind.KERNEL) | (kind == EventKind.COPY) | (kind == EventKind.FILL))
    found = np.full(len(kind), NO_EVENT, dtype=np.int64)
    counts["device_events"] = len(device_rows)
    if len(call_rows):
        # Rows ascend in time: a correlation that is used again belongs to the last call before the work began.
        by_correlation = call_rows[np.argsort(correlation[call_rows], kind="stable")]
        sorted_correlations = correlation[by_correlation]
        counts["duplicate_correlations"] = int(np.count_nonzero(np.diff(sorted_correlations) == 0))
        first = np.searchsorted(sorted_correlations, correlation[device_rows], side="left")
        last = np.searchsorted(sorted_correlations, correlation[device_rows], side="right")
        for device_row, low, high in zip(device_rows.tolist(), first.tolist(), last.tolist()):
            if high > low:
                before = int(np.searchsorted(by_correlation[low:high], device_row)) if high > low + 1 else 1
                found[device_row] = by_correlation[low + max(before - 1, 0)]
    linked = int(np.count_nonzero(found[device_rows] >= 0))
    counts["device_events_linked"] = linked
    counts["device_events_unlinked"] = len(device_rows) - linked
    if linked < len(device_rows):
        warnings.append(
            f"{len(device_rows) - linked} of {len(device_rows)} events on devices have no recorded call that launched them"
        )
    if counts["duplicate_correlations"]:
        warnings.append(f"{counts['duplicate_correlations']} calls share the correlation number of another call")
    return found


def _forward_lanes(thread: Ints, sequence: Ints, lane: NDArray[np.int32], counts: Counter[str]) -> NDArray[np.int32]:
    """Where the forward operators of backward ones ran: threads are numbered, so their operators say which lane."""
    result = np.full(len(lane), NO_EVENT, dtype=np.int32)
    backward = np.flatnonzero((thread > 0) & (sequence >= 0))
    forward = np.flatnonzero((thread <= 0) & (sequence >= 0))
    counts["backward_operators"] = len(backward)
    if len(forward):
        forward = forward[np.argsort(sequence[forward], kind="stable")]
        ordered = sequence[forward]
        place = np.searchsorted(ordered, sequence[backward])
        matched = (place < len(ordered)) & (ordered[np.minimum(place, len(ordered) - 1)] == sequence[backward])
        for number in np.unique(thread[backward]):
            mine = thread[backward] == number
            lanes = lane[forward[place[mine & matched]]]
            if len(lanes):
                result[backward[mine & matched]] = np.bincount(lanes).argmax()
    counts["forward_backward_found"] = int(np.count_nonzero(result >= 0))
    return result


def _steps(
    names: tuple[str, ...],
    name: NDArray[np.int32],
    kind: NDArray[np.int8],
    begin_ns: Ints,
    duration_ns: Ints,
    source: TraceSource,
) -> TraceSteps:
    """Spans on the host that mark steps; a pattern without a group, or whose group is no number, counts them."""
    pattern = re.compile(source.mapping.get("step", _STEP))
    matches = {number: match for number, text in enumerate(names) if (match := pattern.search(text))}
    rows = np.flatnonzero(np.isin(name, list(matches)) & (kind <= EventKind.ANNOTATION)) if matches else []
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        match = matches[int(name[row])]
        text = match.group(1) if match.re.groups else None
        number = int(text) if text and text.isdigit() else len(found) + 1
        found.setdefault(number, (int(begin_ns[row]), int(begin_ns[row] + duration_ns[row])))
    return TraceSteps(
        number=np.array(list(found), dtype=np.int64),
        begin_ns=np.array([begin for begin, _ in found.values()], dtype=np.int64),
        end_ns=np.array([end for _, end in found.values()], dtype=np.int64),
    )


def _syncs(table: EventTable) -> SyncRecords:
    kinds, rows = [], []
    for record in table.syncs:
        text = str(record.get("cuda_sync_kind", "")).lower()
        kind = next((kind for part, kind in _SYNCS if part in text), None)
        if kind is None:
            table.counts["syncs_of_unknown_kind"] += 1
            continue
        device = small_or(record.get("device"), 0)
        stream = small_or(record.get("stream"), -1)
        awaited = small_or(record.get("wait_on_stream"), -1)
        kinds.append(int(kind))
        rows.append(
            (
                integer_or(record.get("correlation"), NO_EVENT),
                NO_EVENT if stream < 0 else table.lane_of_stream(device, stream),
                NO_EVENT if awaited < 0 else table.lane_of_stream(device, awaited),
                small_or(record.get("wait_on_cuda_event_record_corr_id"), NO_EVENT),
            )
        )
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return SyncRecords(
        kind=np.array(kinds, dtype=np.int8),
        correlation=columns[0],
        lane=columns[1],
        awaited_lane=columns[2],
        awaited_correlation=columns[3],
    )


def _memory(table: EventTable, header: Header, counts: Counter[str], warnings: list[str]) -> MemorySamples:
    """Bytes held after each change. Old recorders state the change alone: the sum since the window began."""
    if not table.memory:
        return MemorySamples.none()
    held: dict[int, int] = {}
    samples = []
    for time_ns, arguments in sorted(table.memory, key=lambda sample: sample[0]):
        device = small_or(arguments.get("Device Id"), -1) if integer_or(arguments.get("Device Type"), 0) else -1
        total = small_or(arguments.get("Total Allocated"), -1)
        if total < 0:
            counts["memory_changes_without_total"] += 1
            total = held.get(device, 0) + integer_or(arguments.get("Bytes"), 0)
        held[device] = total
        samples.append((time_ns + header.base_ns, device, total))
    columns = np.array(samples, dtype=np.int64).T
    allocated = columns[2]
    if counts["memory_changes_without_total"]:
        for device in held:
            mine = columns[1] == device
            allocated[mine] -= min(0, int(allocated[mine].min()))
        warnings.append("memory is recorded as changes alone: what was held when the window began is missing from it")
    counts["memory_samples"] = len(samples)
    return MemorySamples(time_ns=columns[0], device=columns[1], allocated_bytes=allocated)
