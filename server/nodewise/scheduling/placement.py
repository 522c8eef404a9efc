"""Which nodes a grant takes its devices from.

Rules (as of Pollux's and Optimus' simulators, and "full nodes first" of Sia): a job whose count is unchanged stays
where it is; then the others by descending size, each on as few nodes as hold it: the node that it fits most tightly,
else whole emptiest nodes first and the tightest fit for the rest. A job may span nodes, so a grant within the pool's
free devices always finds room; how many more nodes it takes than on an empty pool is its fragmentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Ints
from nodewise.domain.schedule import NodePool

__all__ = ["NodeDevices", "Wanted", "placed", "worker_nodes"]

NodeDevices = tuple[tuple[int, int], ...]
"""(node index, devices) pairs, those of servers included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Devices (servers included) that a job was granted in a pool; ``keep`` = where it is to stay, if anywhere."""

    pool: int
    devices: int
    keep: NodeDevices | None = None


def placed(pools: Sequence[NodePool], wanted: Sequence[Wanted]) -> list[NodeDevices]:
    """Nodes for every entry, in order. Entries of one size are served in the order given.

    Raises
    ------
    ValueError
        When a pool's grants exceed its free devices, or places to keep do; both are checked before.
    """
    free = [np.array(pool.available_devices) for pool in pools]
    result: list[NodeDevices] = [()] * len(wanted)
    for index, entry in enumerate(wanted):
        if entry.keep is not None:
            for node, count in entry.keep:
                free[entry.pool][node] -= count
            result[index] = entry.keep
    if any((nodes < 0).any() for nodes in free):
        raise ValueError("the places to keep hold more devices than their nodes have")
    others = [index for index, entry in enumerate(wanted) if entry.keep is None]
    for index in sorted(others, key=lambda index: -wanted[index].devices):
        result[index] = _taken(free[wanted[index].pool], wanted[index].devices)
    return result


def _taken(free: Ints, devices: int) -> NodeDevices:
    """Take the devices from the free ones of a pool."""
    parts: list[tuple[int, int]] = []
    left = devices
    while left:
        node = _tightest(free, left)
        count = min(left, int(free[node]))
        if count < 1:
            raise ValueError("more devices are granted than the pool has free")
        free[node] -= count
        parts.append((node, count))
        left -= count
    return tuple(sorted(parts))


def _tightest(free: Ints, devices: int) -> int:
    """The node that the devices fit most tightly; the emptiest when none holds them all. Ties: first node."""
    fits = free >= devices
    if fits.any():
        return int(np.where(fits, free, np.iinfo(np.int64).max).argmin())
    return int(free.argmax())


def worker_nodes(placement: NodeDevices, workers: int) -> int:
    """Nodes that run workers when servers sit on the smallest parts."""
    left, nodes = workers, 0
    for count in sorted((count for _, count in placement), reverse=True):
        if left <= 0:
            break
        left -= count
        nodes += 1
    return nodes
