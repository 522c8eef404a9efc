"""Which links a group of ranks crosses, and how long its collectives take over them.

Bandwidth between nodes belongs to the node: groups that cross its edge at the same time share its adapters, and a
single group may use all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws.collectives import interpolated_s, ring_all_reduce_s
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import Software

__all__ = ["Group", "all_reduce_in_node_s", "all_reduce_s", "group_of", "ring_s"]

MEASURED_LINK_BYTES_PER_S: Final = 300e9
"""The link (NVLink 3) that the times below were measured over."""
_LOG_BYTES: Final = np.log(2.0**20 * np.array([1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]))
_LOG_S: Final = {
    2.0: np.log(np.array([44.2e-6, 61.2e-6, 131.9e-6, 404.7e-6, 1455.8e-6, 5442.8e-6])),
    4.0: np.log(np.array([51.4e-6, 77.3e-6, 179.6e-6, 543.8e-6, 1929.0e-6, 7259.4e-6])),
    8.0: np.log(np.array([92.8e-6, 95.8e-6, 232.4e-6, 579.9e-6, 2162.3e-6, 8193.0e-6])),
}
"""All-reduce inside one A100 node, by ranks and size. Source: six sizes of VIA-Research/vTrain's tables (f8dda847)."""
_STARTED_S: Final = {2.0: 46.0e-6, 4.0: 54.0e-6, 8.0: 78.6e-6}
"""Time that does not depend on the size, fitted to the whole tables: how it carries over to other links."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Ranks that communicate with each other.

    Attributes
    ----------
    in_node, nodes : float
        Members on one node; nodes that the group spans. Their product is the group's size.
    share : float
        Part of a node's adapters that one member gets while all groups like this one cross its edge.
    """

    in_node: Floats
    nodes: Floats
    share: Floats


def group_of(layout: Layout, ranks: Floats, stride: Floats) -> Group:
    """The group of ``ranks`` ranks, each ``stride`` from the next."""
    in_node = np.clip(np.floor(layout.devices_per_node / stride), 1.0, ranks)
    return Group(in_node, np.ceil(ranks / in_node), 1.0 / np.minimum(layout.devices_per_node, stride * in_node))


def all_reduce_in_node_s(size_bytes: Floats, ranks: Floats, device: Device) -> Floats:
    """All-reduce among devices of one node: the measured times, for other counts and links scaled by what they move."""
    seconds = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
    several = ranks > 1.0
    if not np.any(several):
        return seconds
    size = np.broadcast_to(size_bytes, seconds.shape)
    slower = MEASURED_LINK_BYTES_PER_S / device.link_bytes_per_s
    for measured, upper in ((2.0, 2.0), (4.0, 4.0), (8.0, np.inf)):
        rows = np.flatnonzero(several & (ranks > measured / 2.0) & (ranks <= upper))
        if not len(rows):
            continue
        found = interpolated_s(size[rows], _LOG_BYTES, _LOG_S[measured])
        moved = np.maximum(found - _STARTED_S[measured], 0.0)
        traffic = (ranks[rows] - 1.0) / ranks[rows] / (1.0 - 1.0 / measured)
        seconds[rows] = np.minimum(found, _STARTED_S[measured]) + moved * slower * traffic
    return seconds


def all_reduce_s(
    size_bytes: Floats, group: Group, device: Device, software: Software, layout: Layout, efficiency: float
) -> Floats:
    """All-reduce inside nodes, then across them, where all members of a node carry a part of the exchange.

    ``efficiency`` is the share of the nodes' adapters that the exchange across nodes reaches.
    """
    inside = all_reduce_in_node_s(size_bytes, group.in_node, device)
    across = ring_all_reduce_s(
        size_bytes / group.in_node,
        group.nodes,
        software.network_latency_s,
        layout.node_link_bytes_per_s * efficiency * group.share,
    )
    return inside + across


def ring_s(size_bytes: Floats, group: Group, device: Device, layout: Layout, efficiency: float) -> Floats:
    """One direction around a single ring over all members, such as an all-gather: its slowest link sets the pace."""
    ranks = group.in_node * group.nodes
    adapter = layout.node_link_bytes_per_s * group.share
    slowest = np.where(group.nodes > 1.0, np.minimum(adapter, device.link_bytes_per_s), device.link_bytes_per_s)
    return (ranks - 1.0) / ranks * size_bytes / (slowest * efficiency)
