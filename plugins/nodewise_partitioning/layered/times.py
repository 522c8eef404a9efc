"""Step times and memory of rows that share a replica, for predictions and searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue, Configurations, Floats, Ints, Profile, SyncMode
from nodewise_laws.collectives import hierarchical_all_reduce_s
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.devices import LAUNCH_S, Device, device_of
from nodewise_partitioning.layered.exchange import Servers, asynchronous, knee_replicas, synchronous
from nodewise_partitioning.layered.memory import device_bytes, optimizer_states
from nodewise_partitioning.layered.overlap import bucket_ends, exposed_s
from nodewise_partitioning.layered.provisioning import smallest_sufficient
from nodewise_partitioning.layered.questions import Inner
from nodewise_partitioning.layered.replica_plan import ReplicaPlan, plan_replica
from nodewise_partitioning.layered.shapes import Latencies, choices_of

__all__ = ["COMPUTE_CV", "EXTRA", "MEMORY_COLUMNS", "MESSAGE_S", "PARTS", "Times"]

LOG_SPREAD: Final = 0.75
"""Standard deviation of a normal law, by the mean deviation of predictions from facts only: 0.6 sqrt(pi / 2)."""
LINK_EFFICIENCY: Final = 0.75
"""Share of a link's nominal rate that all-reduces reach: 0.75 of NVLink in a node of eight A100, as of adapters."""
COMPUTE_CV: Final = 0.1
"""Variation of a replica's compute time of one batch where it was not measured: many samples even out."""
MESSAGE_S: Final = 50e-6
"""A message over a network besides its bytes where it was not measured: half of a round trip of 100 us, usual of TCP
inside a data centre."""
NODE_MESSAGE_S: Final = 10e-6
"""The same between devices of one node: a kernel's launch."""
MOST_SERVERS: Final = 1 << 20
MOST_KEPT: Final = 4096
"""Replicas whose layout a model caches: tens of megabytes."""

PARTS: Final = ("compute", "partition_traffic", "exchange", "barrier", "queueing", "optimizer")
EXTRA: Final = ("replicas", "threads_per_worker", "replica_samples_per_s", "knee_replicas", "sufficient_servers")
MEMORY_COLUMNS: Final = ("memory_parameters_bytes", "memory_activations_bytes")
"""Parameters with what belongs to each of them; activations and errors."""


class Times:
    """Step times and memory of replicas, from the facts of a profile and of the catalogue."""

    def __init__(self, profile: Profile, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.costs = LayerCosts.of(profile.workload.layers or (), profile.workload.flops_per_sample)
        self.states = optimizer_states(profile.workload.optimizer)
        network = profile.network
        trip = (network.round_trip_s or 0.0) / 2.0
        self.message_s = (network.per_message_s or 0.0) + trip or MESSAGE_S
        self.message_known = network.per_message_s is not None or network.round_trip_s is not None
        self._half_duplex = bool(network.half_duplex)
        self._worker_link_bytes_per_s = network.worker_link_bytes_per_s
        self._laid_out: dict[Inner, ReplicaPlan] = {}
        self._latencies: dict[tuple[str, str, int, float, float, int], Latencies] = {}

    def columns(
        self, inner: Inner, rows: Configurations, members: Ints, replicas: Floats, *, dense: bool
    ) -> Mapping[str, Floats | float]:
        """Return columns of rows that share a replica: :data:`PARTS`, memory, available memory; ``dense``: all."""
        if inner.mode == SyncMode.ALLREDUCE:
            return self._all_reduce(inner, rows, members)
        return self._parameter_servers(inner, rows.parameter_servers[members], replicas, dense=dense)

    def device(self, name: str, precision: str) -> Device:
        """Return a device of the catalogue. Rows with other devices were refused before."""
        facts = self._catalogue.device(name)
        device = None if facts is None else device_of(facts, precision)
        assert device is not None
        return device

    def plan_of(self, inner: Inner) -> ReplicaPlan:
        """Return the layout of the replicas of some rows. It is computed once."""
        # How and how often replicas exchange does not change what is inside them.
        key = replace(inner, mode=0, accumulation=1)
        plan = self._laid_out.get(key)
        if plan is None:
            device = self.device(inner.device, inner.precision)
            latencies = self._latencies_of(inner, device)
            plan = plan_replica(latencies, device, batch=inner.batch, width=inner.width, stages=inner.stages)
            if len(self._laid_out) >= MOST_KEPT:
                self._laid_out.clear()
            self._laid_out[key] = plan
        return plan

    def _latencies_of(self, inner: Inner, device: Device) -> Latencies:
        message_s, bytes_per_s = self._inside(inner, device)
        # One table serves every width up to a power of two.
        most = 1 << (inner.width - 1).bit_length()
        key = (inner.device, inner.precision, device.together(inner.batch), message_s, bytes_per_s, most)
        latencies = self._latencies.get(key)
        if latencies is None:
            if len(self._latencies) >= MOST_KEPT:
                self._latencies.clear()
            latencies = self._latencies[key] = Latencies(
                device.work(self.costs, inner.batch),
                choices_of(most),
                thread_flops_per_s=device.machine.thread_flops_per_s,
                message_s=message_s,
                bytes_per_s=bytes_per_s,
            )
        return latencies

    def _inside(self, inner: Inner, device: Device) -> tuple[float, float]:
        """Return message latency and rate between the machines of a replica, which may be inside one node."""
        machines = inner.width * inner.stages
        if machines <= inner.per_node and inner.per_node % machines == 0 and device.link_bytes_per_s:
            return NODE_MESSAGE_S, device.link_bytes_per_s
        return self.message_s, self._worker_link(inner)

    def _worker_link(self, inner: Inner) -> float:
        """Return a worker's share of its node's link, at most the rate of its own link."""
        share = inner.link_bytes_per_s / inner.per_node
        return min(share, self._worker_link_bytes_per_s or share)

    def servers(self, inner: Inner, largest_bytes: float, total_bytes: float) -> Servers:
        """Return the exchange of a replica with so many parameters in all and on its largest machine."""
        return Servers(
            largest_bytes=largest_bytes,
            total_bytes=total_bytes,
            message_s=self.message_s,
            machine_bytes_per_s=self._worker_link(inner),
            server_bytes_per_s=inner.link_bytes_per_s,
            half_duplex=self._half_duplex,
        )

    def update_s(self, device: Device) -> float:
        """Return the time of the optimizer's update: it reads gradients, and reads and writes parameters and states."""
        parameters = float(self.costs.parameter_bytes.sum())
        return LAUNCH_S + parameters * (3.0 + 2.0 * self.states) / device.memory_bytes_per_s

    def _parameter_servers(
        self, inner: Inner, servers: Ints, replicas: Floats, *, dense: bool
    ) -> Mapping[str, Floats | float]:
        laid, device = self.plan_of(inner), self.device(inner.device, inner.precision)
        batch = inner.batch * inner.accumulation
        batch_s = np.full(len(replicas), laid.batch_s(batch))
        parameters = laid.replica.parameter_bytes
        exchange = self.servers(inner, float(parameters.max()), float(parameters.sum()))
        count = np.maximum(servers, 1).astype(np.float64)
        traffic = laid.traffic_s(batch)
        columns: dict[str, Floats | float] = {
            "memory": laid.memory_bytes,
            "capacity": device.memory_bytes,
            MEMORY_COLUMNS[0]: laid.held_parameter_bytes,
            MEMORY_COLUMNS[1]: laid.memory_bytes - laid.held_parameter_bytes,
        }
        # Between its bounds a rate may be anywhere: a uniform law's deviation.
        unsure_s = laid.batch_s(batch, lower=True) - batch_s
        if inner.mode == SyncMode.SYNC:
            step = synchronous(batch_s, replicas, count, exchange, compute_cv=COMPUTE_CV)
            unsure = np.log1p(unsure_s / step.step_s)
            busy = np.minimum(exchange.round_s(replicas, count) / step.step_s, 1.0)
            columns |= {
                "compute": batch_s - traffic,
                "partition_traffic": traffic,
                "exchange": step.exchange_s,
                "barrier": step.barrier_s,
            }
        else:
            cycle = asynchronous(batch_s, replicas, count, exchange)
            unsure = np.log((cycle.longest_cycle_s + unsure_s) / cycle.cycle_s)
            busy = cycle.utilisation
            columns |= {
                "compute": cycle.compute_s - traffic,
                "partition_traffic": traffic,
                "exchange": cycle.exchange_s,
                "queueing": cycle.queueing_s,
            }
        if dense:
            columns |= {
                "spread": np.hypot(LOG_SPREAD, unsure / np.sqrt(12.0)),
                "busy": busy,
                "threads_per_worker": float(laid.threads),
                "replica_samples_per_s": batch / batch_s,
                "knee_replicas": knee_replicas(batch_s, count, exchange),
                "sufficient_servers": _sufficient_servers(inner, float(batch_s.max(initial=0.0)), replicas, exchange),
            }
        return columns

    def _all_reduce(self, inner: Inner, rows: Configurations, members: Ints) -> Mapping[str, Floats | float]:
        device = self.device(inner.device, inner.precision)
        nodes = np.maximum(rows.nodes[members], 1).astype(np.float64)
        per_node = float(inner.per_node)
        count = len(members)
        inside = LINK_EFFICIENCY * (device.link_bytes_per_s or inner.link_bytes_per_s)
        outside = LINK_EFFICIENCY * inner.link_bytes_per_s or inside

        def exchange(size: float) -> Floats:
            return hierarchical_all_reduce_s(
                np.full(count, size),
                np.full(count, per_node),
                nodes,
                NODE_MESSAGE_S,
                np.full(count, inside),
                self.message_s,
                np.full(count, outside / per_node),
            )

        work = device.work(self.costs, inner.batch)
        threads, micro_s = 1, float(work.flops.sum()) / device.flops_per_s
        if device.is_processor:
            laid = self.plan_of(inner)
            threads, micro_s = laid.threads, laid.batch_s(inner.batch)
        backward_s = micro_s * (work.error_flops + work.update_flops) / float(work.flops.sum())
        buckets = bucket_ends(self.costs.parameter_bytes)
        exposed, _ = exposed_s(np.tile(backward_s[:, np.newaxis], (1, count)), buckets, exchange)
        parameters = float(self.costs.parameter_bytes.sum())
        activations = float(self.costs.activation_bytes.sum())
        samples = np.full(count, float(threads if device.is_processor else inner.batch))
        memory = device_bytes(parameters, activations, samples, self.states)
        memory_bytes = device_bytes(parameters, activations, np.zeros(count), self.states)
        return {
            "compute": micro_s * inner.accumulation,
            "exchange": exposed,
            "optimizer": self.update_s(device),
            "memory": memory,
            "capacity": device.memory_bytes,
            MEMORY_COLUMNS[0]: memory_bytes,
            MEMORY_COLUMNS[1]: memory - memory_bytes,
            "spread": LOG_SPREAD,
            "threads_per_worker": float(threads),
            "replica_samples_per_s": inner.batch / micro_s,
        }


def _sufficient_servers(inner: Inner, batch_s: float, replicas: Floats, exchange: Servers) -> Floats:
    """Return the number of servers from which replicas wait only for their own links; 0 = more than any cluster has."""
    # Synchronous ones exchange at a time, asynchronous ones when they like.
    rest_s = exchange.machine_s() + (0.0 if inner.mode == SyncMode.SYNC else batch_s)
    counts, index = np.unique(replicas, return_inverse=True)
    sufficient = []
    for count in counts.tolist():
        of_all = np.float64(count)

        def busy_s(servers: int, of_all: np.float64 = of_all) -> float:
            if inner.mode == SyncMode.SYNC:
                return float(exchange.round_s(np.asarray(of_all), np.asarray(float(servers))))
            return float(of_all * exchange.cycle_demand_s(np.asarray(float(servers))))

        sufficient.append(smallest_sufficient(busy_s, rest_s, MOST_SERVERS) or 0)
    return np.asarray(sufficient, dtype=np.float64)[index.reshape(replicas.shape)]
