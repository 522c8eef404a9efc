"""What a step takes when optimizer states, or parameters as well, are kept in the host's memory.

    update      gradients to the host and parameters back, 16 bits each, over the device's link to it; and the host's
                own step, of all its devices' parts: nothing of either is hidden
    parameters  weights brought for the forward and for the backward pass of every micro-batch, and gradients taken
                away: travels while the layers before are computed

Source: J. Ren et al., "ZeRO-Offload: democratizing billion-scale model training", USENIX ATC 2021.
"""

from __future__ import annotations

from typing import Final

from nodewise.plugin import Floats
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import Software
from nodewise_partitioning.training import Training

__all__ = ["host_update_s", "streamed_s"]

HOST_STEP_S: Final = 0.25e-9
"""Per parameter, vectorised Adam on a host with two sockets (the source's table of CPU-Adam: 0.24 s for a billion
parameters, 2.57 s for ten)."""

HOST_LINK_EFFICIENCY: Final = 0.8
"""Share of PCIe's rate that copies of pinned memory reach: packets of 256 bytes carry some 24 bytes of headers, and
requests wait for credits (NVIDIA's bandwidthTest: about 25 of 31.5 GB/s, 12.5 of 15.75 GB/s)."""


def host_update_s(parameters: Floats, layout: Layout, device: Device, software: Software) -> Floats:
    """Seconds of an update of these parameters of each device by its host."""
    moved = 2.0 * software.weight_bytes * parameters / (HOST_LINK_EFFICIENCY * device.host_link_bytes_per_s)
    return moved + HOST_STEP_S * parameters * layout.devices_per_node


def streamed_s(parameters: Floats, training: Training, device: Device, software: Software) -> Floats:
    """Seconds per micro-batch that these parameters of each device are under way."""
    weights = 2.0 * training.weight_bytes(software.weight_bytes)
    gradients = training.trained_share * software.weight_bytes
    return parameters * (weights + gradients) / (HOST_LINK_EFFICIENCY * device.host_link_bytes_per_s)
