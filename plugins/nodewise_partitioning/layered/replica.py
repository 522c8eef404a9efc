"""Training rate of one replica: a network whose layers are split over machines.

Latency of one sample on one thread of each machine, for parts q of layer l, without overlap between layers:

    T_1 = sum over l of  max over q (U_ff + M_ff) + max over q (U_bp + M_bp) + U_wu

Several samples are in flight: one per thread and pipeline stage. As in any closed network, their rate is bounded
(`nodewise_laws.bounds`) by N / T_1 and by the busiest resource: threads, memory bus or network of a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, freeze
from nodewise_laws import asymptotic_bounds, balanced_job_bounds
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.traffic import exchange_of

__all__ = [
    "Layout",
    "Machine",
    "Rate",
    "Replica",
    "memory_traffic_bytes",
    "rate_of",
    "replica_of",
]

WEIGHT_PASSES: Final = 4.0
"""Times that a sample's three passes move a weight between memory and a core: read forward, for errors and for the
update, and written back."""
ACTIVATION_PASSES: Final = 4.0
"""Times that they move an activation: written and read by the next layer, then its error likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine of a replica.

    Attributes
    ----------
    threads : int
        Threads, one per core, each of which computes its own sample.
    thread_flops_per_s : float
        Rate of one thread.
    memory_bytes_per_s, cache_bytes : float
        Memory bus and cache, shared by all threads; 0 = no cache.
    """

    threads: int
    thread_flops_per_s: float
    memory_bytes_per_s: float
    cache_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Placement of layers on machines.

    Attributes
    ----------
    parts : (L,) number of parts of each layer.
    stage : (L,) pipeline stage of each layer; part q of a layer is on machine q of its stage.
    width : machines of a stage.
    stages : their number.
    """

    parts: tuple[int, ...]
    stage: tuple[int, ...]
    width: int
    stages: int

    @property
    def machines(self) -> int:
        """Number of machines of the replica."""
        return self.width * self.stages


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Replica:
    """Costs of one sample in a replica; columns are over its machines.

    Attributes
    ----------
    latency_s, communication_s : float
        T_1, and the communication in it.
    compute_s : (W,) seconds of computation on one thread.
    network_bytes : (W,) bytes through each direction of the link.
    parameter_bytes, activation_bytes : (W,) bytes in memory.
    """

    latency_s: float
    communication_s: float
    compute_s: Floats
    network_bytes: Floats
    parameter_bytes: Floats
    activation_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Samples per second of a replica.

    Attributes
    ----------
    samples_per_s : float
        Asymptotic bound: threads never wait for each other below saturation.
    lower_samples_per_s : float
        Balanced-job bound: threads queue at random.
    bottleneck : str
        ``latency``, ``threads``, ``memory_bus`` or ``network``.
    """

    samples_per_s: float
    lower_samples_per_s: float
    bottleneck: str


def replica_of(costs: LayerCosts, layout: Layout, machine: Machine, *, message_s: float, bytes_per_s: float) -> Replica:
    """Return the costs of a network in a layout over machines.

    Parameters
    ----------
    message_s, bytes_per_s : latency of a message; rate of a machine's link per direction.
    """
    compute, network, parameters, activations = np.zeros((4, layout.machines))
    latency = communication = 0.0
    before, stage_before = 1, layout.stage[0]
    for layer in range(len(costs)):
        parts, stage = layout.parts[layer], layout.stage[layer]
        machines = slice(stage * layout.width, stage * layout.width + parts)
        exchange = exchange_of(costs, layer, before, parts, together=stage == stage_before)
        seconds = exchange.seconds(message_s, bytes_per_s)
        thread_s = 1.0 / (machine.thread_flops_per_s * parts)
        forward, error = float(costs.forward_flops[layer]) * thread_s, float(costs.error_flops[layer]) * thread_s
        update = float(costs.update_flops[layer]) * thread_s
        # Errors go the same ways back, and so as long.
        latency += forward + error + update + 2.0 * seconds
        communication += 2.0 * seconds
        compute[machines] += forward + error + update
        # What a machine receives forward it sends backward, and the other way round: both directions carry the same.
        network[machines] += exchange.received_bytes + 2.0 * exchange.among_bytes
        network[stage_before * layout.width : stage_before * layout.width + before] += exchange.sent_bytes
        parameters[machines] += costs.parameter_bytes[layer] / (1 if costs.strips[layer] else parts)
        activations[machines] += costs.activation_bytes[layer] / parts
        before, stage_before = parts, stage
    return Replica(
        latency_s=latency,
        communication_s=communication,
        compute_s=freeze(compute),
        network_bytes=freeze(network),
        parameter_bytes=freeze(parameters),
        activation_bytes=freeze(activations),
    )


def memory_traffic_bytes(replica: Replica, machine: Machine) -> Floats:
    """Return (W,) bytes per sample over each memory bus: weights beyond the cache's size, and activations."""
    spilled = np.where(replica.parameter_bytes > machine.cache_bytes, replica.parameter_bytes, 0.0)
    return np.asarray(WEIGHT_PASSES * spilled + ACTIVATION_PASSES * replica.activation_bytes)


def rate_of(
    replica: Replica, machine: Machine, *, bytes_per_s: float, threads: int | None = None, flying: int | None = None
) -> Rate:
    """Return the samples per second of a replica.

    Parameters
    ----------
    threads : threads in use on each machine; default all.
    flying : samples in flight in the replica; default one per thread.
    """
    used = machine.threads if threads is None else threads
    customers = used if flying is None else flying
    busy = {
        "threads": float(replica.compute_s.max()) / used,
        "memory_bus": float(memory_traffic_bytes(replica, machine).max()) / machine.memory_bytes_per_s,
        "network": float(replica.network_bytes.max()) / bytes_per_s,
    }
    bottleneck = max(busy, key=lambda name: busy[name])
    demand = busy[bottleneck]
    think = max(replica.latency_s - demand, 0.0)
    upper = float(asymptotic_bounds([demand], think, customers).upper_per_s)
    lower = float(balanced_job_bounds([demand], think, customers).lower_per_s)
    # There are many threads: none is queued for while another idles, so threads alone give an upper bound only.
    if bottleneck == "threads":
        lower = upper
    return Rate(
        samples_per_s=upper,
        lower_samples_per_s=lower,
        bottleneck=bottleneck if upper * demand >= 1.0 - 1e-9 else "latency",
    )
