"""The model of a layered network: step times and memory of its configurations, from facts alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Catalogue,
    Configurations,
    Floats,
    Ints,
    Notice,
    Options,
    Predictions,
    Profile,
    Query,
    Reason,
    Refusal,
    RowStatus,
    SyncMode,
    freeze,
)
from nodewise_laws.collectives import hierarchical_all_reduce_s
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.devices import LAUNCH_S, Device, device_of
from nodewise_partitioning.layered.exchange import Servers, asynchronous, knee_replicas, synchronous
from nodewise_partitioning.layered.memory import device_bytes, optimizer_states
from nodewise_partitioning.layered.overlap import bucket_ends, exposed_s
from nodewise_partitioning.layered.planned import Planned, planned
from nodewise_partitioning.layered.provisioning import smallest_sufficient
from nodewise_partitioning.layered.questions import ASSUMED_PRECISION, Inner, question_of

__all__ = ["EXPECTED_LOG_ERROR", "LayeredModel", "assess_layers"]

EXPECTED_LOG_ERROR: Final = 0.6
"""Mean |ln(predicted / measured)| of facts alone, as on the measured tables of CNNs that were scored
(docs/estimators/partitioning_layered.md)."""
LOG_SPREAD: Final = 0.75
"""Standard deviation of a normal law of that mean deviation: 0.6 sqrt(pi / 2)."""
LINK_EFFICIENCY: Final = 0.75
"""Share of a link's nominal rate that all-reduces reach: 0.75 of NVLink in a node of eight A100, as of adapters."""
COMPUTE_CV: Final = 0.1
"""Variation of a replica's compute time of one batch where nobody measured it: many samples even out."""
MESSAGE_S: Final = 50e-6
"""A message over a network besides its bytes where nobody measured it: half of a round trip of 100 us, usual of TCP
inside a data centre."""
NODE_MESSAGE_S: Final = 10e-6
"""The same between devices of one node: a kernel's launch."""

MOST_LAYOUTS: Final = 8
"""Layouts that an answer describes: the first ones of a long question."""

PARTS: Final = ("compute", "partition_traffic", "exchange", "barrier", "queueing", "optimizer")


def assess_layers(profile: Profile, query: Query) -> Assessment:
    """Whether a layered network's facts answer some row; from facts alone, and so with no strength of evidence."""
    layers = profile.workload.layers
    if not layers or not any(layer.forward_flops_per_sample for layer in layers):
        refusal = Refusal(
            Reason.EVIDENCE_MISSING,
            "the job's layers are not known: FLOPs, parameters and activations of each",
            ("workload.layers",),
        )
        return Assessment(refusal=refusal)
    question = question_of(query.configurations, profile, query.catalogue)
    if not question.groups:
        nothing = Refusal(Reason.EVIDENCE_MISSING, "no configuration was asked about", ("configurations",))
        return Assessment(refusal=question.refusals[0].refusal if question.refusals else nothing)
    return Assessment(
        evidence=(f"facts alone: {len(layers)} layers, device and link",),
        strength=0.0,
        expected_log_error=EXPECTED_LOG_ERROR,
    )


class LayeredModel:
    """Predicts by the facts of a profile and of the catalogue."""

    def __init__(self, profile: Profile, catalogue: Catalogue) -> None:
        self._profile = profile
        self._catalogue = catalogue
        self._costs = LayerCosts.of(profile.workload.layers or (), profile.workload.flops_per_sample)
        self._states = optimizer_states(profile.workload.optimizer)
        network = profile.network
        trip = (network.round_trip_s or 0.0) / 2.0
        self._message_s = (network.per_message_s or 0.0) + trip or MESSAGE_S
        self._message_known = network.per_message_s is not None or network.round_trip_s is not None
        self._laid_out: dict[Inner, Planned] = {}

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002 - the protocol's
        """Predict every row; refuse row by row what layered networks are not split into, and what nobody knows."""
        rows = len(configurations)
        question = question_of(configurations, self._profile, self._catalogue)
        status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
        columns = {name: np.zeros(rows) for name in (*PARTS, "spread", "memory", "excess", "busy", *_EXTRA)}
        for inner, members in question.groups.items():
            device = self._device(inner)
            replicas = np.floor(configurations.workers[members] / (inner.width * inner.stages))
            replicas = np.where(
                configurations.data_parallel[members] > 0, configurations.data_parallel[members], replicas
            ).astype(np.float64)
            if inner.mode == SyncMode.ALLREDUCE:
                found = self._all_reduce(inner, device, configurations, members)
            else:
                found = self._parameter_servers(inner, device, configurations.parameter_servers[members], replicas)
            for name, values in found.items():
                columns[name][members] = values
            columns["replicas"][members] = replicas
            status[members] = np.where(columns["excess"][members] > 0.0, int(RowStatus.INFEASIBLE_MEMORY), _ANSWERED)
        memory, excess = columns["memory"].copy(), columns["excess"].copy()
        for values in columns.values():
            values[status != _ANSWERED] = 0.0
        parts = np.stack([columns[name] for name in PARTS])
        return Predictions(
            status=freeze(status),
            step_s=freeze(parts.sum(axis=0)),
            log_spread=freeze(columns["spread"]),
            breakdown_s={name: freeze(columns[name]) for name in PARTS},
            bottlenecks=PARTS,
            bottleneck_index=freeze(np.where(status == _ANSWERED, parts.argmax(axis=0) if rows else 0, -1)),
            extrapolation=freeze((status == _ANSWERED).astype(np.float64)),
            utilisation={"parameter_servers": freeze(columns["busy"])} if columns["busy"].any() else {},
            memory_bytes=freeze(memory),
            excess_memory_bytes=freeze(excess),
            extra={name: freeze(columns[name]) for name in _EXTRA},
            refusals=question.refusals,
            notices=self._notices(question.groups),
        )

    def planned(self, inner: Inner) -> Planned:
        """How the replicas of some rows are laid over their machines; decided once."""
        known = self._laid_out.get(inner)
        if known is None:
            device = self._device(inner)
            known = self._laid_out[inner] = planned(
                self._costs,
                device,
                batch=inner.batch,
                width=inner.width,
                stages=inner.stages,
                message_s=self._inside(inner, device)[0],
                bytes_per_s=self._inside(inner, device)[1],
            )
        return known

    def _device(self, inner: Inner) -> Device:
        facts = self._catalogue.device(inner.device)
        device = None if facts is None else device_of(facts, inner.precision)
        # The question has refused rows of other devices.
        assert device is not None
        return device

    def _inside(self, inner: Inner, device: Device) -> tuple[float, float]:
        """Message and rate between machines of a replica: a replica inside one node stays there."""
        machines = inner.width * inner.stages
        if machines <= inner.per_node and inner.per_node % machines == 0 and device.link_bytes_per_s:
            return NODE_MESSAGE_S, device.link_bytes_per_s
        return self._message_s, self._worker_link(inner)

    def _worker_link(self, inner: Inner) -> float:
        """A worker's share of its node's link, at most what its own carries."""
        share = inner.link_bytes_per_s / inner.per_node
        return min(share, self._profile.network.worker_link_bytes_per_s or share)

    def _parameter_servers(
        self, inner: Inner, device: Device, servers: Ints, replicas: Floats
    ) -> Mapping[str, Floats | float]:
        laid = self.planned(inner)
        batch = inner.batch * inner.accumulation
        batch_s = np.full(len(replicas), laid.batch_s(batch))
        exchange = Servers(
            largest_bytes=float(laid.replica.parameter_bytes.max()),
            total_bytes=float(laid.replica.parameter_bytes.sum()),
            message_s=self._message_s,
            machine_bytes_per_s=self._worker_link(inner),
            server_bytes_per_s=inner.link_bytes_per_s,
            half_duplex=bool(self._profile.network.half_duplex),
        )
        count = np.maximum(servers, 1).astype(np.float64)
        traffic = laid.traffic_s(batch)
        found: dict[str, Floats | float] = {"memory": laid.memory_bytes, "threads_per_worker": float(laid.threads)}
        if device.memory_bytes:
            found["excess"] = max(laid.memory_bytes - device.memory_bytes, 0.0)
        found["replica_samples_per_s"] = batch / batch_s
        found["knee_replicas"] = knee_replicas(batch_s, count, exchange)
        found["sufficient_servers"] = _sufficient_servers(inner, float(batch_s.max(initial=0.0)), replicas, exchange)
        # Between its bounds a rate may be anywhere: a uniform law's deviation.
        unsure_s = laid.batch_s(batch, lower=True) - batch_s
        if inner.mode == SyncMode.SYNC:
            step = synchronous(batch_s, replicas, count, exchange, compute_cv=COMPUTE_CV)
            unsure = np.log1p(unsure_s / step.step_s)
            found |= {
                "compute": batch_s - traffic,
                "partition_traffic": traffic,
                "exchange": step.exchange_s,
                "barrier": step.barrier_s,
                "busy": np.minimum(exchange.round_s(replicas, count) / step.step_s, 1.0),
            }
        else:
            cycle = asynchronous(batch_s, replicas, count, exchange)
            unsure = np.log((cycle.longest_cycle_s + unsure_s) / cycle.cycle_s)
            found |= {
                "compute": cycle.compute_s - traffic,
                "partition_traffic": traffic,
                "exchange": cycle.exchange_s,
                "queueing": cycle.queueing_s,
                "busy": cycle.utilisation,
            }
        found["spread"] = np.hypot(LOG_SPREAD, unsure / np.sqrt(12.0))
        return found

    def _all_reduce(
        self, inner: Inner, device: Device, configurations: Configurations, members: Ints
    ) -> Mapping[str, Floats | float]:
        nodes = np.maximum(configurations.nodes[members], 1).astype(np.float64)
        per_node = float(inner.per_node)
        rows = len(members)
        inside = LINK_EFFICIENCY * (device.link_bytes_per_s or inner.link_bytes_per_s)
        outside = LINK_EFFICIENCY * inner.link_bytes_per_s or inside

        def exchange(size: float) -> Floats:
            return hierarchical_all_reduce_s(
                np.full(rows, size),
                np.full(rows, per_node),
                nodes,
                NODE_MESSAGE_S,
                np.full(rows, inside),
                self._message_s,
                np.full(rows, outside / per_node),
            )

        if device.is_processor:
            laid = self.planned(inner)
            micro_s = laid.batch_s(inner.batch)
            threads = laid.threads
        else:
            micro_s = float(device.work(self._costs, inner.batch).flops.sum()) / device.flops_per_s
            threads = 1
        work = device.work(self._costs, inner.batch)
        backward_s = micro_s * (work.error_flops + work.update_flops) / float(work.flops.sum())
        buckets = bucket_ends(self._costs.parameter_bytes)
        exposed, _ = exposed_s(np.tile(backward_s[:, np.newaxis], (1, rows)), buckets, exchange)
        parameters = float(self._costs.parameter_bytes.sum())
        # Reads gradients, reads and writes parameters and the optimizer's values.
        update_s = LAUNCH_S + parameters * (3.0 + 2.0 * self._states) / device.memory_bytes_per_s
        samples = np.full(rows, float(threads if device.is_processor else inner.batch))
        memory = device_bytes(parameters, float(self._costs.activation_bytes.sum()), samples, self._states)
        found: dict[str, Floats | float] = {
            "compute": micro_s * inner.accumulation,
            "exchange": exposed,
            "optimizer": update_s,
            "memory": memory,
            "spread": LOG_SPREAD,
            "threads_per_worker": float(threads),
            "replica_samples_per_s": inner.batch / micro_s,
        }
        if device.memory_bytes:
            found["excess"] = np.maximum(memory - device.memory_bytes, 0.0)
        return found

    def _notices(self, groups: Mapping[Inner, Ints]) -> tuple[Notice, ...]:
        found = [Notice("FACTS_ALONE", "no run of the job is used: times come from facts of layers, device and link")]
        if not self._message_known and groups:
            text = (
                f"the time per message was not measured and is taken as {MESSAGE_S:g} s (per_message_s, round_trip_s)"
            )
            found.append(Notice("MESSAGE_TIME_ASSUMED", text))
        if not self._profile.workload.precision and any(inner.precision == ASSUMED_PRECISION for inner in groups):
            found.append(Notice("PRECISION_ASSUMED", f"precision is not stated and taken as {ASSUMED_PRECISION}"))
        names = [layer.name or f"layer {index}" for index, layer in enumerate(self._profile.workload.layers or ())]
        shared = [inner for inner in groups if inner.width * inner.stages > 1][:MOST_LAYOUTS]
        for inner in shared:
            message = f"a replica of {inner.width * inner.stages} workers: {_laid_out(names, self.planned(inner))}"
            rows = tuple(groups[inner].tolist()) if len(groups) > 1 else ()
            found.append(Notice("LAYOUT", message, rows))
        return tuple(found)


_ANSWERED: Final = int(RowStatus.ANSWERED)
_EXTRA: Final = ("replicas", "threads_per_worker", "replica_samples_per_s", "knee_replicas", "sufficient_servers")
MOST_SERVERS: Final = 1 << 20


def _sufficient_servers(inner: Inner, batch_s: float, replicas: Floats, exchange: Servers) -> Floats:
    """Servers with which replicas wait for their own links alone; 0 = so many as nobody has."""
    # Synchronous ones exchange at a time, asynchronous ones when they like.
    rest_s = exchange.machine_s() + (0.0 if inner.mode == SyncMode.SYNC else batch_s)
    counts, index = np.unique(replicas, return_inverse=True)
    found = []
    for count in counts.tolist():
        of_all = np.float64(count)

        def busy_s(servers: int, of_all: np.float64 = of_all) -> float:
            if inner.mode == SyncMode.SYNC:
                return float(exchange.round_s(np.asarray(of_all), np.asarray(float(servers))))
            return float(of_all * exchange.cycle_demand_s(np.asarray(float(servers))))

        found.append(smallest_sufficient(busy_s, rest_s, MOST_SERVERS) or 0)
    return np.asarray(found, dtype=np.float64)[index.reshape(replicas.shape)]


def _laid_out(costs_names: Sequence[str], planned_by: Planned) -> str:
    """Parts of the layers for people: runs of layers that have as many, stage by stage."""
    layout = planned_by.layout
    stages = []
    for stage in range(layout.stages):
        members = [layer for layer, of_stage in enumerate(layout.stage) if of_stage == stage]
        runs = [list(run) for _, run in itertools.groupby(members, key=lambda layer: layout.parts[layer])]
        words = []
        for run in runs:
            first, last, parts = costs_names[run[0]], costs_names[run[-1]], layout.parts[run[0]]
            named = first if len(run) == 1 else f"{first} to {last}"
            plural = "s" if parts > 1 else ""
            words.append(named if layout.width == 1 else f"{named} in {parts} part{plural}")
        stages.append(", ".join(words))
    return "; then ".join(stages)
