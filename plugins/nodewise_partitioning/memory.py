"""Memory of one device of the fullest stage, term by term.

    states       weights, gradients and optimizer states per parameter, each split as the stage of ZeRO says
    activations  per layer and micro-batch, s b h (10 + (8 + 4 f / h) / t + 5 a s / (h t)); the 10 are split by t as
                 well with sequence parallelism; the scores' term is gone where they are not stored; the 8 are 6 of
                 queries, keys and values and 2 of what attention puts out, the 4 become 6 with a gate; without
                 dropout there are no masks: 8 for the 10, 2 for the 5; and 2 s b h of what a stage of a pipeline put
                 out, kept until its gradient comes back
    in flight    min(m, p) micro-batches on the first stage, p + (p - 1) / v with interleaving, one fewer on the second
    logits       4 s b (h + V / t) where there is one stage
    update       32-bit gradients that the optimizer's step makes, as far as they exceed the activations gone by then
    buffers      context and communicators, buckets of exchanged gradients, layers gathered with stage 3
    cache        blocks that the allocator keeps for later: a share of the device's memory, and what activations left
                 that the update is too large to use, as far as there is room

What must be there is all but the cache: a run fails only where that is more than the device has, as an allocator
frees its cache first. What a device was seen to hold has the cache in it.

Source: V. Korthikanti et al., MLSys 2023, section 4 and appendix; Megatron-LM, `theoretical_memory_usage.py`;
S. Rajbhandari et al., SC 2020 (states); DeepSpeed, `runtime/pipe/engine.py` (outputs of stages), `zero/config.py`
(buckets) and `bf16_optimizer.py` (16-bit gradients beside the 32-bit ones that they are added to).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Recomputation, added
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.pipeline import most_layers
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions

__all__ = [
    "LOG_SPREAD",
    "ROUNDED",
    "TERMS",
    "activation_bytes_per_layer",
    "cache_of",
    "in_flight",
    "memory_of",
    "needed_of_first_stage",
]

RESERVED_BYTES: Final = 1.5e9
"""What the driver's context, libraries and communicators take before training (CUDA and NCCL on A100)."""

CACHE_SHARE: Final = 0.05
"""Cached blocks by the device's memory, where it has the room: what 48 runs of BigScience on A100-80GB hold beyond the
other terms (4.1 GB in the middle; five runs on V100-32GB ask for 0.3 to 2)."""

LOG_SPREAD: Final = 0.06
"""Deviation of ln(bytes held): nine of ten of the 53 runs lie within 9 %."""

ROUNDED: Final = 1.0 - 1e-12
"""The cache fills a device only so far that no sum of terms, rounded, exceeds it."""

TERMS: Final = ("weights", "gradients", "optimizer", "update", "activations", "logits", "buffers", "cache")


def activation_bytes_per_layer(
    dimensions: Dimensions, layout: Layout, software: Software, narrow_bytes: float = 2.0
) -> Floats:
    """Bytes that one layer keeps of one micro-batch if nothing is recomputed, 16-bit formats.

    ``narrow_bytes``: of an input of a product, which is kept for the gradient of its weights: in the products' own
    format, where that is narrower beside what attention put out.
    """
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    inner = (2.0 * (dimensions.matrices - 1.0) + narrow_bytes) * dimensions.active / dimensions.hidden
    put_out = 2.0 if narrow_bytes == 2.0 else 2.0 + narrow_bytes
    attention = (2.0 * dimensions.query_key_value + put_out * dimensions.attention_size) / dimensions.hidden
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    stated = dimensions.training.dropout
    masks = not software.without_dropout if stated is None else stated
    stored = (4.0 + 2.0 * narrow_bytes + 2.0 * masks) / everywhere + (attention + inner) / layout.tensor
    scores = (5.0 if masks else 2.0) * dimensions.heads * dimensions.sequence / (dimensions.hidden * layout.tensor)
    without = (layout.recomputation == Recomputation.SELECTIVE) | software.flash_attention
    return tokens * dimensions.hidden * (stored + np.where(without, 0.0, scores))


def in_flight(layout: Layout) -> Floats:
    """Micro-batches, each of all layers of a stage, whose activations the first stage keeps at once."""
    interleaved = layout.pipeline + (layout.pipeline - 1.0) / layout.interleave
    most = np.where(layout.interleave > 1.0, interleaved, layout.pipeline)
    return np.minimum(most, layout.micro_batches)


def memory_of(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> dict[str, Floats]:
    """Bytes on one device of every row, by :data:`TERMS`: the first stage's, or the second's where it holds more."""
    counted = _ends_count(dimensions, layout)
    found, update = needed_of_first_stage(dimensions, layout, device, software)
    if counted.any():
        layers = (dimensions.layers + 2.0) / layout.pipeline
        kept = np.maximum(in_flight(layout) - 1.0, 1.0)
        second, its_update = _needed(dimensions, layout, device, software, layers, 0.0, kept)
        fuller = counted & (added(second.values()) > added(found.values()))
        found = {term: np.where(fuller, second[term], found[term]) for term in found}
        update = np.where(fuller, its_update, update)
    return found | {"cache": cache_of(added(found.values()), update - found["update"], device)}


def cache_of(needed: Floats, left: Floats | float, device: Device) -> Floats:
    """Bytes cached beside those needed, of which activations left some: the sum never falls as more is needed."""
    room = np.maximum(ROUNDED * device.memory_bytes - needed, 0.0)
    return np.minimum(CACHE_SHARE * device.memory_bytes + left, room)


def needed_of_first_stage(
    dimensions: Dimensions, layout: Layout, device: Device, software: Software
) -> tuple[dict[str, Floats], Floats]:
    """Bytes that the first stage cannot do without, which is all but the cache, and those of the whole update.

    Where layers do not go into the stages but with embedding and output layer they do, these count as a layer each.
    """
    counted = _ends_count(dimensions, layout)
    layers = most_layers(dimensions, layout)
    if counted.any():
        layers = np.where(counted, np.maximum((dimensions.layers + 2.0) / layout.pipeline - 1.0, 1.0), layers)
    rows = dimensions.embedding_rows(layout.tensor, layout.pipeline)
    return _needed(dimensions, layout, device, software, layers, rows, in_flight(layout))


def _ends_count(dimensions: Dimensions, layout: Layout) -> NDArray[np.bool_]:
    """Where the stages are even only if embedding and output layer count as layers. Quicker than remainders."""
    layers, both = dimensions.layers / layout.pipeline, (dimensions.layers + 2.0) / layout.pipeline
    return np.asarray((np.floor(layers) != layers) & (np.floor(both) == both))


def _needed(
    dimensions: Dimensions,
    layout: Layout,
    device: Device,
    software: Software,
    layers: Floats,
    rows: Floats | float,
    kept: Floats,
) -> tuple[dict[str, Floats], Floats]:
    """Bytes of a stage of so many layers and rows of an embedding, which keeps so many micro-batches."""
    dense, experts = dimensions.layer_parameters(layout.tensor, layout.expert)
    shared = layers * (dense + dimensions.replicated_parameters) + dimensions.hidden * rows
    replicas = layout.data * layout.context
    wide = device.element_bytes / 2.0

    training = dimensions.training
    shards = training.shards(replicas)

    def held(per_parameter: float, stage: float) -> Floats:
        split = layout.zero_stage >= stage
        if not dimensions.experts:
            return per_parameter * (shared / np.where(split, shards, 1.0))
        of_experts = layers * experts / np.where(split, np.maximum(shards / layout.expert, 1.0), 1.0)
        return per_parameter * (shared / np.where(split, shards, 1.0) + of_experts)

    whole = wide * activation_bytes_per_layer(dimensions, layout, software, device.narrow_bytes / wide)
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    inputs = device.element_bytes * tokens * dimensions.hidden / everywhere
    outputs = inputs * ((layout.pipeline > 1.0) & software.keeps_stage_outputs)
    recomputed = layout.recomputation == Recomputation.FULL
    again = layers * kept * inputs + whole
    if training.recomputed < 1.0:
        again = layers * kept * (training.recomputed * inputs + (1.0 - training.recomputed) * whole) + whole
    activations = np.where(recomputed, again, layers * kept * whole) + kept * outputs
    words = dimensions.padded_vocabulary(layout.tensor) / layout.tensor
    logits = np.where(layout.pipeline == 1.0, 2.0 * wide, 0.0) * tokens * (2.0 * dimensions.hidden + 2.0 * words)
    brought = (layout.zero_stage >= 3.0) | training.offloads_parameters
    gathered = np.where(brought, 2.0 * software.weight_bytes * shared / layers, 0.0)
    buckets = np.where((layout.zero_stage >= 1.0) & (replicas > 1.0), software.bucket_bytes, 0.0)
    here = not training.offloads_parameters
    gradient_bytes = software.gradient_bytes
    if software.reduces_in_place:
        gradient_bytes = training.exchanged_bytes(gradient_bytes)
    states = 0.0 if training.offloads_optimizer else training.trained * software.optimizer_state_bytes
    found = {
        "weights": held(here * training.weight_bytes(software.weight_bytes), 3.0),
        "gradients": held(here * training.trained * gradient_bytes, 2.0),
        "optimizer": held(states, 1.0),
        "activations": activations,
        "logits": logits,
        "buffers": RESERVED_BYTES + gathered + buckets,
    }
    if software.memory_level != 1.0:
        found = {term: software.memory_level * column for term, column in found.items()}
    update = software.update_bytes / software.optimizer_state_bytes * found["optimizer"]
    return found | {"update": np.maximum(update - found["activations"] - found["logits"], 0.0)}, update
