"""Which nodes a grant takes its devices from.

Rules (as of Pollux's and Optimus' simulators, and "full nodes first" of Sia): a job whose count is unchanged stays
where it is; then the others by descending size, each on as few nodes as hold it (``PoolNodes``). A job may span nodes,
so a grant within the pool's free devices always finds room; how many more nodes it takes than on an empty pool is its
fragmentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodewise.domain.schedule import NodePool
from nodewise.scheduling.nodes import NodeDevices, PoolNodes

__all__ = ["PlacementRequest", "choose_nodes", "worker_nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """Devices (servers included) that a job was granted in a pool; ``keep`` = where it is to stay, if anywhere."""

    pool: int
    devices: int
    keep: NodeDevices | None = None


def choose_nodes(pools: Sequence[NodePool], wanted: Sequence[PlacementRequest]) -> list[NodeDevices]:
    """Nodes for every entry, in order. Entries of one size are served in the order given.

    Raises
    ------
    ValueError
        When a pool's grants exceed its free devices, or places to keep do; both are checked before.
    """
    nodes = [PoolNodes(pool.available_devices.tolist()) for pool in pools]
    result: list[NodeDevices] = [()] * len(wanted)
    for index, entry in enumerate(wanted):
        if entry.keep is not None:
            nodes[entry.pool].hold(entry.keep)
            result[index] = entry.keep
    others = [index for index, entry in enumerate(wanted) if entry.keep is None]
    for index in sorted(others, key=lambda index: -wanted[index].devices):
        result[index] = nodes[wanted[index].pool].take(wanted[index].devices)
    return result


def worker_nodes(placement: NodeDevices, workers: int) -> int:
    """Nodes that run workers when servers sit on the smallest parts."""
    left, nodes = workers, 0
    for count in sorted((count for _, count in placement), reverse=True):
        if left <= 0:
            break
        left -= count
        nodes += 1
    return nodes
