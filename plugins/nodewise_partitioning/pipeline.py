"""Stages and their schedule: one forward, one backward (1F1B), plain or interleaved, with stages that differ.

    step = m x slowest + (sum of all stages - slowest) / v + 2 (p - 1) x transfer

The embedding sits on the first stage, the output layer and the loss on the last. Any number of layers is laid over any
p x v: the stages have ceil(L / p) layers, but for as many as are lacking, of which each has one less: the last stage,
then the first, which have the ends to compute as well, then others. Where L + 2 divides p x v this is Megatron's layout
that counts embedding and loss as layers. Over a step a stage's layers count, not how they are cut into chunks: the
step is 4 % shorter to 7 % longer than a simulation of the interleaved schedule, whichever chunks are the smaller ones.

Interleaved, groups of at least p micro-batches go round the chunks; where p does not divide m, Megatron-Core and
PyTorch make them larger, which costs memory and no time. Only fewer than p wait for the other stages in every round:
the bubble is then (sum of others) - (m - 1) (1 - 1/v) x slowest.

In the steady state a transfer runs while the stage works on another micro-batch, of which a stage sends 2 v outputs and
gradients, of two stages 2 v - 1: what of these takes longer than the work is waited for. What fills and drains the
pipeline waits for every one. DeepSpeed's engine waits for every one: of a micro-batch the first and the last stage send
and receive one each, those between two, but they have no ends.

The zero-bubble schedule ZB-H1 keeps as many micro-batches in flight as 1F1B. It puts off the gradients of weights,
which no other stage waits for, and fills with them the time in which 1F1B waits. With equal stages, of t_f forward, t_b
for gradients of inputs and t_w for those of weights, the bubble is (p - 1)(t_f + t_b) - (min(m, p) - 1) t_w: from p
micro-batches on (p - 1)(t_f + t_b - t_w), where 1F1B has (p - 1)(t_f + t_b + t_w). With fewer there is less to put off.
Only layers are taken to do so, the output layer is not.

DualPipe sends micro-batches from both ends, so that a forward pass of one direction and a backward pass of the other
share a device: bubble (p/2 - 1)(t_fb + t_B - 3 t_w), with t_fb the time of both passes together and t_B that of a whole
backward pass; of the exchange of tokens between experts only what is longer than the computation beside it is waited
for. GPipe runs all forward passes first: the bubble of 1F1B, with all micro-batches in flight.

Sources: D. Narayanan et al., SC 2021, section 2.2 (schedules, bubble) and 4.1 (scatter and gather between stages);
Megatron-Core, `pipeline_parallel/schedules.py` and `microbatch_group_size_per_vp_stage` (groups between p and m),
`account_for_embedding_in_pipeline_split` and `account_for_loss_in_pipeline_split` (ends as layers);
P. Qi et al., "Zero bubble pipeline parallelism", ICLR 2024, table 2; DeepSeek-AI, "DeepSeek-V3 technical report", 2024,
table 2 (DualPipe); Y. Huang et al., "GPipe", NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.block import Block, block_of, product_flops_per_s, summed_s
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Columns, Layout
from nodewise_partitioning.links import domain_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions

__all__ = ["Ends", "Pipeline", "ends_of", "most_layers", "pipeline_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Ends(Columns):
    """Seconds per micro-batch of what is no layer: the embedding, and the output layer with its loss."""

    embedding_s: Floats
    head_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline(Columns):
    """Seconds of the schedule.

    Attributes
    ----------
    slowest_s : float
        One micro-batch on the slowest stage.
    slowest_layers : float
        Layers of that stage.
    slowest_ends_s : float
        What it does besides them.
    bubble_s, transfer_s, excess_s : float
        Per step: the slowest stage's wait for the others; transfers that fill and drain the pipeline; what those in
        between exceed the slowest stage's work by.
    """

    slowest_s: Floats
    slowest_layers: Floats
    slowest_ends_s: Floats
    bubble_s: Floats
    transfer_s: Floats
    excess_s: Floats


def most_layers(dimensions: Dimensions, layout: Layout) -> Floats:
    """Layers of the stages that have most."""
    even = np.ceil(dimensions.layers / layout.pipeline)
    if not dimensions.stage_layers:
        return even
    listed = layout.pipeline == len(dimensions.stage_layers)
    return np.where(listed, max(dimensions.stage_layers), even)


def _stages(dimensions: Dimensions, layout: Layout) -> tuple[Floats, Floats, Floats]:
    """Layers of the first stage, of the last, and of those that have most."""
    most = most_layers(dimensions, layout)
    lacking = most * layout.pipeline - dimensions.layers
    first, last = most - (lacking >= 2.0), most - (lacking >= 1.0)
    if dimensions.stage_layers:
        listed = layout.pipeline == len(dimensions.stage_layers)
        first = np.where(listed, dimensions.stage_layers[0], first)
        last = np.where(listed, dimensions.stage_layers[-1], last)
        most = np.where(listed, max(dimensions.stage_layers[1:-1], default=0.0), most)
    return first, last, most


def ends_of(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> Ends:
    """Forward and backward of both ends; neither is recomputed."""
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    memory = device.memory_bytes_per_s * software.memory_efficiency
    words = dimensions.padded_vocabulary(layout.tensor) / layout.tensor
    product = 2.0 * tokens * dimensions.hidden_size * words / product_flops_per_s(device, software)
    loss = software.head_passes * device.element_bytes / 2.0 * tokens * words / memory
    head = 3.0 * (product + device.gains.gemm_ramp_s * software.gemm_ramp_s) + loss + software.head_host_s
    head += summed_s(dimensions.hidden_size * words, product, device, software)
    rows = software.embedding_passes * tokens * dimensions.hidden_size * device.element_bytes / memory
    encoder = _encoder_s(dimensions, layout, device, software)
    return Ends(rows + software.embedding_host_s + encoder, head)


def _encoder_s(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> Floats | float:
    """Seconds of the encoder for one micro-batch: on the first stage, whole on each rank of context parallelism."""
    encoder = dimensions.encoder
    if encoder is None:
        return 0.0
    ones = np.ones(len(layout))
    samples = dimensions.encoder_inputs * layout.micro_batch
    own = replace(layout, micro_batch=samples, context=ones, expert=ones, expert_fold=ones)
    block = block_of(encoder, own, device, software)
    seconds = block.layer_s - block.backward_s if encoder.training.frozen_share else block.layer_s
    return encoder.layers * seconds


def pipeline_of(
    dimensions: Dimensions, layout: Layout, block: Block, ends: Ends, device: Device, software: Software
) -> Pipeline:
    """The schedule of every row."""
    several = layout.pipeline > 1.0
    first_layers, last_layers, most = _stages(dimensions, layout)
    both = ends.embedding_s + ends.head_s
    first = first_layers * block.layer_s + np.where(several, ends.embedding_s, both)
    last = np.where(several, last_layers * block.layer_s + ends.head_s, 0.0)
    at_last = last > first
    slowest = np.where(at_last, last, first)
    layers = np.where(at_last, last_layers, first_layers)
    between = most * block.layer_s
    inside = (layout.pipeline > 2.0) & (between > slowest)
    slowest = np.where(inside, between, slowest)
    layers = np.where(inside, most, layers)
    others = dimensions.layers * block.layer_s + both - slowest
    bubble = np.where(several, others, 0.0) / layout.interleave
    few = several & (layout.interleave > 1.0) & (layout.micro_batches < layout.pipeline)
    if few.any():
        passed = (layout.micro_batches - 1.0) * (1.0 - 1.0 / layout.interleave) * slowest
        bubble = np.where(few, np.maximum(bubble, others - passed), bubble)
    if software.dual_pipe and several.any():
        # Each device has a stage of either direction, so that every other micro-batch meets an end.
        stage = dimensions.layers / layout.pipeline
        slowest = np.where(several, stage * block.layer_s + 0.5 * both, slowest)
        layers = np.where(several, stage, layers)
        waits = stage * (block.layer_s + block.backward_s - 3.0 * block.weights_s)
        bubble = np.where(several, np.maximum(0.5 * layout.pipeline - 1.0, 0.0) * np.maximum(waits, 0.0), bubble)
    if software.zero_bubble:
        put_off = np.minimum(layout.micro_batches, layout.pipeline) - 1.0
        filled = 1.0 + put_off / np.maximum(layout.pipeline - 1.0, 1.0)
        bubble = bubble - np.where(several, filled * (dimensions.layers - layers) * block.weights_s, 0.0)
    one = _transfer(dimensions, layout, device, software)
    transfer = 2.0 * (layout.pipeline - 1.0) * one
    ends_s = slowest - layers * block.layer_s
    if software.waits_for_stages:
        inner = np.where(layout.pipeline > 2.0, np.maximum(2.0 * one - ends_s, 0.0), 0.0)
        transfer += (layout.micro_batches - 1.0) * several * (2.0 * one + inner)
    sent = 0.0 if software.waits_for_stages else 2.0 * layout.interleave - (layout.pipeline == 2.0)
    excess = layout.micro_batches * several * np.maximum(sent * one - slowest, 0.0)
    return Pipeline(slowest, layers, ends_s, bubble, transfer, excess)


def _transfer(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> Floats:
    """Seconds of one output from a stage to the next; across nodes where a stage fills its nodes, which all send.

    Where a link goes on beyond the nodes, stages of one domain send over it: the mean of all steps from stage to stage.
    """
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    size = device.element_bytes * tokens * dimensions.hidden_size
    stage = layout.tensor * layout.context * layout.data
    domain = domain_of(layout, device)
    leaving = ((layout.devices > domain) & (layout.pipeline > 1.0)).astype(np.float64)
    if device.domain_nodes > 1.0:
        leaving *= np.minimum((np.ceil(layout.devices / domain) - 1.0) / np.maximum(layout.pipeline - 1.0, 1.0), 1.0)
    sending = np.minimum(stage, layout.devices_per_node)
    bytes_sent = size / layout.tensor if software.scatters_stages else size
    network = bytes_sent * sending / (layout.node_link_bytes_per_s * software.network_efficiency)
    inside = size / (device.link_bytes_per_s * software.stage_link_efficiency)
    seconds: Floats = leaving * (network + software.network_latency_s) + (1.0 - leaving) * inside
    return seconds
