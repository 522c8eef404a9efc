"""Samples per second of a device: processors, whose threads compute a sample each, and accelerators, per batch."""

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
    """One device.

    Attributes
    ----------
    cores : int
        Threads that each work on a sample of their own; 0 = an accelerator, which works on a batch.
    flops_per_s, memory_bytes_per_s : float
        As reached, by all cores together.
    memory_bytes : float
        0 = not known: a processor's memory is that of its machine.
    cache_bytes : float
        Last-level cache, shared by its cores.
    link_bytes_per_s : float
        To the other devices of its node; 0 = not known.
    """

    cores: int
    flops_per_s: float
    memory_bytes_per_s: float
    memory_bytes: float
    cache_bytes: float
    link_bytes_per_s: float

    @property
    def is_processor(self) -> bool:
        """Whether samples are worked on one by one."""
        return self.cores > 0

    @property
    def machine(self) -> Machine:
        """As a replica sees it."""
        threads = max(self.cores, 1)
        return Machine(
            threads=threads,
            thread_flops_per_s=self.flops_per_s / threads,
            memory_bytes_per_s=self.memory_bytes_per_s,
            cache_bytes=self.cache_bytes,
        )

    def together(self, batch: int) -> int:
        """Samples that go through a layer together."""
        return 1 if self.is_processor else batch

    def work(self, costs: LayerCosts, batch: int) -> LayerCosts:
        """What goes through a layer together, with FLOPs that take as long as all of the device's work on it.

        An accelerator launches kernels, and passes outputs through its memory between them.
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
    """A device by its facts in the catalogue; None where its peak in that number format is not known."""
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
