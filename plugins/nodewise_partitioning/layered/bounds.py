"""Lower bounds for a replica over all its layouts, without computing a layout.

W machines do at least the work of one machine, and hold at least its weights and activations; the busiest machine has
at least the mean. So for every split into parts and stages, the rate is at most that of W machines whose threads or
memory buses do nothing else, and the exchange takes at least as long as that of an even share. Strips (each holds all
parameters of its layer) and traffic between machines only add to this. Between replicas and servers the model's own
equations apply, because they are monotone in these inputs. A margin for rounding is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from nodewise.plugin import Configurations, Floats, Ints, SyncMode, freeze
from nodewise_partitioning.layered.devices import Device
from nodewise_partitioning.layered.exchange import asynchronous, synchronous
from nodewise_partitioning.layered.memory import device_bytes
from nodewise_partitioning.layered.questions import Inner, alike
from nodewise_partitioning.layered.replica import ACTIVATION_PASSES, WEIGHT_PASSES
from nodewise_partitioning.layered.times import COMPUTE_CV, Times

__all__ = ["least_of"]

MARGIN: Final = 1.0 - 1e-11
"""Rounding of some thousand operations: sums over layers."""


def least_of(times: Times, precision: str, prefixes: Configurations) -> Mapping[str, Floats]:
    """Return lower bounds of step time (s) and bytes per device over all completions of a prefix, and available bytes.

    Parameters
    ----------
    precision : number format of the job, for prefixes that state none.
    """
    columns = {name: np.zeros(len(prefixes)) for name in ("step_s", "memory_bytes", "memory_capacity_bytes")}
    machines = prefixes.workers // np.maximum(prefixes.data_parallel, 1)
    names = ("device_index", "precision_index", "sync_mode", "batch_per_worker", "accumulation", "link_bytes_per_s")
    keys = np.stack(
        [
            *(getattr(prefixes, name).astype(np.float64) for name in names),
            (prefixes.workers // prefixes.nodes).astype(np.float64),
            machines.astype(np.float64),
        ]
    )
    for members in alike(list(keys), len(prefixes)):
        device, number_format, mode, batch, accumulation, link, per_node, width = keys[:, members[0]].tolist()
        inner = Inner(
            device=prefixes.devices[int(device)],
            precision=(prefixes.precisions[int(number_format)] or precision).lower(),
            mode=int(mode),
            width=int(width),
            stages=1,
            batch=int(batch),
            accumulation=int(accumulation),
            per_node=int(per_node),
            link_bytes_per_s=link,
        )
        device_model = times.device(inner.device, inner.precision)
        columns["memory_capacity_bytes"][members] = device_model.memory_bytes
        columns["memory_bytes"][members] = MARGIN * _least_bytes(times, inner, device_model)
        columns["step_s"][members] = MARGIN * _least_s(times, inner, device_model, prefixes, members)
    return {name: freeze(values) for name, values in columns.items()}


def _least_s(times: Times, inner: Inner, device: Device, prefixes: Configurations, members: Ints) -> Floats:
    batch_s = inner.batch * inner.accumulation / _most_samples_per_s(times, inner, device)
    if inner.mode == SyncMode.ALLREDUCE:
        return np.full(len(members), batch_s + times.update_s(device))
    parameters = float(times.costs.parameter_bytes.sum())
    exchange = times.servers(inner, parameters / inner.width, parameters)
    replicas = prefixes.data_parallel[members].astype(np.float64)
    servers = prefixes.parameter_servers[members].astype(np.float64)
    every = np.full(len(members), batch_s)
    if inner.mode == SyncMode.SYNC:
        return synchronous(every, replicas, servers, exchange, compute_cv=COMPUTE_CV).step_s
    return asynchronous(every, replicas, servers, exchange).cycle_s


def _most_samples_per_s(times: Times, inner: Inner, device: Device) -> float:
    """Return an upper bound of the samples per second of a replica of so many machines."""
    work, machine = device.work(times.costs, inner.batch), device.machine
    threads = min(machine.threads, inner.batch) if device.is_processor else 1
    rate = threads * inner.width * machine.thread_flops_per_s / float(work.flops.sum())
    # A batch on an accelerator that exchanges by all-reduce is timed without its memory bus, which is in its work.
    if device.is_processor or inner.mode != SyncMode.ALLREDUCE:
        each = float(work.parameter_bytes.sum()) / inner.width
        bus = ACTIVATION_PASSES * float(work.activation_bytes.sum()) / inner.width
        bus = max(bus, WEIGHT_PASSES * each if each > machine.cache_bytes else 0.0)
        if bus > 0.0:
            rate = min(rate, machine.memory_bytes_per_s / bus)
    return rate * device.together(inner.batch)


def _least_bytes(times: Times, inner: Inner, device: Device) -> float:
    work = device.work(times.costs, inner.batch)
    parameters, activations = float(work.parameter_bytes.sum()), float(work.activation_bytes.sum())
    if inner.mode == SyncMode.ALLREDUCE:
        each = float(times.costs.activation_bytes.sum())
        samples = np.array([1.0 if device.is_processor else inner.batch])
        return float(device_bytes(parameters, each, samples, times.states)[0])
    return 2.0 * (parameters + activations) / inner.width
