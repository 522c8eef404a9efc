"""Time of one layer for one micro-batch: it depends on how a layer is split, never on pipeline or data parallelism.

    products      C = sum of F_i / (peak x efficiency) + ramp, each matrix product F_i of the layer
    operators     E = (c_r x T h / sp + c_f x T f / t + c_s x min(s / 2048, 1) x b a s^2 / t) x bytes / memory bandwidth
    collectives   A = all-reduce of T h values over the tensor-parallel ranks
    gradients     G = accumulated_bytes x parameters of the layer on a device / memory bandwidth
    device        D = G + 4 (C + E) + 6 A with full recomputation, G + 3 (C + E) + 4 A without, + scores if selective
    host          H = time to launch a layer's kernels and collectives
    layer         (D^p + H^p)^(1/p)

T = b s / c tokens. The backward pass takes twice the forward one, flash attention's longer; recomputation runs the
forward one again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_partitioning.hardware import Device
from nodewise_partitioning.imbalance import busiest
from nodewise_partitioning.layout import FULL, SELECTIVE, Columns, Layout
from nodewise_partitioning.links import Group, all_reduce_s, group_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions

__all__ = ["Block", "block_of", "product_flops_per_s", "soft_maximum", "summed_s"]

FULL_SEQUENCE: Final = 2048.0
"""Tokens up to which a pass over the scores costs in proportion: a row of scores is reduced by one warp, which is
slower the more of the row each thread holds."""

ALIGNED_BYTES: Final = 16.0
"""Rows of a product whose size is no multiple of it cannot be loaded into matrix units: libraries fall back to plain
ones (NVIDIA, "Matrix Multiplication Background User's Guide": multiples of 8 elements of 16 bits)."""

FLASH_BACKWARD: Final = 3.3
"""Flash attention's backward pass, in forward ones: five products for two, at three quarters of the rate (T. Dao,
"FlashAttention-2", ICLR 2024, section 1: 25 to 35 % of A100's peak where the forward pass reaches 30 to 50 %)."""

AMPERE_SHARE: Final = 0.54
"""Rate of its kernels on later devices, by the share of the peak: 35 % of H100's (J. Shah et al., "FlashAttention-3",
NeurIPS 2024, section 1) where they reach 65 % of A100's."""

CAST_PASSES: Final = 4.0 / 3.0
"""Of 16 bits, a third of a layer's: values brought into fp8, and its transpose, by kernels of their own (2 bytes
read, 1 and 1 written). With norms and activations fused (Transformer Engine) these are attention's output and the
gradients of queries, keys, values, and of both blocks' outputs: 4 attention_size / t and 2 h a token."""

UNFUSED_CAST_PASSES: Final = 7.0 / 6.0
"""The same of each input of a product and each gradient of its result, without fused operators: 2 bytes read for the
largest, 2 read and 1 written for the cast, 1 read and 1 written for the transpose, which the gradient of weights asks
for (torchao, `float8_utils.py` and `matmul_with_hp_or_float8_args`: dynamic scales of whole tensors)."""

UNFUSED_NORM_PASSES: Final = 32.0
UNFUSED_ROTARY_PASSES: Final = 9.0
"""Of 16 bits, of gated models (which have RMS norms and rotary positions) without fused operators, beyond two fused
norms. An RMS norm casts to 32 bits (2 bytes read, 4 written), squares (8), takes the mean (4), scales (8), casts back
(6) and multiplies by its weight (4): 18 passes where a fused one has 2. Rotary positions, of queries and keys: negated
and joined halves (4), two products (8), a sum (6). Source: Hugging Face transformers, `modeling_llama.py`
(`LlamaRMSNorm.forward`, `apply_rotary_pos_emb`)."""

ADAPTED: Final = 0.9
USUAL_RANK: Final = 16.0
"""Share of frozen weights from which a job under PyTorch has adapters on all matrices, and their rank where none is
stated (TRL's `lora_r`; PEFT's default is 8, that of QLoRA's authors 64): what they take is nearly all passes over their
inputs and outputs, whatever the rank. NeMo's recipes adapt one projection alone."""

PASSES_WITHOUT: Final = 3.0
PASSES_FULL: Final = 4.0
"""Forward passes that a layer's work amounts to: backward counts as two, full recomputation adds one. Frozen weights
have no gradient of their own, which is half of a product's backward pass."""


@dataclass(frozen=True, slots=True, eq=False)
class Block(Columns):
    """Seconds of one layer and micro-batch on one device; ``compute_s`` to ``expert_s`` are the device's own time.

    Attributes
    ----------
    compute_s, tensor_s, context_s, expert_s : float
        Kernels; exposed collectives of tensor, context and expert parallelism.
    layer_s : float
        Total, the host's launches included.
    backward_s : float
        Part of ``layer_s`` in the backward pass, recomputation included.
    weights_s : float
        Kernels that compute the gradients of weights: as many operations as the forward products have.
    """

    compute_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    layer_s: Floats
    backward_s: Floats
    weights_s: Floats


def soft_maximum(first: Floats, second: Floats, order: float) -> Floats:
    """The p-norm of two times of at least 0: the larger of both, or up to 2^(1/p) times it where they are equal."""
    larger = np.maximum(first, second)
    ratio = np.minimum(first, second) / np.maximum(larger, 1e-300)
    return larger * (1.0 + ratio**order) ** (1.0 / order)


def product_flops_per_s(device: Device, software: Software) -> float:
    """Rate of large matrix products."""
    later = software.later_products if device.after_ampere else 1.0
    return later * device.flops_per_s * device.gains.gemm_efficiency * software.gemm_efficiency


def summed_s(parameters: Floats, product_s: Floats, device: Device, software: Software) -> Floats:
    """Seconds to add a micro-batch's gradients to the sum, beyond the products that compute them."""
    moved = software.accumulated_bytes * parameters / _memory(device, software)
    if software.fused_accumulation:
        return soft_maximum(product_s, moved, software.gather_order) - product_s
    return moved


def block_of(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> Block:
    """Time of one layer of every row."""
    training = dimensions.training
    recomputed = training.recomputed_share * (layout.recomputation == FULL)
    selective = layout.recomputation == SELECTIVE
    tokens = layout.micro_batch * dimensions.sequence / layout.context
    core, scores = _attention(dimensions, layout, device, software)
    products = _products(dimensions, layout, tokens, device, software)
    operators = _operators(dimensions, layout, tokens, device, software)
    forward = products + core + operators + scores
    passes = PASSES_WITHOUT + recomputed
    again = core + scores
    if software.eager_memory and software.flash_attention:
        # PyTorch's recomputation by operation keeps the outputs of attention and of every second product.
        again = 0.5 * products + operators
    compute = passes * forward + selective * again
    if software.eager_memory:
        compute -= recomputed * _unneeded_gradient_s(dimensions, layout, tokens, device, software)
    dense, experts = dimensions.layer_parameters(layout.tensor, layout.expert)
    compute += summed_s(training.trained_share * (dense + experts), training.trained_share * products, device, software)
    if software.flash_attention:
        compute += (FLASH_BACKWARD - 2.0) * core
    rank = training.adapter_rank or USUAL_RANK * (software.eager_memory and training.frozen_share >= ADAPTED)
    if rank:
        compute += passes * _adapters(dimensions, layout, rank, tokens, device, software)
    if training.frozen_share:
        compute += _unpacking_s(dimensions, layout, passes, device, software) - training.frozen_share * products
    tensor_group = group_of(layout, device, layout.tensor, np.ones(len(layout)))
    activation = device.element_bytes * tokens * dimensions.hidden_size
    collectives = 4.0 + 2.0 * recomputed
    if software.eager_memory and software.flash_attention:
        # Of its collectives, recomputation by operation keeps the outputs of scatters, and repeats gathers.
        collectives = collectives + selective * (layout.sequence_parallel > 0.0)
    tensor = (
        collectives
        * software.tensor_collective_factor
        * _all_reduce(activation, tensor_group, device, software, layout)
    )
    context = _context(dimensions, layout, tokens, core, device, software) * passes
    expert = _expert(dimensions, layout, activation, device, software) * (2.0 + recomputed)
    if software.dual_pipe:
        expert = np.maximum(expert - compute, 0.0)
    host = _host(dimensions, layout, software) * passes / PASSES_FULL
    host += collectives * software.host_collective_s * (layout.tensor > 1.0)
    busy = compute + tensor + context + expert
    layer = soft_maximum(busy, host, software.host_order)
    return Block(
        compute, tensor, context, expert, layer, layer * (1.0 - 1.0 / passes), training.trained_share * products
    )


def _unneeded_gradient_s(
    dimensions: Dimensions, layout: Layout, tokens: Floats, device: Device, software: Software
) -> Floats:
    """Seconds of the last matrix product of a layer, whose result is not needed for gradients.

    PyTorch's recomputation stops once it has all that the backward pass needs (`set_checkpoint_early_stop`).
    """
    flops = 2.0 * tokens * dimensions.hidden_size * _active(dimensions, layout) / layout.tensor
    return flops / product_flops_per_s(device, software)


def _adapters(
    dimensions: Dimensions, layout: Layout, rank: float, tokens: Floats, device: Device, software: Software
) -> Floats:
    """Forward seconds of the adapters of a layer, beside the matrices that they adapt.

    Each adapter reads its matrix's input, and reads and adds to its matrix's output; between are values of its rank.
    DoRA scales every output by norms of whole matrices, for which it makes the adapter's product as large as its matrix
    and adds that to it in every pass (S.-Y. Liu et al., "DoRA", ICML 2024, section 4.3: norms are constants of
    backward).
    """
    training = dimensions.training
    going_in, coming_out = dimensions.adapter_ends()
    moved = tokens * (going_in + 2.0 * coming_out + training.scaled_adapters * 2.0 * coming_out) / layout.tensor
    flops = 2.0 * tokens * rank * (going_in + coming_out) / layout.tensor
    launches = 2.0 * dimensions.products(dimensions.experts / (layout.expert * layout.expert_fold))
    seconds = launches * device.gains.gemm_ramp_s * software.gemm_ramp_s
    if training.scaled_adapters:
        dense, experts = dimensions.layer_parameters(layout.tensor, layout.expert)
        moved = moved + 4.0 * (dense + experts)
        flops = flops + 2.0 * rank * (dense + experts)
    total_s: Floats = seconds + flops / product_flops_per_s(device, software)
    return total_s + moved * device.element_bytes / _memory(device, software)


def _unpacking_s(dimensions: Dimensions, layout: Layout, passes: Floats, device: Device, software: Software) -> Floats:
    """Seconds to unpack frozen low-bit weights before each use: all uses except gradients of weights."""
    dense, experts = dimensions.layer_parameters(layout.tensor, layout.expert)
    moved = dimensions.training.unpacked_bytes(software.weight_bytes) * (dense + experts)
    return (passes - 1.0) * moved / _memory(device, software)


def _all_reduce(size: Floats, group: Group, device: Device, software: Software, layout: Layout) -> Floats:
    return all_reduce_s(size, group, device, software, layout, software.network_tensor_efficiency)


def _products(dimensions: Dimensions, layout: Layout, tokens: Floats, device: Device, software: Software) -> Floats:
    """Forward matrix products of a layer except those of attention itself; every expert on the device has its own."""
    attention = 2.0 * tokens * dimensions.attention_parameters / layout.tensor
    feed_forward = 2.0 * tokens * dimensions.feed_forward_parameters(1.0) * _active(dimensions, layout) / layout.tensor
    launches = dimensions.products(dimensions.experts / (layout.expert * layout.expert_fold))
    rate = product_flops_per_s(device, software)
    return (attention + feed_forward) / rate + launches * device.gains.gemm_ramp_s * software.gemm_ramp_s


def _attention(dimensions: Dimensions, layout: Layout, device: Device, software: Software) -> tuple[Floats, Floats]:
    """Forward seconds of attention's two batched products, and of the passes over its scores."""
    split = layout.tensor * layout.context
    flops = 4.0 * layout.micro_batch * dimensions.sequence**2 * dimensions.scores_size / split
    narrow = 1.0 + software.half_head_size / dimensions.head_size
    if software.flash_attention:
        flops = 0.5 * dimensions.attended_share * flops
    rate = device.half_flops_per_s * software.attention_efficiency
    if software.ampere_attention and device.after_ampere:
        rate = AMPERE_SHARE * rate
    elif software.flash_attention:
        rate = device.attention_gain(dimensions.head_size) * rate
    core = flops * narrow / rate
    if not software.flash_attention and dimensions.head_size * device.element_bytes % ALIGNED_BYTES:
        core = flops * narrow / (device.plain_flops_per_s * software.gemm_efficiency)
    core = core + 2.0 * dimensions.attention_share * device.gains.gemm_ramp_s * software.gemm_ramp_s
    if dimensions.state_space_share:
        core = core + layout.micro_batch * dimensions.sequence * dimensions.mixed_flops() / (split * rate)
    if software.flash_attention:
        return core, np.zeros(len(layout))
    stored = layout.micro_batch * dimensions.attention_share * dimensions.heads * dimensions.sequence**2 / split
    passes = software.score_passes * min(dimensions.sequence / FULL_SEQUENCE, 1.0)
    return core, passes * stored * device.element_bytes / _memory(device, software)


def _operators(dimensions: Dimensions, layout: Layout, tokens: Floats, device: Device, software: Software) -> Floats:
    """Forward seconds of norms, residuals and activations: bound by the memory's bandwidth.

    A gate makes an activation read two products in the place of one: three passes for two.
    """
    split = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    inner = _active(dimensions, layout) * dimensions.matrices / 2.0
    # A mixer's convolution and gate: five passes over its channels, where an activation has two over its inner size.
    inner = inner + 2.5 * dimensions.state_space_share * dimensions.channels
    values = software.replicated_passes * dimensions.hidden_size / split
    if software.unfused_norms and dimensions.is_gated:
        rotated = dimensions.attention_share * dimensions.heads * dimensions.head_size
        rotated += 0.5 * dimensions.key_value_size
        values = (
            values
            + UNFUSED_NORM_PASSES * dimensions.hidden_size / split
            + UNFUSED_ROTARY_PASSES * rotated / layout.tensor
        )
    values = values + software.feed_forward_passes * inner / layout.tensor
    if device.number_format == "fp8" and software.eager_memory:
        values = values + UNFUSED_CAST_PASSES * _cast(dimensions, inner, layout, split)
    elif device.number_format == "fp8":
        values = values + CAST_PASSES * (
            dimensions.hidden_size / split + 2.0 * dimensions.attention_size / layout.tensor
        )
    seconds: Floats = tokens * values * device.element_bytes / _memory(device, software)
    return seconds


def _cast(dimensions: Dimensions, inner: Floats | float, layout: Layout, split: Floats) -> Floats:
    """Values of a token that enter the products of a layer, and gradients of their results.

    ``inner``: of the feed-forward layer, half of what its matrices have beside the hidden state.
    """
    attention = dimensions.query_key_value + dimensions.attention_size
    return 4.0 * dimensions.hidden_size / split + (attention + 2.0 * inner) / layout.tensor


def _active(dimensions: Dimensions, layout: Layout) -> Floats | float:
    """Inner size of all blocks that a token passes, by the busiest device's share of the experts' part."""
    if not dimensions.experts:
        return dimensions.active
    return (
        dimensions.common_inner_size + busiest(dimensions, layout) * dimensions.routed_experts * dimensions.expert_size
    )


def _memory(device: Device, software: Software) -> float:
    return device.memory_bytes_per_s * software.memory_efficiency


def _inside(device: Device, software: Software) -> float:
    """Bytes per second of experts and contexts over the link in a node."""
    return device.link_bytes_per_s * device.gains.replica_link_efficiency * software.replica_link_efficiency


def _host(dimensions: Dimensions, layout: Layout, software: Software) -> Floats:
    """Seconds to launch a fully recomputed layer; without the fused softmax there are more kernels to launch."""
    batches = layout.micro_batch * dimensions.heads / layout.tensor
    plain = 0.0 if software.flash_attention else software.unfused_softmax_s
    unfused = np.mod(batches, software.fused_softmax_group) != 0.0
    return np.where(unfused, software.host_layer_s + plain, software.host_layer_s)


def _context(
    dimensions: Dimensions, layout: Layout, tokens: Floats, core: Floats, device: Device, software: Software
) -> Floats:
    """Exposed seconds per pass of ring attention: keys and values travel while the block before is worked on."""
    if not np.any(layout.context > 1.0):
        return np.zeros(len(layout))
    group = group_of(layout, device, layout.context, layout.tensor)
    size = device.element_bytes * tokens * dimensions.key_value_size / layout.tensor
    adapter = layout.node_link_bytes_per_s * group.share * software.network_efficiency
    rate = np.where(group.domains > 1.0, adapter, _inside(device, software))
    return (layout.context - 1.0) * np.maximum(size / rate - core / layout.context, 0.0)


def _expert(dimensions: Dimensions, layout: Layout, activation: Floats, device: Device, software: Software) -> Floats:
    """Seconds of the two all-to-alls of a layer that bring tokens to their experts and back.

    Each token is sent to each of its experts; or, if the stack does so, once to every domain of the device's link that
    has any of them, and from there once to every device. All wait for the device with the most tokens.
    """
    ranks = layout.expert * layout.expert_fold
    if not dimensions.experts or not np.any(ranks > 1.0):
        return np.zeros(len(layout))
    group = group_of(layout, device, ranks, layout.tensor * layout.context / layout.expert_fold)
    split = np.where(layout.sequence_parallel > 0.0, layout.tensor, 1.0)
    size = busiest(dimensions, layout) * activation * dimensions.expert_share / split
    inside = _inside(device, software)
    across = layout.node_link_bytes_per_s * group.share * software.network_efficiency
    chosen = dimensions.experts_per_token
    others = (ranks - 1.0) / ranks
    leaving = chosen * (group.domains - 1.0) / group.domains
    staying = chosen * others - leaving
    if software.sends_tokens_once:
        leaving = (group.domains - 1.0) * (1.0 - (1.0 - 1.0 / group.domains) ** chosen)
        staying = ranks * (1.0 - others**chosen) * others
    return 2.0 * size * (np.maximum(staying, 0.0) / inside + leaving / across)
