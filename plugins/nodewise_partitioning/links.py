"""Which links a group of ranks crosses, and how long its collectives take over them.

Bandwidth between nodes belongs to the node: groups that cross its edge at the same time share its adapters, and a
single group may use all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws.collectives import interpolated_s, quickest_all_reduce_s
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.measured import REFERENCE_ALL_REDUCES, REFERENCE_LINK_BYTES_PER_S
from nodewise_partitioning.software import Software

__all__ = ["Group", "all_reduce_in_node_s", "all_reduce_s", "group_of", "ring_s"]


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
    """All-reduce among devices of one node: measured times, for other counts and links scaled by what they move.

    The times are those of the catalogue for this device, else those of A100. Ranks that were not measured go by the
    next larger count that was, else by the largest.
    """
    seconds = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
    several = ranks > 1.0
    if not np.any(several):
        return seconds
    size = np.broadcast_to(size_bytes, seconds.shape)
    slower = 1.0 if device.all_reduces else REFERENCE_LINK_BYTES_PER_S / device.link_bytes_per_s
    tables = device.all_reduces or REFERENCE_ALL_REDUCES
    lower = 1.0
    for table in tables:
        upper = np.inf if table is tables[-1] else table.ranks
        rows = np.flatnonzero(several & (ranks > lower) & (ranks <= upper))
        lower = table.ranks
        if not len(rows):
            continue
        found = interpolated_s(size[rows], table.log_bytes, table.log_s)
        moved = np.maximum(found - table.started_s, 0.0)
        traffic = (ranks[rows] - 1.0) / ranks[rows] / (1.0 - 1.0 / table.ranks)
        seconds[rows] = np.minimum(found, table.started_s) + moved * slower * traffic
    return seconds


def all_reduce_s(
    size_bytes: Floats, group: Group, device: Device, software: Software, layout: Layout, efficiency: float
) -> Floats:
    """All-reduce inside nodes, then across them by ring or tree, each member of a node with a part of the exchange.

    ``efficiency`` is the share of the nodes' adapters that the exchange across nodes reaches.
    """
    inside = all_reduce_in_node_s(size_bytes, group.in_node, device)
    across = quickest_all_reduce_s(
        size_bytes / group.in_node,
        group.nodes,
        software.network_latency_s,
        layout.node_link_bytes_per_s * efficiency * group.share,
    )
    return inside + across


def ring_s(
    size_bytes: Floats, group: Group, device: Device, layout: Layout, efficiency: float, rings: Floats | float
) -> Floats:
    """One direction around rings over all members, such as an all-gather: the slowest link sets the pace.

    ``rings`` share the bytes; each leaves a node by an adapter of its own.
    """
    ranks = group.in_node * group.nodes
    adapter = layout.node_link_bytes_per_s * group.share * rings
    slowest = np.where(group.nodes > 1.0, np.minimum(adapter, device.link_bytes_per_s), device.link_bytes_per_s)
    return (ranks - 1.0) / ranks * size_bytes / (slowest * efficiency)
