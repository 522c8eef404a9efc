"""Exchange between data-parallel replicas, and the part of it that a step waits for.

    stage 0         all-reduce of gradients
    stages 1 and 2  reduce-scatter of gradients, all-gather of parameters: as many bytes where both have one format
    stage 3         parameters gathered before the forward and before the backward pass of every micro-batch,
                    gradients reduce-scattered: 1.5 times the bytes of stage 0 with one micro-batch

Parameters of stage 3 travel while the layers before are computed: a micro-batch takes the soft maximum of both. Where
the stack overlaps gradients, they travel during the last micro-batch's backward pass, all but those of its last layer;
with v chunks a stage also during those of the chunks that come after, p micro-batches each: (p (v - 1) + 1) / v of it;
with a zero-bubble schedule while the gradients of weights are computed that were put off to the end. Frozen weights
have no gradients; hybrid sharding splits over fewer devices than there are replicas (``training``, ``offload``).

Replicas wait for the slowest of them. As delays of a node have an exponential tail, n nodes are later than one by
DELAY_SHARE ln n of a replica's computation.

Source: S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.block import Block, soft_maximum
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.links import all_reduce_s, group_of, nodes_of, ring_s
from nodewise_partitioning.offload import host_update_s, streamed_s
from nodewise_partitioning.pipeline import Pipeline, most_layers
from nodewise_partitioning.software import Software
from nodewise_partitioning.training import Training
from nodewise_partitioning.workload import Dimensions

__all__ = ["DataParallel", "data_parallel_of", "held_parameters"]


DELAY_SHARE: Final = 0.015
"""Mean delay of a node, by its computation, for each e-fold of the nodes of equal replicas: between the value of BERT
on 32 nodes (0.010) and the middle of ten families of MPT on up to 64 (0.017, exchange included). InternEvo's two curves
give 0.004 and 0.051 on 128 nodes; GPT-3 on 64 to 1,344, which was not used, 0.037."""


@dataclass(frozen=True, slots=True, eq=False)
class DataParallel:
    """Seconds per step: exposed exchange, the optimizer's update, and the wait for the slowest replica."""

    exchange_s: Floats
    optimizer_s: Floats
    delay_s: Floats


def held_parameters(dimensions: Dimensions, layout: Layout) -> tuple[Floats, Floats]:
    """Parameters on a device of the fullest stage before any is split over replicas: shared ones, and experts'."""
    layers = most_layers(dimensions, layout)
    dense, experts = dimensions.layer_parameters(layout.tensor, layout.expert)
    rows = dimensions.embedding_rows(layout.tensor, layout.pipeline)
    shared = layers * (dense + dimensions.replicated_parameters) + dimensions.hidden_size * rows
    if dimensions.encoder is not None and not dimensions.encoder.training.frozen_share:
        shared = shared + dimensions.encoder.parameters() / layout.tensor
    return shared, layers * experts


def data_parallel_of(
    dimensions: Dimensions, layout: Layout, block: Block, pipeline: Pipeline, device: Device, software: Software
) -> DataParallel:
    """Exchange and update of every row."""
    shared, experts = held_parameters(dimensions, layout)
    training = dimensions.training
    trained = training.trained_share
    replicas = layout.data * layout.context
    whole = _exchange_s(trained * shared, replicas, layout.tensor, training, device, software, layout)
    if dimensions.experts:
        holders = np.maximum(replicas / layout.expert, 1.0)
        stride = layout.tensor * layout.expert
        whole = whole + _exchange_s(trained * experts, holders, stride, training, device, software, layout)
    exposed = _exposed_s(whole, layout, block, dimensions, software) if software.overlaps_gradients else whole
    exposed = np.where(layout.zero_stage >= 3.0, 0.0, exposed)
    if np.any(layout.zero_stage >= 3.0) or training.offloads_parameters:
        exposed = exposed + _gather_s(shared + experts, replicas, training, layout, pipeline, device, software)
    split = np.where(layout.zero_stage >= 1.0, training.shards(replicas), 1.0)
    parameters = trained * (shared + experts) / split
    replica_s = layout.micro_batches * pipeline.slowest_s + pipeline.bubble_s + pipeline.transfer_s
    delay = DELAY_SHARE * np.log(nodes_of(layout, replicas, layout.tensor)) * replica_s
    if training.offloads_optimizer:
        return DataParallel(exposed, host_update_s(parameters, layout, device, software), delay)
    memory = device.memory_bytes_per_s * software.memory_efficiency
    moved = training.update_bytes(software.optimizer_bytes)
    return DataParallel(exposed, moved * parameters / memory, delay)


def _exchange_s(
    parameters: Floats,
    replicas: Floats,
    stride: Floats,
    training: Training,
    device: Device,
    software: Software,
    layout: Layout,
) -> Floats:
    """An all-reduce of gradients, or a reduce-scatter of them with an all-gather of parameters.

    Where states are split over fewer replicas than there are, each part is then reduced over the others like it.
    """
    split = layout.zero_stage >= 1.0
    gradients = training.exchanged_bytes(software.exchanged_gradient_bytes)
    average = 0.5 * (gradients + software.weight_bytes)
    size = parameters * np.where(split, average, gradients)
    shards = np.where(split, training.shards(replicas), replicas)
    group = group_of(layout, device, shards, stride)
    seconds = all_reduce_s(size, group, device, software, layout, software.network_efficiency)
    if not training.sharding_devices:
        return seconds
    return seconds + _over_copies(gradients * parameters, replicas, shards, stride, device, software, layout)


def _over_copies(
    size: Floats, replicas: Floats, shards: Floats, stride: Floats, device: Device, software: Software, layout: Layout
) -> Floats:
    """Hybrid sharding: all-reduce of a shard of the gradients over the devices that hold the same one."""
    group = group_of(layout, device, np.maximum(replicas / shards, 1.0), stride * shards)
    return all_reduce_s(size / shards, group, device, software, layout, software.network_efficiency)


def _exposed_s(whole: Floats, layout: Layout, block: Block, dimensions: Dimensions, software: Software) -> Floats:
    """The exposed part of an exchange that starts with the last micro-batch's backward pass."""
    layers = most_layers(dimensions, layout)
    last = whole / layers
    late = software.zero_bubble & (layout.pipeline > 1.0)
    chunks = (layout.pipeline * (layout.interleave - 1.0) + 1.0) / layout.interleave
    backward = (layers * chunks - 1.0) * np.where(late, block.weights_s, block.backward_s)
    return last + np.maximum(whole - last - backward, 0.0)


def _gather_s(
    parameters: Floats,
    replicas: Floats,
    training: Training,
    layout: Layout,
    pipeline: Pipeline,
    device: Device,
    software: Software,
) -> Floats:
    """Stage 3, and weights on the host: time of gathers and reductions beyond a micro-batch's computation."""
    sharded = layout.zero_stage >= 3.0
    shards = training.shards(replicas)
    group = group_of(layout, device, shards, layout.tensor)
    gradients = training.trained_share * training.exchanged_bytes(software.exchanged_gradient_bytes)
    size = parameters * (2.0 * training.weight_bytes(software.weight_bytes) + gradients)
    several = software.gathers_in_rings
    moved = ring_s(size, group, device, layout, software.gather_efficiency, several=several)
    if training.sharding_devices:
        moved = moved + _over_copies(gradients * parameters, replicas, shards, layout.tensor, device, software, layout)
    moved = np.where(sharded, moved, 0.0)
    if training.offloads_parameters:
        moved = moved + streamed_s(parameters / np.where(sharded, shards, 1.0), training, device, software)
    both = soft_maximum(moved, pipeline.slowest_s, software.gather_order)
    return layout.micro_batches * (both - pipeline.slowest_s)
