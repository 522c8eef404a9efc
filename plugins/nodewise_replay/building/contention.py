"""Work that waits until another stream's work leaves the device: no call records it, the times show it."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Ints
from nodewise_replay.graph.graph import NodeKind
from nodewise_replay.graph.wiring import NodeColumns

__all__ = ["SHORTEST_WAIT_NS", "occupied_by"]

SHORTEST_WAIT_NS: Final = 20_000
"""Waits below are left to latencies, which vary by as much."""

_DRAIN_SHARE: Final = 0.1
"""A kernel whose last blocks run leaves room before it ends: for at most this share of its duration."""

_SLACK_NS: Final = 10_000
"""A launch latency: largest distance between an end and a begin that depends on it."""


def occupied_by(waiting: Ints, ready_ns: Ints, nodes: NodeColumns, work: Ints) -> Ints:
    """For work that begins later than anything known lets it: the kernel on another stream that ran all the time.

    It must have run when the work was ready and have ended, but for its last blocks, when the work began: then the two
    shared the device, and the later one got in when the earlier one left.

    Parameters
    ----------
    waiting : (n,) int
        Nodes of device work.
    ready_ns : (n,) int64
        When everything known had let them go.
    nodes : NodeColumns
    work : (m,) int
        All nodes of device work.

    Returns
    -------
    (n,) int64
        Node of the other kernel; -1 = none.
    """
    occupants = np.full(len(waiting), -1, dtype=np.int64)
    begin_ns, end_ns, lane = nodes.begin_ns, nodes.end_ns, nodes.lane
    late = np.flatnonzero(begin_ns[waiting] - ready_ns >= SHORTEST_WAIT_NS)
    if not len(late):
        return occupants
    kernels = work[(nodes.kind[work] == NodeKind.KERNEL) & (end_ns[work] - begin_ns[work] >= SHORTEST_WAIT_NS)]
    kernels = kernels[np.argsort(end_ns[kernels], kind="stable")]
    ends = end_ns[kernels]
    for place in late:
        node, ready = int(waiting[place]), int(ready_ns[place])
        begin = int(begin_ns[node])
        at = int(np.searchsorted(ends, begin - _SLACK_NS, "left"))
        # Ends ascend; on other streams few kernels of that length end so close.
        while at < len(kernels):
            other = int(kernels[at])
            if begin_ns[other] <= ready + _SLACK_NS and lane[other] != lane[node]:
                tail = int(ends[at]) - begin
                if tail <= max(_SLACK_NS, _DRAIN_SHARE * (ends[at] - begin_ns[other])):
                    occupants[place] = other
                    break
            if ends[at] > begin + 100 * _SLACK_NS:
                break
            at += 1
    return occupants
