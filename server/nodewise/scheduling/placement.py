"""Chooses the nodes of every grant.

Rules (those of Pollux's and Optimus' simulators, and "full nodes first" of Sia): a job whose count does not change
stays where it is. Then the others follow by descending size, each on as few nodes as hold it (``PoolNodes``). A job may
span nodes, so every grant within the pool's free devices can be placed, at worst on more nodes than in an empty pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodewise.domain.schedule import NodePool
from nodewise.scheduling.nodes import NodeDevices, PoolNodes

__all__ = ["PlacementRequest", "choose_nodes", "worker_nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """Devices (servers included) granted to a job in a pool; ``keep`` = the placement to keep, if any."""

    pool: int
    devices: int
    keep: NodeDevices | None = None


def choose_nodes(pools: Sequence[NodePool], requests: Sequence[PlacementRequest]) -> list[NodeDevices]:
    """Nodes for every request, in order. Requests of one size are placed in their order.

    Raises
    ------
    ValueError
        When a pool's grants or placements to keep exceed its free devices; callers check both before.
    """
    nodes = [PoolNodes(pool.available_devices.tolist()) for pool in pools]
    result: list[NodeDevices] = [()] * len(requests)
    for index, entry in enumerate(requests):
        if entry.keep is not None:
            nodes[entry.pool].hold(entry.keep)
            result[index] = entry.keep
    others = [index for index, entry in enumerate(requests) if entry.keep is None]
    for index in sorted(others, key=lambda index: -requests[index].devices):
        result[index] = nodes[requests[index].pool].take(requests[index].devices)
    return result


def worker_nodes(placement: NodeDevices, workers: int) -> int:
    """Nodes that run workers if servers take the nodes with the fewest devices."""
    left, nodes = workers, 0
    for count in sorted((count for _, count in placement), reverse=True):
        if left <= 0:
            break
        left -= count
        nodes += 1
    return nodes
