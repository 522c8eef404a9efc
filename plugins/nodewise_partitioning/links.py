"""Links that a group of ranks crosses, and the time of its collectives over them.

Bandwidth between nodes belongs to the node: groups that cross its edge at the same time share its adapters, and a
single group may use all of them.

The link inside a node may go on to other nodes: 18 nodes of 4 devices are one NVLink domain of GB200 NVL72 (NVIDIA,
"GB200 NVL72", data sheet, 2024), and the chips of a TPU slice one torus, whatever hosts they hang on (Google Cloud,
"TPU system architecture"). What stays within a domain takes that link, whatever is stated of the nodes' adapters; what
leaves it takes these. A job's nodes are spread evenly over the fewest domains that hold them, as schedulers place them
(Slurm's `topology/block` with `--segment`: 32 trays are two segments of 16, not 18 and 14).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws.collectives import interpolated_s, quickest_all_reduce_s
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.measurements import REFERENCE_ALL_REDUCES, REFERENCE_LINK_BYTES_PER_S
from nodewise_partitioning.software import Software

__all__ = ["Group", "all_reduce_in_node_s", "all_reduce_s", "domain_of", "group_of", "nodes_of", "ring_s"]


ADAPTER_BYTES_PER_S: Final = 25e9
"""One adapter of the years in which a gather went around one ring: InfiniBand HDR."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Ranks that communicate with each other.

    Attributes
    ----------
    inside, domains : float
        Members in one domain of the device's own link, a node where it ends there; domains that the group spans. Their
        product is the group's size.
    share : float
        Part of a node's adapters that one member gets while all groups like this one cross its edge.
    """

    inside: Floats
    domains: Floats
    share: Floats


def domain_of(layout: Layout, device: Device) -> Floats:
    """Devices of a job that the device's own link joins: at least those of a node."""
    if device.domain_nodes <= 1.0:
        return layout.devices_per_node
    most = np.minimum(np.floor(device.domain_devices / layout.devices_per_node), np.floor(device.domain_nodes))
    nodes = np.ceil(layout.devices / layout.devices_per_node)
    domains = np.ceil(nodes / np.maximum(most, 1.0))
    return layout.devices_per_node * np.ceil(nodes / domains)


def group_of(layout: Layout, device: Device, ranks: Floats, stride: Floats) -> Group:
    """The group of ``ranks`` ranks, each ``stride`` from the next."""
    inside = _inside(domain_of(layout, device), ranks, stride)
    return Group(inside, np.ceil(ranks / inside), 1.0 / np.minimum(layout.devices_per_node, stride * inside))


def nodes_of(layout: Layout, ranks: Floats, stride: Floats) -> Floats:
    """Nodes that a group spans, over any link."""
    return np.ceil(ranks / _inside(layout.devices_per_node, ranks, stride))


def _inside(devices: Floats, ranks: Floats, stride: Floats) -> Floats:
    return np.clip(np.floor(devices / stride), 1.0, ranks)


def all_reduce_in_node_s(size_bytes: Floats, ranks: Floats, device: Device) -> Floats:
    """All-reduce among devices of one domain: measured times, for other counts and links scaled by the bytes moved.

    The times are those of the catalogue for this device, else those of A100. A count of ranks that was not measured
    uses the next larger measured count, else the largest.
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
        table_s = interpolated_s(size[rows], table.log_bytes, table.log_s)
        moved = np.maximum(table_s - table.started_s, 0.0)
        traffic = (ranks[rows] - 1.0) / ranks[rows] / (1.0 - 1.0 / table.ranks)
        seconds[rows] = np.minimum(table_s, table.started_s) + moved * slower * traffic
    return seconds


def all_reduce_s(
    size_bytes: Floats, group: Group, device: Device, software: Software, layout: Layout, efficiency: float
) -> Floats:
    """All-reduce inside domains, then across them by ring or tree, each member of one with a part of the exchange.

    ``efficiency`` is the share of the nodes' adapters that the exchange across nodes reaches.
    """
    inside = all_reduce_in_node_s(size_bytes, group.inside, device)
    across = quickest_all_reduce_s(
        size_bytes / group.inside,
        group.domains,
        software.network_latency_s,
        layout.node_link_bytes_per_s * efficiency * group.share,
    )
    return inside + across


def ring_s(
    size_bytes: Floats, group: Group, device: Device, layout: Layout, efficiency: float, *, several: bool
) -> Floats:
    """One direction around rings over all members, such as an all-gather: the slowest link sets the pace.

    ``several`` rings share the bytes, as many as there are members in a domain; each leaves it by an adapter of its
    own. A single ring uses no more than one adapter, however many the node has.
    """
    ranks = group.inside * group.domains
    adapter = layout.node_link_bytes_per_s * group.share * group.inside
    adapter = adapter if several else np.minimum(adapter, ADAPTER_BYTES_PER_S)
    slowest = np.where(group.domains > 1.0, np.minimum(adapter, device.link_bytes_per_s), device.link_bytes_per_s)
    return (ranks - 1.0) / ranks * size_bytes / (slowest * efficiency)
