"""Free devices of every node, and the rule of placement, at the cost of a few heap operations.

The rule: use as few nodes as possible. Devices that fit one node go to the node that they fit most tightly. Others fill
the emptiest nodes first, and the rest goes to the tightest fit. The first node wins ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

__all__ = ["NodeDevices", "PoolNodes"]

NodeDevices = tuple[tuple[int, int], ...]
"""(node index, devices) pairs, those of servers included."""


class PoolNodes:
    """The nodes of one pool.

    Attributes
    ----------
    free : int
        Free devices on nodes that are up.
    up_devices, total : int
        Devices, free or in use, on nodes that are up, and on all nodes.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        self._capacity = list(devices)
        self._free = list(devices)
        self._up = [True] * len(devices)
        self.free = self.up_devices = self.total = sum(self._free)
        largest = max(devices, default=0)
        self._by_free: list[list[int]] = [[] for _ in range(largest + 1)]
        for node, count in enumerate(devices):
            self._by_free[count].append(node)
        for nodes in self._by_free:
            heapify(nodes)

    @property
    def down(self) -> bool:
        """Whether any node is down."""
        return self.up_devices < self.total

    def capacity(self) -> list[int]:
        """Devices per node that may be granted; 0 on nodes that are down."""
        return [count if up else 0 for count, up in zip(self._capacity, self._up)]

    def take(self, devices: int) -> NodeDevices:
        """Place so many devices.

        Raises
        ------
        ValueError
            When that is more than ``free``.
        """
        parts: list[tuple[int, int]] = []
        left = devices
        while left:
            node = self._tightest(left)
            count = min(left, self._free[node])
            self._change(node, -count)
            parts.append((node, count))
            left -= count
        self.free -= devices
        parts.sort()
        return tuple(parts)

    def hold(self, placement: NodeDevices) -> None:
        """Take the devices of a placement; raises ValueError when a node has fewer free devices."""
        for node, count in placement:
            if count > self._free[node]:
                raise ValueError("placements to keep use more devices than their nodes have")
            self._change(node, -count)
            self.free -= count

    def give_back(self, placement: NodeDevices) -> None:
        """Return devices; those of nodes that are down return when the node is repaired."""
        for node, count in placement:
            if self._up[node]:
                self._change(node, count)
                self.free += count

    def fail(self, node: int) -> None:
        """Take a node down, after its jobs have returned their devices."""
        self.free -= self._free[node]
        self.up_devices -= self._capacity[node]
        self._up[node] = False
        self._free[node] = 0

    def repair(self, node: int) -> None:
        """Bring a node back, empty."""
        self._up[node] = True
        self.up_devices += self._capacity[node]
        self.free += self._capacity[node]
        self._change(node, self._capacity[node])

    def _change(self, node: int, by: int) -> None:
        """Change a node's free devices: add an entry; the old one is removed when it comes to the top of its heap."""
        free = self._free[node] + by
        self._free[node] = free
        heappush(self._by_free[free], node)

    def _tightest(self, devices: int) -> int:
        """The node that the devices fit most tightly; the emptiest when no node holds them all."""
        most = len(self._by_free) - 1
        count: int
        for count in (*range(devices, most + 1), *range(min(devices, most + 1) - 1, 0, -1)):
            nodes = self._by_free[count]
            while nodes:
                if self._free[nodes[0]] == count:
                    return nodes[0]
                heappop(nodes)
        raise ValueError("more devices are granted than the pool has free")
