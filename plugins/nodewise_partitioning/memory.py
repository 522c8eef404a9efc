"""Memory of one device of the fullest stage, term by term.

    states       weights, gradients and optimizer states per parameter, each split as the stage of ZeRO says
    activations  per layer and micro-batch, s b h (10 + (8 + 4 f / h) / t + 5 a s / (h t)); the 10 are split by t as
                 well with sequence parallelism; the scores' term is gone where they are not stored; the 8 are 6 of
                 queries, keys and values and 2 of what attention puts out, the 4 become 6 with a gate
    in flight    min(m, p) micro-batches on the first stage, p + (p - 1) / v with interleaving
    logits       4 s b (h + V / t) where there is one stage

Source: V. Korthikanti et al., MLSys 2023, section 4 and appendix; Megatron-LM, `theoretical_memory_usage.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Floats, Recomputation
from nodewise_partitioning.data_parallel import held_parameters
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.pipeline import most_layers
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions

__all__ = ["TERMS", "TIGHT_SHARE", "activation_bytes_per_layer", "in_flight", "memory_of"]

RESERVED_BYTES: Final = 1.5e9
"""What the driver's context, libraries and communication buffers take before training (CUDA and NCCL on A100)."""

TIGHT_SHARE: Final = 0.9
"""Share of a device's memory beyond which fragmentation may still fail a run, or slow it down."""

TERMS: Final = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")


def activation_bytes_per_layer(dimensions: Dimensions, layout: Layout, software: Software) -> Floats:
    """Bytes that one layer keeps of one micro-batch if nothing is recomputed, 16-bit formats."""
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    inner = 2.0 * dimensions.matrices * dimensions.active / dimensions.hidden
    attention = 2.0 * (dimensions.query_key_value + dimensions.attention_size) / dimensions.hidden
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    stored = 10.0 / everywhere + (attention + inner) / layout.tensor
    scores = 5.0 * dimensions.heads * dimensions.sequence / (dimensions.hidden * layout.tensor)
    without = (layout.recomputation == Recomputation.SELECTIVE) | software.flash_attention
    return tokens * dimensions.hidden * (stored + np.where(without, 0.0, scores))


def in_flight(layout: Layout) -> Floats:
    """Micro-batches, each of all layers of a stage, whose activations the first stage keeps at once."""
    interleaved = layout.pipeline + (layout.pipeline - 1.0) / layout.interleave
    most = np.where(layout.interleave > 1.0, interleaved, layout.pipeline)
    return np.minimum(most, layout.micro_batches)


def memory_of(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> dict[str, Floats]:
    """Bytes on one device of every row, by :data:`TERMS`."""
    shared, experts = held_parameters(dimensions, layout)
    replicas = layout.data * layout.context
    wide = device.element_bytes / 2.0

    def held(per_parameter: float, stage: float) -> Floats:
        split = layout.zero_stage >= stage
        of_experts = experts / np.where(split, np.maximum(replicas / layout.expert, 1.0), 1.0)
        return per_parameter * (shared / np.where(split, replicas, 1.0) + of_experts)

    layers = most_layers(dimensions, layout)
    whole = wide * activation_bytes_per_layer(dimensions, layout, software)
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    inputs = device.element_bytes * tokens * dimensions.hidden / everywhere
    recomputed = layout.recomputation == Recomputation.FULL
    kept = np.where(recomputed, layers * in_flight(layout) * inputs + whole, layers * in_flight(layout) * whole)
    words = dimensions.padded_vocabulary(layout.tensor) / layout.tensor
    logits = np.where(layout.pipeline == 1.0, 2.0 * wide, 0.0) * tokens * (2.0 * dimensions.hidden + 2.0 * words)
    gathered = np.where(layout.zero_stage >= 3.0, 2.0 * software.weight_bytes * shared / layers, 0.0)
    return {
        "weights": held(software.weight_bytes, 3.0),
        "gradients": held(software.gradient_bytes, 2.0),
        "optimizer": held(software.optimizer_state_bytes, 1.0),
        "activations": kept,
        "logits": logits,
        "buffers": RESERVED_BYTES + gathered,
    }
