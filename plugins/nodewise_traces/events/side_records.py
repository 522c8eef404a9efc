"""Records beside the spans: synchronisations and samples of memory."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from nodewise.plugin import NO_EVENT, Ints, MemorySamples, SyncKind, SyncRecords
from nodewise_traces.events.lanes import Lanes
from nodewise_traces.scanning.fields import MISSING
from nodewise_traces.scanning.numbers import integer_or, small_or

__all__ = ["memory_of", "syncs_of"]

_SYNCS: Final = (
    ("wait", SyncKind.STREAM_WAIT),
    ("event", SyncKind.EVENT),
    ("stream", SyncKind.STREAM),
    ("context", SyncKind.DEVICE),
    ("device", SyncKind.DEVICE),
)
"""Kinds by what their names contain, the more particular first."""


def syncs_of(records: list[dict[str, Any]], lanes: Lanes, counts: Counter[str]) -> SyncRecords:
    """Arguments of ``cuda_sync`` records as columns."""
    kinds, rows = [], []
    for record in records:
        text = str(record.get("cuda_sync_kind", "")).lower()
        kind = next((kind for part, kind in _SYNCS if part in text), None)
        if kind is None:
            counts["syncs_of_unknown_kind"] += 1
            continue
        device = small_or(record.get("device"), 0)
        kinds.append(int(kind))
        rows.append(
            (
                integer_or(record.get("correlation"), NO_EVENT),
                lanes.of_stream(device, small_or(record.get("stream"), NO_EVENT)),
                lanes.of_stream(device, small_or(record.get("wait_on_stream"), NO_EVENT)),
                small_or(record.get("wait_on_cuda_event_record_corr_id"), NO_EVENT),
            )
        )
    counts["syncs"] = len(rows)
    columns = np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, 4).T)
    return SyncRecords(
        kind=np.array(kinds, dtype=np.int8),
        correlation=columns[0],
        lane=columns[1],
        awaited_lane=columns[2],
        awaited_correlation=columns[3],
    )


def memory_of(samples: Ints, counts: Counter[str], warnings: list[str]) -> MemorySamples:
    """Bytes held after each allocation and release.

    Older recorders state the change alone. Then the sum since the window began is taken, raised so that it is never
    negative: what is held is at least this.

    Parameters
    ----------
    samples : (samples, 5)
        When (ns), type of device (0 = host), device, total allocated, bytes changed; MISSING = not stated.
    """
    if not len(samples):
        return MemorySamples.none()
    samples = samples[np.argsort(samples[:, 0], kind="stable")]
    time_ns, device_type, device, total, change = np.ascontiguousarray(samples.T)
    device = np.where(device_type > 0, np.maximum(device, NO_EVENT), NO_EVENT)
    allocated_bytes = np.where(total == MISSING, 0, total)
    for number in np.unique(device[total == MISSING]):
        mine = np.flatnonzero(device == number)
        sums = np.cumsum(np.where(change[mine] == MISSING, 0, change[mine]))
        allocated_bytes[mine] = np.where(total[mine] == MISSING, sums - min(0, int(sums.min())), total[mine])
    counts["memory_samples"] = len(samples)
    counts["memory_samples_without_total"] = int(np.count_nonzero(total == MISSING))
    if counts["memory_samples_without_total"]:
        warnings.append("memory was recorded as changes only: memory allocated before the recording is not included")
    return MemorySamples(time_ns=time_ns, device=device, allocated_bytes=allocated_bytes)
