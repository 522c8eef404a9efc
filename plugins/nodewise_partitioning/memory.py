"""Memory of one device of the fullest stage, term by term.

    states       weights, gradients and optimizer states per parameter, each split as the stage of ZeRO says
    activations  per layer and micro-batch, s b h (10 + (8 + 4 f / h) / t + 5 a s / (h t)); the 10 are split by t as
                 well with sequence parallelism; the scores' term is gone where they are not stored; the 8 are 6 of
                 queries, keys and values and 2 of what attention puts out, the 4 become 6 with a gate; without
                 dropout there are no masks: 8 for the 10, 2 for the 5; and 2 s b h of what a stage of a pipeline put
                 out, kept until its gradient comes back
    in flight    min(m, p) micro-batches on the first stage, p + (p - 1) / v with interleaving, one fewer on the second
    logits       4 s b (h + V / t) where there is one stage
    gathered     layers with stage 3, and their gradients on the way; also layers brought from the host
    update       32-bit gradients that the optimizer's step makes, as far as they exceed activations, logits and
                 gathered layers, which are gone by then
    buffers      context and communicators, buckets of exchanged gradients
    cache        blocks that the allocator keeps for later: a share of the device's memory, and what activations left
                 that the update is too large to use, as far as there is room

What a run needs is everything except the cache: it fails only where that exceeds the device's memory, as an allocator
frees its cache first. Measured memory of a device includes the cache.

Source: V. Korthikanti et al., MLSys 2023, section 4 and appendix; Megatron-LM, `theoretical_memory_usage.py`;
S. Rajbhandari et al., SC 2020 (states); DeepSpeed, `runtime/pipe/engine.py` (outputs of stages), `zero/config.py`
(buckets) and `bf16_optimizer.py` (16-bit gradients beside the 32-bit ones that they are added to).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, sum_columns
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.layout import FULL, SELECTIVE, Layout
from nodewise_partitioning.pipeline import most_layers
from nodewise_partitioning.software import Software
from nodewise_partitioning.training import Training
from nodewise_partitioning.workload import Dimensions

__all__ = [
    "OVER_STEP",
    "ROUNDED",
    "TERMS",
    "StageMemory",
    "activation_bytes_per_layer",
    "board_of",
    "cache_of",
    "has_open_loss",
    "in_flight",
    "memory_of",
    "needed_of_first_stage",
    "needed_of_fullest_stage",
    "over_step",
    "settled_states",
    "terms_of",
]

CONTEXT_BYTES: Final = 0.9e9
COMMUNICATOR_BYTES: Final = 0.6e9
"""Bytes reserved before training under PyTorch, in parts: by runs on one device (without weights, and without what
grows with the micro-batch), and the channels of NCCL on several devices."""

USABLE_PER_BYTE: Final = 0.985 * 2.0**30 / 1e9
"""Usable bytes of a board per byte of its printed decimal size: 0.985 is the least of :func:`board_of`'s boards."""
NORMS_KEPT: Final = 2.0 / 3.0
"""Share of :attr:`Software.norm_bytes` for inputs and results of both norms; the rest are gradients of one norm."""

MASTER_BYTES: Final = 4.0
"""Bytes of a 32-bit master weight or gradient."""
HALF_BYTES: Final = 2.0
MOMENT_BYTES: Final = 4.0
ADAM_BYTES: Final = 2.0 * MOMENT_BYTES
"""Bytes of a 32-bit value of the optimizer's state; Adam has two, which stacks include in theirs."""

LOSS_COMPILED_YEAR: Final = 2023.0
"""From this year on, devices are assumed to be used with torchtitan's compiled loss (2025)."""
NARROW_LOSS: Final = (4.0, 2.0)
"""Bytes per word and token: logits and their gradient in 16 bits, without intermediate results (a compiled loss; flash
attention's cross-entropy, which llm-foundry uses); and cached bytes."""
PLAIN_LOGIT_BYTES: Final = 12.0
SHIFTED_BYTES: Final = 4.0
"""Hugging Face's models shift logits by one label, which makes a copy that is a row shorter: a block too small for
later use. Adapters and 16-bit states show that these models are used."""

ROUNDED: Final = 1.0 - 1e-12
"""Limit of the cache, so that no sum of terms exceeds the device's memory by rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class StageMemory:
    """Memory that a stage needs.

    Attributes
    ----------
    terms : dict
        Bytes by :data:`TERMS` without the cache, at the moment of most memory.
    end_bytes : float
        All bytes at the step's end beside weights, states and buffers, whether or not that is the moment of most
        memory.
    cached_bytes : float
        Blocks of tensors that are freed before the moment of most memory.
    stored_bytes : float
        Of the activations, the part kept by all micro-batches in flight; the rest exists only in a layer's backward
        pass.
    late_gradient_bytes : float
        Of ``end_bytes``, gradients that grow as activations are freed; 0 = gradients stay all the time.
    in_flight : float
        Micro-batches in flight.
    """

    terms: dict[str, Floats]
    end_bytes: Floats
    cached_bytes: Floats
    stored_bytes: Floats
    late_gradient_bytes: Floats
    in_flight: Floats


TERMS: Final = ("weights", "gradients", "optimizer", "update", "activations", "logits", "gathered", "buffers", "cache")


OVER_STEP: Final = ("kept_bytes", "end_bytes", "grown_bytes", "in_flight", "micro_batches", "forward_share")
"""Columns of :func:`over_step`."""


def activation_bytes_per_layer(
    dimensions: Dimensions, layout: Layout, software: Software, narrow_bytes: float = 2.0
) -> Floats:
    """Bytes that one layer keeps of one micro-batch if nothing is recomputed, 16-bit formats.

    ``narrow_bytes``: of a product's input, which is kept for the gradient of its weights, in the products' own format
    where that is narrower.
    """
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    results = 0.0 if software.fuses_operators else narrow_bytes
    inner = (2.0 * (dimensions.matrices - 1.0) + results) * dimensions.active / dimensions.hidden_size
    put_out = 2.0 if narrow_bytes == 2.0 else 2.0 + narrow_bytes
    attention = (2.0 * dimensions.query_key_value + put_out * dimensions.attention_size) / dimensions.hidden_size
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    dropout = dimensions.training.dropout
    masks = not software.without_dropout if dropout is None else dropout
    stored_bytes = (4.0 + 2.0 * results + 2.0 * masks) / everywhere + (attention + inner) / layout.tensor
    # An expert keeps copies of its tokens, for the gradient of its weights, and its outputs, for that of its share.
    stored_bytes = (
        stored_bytes + dimensions.routed_experts * bool(dimensions.experts) * (narrow_bytes + 2.0) / everywhere
    )
    heads = dimensions.attention_share * dimensions.heads
    scores = (5.0 if masks else 2.0) * heads * dimensions.sequence / (dimensions.hidden_size * layout.tensor)
    without = (layout.recomputation == SELECTIVE) | software.flash_attention
    return tokens * dimensions.hidden_size * (stored_bytes + np.where(without, 0.0, scores))


def in_flight(layout: Layout, software: Software) -> Floats:
    """Micro-batches, each of all layers of a stage, whose activations the first stage keeps at once.

    GPipe keeps all; DualPipe, whose devices have two stages each, one more than 1F1B (DeepSeek-V3, 2024, table 2).
    """
    if software.keeps_every_batch:
        return layout.micro_batches
    if software.dual_pipe:
        return np.minimum(layout.pipeline + (layout.pipeline > 1.0), layout.micro_batches)
    interleaved_stages = layout.pipeline + (layout.pipeline - 1.0) / layout.interleave
    most = np.where(layout.interleave > 1.0, interleaved_stages, layout.pipeline)
    return np.minimum(most, layout.micro_batches)


def memory_of(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> dict[str, Floats]:
    """Bytes on one device of every row, by :data:`TERMS`: the first stage's, or the second's where it holds more."""
    return terms_of(needed_of_fullest_stage(dimensions, layout, device, software), device, software)


def terms_of(stage_memory: StageMemory, device: Device, software: Software) -> dict[str, Floats]:
    """Bytes by :data:`TERMS`: what is needed, and what is cached beside it."""
    return stage_memory.terms | {
        "cache": cache_of(sum_columns(stage_memory.terms.values()), stage_memory.cached_bytes, device, software)
    }


def needed_of_fullest_stage(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> StageMemory:
    """The first stage's needs, or those of the second or of a listed stage where they are larger."""
    end_counts = _ends_count(dimensions, layout)
    first_stage = needed_of_first_stage(dimensions, layout, device, software)
    if end_counts.any():
        layers = (dimensions.layers + 2.0) / layout.pipeline
        in_flight_count = np.maximum(in_flight(layout, software) - 1.0, 1.0)
        first_stage = _fuller(
            first_stage, _stage_needs(dimensions, layout, device, software, layers, 0.0, in_flight_count), end_counts
        )
    lists_stages = layout.pipeline == len(dimensions.stage_layers)
    if not lists_stages.any():
        return first_stage
    for stage, of_stage in enumerate(dimensions.stage_layers):
        at_end = stage in (0, len(dimensions.stage_layers) - 1)
        rows = dimensions.embedding_rows(layout.tensor, layout.pipeline) * at_end
        in_flight_count = np.maximum(in_flight(layout, software) - stage, 1.0)
        own = _stage_needs(dimensions, layout, device, software, np.full(len(layout), of_stage), rows, in_flight_count)
        first_stage = _fuller(first_stage, own, lists_stages)
    return first_stage


def _fuller(stage: StageMemory, other: StageMemory, may: NDArray[np.bool_]) -> StageMemory:
    """For the rows in ``may``, another stage's needs where they are larger."""
    fuller = may & (sum_columns(other.terms.values()) > sum_columns(stage.terms.values()))
    columns = {
        name: getattr(other, name)
        for name in ("end_bytes", "cached_bytes", "stored_bytes", "late_gradient_bytes", "in_flight")
    }
    return StageMemory(
        {term: np.where(fuller, other.terms[term], column) for term, column in stage.terms.items()},
        **{name: np.where(fuller, column, getattr(stage, name)) for name, column in columns.items()},
    )


def over_step(stage_memory: StageMemory, layout: Layout, training: Training) -> dict[str, Floats]:
    """Memory over the course of a step, beside :data:`TERMS`: columns of :data:`OVER_STEP`.

    Weights, optimizer states, buffers and cache stay all the time, as do gradients that do not grow. At most
    ``in_flight`` micro-batches are in flight, and keep ``kept_bytes`` together; the rest of the activations, and
    logits, exist in the backward pass of one micro-batch; gathered layers in both passes. At the step's end
    ``end_bytes`` replace these, of them ``grown_bytes`` of gradients. So the maximum is the sum of all terms.

    ``forward_share``: share of a micro-batch's time. The backward pass takes twice as long, and longer by what it
    recomputes.
    """
    again = (layout.recomputation == FULL) * training.recomputed_share
    return {
        "kept_bytes": stage_memory.stored_bytes,
        "end_bytes": stage_memory.end_bytes,
        "grown_bytes": stage_memory.late_gradient_bytes,
        "in_flight": stage_memory.in_flight,
        "micro_batches": layout.micro_batches,
        "forward_share": np.asarray(1.0 / (3.0 + again)),
    }


def cache_of(needed_bytes: Floats, left: Floats | float, device: Device, software: Software) -> Floats:
    """Cached bytes, of which activations left some: the sum with needed bytes never falls as more is needed."""
    free_bytes = np.maximum(ROUNDED * device.memory_bytes - needed_bytes, 0.0)
    return np.minimum(software.cache_share * device.memory_bytes + left, free_bytes)


def needed_of_first_stage(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> StageMemory:
    """The first stage's memory that cannot be released: everything except the cache.

    Where layers do not divide into the stages, but with embedding and output layer they do, these count as a layer
    each.
    """
    end_counts = _ends_count(dimensions, layout)
    layers = most_layers(dimensions, layout)
    if dimensions.stage_layers:
        lists_stages = layout.pipeline == len(dimensions.stage_layers)
        layers = np.where(lists_stages, dimensions.stage_layers[0], layers)
    if end_counts.any():
        layers = np.where(end_counts, np.maximum((dimensions.layers + 2.0) / layout.pipeline - 1.0, 1.0), layers)
    rows = dimensions.embedding_rows(layout.tensor, layout.pipeline)
    return _stage_needs(dimensions, layout, device, software, layers, rows, in_flight(layout, software))


def _ends_count(dimensions: Dimensions, layout: Layout) -> NDArray[np.bool_]:
    """Rows whose stages are even only if embedding and output layer count as layers. Faster than remainders."""
    layers, both = dimensions.layers / layout.pipeline, (dimensions.layers + 2.0) / layout.pipeline
    lists_stages = layout.pipeline == len(dimensions.stage_layers)
    return np.asarray((np.floor(layers) != layers) & (np.floor(both) == both) & ~lists_stages)


def _stage_needs(
    dimensions: Dimensions,
    layout: Layout,
    device: Device,
    software: Software,
    layers: Floats,
    rows: Floats | float,
    micro_batches_kept: Floats,
) -> StageMemory:
    """Needs of a stage of so many layers and rows of an embedding, which keeps so many micro-batches."""
    dense, experts = dimensions.layer_parameters(layout.tensor, layout.expert)
    encoder = dimensions.encoder if np.any(np.asarray(rows) > 0.0) else None
    ends = np.asarray(dimensions.hidden_size * rows)
    if encoder is not None and not encoder.training.frozen_share:
        ends = ends + encoder.parameters() / layout.tensor
    of_layer = dense + dimensions.replicated_parameters
    shared_parameters = layers * of_layer + ends
    replicas = layout.data * layout.context
    training, torch = dimensions.training, software.eager_memory
    shards = training.shards(replicas)

    def bytes_of(per_parameter: Floats | float, stage: float) -> Floats:
        split = layout.zero_stage >= stage
        if not dimensions.experts:
            return np.asarray(per_parameter * (shared_parameters / np.where(split, shards, 1.0)))
        of_experts = layers * experts / np.where(split, np.maximum(shards / layout.expert, 1.0), 1.0)
        return np.asarray(per_parameter * (shared_parameters / np.where(split, shards, 1.0) + of_experts))

    tokens = layout.micro_batch * dimensions.sequence / layout.context
    kept_bytes, layer = _activations(dimensions, layout, device, software, layers, micro_batches_kept)
    logits, cached_bytes = _head(dimensions, layout, device, software)
    logits, cached_bytes = (np.where(layout.pipeline == 1.0, tokens * each, 0.0) for each in (logits, cached_bytes))
    if encoder is not None:
        kept_bytes = kept_bytes + micro_batches_kept * _encoder_activations(
            encoder, dimensions.encoder_inputs, layout, software
        )
    activations = kept_bytes + layer
    if torch:
        # Layers and the head follow each other. Blocks of a layer's forward pass are too small for logits.
        ahead, blocks = _recomputed_ahead(dimensions, layout, device, software)
        inner = np.minimum(2.0 * dimensions.matrices * tokens * dimensions.active / layout.tensor, logits)
        most = np.maximum(layer + ahead, logits)
        activations = kept_bytes + most - logits
        cached_bytes = np.maximum(layer + ahead + blocks, logits + cached_bytes + inner) - most

    weights, gradients, states, update_bytes = _states(dimensions, layout, device, software)
    here = 0.0 if training.offloads_parameters else 1.0
    on_device = 0.0 if training.offloads_optimizer else 1.0
    leave = (layout.zero_stage >= 2.0) & (training.offloads_optimizer and software.offloads_gradients)
    in_ends = training.unquantised_bytes(software.weight_bytes) * ends / np.where(layout.zero_stage >= 3.0, shards, 1.0)
    terms = {
        "weights": here * (bytes_of(weights, 3.0) + in_ends),
        "gradients": np.where(leave, 0.0, here * bytes_of(gradients, 2.0)),
        "optimizer": on_device * bytes_of(states, 1.0),
        "activations": activations,
        "logits": logits,
        "gathered": _gathered_bytes(
            dimensions, layout, software, (of_layer, experts, ends), shared_parameters / layers
        ),
        "buffers": _buffers(dimensions, layout, software, replicas),
    }
    terms["weights"] = _all_weights(terms["weights"], encoder, layout, shards, software)
    later = on_device * bytes_of(update_bytes, 1.0)
    if software.memory_level != 1.0:
        level = software.memory_level
        terms = {term: level * column for term, column in terms.items()}
        later, layer, cached_bytes, kept_bytes = (level * each for each in (later, layer, cached_bytes, kept_bytes))
    now = terms["activations"] + terms["logits"] + terms["gathered"]
    if torch:
        # Freed after each step, gradients grow as activations shrink: both exist only where micro-batches are added up.
        once = (layout.micro_batches == 1.0) & (layout.pipeline == 1.0)
        gradient_growth = np.where(once, terms["gradients"], 0.0)
        later = np.where(once, gradient_growth + np.maximum(later, layer), later)
        beside = np.maximum(later - now, 0.0)
        terms["gradients"] = np.where(once, np.minimum(gradient_growth, beside), terms["gradients"])
        update = np.where(once, beside - terms["gradients"], beside)
        return StageMemory(
            terms | {"update": update}, later, cached_bytes, kept_bytes, gradient_growth, micro_batches_kept
        )
    update = np.maximum(later - now, 0.0)
    return StageMemory(
        terms | {"update": update}, later, np.minimum(now, later), kept_bytes, np.zeros(len(layout)), micro_batches_kept
    )


def _all_weights(
    weights: Floats, encoder: Dimensions | None, layout: Layout, shards: Floats, software: Software
) -> Floats:
    """Weights with those of a frozen encoder; under DualPipe of two stages, one for each direction."""
    if encoder is not None and encoder.training.frozen_share:
        whole = encoder.parameters() / layout.tensor
        weights = weights + software.weight_bytes * whole / np.where(layout.zero_stage >= 3.0, shards, 1.0)
    return weights * np.where(layout.pipeline > 1.0, 2.0, 1.0) if software.dual_pipe else weights


def _encoder_activations(encoder: Dimensions, inputs_per_sample: float, layout: Layout, software: Software) -> Floats:
    """Bytes that an encoder keeps of one micro-batch; frozen, it keeps nothing."""
    if encoder.training.frozen_share:
        return np.zeros(len(layout))
    own = replace(layout, micro_batch=inputs_per_sample * layout.micro_batch, context=np.ones(len(layout)))
    inputs = software.weight_bytes * own.micro_batch * encoder.sequence * encoder.hidden_size
    whole = activation_bytes_per_layer(encoder, own, software)
    return encoder.layers * np.where(layout.recomputation == FULL, inputs, whole)


def _states(
    dimensions: Dimensions, layout: Layout, device: Device, software: Software
) -> tuple[Floats, Floats, Floats, Floats]:
    """Bytes per parameter of weights, gradients and optimizer states, and of the gradients that its step makes.

    Under Megatron narrow states are weights in the format of products and gradients in 16 bits (`fp8_param_gather`,
    `grad_reduce_in_fp32` off), beside 32-bit master weights.
    """
    training, usual = dimensions.training, software.weight_bytes
    trained_share = training.trained_share
    nothing = np.zeros(len(layout))
    weights = nothing + training.weight_bytes(usual)
    exchanged_bytes = training.exchanged_bytes(software.gradient_bytes)
    gradients = nothing + trained_share * (exchanged_bytes if software.reduces_in_place else software.gradient_bytes)
    bytes_per_parameter = (
        software.optimizer_state_bytes + training.moments * (training.moment_bytes or MOMENT_BYTES) - ADAM_BYTES
    )
    states, update_bytes = (
        nothing + trained_share * bytes_per_parameter,
        nothing + trained_share * software.update_bytes,
    )
    if software.casts_masters and software.has_masters:
        # FSDP splits the one 32-bit copy, and casts what it gathers; autocast keeps the cast copies beside it.
        masters = np.where(layout.zero_stage >= 3.0, trained_share * MASTER_BYTES, 0.0)
        weights = weights + np.where(layout.zero_stage >= 3.0, masters - trained_share * usual, 0.0)
        states = states - masters
    narrow = layout.narrow_states > 0.0
    if narrow.any() and software.reduces_in_place and training.master_weights is None:
        weights = np.where(narrow, training.weight_bytes(min(usual, device.narrow_bytes)), weights)
        gradients = np.where(narrow, np.minimum(trained_share * HALF_BYTES, gradients), gradients)
    elif narrow.any():
        weights = np.where(narrow, training.weight_bytes(usual), weights)
        gradients = np.where(narrow, trained_share * usual, gradients)
        states = np.where(narrow, trained_share * training.moments * (training.moment_bytes or usual), states)
        update_bytes = np.where(narrow, trained_share * min(software.update_bytes, usual), update_bytes)
    return weights, gradients, states, update_bytes


def _activations(
    dimensions: Dimensions,
    layout: Layout,
    device: Device,
    software: Software,
    layers: Floats,
    micro_batches_kept: Floats,
) -> tuple[Floats, Floats]:
    """Bytes that all layers keep until their backward pass, and extra bytes of the layer in its backward pass.

    The extra bytes are the layer's own, where it is recomputed; under PyTorch also the gradients inside its
    feed-forward layer, which are as large, and norms in 32 bits.
    """
    wide = device.element_bytes / 2.0
    whole = wide * activation_bytes_per_layer(dimensions, layout, software, device.narrow_bytes / wide)
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    inputs = device.element_bytes * tokens * dimensions.hidden_size / everywhere
    outputs = micro_batches_kept * inputs * ((layout.pipeline > 1.0) & software.keeps_stage_outputs)
    is_recomputed = layout.recomputation == FULL
    share = dimensions.training.recomputed_share
    of_recomputed = inputs if share == 1.0 else share * inputs + (1.0 - share) * whole
    if not software.eager_memory:
        again = layers * micro_batches_kept * of_recomputed
        return np.where(is_recomputed, again, layers * micro_batches_kept * whole) + outputs, np.where(
            is_recomputed, whole, 0.0
        )
    by_operation = (layout.recomputation == SELECTIVE) & software.flash_attention
    operation_bytes = _chosen_operations(dimensions, layout) * wide
    each = np.where(is_recomputed, of_recomputed, np.where(by_operation, np.minimum(operation_bytes, whole), whole))
    gradients = wide * 2.0 * dimensions.matrices * tokens * dimensions.active / layout.tensor
    norms = software.norm_bytes * tokens * dimensions.hidden_size / everywhere
    layer = gradients + np.where(is_recomputed | by_operation, whole + norms, 0.0)
    return layers * micro_batches_kept * each + outputs, layer


def _recomputed_ahead(
    dimensions: Dimensions, layout: Layout, device: Device, software: Software
) -> tuple[Floats, Floats]:
    """Bytes of the previous layer, recomputed while another is in its backward pass, and of blocks that neither reuses.

    With parameters gathered on a stream of their own the host issues the next layer while blocks of this one still
    wait for that stream, so that the allocator takes others: what a layer keeps is there twice, and the gradients'
    blocks are cached (Y. Zhao et al., "PyTorch FSDP", VLDB 2023, on the rate limiter).
    """
    twice = (layout.recomputation == FULL) & (layout.zero_stage >= 3.0) & (layout.devices > 1.0)
    if not twice.any():
        return np.zeros(len(layout)), np.zeros(len(layout))
    wide = device.element_bytes / 2.0
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    whole = wide * activation_bytes_per_layer(dimensions, layout, software, device.narrow_bytes / wide)
    norms = software.norm_bytes * tokens * dimensions.hidden_size / everywhere
    gradients = wide * 2.0 * dimensions.matrices * tokens * dimensions.active / layout.tensor
    norm_bytes = NORMS_KEPT * norms
    return np.where(twice, whole + norm_bytes, 0.0), np.where(twice, gradients + norms - norm_bytes, 0.0)


def _chosen_operations(dimensions: Dimensions, layout: Layout) -> Floats:
    """Bytes that one layer keeps of one micro-batch with PyTorch's recomputation by operation, 16-bit formats.

    The layer's input, the output of attention, and the results of every second product: of queries and values, of the
    first matrix of the feed-forward layer, and of its last where there are three (torchtitan,
    `activation_checkpoint.py`).
    """
    everywhere = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    values = (dimensions.query_key_value - dimensions.attention_size) / 2.0
    split = 2.0 * dimensions.attention_size + values + dimensions.active
    outside = dimensions.hidden_size * (2.0 if dimensions.is_gated else 1.0)
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    return np.asarray(2.0 * tokens * (outside / everywhere + split / layout.tensor))


def _head(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> tuple[Floats, Floats]:
    """Bytes per token of the output layer with its loss: needed at once, and cached in blocks."""
    words = dimensions.padded_vocabulary(layout.tensor) / layout.tensor
    wide = device.element_bytes / 2.0
    states = wide * 4.0 * dimensions.hidden_size
    if dimensions.training.fused_loss:
        return np.asarray(states + np.zeros(len(layout))), np.zeros(len(layout))
    if not software.eager_memory:
        return np.asarray(states + wide * software.logit_bytes * words), np.zeros(len(layout))
    each: Floats | float = software.logit_bytes
    cached_bytes = software.cached_logit_bytes
    if software.is_compiled and device.announced_year >= LOSS_COMPILED_YEAR and not software.chunks_loss:
        each, cached_bytes = NARROW_LOSS
    has_shifted_copy = (layout.narrow_states > 0.0) | (dimensions.training.frozen_share > 0.0)
    more = np.where(has_shifted_copy & (software.logit_bytes == PLAIN_LOGIT_BYTES), SHIFTED_BYTES, 0.0)
    narrow = (layout.narrow_loss > 0.0) & (dimensions.training.fused_loss is not False)
    each, more = (
        np.where(narrow, np.minimum(NARROW_LOSS[0], each), each),
        np.where(narrow, NARROW_LOSS[1], cached_bytes + more),
    )
    present = np.where((layout.zero_stage < 3.0) & software.chunks_loss, 0.0, 1.0)
    return np.asarray(states + present * each * words), np.asarray(present * more * words)


def _gathered_bytes(
    dimensions: Dimensions,
    layout: Layout,
    software: Software,
    parameters: tuple[Floats, Floats, Floats],
    average: Floats,
) -> Floats:
    """Bytes of layers that are gathered or copied from the host, and of the buffers of their gradients."""
    training, usual = dimensions.training, software.weight_bytes
    is_gathered = (layout.zero_stage >= 3.0) | training.offloads_parameters
    if not software.eager_memory:
        return np.where(is_gathered, 2.0 * usual * average, 0.0)
    of_layer, experts, ends = parameters
    layer = of_layer + experts * (layout.zero_stage >= 3.0)
    gradient_bytes = np.where(layout.narrow_states > 0.0, usual, usual + MASTER_BYTES)
    gathered_bytes = layer * (2.0 * training.weight_bytes(usual) + training.trained_share * gradient_bytes)
    root = ends * usual * (1.0 + training.trained_share)
    return np.where(is_gathered, gathered_bytes + root, 0.0)


def _buffers(dimensions: Dimensions, layout: Layout, software: Software, replicas: Floats) -> Floats:
    """Bytes of context and communicators, exchanged gradients and unpacked weights."""
    training, usual = dimensions.training, software.weight_bytes
    buckets = np.where((layout.zero_stage >= 1.0) & (replicas > 1.0), software.bucket_bytes, 0.0)
    if not software.eager_memory:
        return np.asarray(software.reserved_bytes + buckets)
    largest = np.maximum(dimensions.active, dimensions.query_key_value) / layout.tensor
    unpacked_bytes = usual * dimensions.hidden_size * largest * (0.0 < training.frozen_bytes < usual)
    context = CONTEXT_BYTES + np.where(layout.devices > 1.0, COMMUNICATOR_BYTES, 0.0)
    return np.asarray(context + unpacked_bytes + buckets)


def board_of(device: Device, software: Software) -> Device:
    """The device, with the memory that a job can use.

    Boards of 80 GB have 80 GiB, of which driver and firmware keep some: seen by PyTorch 79.2 of 80 GiB (A100, H100),
    139.8 of 141 (H200), 15.8 of 16 (V100). Where blocks that the allocator cannot use are terms of their own, all of it
    is there; stacks whose :data:`CACHE_SHARE` stands for them keep the difference free.
    """
    return _usable(device) if software.eager_memory else device


@lru_cache(maxsize=256)
def _usable(device: Device) -> Device:
    return replace(
        device,
        memory_bytes=USABLE_PER_BYTE * device.memory_bytes,
        named_memory_bytes=USABLE_PER_BYTE * device.named_memory_bytes,
    )


def has_open_loss(dimensions: Dimensions, software: Software) -> bool:
    """Whether the format of logits is unknown under PyTorch."""
    training = dimensions.training
    plain = software.eager_memory and software.logit_bytes == PLAIN_LOGIT_BYTES and not software.is_compiled
    return plain and not training.frozen_share and training.fused_loss is None


def settled_states(layout: Layout, dimensions: Dimensions, device: Device, software: Software) -> Layout:
    """Rows under PyTorch with assumed formats of states and logits, where no fact states them.

    Weights are loaded in the 16-bit format that is trained in where a job fine-tunes on one device, recomputing
    everything (Hugging Face's trainer with `torch_dtype`; torchtune's recipes of one device); FSDP makes 32-bit master
    weights of what is trained, where there is room. Rows whose states leave no room for one sample, everything
    computed again, hold 16 bits where they fit so; a batch that is too large says nothing of the states. Rows for
    whose 32-bit logits there is no room have a loss in 16 bits where they fit so, unless their name tells the loss, or
    adapters tell Hugging Face's.
    """
    alone = layout.devices == 1.0
    master_weights = dimensions.training.master_weights
    if master_weights is False and software.has_masters:
        layout = replace(layout, narrow_states=np.ones(len(layout)))
    if not (software.eager_memory and software.has_masters):
        return layout
    may = (alone | (layout.zero_stage >= 3.0)) & (layout.narrow_states == 0.0) & (master_weights is None)

    def fits(layout_tried: Layout) -> NDArray[np.bool_]:
        needed_bytes = sum_columns(needed_of_first_stage(dimensions, layout_tried, device, software).terms.values())
        return np.asarray(needed_bytes <= device.memory_bytes)

    full = np.full(len(layout), FULL)
    least = replace(layout, micro_batch=np.minimum(layout.micro_batch, 1.0), recomputation=full)
    ones = np.ones(len(layout))
    open_loss = has_open_loss(dimensions, software)
    loss = ones if open_loss else layout.narrow_loss
    tuning = may & alone & (layout.recomputation == FULL)
    lacking = may & ~tuning
    if lacking.any():
        lacking &= ~fits(replace(least, narrow_loss=loss))
    if lacking.any():
        lacking &= fits(replace(layout, narrow_states=ones, narrow_loss=loss))
    settled_layout = replace(layout, narrow_states=np.where(tuning | lacking, 1.0, layout.narrow_states))
    if open_loss:
        tight = ~fits(settled_layout)
        if tight.any():
            tight &= fits(replace(settled_layout, narrow_loss=loss))
            settled_layout = replace(settled_layout, narrow_loss=np.where(tight, 1.0, settled_layout.narrow_loss))
    return settled_layout
