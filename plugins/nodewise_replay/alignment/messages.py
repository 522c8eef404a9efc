"""Messages between two ranks: when they are complete, and which receipt is of which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import CollectiveKind, Ints, Trace

__all__ = ["completions", "is_message", "is_pair", "is_receipt", "known_peers"]

_RECEIPTS = (int(CollectiveKind.RECEIVE), int(CollectiveKind.PULL))
_MESSAGES = (*_RECEIPTS, int(CollectiveKind.SEND), int(CollectiveKind.PUSH))


def is_receipt(trace: Trace) -> NDArray[np.bool_]:
    """Which of a trace's collectives take something from a peer."""
    mask: NDArray[np.bool_] = np.isin(trace.collectives.kind, _RECEIPTS)
    return mask


def is_message(trace: Trace) -> NDArray[np.bool_]:
    """Which of a trace's collectives are between two ranks."""
    mask: NDArray[np.bool_] = np.isin(trace.collectives.kind, _MESSAGES)
    return mask


def is_pair(kind: int) -> bool:
    """Whether collectives of a kind are between two ranks."""
    return kind in _MESSAGES


def completions(trace: Trace) -> Ints:
    """When each of a trace's collectives was over for this rank, on its own clock.

    A span ends with its collective, except for receipts on a thread of the host: there it only posts the buffer, and
    the thread blocks until its next event begins, or the one around it ends.
    """
    table = trace.collectives
    event = np.maximum(table.event, 0).astype(np.int64)
    ends: Ints = trace.end_ns[event].copy() if len(table) else np.zeros(0, dtype=np.int64)
    on_host = np.array([lane.is_host for lane in trace.lanes], dtype=np.bool_)
    if not len(table):
        return ends
    receipts = np.flatnonzero(is_receipt(trace) & on_host[trace.lane[event]])
    call = np.asarray(table.call)
    for lane in np.unique(trace.lane[event[receipts]]):
        of_lane = trace.lane == lane
        boundaries = np.sort(np.concatenate((trace.begin_ns[of_lane], trace.end_ns[of_lane])))
        for row in receipts:
            if trace.lane[event[row]] != lane:
                continue
            outer = call[row] if call[row] >= 0 and trace.lane[call[row]] == lane else event[row]
            at = int(np.searchsorted(boundaries, trace.end_ns[outer], "right"))
            if at < len(boundaries):
                ends[row] = boundaries[at]
    return ends


def known_peers(traces: Sequence[Trace]) -> list[Ints]:
    """Peer of every collective of every trace: as recorded, the other one of two ranks, or made out by time.

    A recorder that leaves peers out leaves only times: a receipt is taken to be of the message of the same size, of
    another rank, whose sending began last before the receipt was complete, each message once. -1 = not known.
    """
    peers = [np.array(trace.collectives.peer, dtype=np.int64) for trace in traces]
    unknown = [is_message(trace) & (peer < 0) for trace, peer in zip(traces, peers, strict=True)]
    if not any(mask.any() for mask in unknown):
        return peers
    if len(traces) == 2 and all(trace.world_size in (0, 2) for trace in traces):
        for which, mask in enumerate(unknown):
            peers[which][mask] = traces[1 - which].rank
        return peers
    sends: list[tuple[int, int, int, int]] = []
    receipts: list[tuple[int, int, int, int]] = []
    for which, (trace, mask) in enumerate(zip(traces, unknown, strict=True)):
        table, ends, receipt = trace.collectives, completions(trace), is_receipt(trace)
        size = np.maximum(table.in_bytes, table.out_bytes)
        begins = trace.begin_ns[np.maximum(table.event, 0)]
        for row in np.flatnonzero(mask):
            if receipt[row]:
                receipts.append((int(ends[row]), which, int(row), int(size[row])))
            else:
                sends.append((int(begins[row]), which, int(row), int(size[row])))
    free = sorted(sends)
    for end_ns, to, receipt_row, bytes_taken in sorted(receipts):
        fitting = [one for one in free if one[0] <= end_ns and one[1] != to and one[3] == bytes_taken]
        if fitting:
            message = fitting[-1]
            free.remove(message)
            peers[to][receipt_row] = traces[message[1]].rank
            peers[message[1]][message[2]] = traces[to].rank
    return peers
