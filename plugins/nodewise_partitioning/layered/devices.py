"""Compute rates of devices: a processor computes one sample per thread, an accelerator a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from nodewise.plugin import Floats
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.replica import Machine

__all__ = ["Device", "device_of"]

EFFICIENCY: Final = 0.5
"""Share of a device's peak that its layers reach, known within a factor of two: cores on one sample (products of a
matrix and a vector), accelerators on a batch. Four published speeds of CNNs on one GPU come to 0.25 to 0.86 of its
peak."""
MEMORY_EFFICIENCY: Final = 0.8
"""Share of a memory's rate that streaming reaches: STREAM and its like measure 0.75 to 0.9."""
ELEMENTWISE_PASSES: Final = 5.0
"""Times that a layer's output crosses an accelerator's memory beside the product itself, in each of its three passes:
statistics of a normalisation, its application (read and write), the activation function (read and write)."""
LAUNCH_S: Final = 30e-6
"""Three kernels of about 10 us from their launch to the next: product, normalisation, activation function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Compute, memory and link rates of one device.

    Attributes
    ----------
    cores : int
        Threads, each of which computes its own sample; 0 = an accelerator, which computes a batch.
    flops_per_s, memory_bytes_per_s : float
        Rates that all cores reach together.
    memory_bytes : float
        Memory of the device; 0 = unknown: a processor uses the memory of its machine.
    cache_bytes : float
        Last-level cache, shared by all cores.
    link_bytes_per_s : float
        Rate to the other devices of the node; 0 = unknown.
    """

    cores: int
    flops_per_s: float
    memory_bytes_per_s: float
    memory_bytes: float
    cache_bytes: float
    link_bytes_per_s: float

    @property
    def is_processor(self) -> bool:
        """Whether the device computes one sample per thread."""
        return self.cores > 0

    @property
    def machine(self) -> Machine:
        """Return the device as a machine of a replica."""
        threads = max(self.cores, 1)
        return Machine(
            threads=threads,
            thread_flops_per_s=self.flops_per_s / threads,
            memory_bytes_per_s=self.memory_bytes_per_s,
            cache_bytes=self.cache_bytes,
        )

    def together(self, batch: int) -> int:
        """Number of samples that go through a layer together."""
        return 1 if self.is_processor else batch

    def work(self, costs: LayerCosts, batch: int) -> LayerCosts:
        """Return the costs of the samples that go through a layer together, with FLOPs for all the device's work.

        An accelerator also launches kernels, and writes outputs to its memory and reads them between kernels.
        """
        if self.is_processor:
            return costs
        together = costs.scale(float(batch))
        beside_s = LAUNCH_S + ELEMENTWISE_PASSES * together.activation_bytes / self.memory_bytes_per_s

        def whole(flops: Floats) -> Floats:
            return flops + (flops > 0.0) * beside_s * self.flops_per_s

        return replace(
            together,
            forward_flops=together.forward_flops + beside_s * self.flops_per_s,
            error_flops=whole(together.error_flops),
            update_flops=whole(together.update_flops),
        )


def device_of(facts: Mapping[str, float], precision: str) -> Device | None:
    """Return the device from its facts in the catalogue; None if its peak rate in this number format is unknown."""
    peak = facts.get(f"{precision}_flops_per_s")
    if peak is None:
        return None
    cores = int(facts.get("cores", 0.0))
    return Device(
        cores=cores,
        flops_per_s=peak * EFFICIENCY,
        memory_bytes_per_s=facts["memory_bytes_per_s"] * MEMORY_EFFICIENCY,
        memory_bytes=facts.get("memory_bytes", 0.0),
        cache_bytes=facts.get("last_level_cache_bytes", 0.0),
        link_bytes_per_s=facts.get("intra_node_link_bytes_per_s", 0.0),
    )
