"""Layout of a replica over its machines: pipeline stages, and the parts of each layer.

The inside of a replica depends on its machines only, not on the number of replicas or servers, so one layout serves all
rows that share these machines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise_partitioning.layered.devices import Device
from nodewise_partitioning.layered.memory import machine_bytes
from nodewise_partitioning.layered.replica import Layout, Rate, Replica, rate_of, replica_of
from nodewise_partitioning.layered.shapes import Latencies, fastest_shapes
from nodewise_partitioning.layered.splits import min_max_split

__all__ = ["ReplicaPlan", "plan_replica"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReplicaPlan:
    """The layout of a replica, with its memory and rate.

    Attributes
    ----------
    together : int
        Number of samples that go through a layer together.
    threads : int
        Threads per machine whose samples fit in its memory.
    memory_bytes, held_parameter_bytes : float
        Bytes on the machine that holds most, with these threads; those of them for parameters and their updates.
    rate : Rate
        Rate in units of ``together`` samples.
    """

    layout: Layout
    replica: Replica
    together: int
    threads: int
    memory_bytes: float
    held_parameter_bytes: float
    rate: Rate

    def batch_s(self, batch: int, *, lower: bool = False) -> float:
        """Return the seconds that the replica takes for ``batch`` samples; ``lower``: at its lower rate."""
        return batch / self.together / (self.rate.lower_samples_per_s if lower else self.rate.samples_per_s)

    def traffic_s(self, batch: int) -> float:
        """Return the part of ``batch_s`` that is traffic between machines."""
        whole = self.batch_s(batch)
        if self.rate.bottleneck == "network":
            return max(whole - batch / self.together * float(self.replica.compute_s.max()) / self.threads, 0.0)
        return (
            whole * self.replica.communication_s / self.replica.latency_s if self.rate.bottleneck == "latency" else 0.0
        )


def plan_replica(latencies: Latencies, device: Device, *, batch: int, width: int, stages: int) -> ReplicaPlan:
    """Return the faster of two layouts: parts of least latency, and as many parts as a stage has machines.

    Layers are split into stages so that the largest stage is smallest. A layout must fit in memory; if neither does,
    the one that needs less memory is returned.

    Parameters
    ----------
    latencies : latencies of the samples that go through a layer together, on one thread, for up to ``width`` parts.
    """
    machine, work, bytes_per_s = device.machine, latencies.costs, latencies.bytes_per_s
    stage = min_max_split(work.flops.tolist(), stages)
    shapes = {(width,) * len(work)}
    if width > 1:
        shapes.add(fastest_shapes(latencies, stage, width))
    plans = []
    for parts in sorted(shapes):
        layout = Layout(parts, stage, width, stages)
        replica = replica_of(work, layout, machine, message_s=latencies.message_s, bytes_per_s=bytes_per_s)
        threads = _threads(replica, device, batch)
        # No more samples are in flight than there are between two exchanges.
        flying = min(threads * stages, max(batch // device.together(batch), 1))
        rate = rate_of(replica, machine, threads=threads, flying=flying, bytes_per_s=bytes_per_s)
        plans.append(
            ReplicaPlan(
                layout=layout,
                replica=replica,
                together=device.together(batch),
                threads=threads,
                **_most_memory(replica, threads),
                rate=rate,
            )
        )
    fitting = [each for each in plans if not device.memory_bytes or each.memory_bytes <= device.memory_bytes]
    if not fitting:
        return min(plans, key=lambda each: each.memory_bytes)
    return max(fitting, key=lambda each: each.rate.samples_per_s)


def _most_memory(replica: Replica, threads: int) -> dict[str, float]:
    """Return the bytes on the machine that holds most."""
    memory = machine_bytes(replica.parameter_bytes, replica.activation_bytes, threads)
    most = int(memory.argmax())
    return {
        "memory_bytes": float(memory[most]),
        "held_parameter_bytes": float(machine_bytes(replica.parameter_bytes, replica.activation_bytes, 0)[most]),
    }


def _threads(replica: Replica, device: Device, batch: int) -> int:
    """Return the number of threads that have samples to compute and memory for them; at least one."""
    threads = device.machine.threads
    if device.is_processor:
        threads = min(threads, batch)
    if not device.memory_bytes:
        return threads
    free_bytes = device.memory_bytes - 2.0 * replica.parameter_bytes
    each = 2.0 * replica.activation_bytes
    fits = np.divide(free_bytes, each, out=np.full(len(each), float(threads)), where=each > 0.0)
    return max(min(threads, int(fits.min())), 1)
