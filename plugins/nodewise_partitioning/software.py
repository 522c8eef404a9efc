"""The software stack as named numbers: what calibration corrects, and what a declared framework selects.

A step is arithmetic on dimensions, device and these numbers; nothing else is fitted. Their defaults are one joint fit
to published runs of Megatron-DeepSpeed on A100 (`research/score_partitioning.py --fit`; research/partitioning.md
tells what each rests on and how far the fit carries). Passes are counted in the bytes of one activation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Final

__all__ = [
    "DEFAULT_FRAMEWORK",
    "FIELDS",
    "LOG_SPREAD",
    "Correction",
    "Software",
    "is_known",
    "stack_of",
]


LOG_SPREAD: Final = 0.06
"""Deviation of ln(bytes held) by Megatron's stacks: nine of ten of BigScience's 53 runs are within 9 %."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The prior of a number before calibration.

    Attributes
    ----------
    log_deviation : float
        Prior standard deviation of the logarithm between installations of one stack on one kind of device; other
        stacks and devices differ by more (`estimator.OTHER_WIDENED`). A judgement, not a measurement.
    lower, upper : float
        Bounds that physics sets: efficiencies and shares of a bandwidth stay at most 1.
    identified_by : str
        Runs without which the number keeps its prior.
    """

    unit: str
    log_deviation: float
    lower: float
    upper: float
    identified_by: str


def _fit(default: float, unit: str, log_deviation: float, lower: float, upper: float, identified_by: str) -> Any:
    """A number that calibration may correct, with its default."""
    correction = Correction(unit, log_deviation, lower, upper, identified_by)
    return field(default=default, metadata={"correction": correction})


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """One software stack.

    First the numbers that calibration may correct; the rest are facts of the stack, never fitted to a job.

    Attributes
    ----------
    score_passes : float
        Counted at 2,048 tokens; shorter rows cost in proportion less each pass (see ``block.FULL_SEQUENCE``).
    memory_efficiency : float
        Share of the memory's bandwidth that streaming kernels reach. Only its ratio to the passes can be seen in steps,
        so it is fixed (BabelStream on A100: 0.87 to 0.90 for one stream, less for the mixtures here).
    later_products : float
        Of the share of the peak that products reach on A100, what devices after Ampere reach of it.
    half_head_size : float
        Head size at which attention's batched products reach half of their efficiency: they are that narrow.
    host_order : float
        Order of the soft maximum of a layer's time on the device and on the host: within a layer some kernels wait for
        their launch and some do not, so that the whole is slower than the slower of both sums.
    fused_softmax_group : float
        Micro-batch x heads per device must be a multiple of it, or softmax falls back to plain operators (Megatron's
        `scaled_upper_triang_masked_softmax` takes four of them a block of threads).
    embedding_passes : float
        Activations read or written per token in the embedding and its backward pass.
    network_latency_s : float
        Of one message between nodes (Calculon's preset of InfiniBand).
    gather_efficiency, gather_order : float
        Share of the adapters that parameters gathered layer by layer (stage 3 of ZeRO) reach, and the order of the soft
        maximum of that and the computation beside it. Both follow from the six ZeRO-3 runs of D. Narayanan et al., SC
        2021, table 2.
    gathers_in_rings : bool
        Those gathers go around as many rings as a node has devices, and so through all of its adapters; else around
        one, through one adapter of a node (``links.ADAPTER_BYTES_PER_S``). DeepSpeed of those six runs gathered every
        parameter by itself: on 384 to 2,240 A100 16.7 to 17.6 GB/s a device, two thirds of one adapter, whatever their
        number. Since 0.6 (January 2022, microsoft/DeepSpeed #1453) it gathers many at once, as PyTorch's FSDP does.
    flash_attention : bool
        Scores are never stored: no passes over them, half of their operations where they are causal, no memory.
    ampere_attention : bool
        Flash attention is that of FlashAttention 1 and 2, whose kernels are written for Ampere's matrix units.
    scatters_stages : bool
        A stage sends its output once, 1/t from each tensor-parallel rank.
    waits_for_stages : bool
        Every output that a stage sends or receives is waited for, not those alone that fill and drain the pipeline:
        DeepSpeed's engine blocks on each (`PipelineEngine._exec_send_activations` and its like).
    overlaps_gradients : bool
        Gradients are exchanged while the last micro-batch's backward pass still runs.
    sends_tokens_once : bool
        A token goes once to a node or device with several of its experts, not once to each of these (DeepEP).
    zero_bubble : bool
        Stages that would wait compute the gradients of weights that they put off (ZB-H1), instead of plain 1F1B.
    keeps_every_batch, dual_pipe : bool
        All forward passes of a step before the backward ones (GPipe); micro-batches from both ends (DualPipe).
    without_dropout : bool
        No masks are kept, nor attention's scores once more after theirs, where the job does not say; so since flash
        attention (LLaMA, MPT and NVIDIA's recipes of today train without).
    sums_in_half : bool
        Gradients are summed, held and exchanged in 16 bits in every 16-bit format (NeMo's `grad_sync_dtype: bf16`, over
        Apex's `DistributedFusedAdam`, which adds to its buckets what products have written).
    keeps_stage_outputs : bool
        What a stage sent on stays until its gradient comes back; Megatron-Core frees it at once.
    keeps_both_gradients : bool
        With bf16, 16-bit gradients stay beside the 32-bit ones that they are added to (DeepSpeed's `BF16_Optimizer`).
    offloads_gradients : bool
        With optimizer states in the host's memory and ZeRO from stage 2 on, gradients go there as the backward pass
        makes them (ZeRO-Offload; DeepSpeed's `estimate_zero3_model_states_mem_needs` counts weights alone).
    weight_bytes ... optimizer_state_bytes : float
        Held per parameter, 16-bit formats: weights, gradients, master weights and two moments.
    update_bytes : float
        Per parameter of the optimizer's part, 32-bit gradients that its step makes of 16-bit ones.
    accumulated_bytes : float
        Moved per parameter and micro-batch to add its gradient to those of the micro-batches before: written, both
        read, written. Nothing where the gradients of each micro-batch are reduced at once: only parts are added.
    fused_accumulation : bool
        Products of weight gradients read and write the 32-bit sum themselves, while they compute (Megatron-LM's
        gradient accumulation fusion): a step takes the soft maximum of both, as with gathers.
    eager_memory : bool
        Memory is PyTorch's own: states are one 32-bit copy that FSDP splits, gradients are freed after each step, whole
        layers are gathered with the matrices of the ends beside them, and the allocator gives back what it split.
    casts_masters : bool
        16-bit weights are made of the 32-bit ones where they are gathered (FSDP's mixed precision; MaxText, whose
        `weight_dtype` is float32 beside a `dtype` of bfloat16), and held nowhere else.
    fuses_operators : bool
        What stands between products is computed again where it is needed: of norms and activations inputs are kept, no
        results.
    reserved_bytes : float
        What is taken before training: context, libraries and communicators (CUDA and NCCL on A100); of a TPU's memory
        XLA reserves 0.25 GiB (v5e) to 1.25 GiB (v4: 30.75 GiB are left of 32).
    compiled : bool
        By `torch.compile`: with its loss on devices that came into use after 2024 (torchtitan compiles it since then).
    unfused_norms : bool
        Norms and rotary positions are chains of plain operators, in 32 bits.
    chunks_loss : bool
        Output layer and loss go over few tokens at a time (Liger), and keep no logits.
    logit_bytes, cached_logit_bytes : float
        Per word and token of the output layer with its loss, held at once, and in blocks that the allocator keeps.
    norm_bytes : float
        Per element of the hidden state, of norms in 32 bits while a layer is computed again.
    bucket_bytes : float
        Gradients on their way between replicas, and parameters on their way back, with a ZeRO stage: DeepSpeed's
        defaults are 5e8 elements for each.
    cache_share : float
        Blocks that the allocator keeps whatever the job, by the device's memory where it has the room: what 48
        runs of BigScience on A100-80GB hold beyond the other terms (4.1 GB in the middle; five on V100-32GB 0.3 to 2).
    reduces_in_place : bool
        Gradients are kept in the format that they are reduced in (Megatron's buffer of gradients).
    memory_level : float
        Factor on all that a device cannot do without, which the job's runs ask for.
    memory_log_spread : float
        Deviation of ln(bytes held).
    """

    gemm_efficiency: float = _fit(0.79, "share of peak", 0.05, 0.2, 0.9, "large matrices: large b, h")
    gemm_ramp_s: float = _fit(4.3e-05, "s per matrix product", 0.25, 1e-7, 1e-3, "small matrices at t = 1, different b")
    attention_efficiency: float = _fit(0.9, "share of peak", 0.15, 0.05, 0.9, "different s / h")
    replicated_passes: float = _fit(2.2, "activations read or written per layer", 0.15, 0.3, 60.0, "different t")
    feed_forward_passes: float = _fit(1.1, "the same, of size f, split over t", 0.15, 0.1, 30.0, "different f / h")
    score_passes: float = _fit(7.1, "attention scores read or written per layer", 0.15, 0.3, 60.0, "different s / h")
    host_layer_s: float = _fit(0.0031, "s per recomputed layer and micro-batch", 0.125, 1e-6, 0.1, "smallest b and h")
    host_collective_s: float = _fit(4.2e-05, "s per collective", 0.25, 1e-7, 1e-2, "smallest b at t > 1")
    unfused_softmax_s: float = _fit(0.0016, "s per layer and micro-batch", 0.25, 1e-6, 0.1, "b a / t no multiple of 4")
    tensor_collective_factor: float = _fit(1.1, "of the measured time", 0.1, 0.3, 3.0, "t = 2 to 8 at equal work")
    head_passes: float = _fit(93, "bytes per token and word", 0.15, 1.0, 300.0, "small L against large L")
    head_host_s: float = _fit(0.0011, "s per micro-batch", 0.25, 1e-6, 0.1, "smallest b, small L")
    embedding_host_s: float = _fit(0.00035, "s per micro-batch", 0.25, 1e-6, 0.1, "p > 1")
    optimizer_bytes: float = _fit(23, "bytes per parameter", 0.05, 8.0, 200.0, "one micro-batch, no data parallelism")
    replica_link_efficiency: float = _fit(0.75, "share of the link in a node", 0.15, 0.02, 1.0, "x or c > 1 in a node")
    stage_link_efficiency: float = _fit(0.088, "share of the link in a node", 0.15, 0.005, 1.0, "p > 1 in a node")
    network_efficiency: float = _fit(0.66, "share of a node's adapters", 0.15, 0.02, 1.0, "d > 1 or p > 1 across nodes")
    network_tensor_efficiency: float = _fit(0.8, "share of a node's adapters", 0.1, 0.02, 1.0, "t beyond a node")
    fixed_s: float = _fit(0.0013, "s per step", 0.35, 1e-6, 1.0, "shortest steps")

    framework: str = "megatron"
    later_products: float = 1.0
    memory_efficiency: float = 0.8
    half_head_size: float = 32.0
    host_order: float = 8
    fused_softmax_group: float = 4.0
    embedding_passes: float = 8.0
    network_latency_s: float = 2e-5
    gather_efficiency: float = 0.66
    gather_order: float = 2.0
    gathers_in_rings: bool = False
    flash_attention: bool = False
    ampere_attention: bool = False
    scatters_stages: bool = True
    waits_for_stages: bool = False
    overlaps_gradients: bool = False
    sends_tokens_once: bool = False
    zero_bubble: bool = False
    keeps_every_batch: bool = False
    dual_pipe: bool = False
    without_dropout: bool = False
    sums_in_half: bool = False
    keeps_stage_outputs: bool = True
    keeps_both_gradients: bool = True
    offloads_gradients: bool = False
    weight_bytes: float = 2.0
    gradient_bytes: float = 2.0
    optimizer_state_bytes: float = 12.0
    update_bytes: float = 4.0
    accumulated_bytes: float = 8.0
    fused_accumulation: bool = False
    eager_memory: bool = False
    casts_masters: bool = False
    fuses_operators: bool = False
    reserved_bytes: float = 1.5e9
    is_compiled: bool = False
    unfused_norms: bool = False
    chunks_loss: bool = False
    logit_bytes: float = 4.0
    cached_logit_bytes: float = 0.0
    norm_bytes: float = 0.0
    cache_share: float = 0.05
    bucket_bytes: float = 2.0 * 5e8 * 2.0
    memory_level: float = 1.0
    memory_log_spread: float = LOG_SPREAD
    exchanged_gradient_bytes: float = 2.0
    reduces_in_place: bool = False

    @property
    def has_masters(self) -> bool:
        """Whether 32-bit copies of 16-bit weights are among the optimizer's states."""
        return self.optimizer_state_bytes > 8.0

    def vector(self) -> tuple[float, ...]:
        """The numbers of :data:`FIELDS`."""
        return tuple(getattr(self, name) for name in FIELDS)

    def with_numbers(self, values: tuple[float, ...]) -> Software:
        """The same stack with other numbers of :data:`FIELDS`."""
        numbers: dict[str, Any] = dict(zip(FIELDS, values, strict=True))
        return replace(self, **numbers)


FIELDS: Final[Mapping[str, Correction]] = {
    each.name: each.metadata["correction"] for each in fields(Software) if each.metadata
}
"""Every number that calibration may correct, in the order of its vector."""


DEFAULT_FRAMEWORK: Final = "megatron"
"""Megatron with its own schedule of pipelines, whichever library keeps the optimizer's states: vTrain's runs."""

HOST_OF_GRAPHS: Final = 0.1
"""Share of a layer's launches that remain with CUDA graphs; collectives and the output layer are launched as before."""

FLASH_EFFICIENCY: Final = 0.5
"""Share of the peak that flash attention's forward pass reaches of wide heads, the causal half alone counted: that of
A100-80GB in FSDP runs of MPT (llm-foundry, 2023), of which those of A100-40GB and H100 took no part. Kernels of today
reach as much at heads of 128 (research/kernels.md)."""

EAGER: Final[Mapping[str, Any]] = {
    "gemm_efficiency": 0.70,
    "later_products": 0.86,
    "replicated_passes": 12.0,
    "feed_forward_passes": 2.0,
    "head_passes": 42.0,
}
"""PyTorch without fused operators. A layer's forward pass reads and writes two norms (4), two residual sums (6), what
attention takes and leaves in another order (2), and the activation (2 of size f). Of each word's logit 42 bytes move:
2 written, 2 + 4 to 32 bits, 4 + 4 log-softmax, 4 + 8 + 4 of their gradients, 4 + 2 to 16 bits, 4 read by two products.
What products then reach is that of A100 in FSDP runs of MPT; what H100 reaches less, beyond its kernels' own
share, is that of the same campaign's runs on it in bf16. torchtitan's and fms-acceleration's runs took no part."""

_PLAIN: Final = Software()

COMPILED: Final[Mapping[str, Any]] = {
    **{name: HOST_OF_GRAPHS * getattr(_PLAIN, name) for name in ("host_layer_s", "head_host_s", "embedding_host_s")},
    "head_passes": 22.0,
}
"""A step that XLA compiles as one program: the host launches it once, and what stands between products is fused into
few passes, as Megatron's own kernels fuse it. Of each word's logit 22 bytes move: 4 written, 4 read for the maximum, 4
for the sum and 4 for its gradient, 2 of which are written, and read by two products (4)."""
OF_TORCH: Final[Mapping[str, Any]] = {
    "eager_memory": True,
    "logit_bytes": 12.0,
    "cached_logit_bytes": 2.0,
    "norm_bytes": 24.0,
    "cache_share": 0.0,
    "casts_masters": True,
    "update_bytes": 4.0,
    "memory_log_spread": 0.1,
}
"""Memory of PyTorch without fused operators. Of each logit three 32-bit copies are held at once: in the forward pass
it, its shifted copy or none, and its log-softmax; in the backward pass this, the gradient of what is picked from it,
and its own gradient. The 16 bits it was are freed, but their block is kept. Norms keep input and result in 32 bits,
twice a layer (16), and their gradients are as wide, one norm's at a time (8). Adam over lists of parameters
(`torch.optim`, foreach) makes roots of all second moments at once. The deviation of ln(bytes) is .11 over 141 runs of
Hugging Face's trainer whose states are held as is taken (fms-acceleration), and .08 over 12 of torchtitan."""
FUSED_LOSS: Final[Mapping[str, Any]] = {"logit_bytes": 10.0, "cached_logit_bytes": 4.0}
"""The gradient takes the logits' place (Unsloth's cross-entropy): two 32-bit copies, and 16 bits of the cast back."""

_MEGATRON_LM: Final = Software(
    framework="megatron-lm",
    reduces_in_place=True,
    keeps_both_gradients=False,
    fused_accumulation=True,
    bucket_bytes=0.0,
)
_MEGATRON_CORE: Final = replace(
    _MEGATRON_LM,
    framework="megatron-core",
    overlaps_gradients=True,
    gathers_in_rings=True,
    keeps_stage_outputs=False,
)
_REPLICATED: Final = Software(
    overlaps_gradients=True,
    scatters_stages=False,
    ampere_attention=True,
    accumulated_bytes=0.0,
    gathers_in_rings=True,
)
_STACKS: Final = {
    "megatron": _PLAIN,
    "megatrondeepspeed": Software(framework="megatron-deepspeed", scatters_stages=False, waits_for_stages=True),
    "megatronlm": _MEGATRON_LM,
    "megatroncore": _MEGATRON_CORE,
    "nemo": replace(_MEGATRON_CORE, framework="nemo", fused_accumulation=False, sums_in_half=True),
    "deepspeed": replace(_REPLICATED, framework="deepspeed", offloads_gradients=True),
    "pytorch": replace(
        _REPLICATED,
        framework="pytorch",
        **EAGER,
        **OF_TORCH,
        unfused_norms=True,
        keeps_both_gradients=False,
        bucket_bytes=0.0,
    ),
    "maxtext": replace(
        _REPLICATED,
        framework="maxtext",
        **COMPILED,
        ampere_attention=False,
        update_bytes=0.0,
        keeps_both_gradients=False,
        bucket_bytes=0.0,
        reserved_bytes=1.25 * 2.0**30,
        cache_share=0.0,
        casts_masters=True,
        fuses_operators=True,
    ),
}
"""What a declared framework selects, by the letters and digits that its name begins with."""
_SWITCHES: Final = {
    "flash": "flash_attention",
    "deepep": "sends_tokens_once",
    "zerobubble": "zero_bubble",
    "gpipe": "keeps_every_batch",
    "dualpipe": "dual_pipe",
    "nodropout": "without_dropout",
}
"""What else its name may say was switched on, or off."""


def _letters(framework: str) -> str:
    return "".join(letter for letter in framework.casefold() if letter.isalnum())


@lru_cache(maxsize=256)
def _known_name(framework: str) -> str:
    """The stack that a name begins with; "" = none."""
    letters = _letters(framework)
    return next((name for name in sorted(_STACKS, key=len, reverse=True) if letters.startswith(name)), "")


def is_known(framework: str) -> bool:
    """Whether a declared framework begins with the name of a stack."""
    return bool(_known_name(framework))


@lru_cache(maxsize=256)
def stack_of(framework: str, number_format: str) -> tuple[Software, bool]:
    """The stack of a declared framework, and whether its name was known.

    A name may be followed by what else was switched: "megatron-lm flash-attention cuda-graphs zero-bubble deepep
    no-dropout".
    """
    letters = _letters(framework).replace("noflash", "")
    name = _known_name(framework)
    stack = _STACKS.get(name, Software())
    switched_on: dict[str, Any] = {fact: True for word, fact in _SWITCHES.items() if word in letters}
    if switched_on:
        stack = replace(stack, **switched_on)
    if stack.flash_attention:
        stack = replace(stack, attention_efficiency=FLASH_EFFICIENCY, without_dropout=True)
    if stack.eager_memory and ("fusedkernel" in letters or "liger" in letters):
        stack = replace(stack, **FUSED_LOSS, chunks_loss="liger" in letters, unfused_norms=False)
    if stack.eager_memory and "compile" in letters:
        stack = replace(stack, is_compiled=True, norm_bytes=0.0, update_bytes=0.0, unfused_norms=False)
    if "cudagraph" in letters:
        stack = replace(stack, host_layer_s=HOST_OF_GRAPHS * stack.host_layer_s)
    if number_format != "fp16":
        wide = number_format in ("fp32", "tf32")
        stack = replace(
            stack,
            weight_bytes=4.0 if wide else 2.0,
            gradient_bytes=4.0 if wide else 2.0 if stack.sums_in_half else 6.0 if stack.keeps_both_gradients else 4.0,
            optimizer_state_bytes=8.0 if wide else 12.0,
            update_bytes=stack.update_bytes if stack.eager_memory else 0.0,
            bucket_bytes=2.0 * stack.bucket_bytes,
            accumulated_bytes=stack.accumulated_bytes
            * (1.0 if stack.fused_accumulation or stack.sums_in_half else 2.0 if wide else 1.5),
            exchanged_gradient_bytes=2.0 if stack.sums_in_half and not wide else 4.0,
        )
    return stack, bool(name)
