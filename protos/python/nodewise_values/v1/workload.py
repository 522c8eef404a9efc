"""Workloads: what is trained, and over what network. Absence, as on the whole wire: see configuration.proto."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.value import Value

__all__ = [
    "Architectures",
    "Encoder",
    "Layer",
    "Network",
    "Transformer",
    "Workload",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Workload(Value):
    """What a job trains. Every field may be absent; estimators say which ones they miss."""

    model_name: str = ""
    """Name of the model, for people."""
    parameter_bytes: float | None = None
    """Bytes of the parameters (and of the gradient) that cross the network per worker and direction in a step."""
    tensors_count: int | None = None
    """Tensors that the parameters are sent in."""
    flops_per_sample: float | None = None
    """Floating-point operations of forward and backward pass per sample."""
    samples_per_epoch: float | None = None
    """Samples in one epoch."""
    epochs_count: float | None = None
    """Epochs to train."""
    transformer: Transformer | None = None
    """The model's dimensions if it is a transformer."""
    layers: tuple[Layer, ...] = ()
    """Its layers where they are known, in order of the forward pass."""
    framework: str = ""
    """Training framework, e.g. "pytorch". Empty = not known."""
    optimizer: str = ""
    """Optimizer, e.g. "adam", "adamw", "sgd", "lion", "adafactor", "muon". Empty = not known."""
    precision: str = ""
    """Number format of weights and activations, e.g. "fp16". Empty = not known."""
    shard_bytes: tuple[float, ...] = ()
    """Bytes of the parameters that each parameter server holds, one entry per server.

    Bytes of the parameters that each parameter server holds, one entry per server; they add up to parameter_bytes where
    that is known. Empty = not known.
    """
    shard_tensors_counts: tuple[int, ...] = ()
    """Tensors that each parameter server holds, one entry per server; they add up to tensors_count where that is known.

    Empty = not known.
    """
    dropout: bool | None = None
    """Whether dropout sets values to 0, so that its masks are kept.

    Absent = not known: estimators say what they take.
    """
    frozen_weights_share: float | None = None
    """Share of the weights that are not trained, as with adapters (LoRA). Absent = 0: all are trained."""
    frozen_weight_bits: float | None = None
    """Bits that a weight which is not trained is held in, e.g. 4 (QLoRA). Absent = those of the number format."""
    offload: str = ""
    """What is kept in the host's memory.

    What is kept in the host's memory: "none", "optimizer" (its states, and its step there) or "parameters" (these as
    well). Empty = none.
    """
    reduction_precision: str = ""
    """Number format that gradients are added up in over replicas, e.g. "bf16". Empty = that of the software."""
    sharding_devices_count: int | None = None
    """Devices that parameters, gradients and optimizer states are split over by their ZeRO stage.

    Devices that parameters, gradients and optimizer states are split over by their ZeRO stage; groups of so many are
    replicas of each other (hybrid sharding). Absent = all data-parallel ranks.
    """
    recomputed_share: float | None = None
    """Share of the layers that full recomputation computes again. Absent = 1."""
    family: str = ""
    """Family that the model is of: who built it of which parts, e.g. "ResNet".

    Models of one family take like time per FLOP. Empty = not known, or of a family of its own.
    """
    activation_bytes_per_sample: float | None = None
    """Bytes that the forward pass keeps for the backward pass, per sample, parameters aside."""
    master_weights: bool | None = None
    """Whether the optimizer keeps a 32-bit copy of weights that are trained in 16 bits. Absent = not known."""
    optimizer_state_bits: float | None = None
    """Bits of each value of the optimizer's state, e.g. 8 (8-bit Adam).

    Absent = 32 with master weights, else those of the number format.
    """
    fused_loss: bool | None = None
    """Whether output layer and loss run as one kernel that never holds all logits. Absent = not known."""
    execution: str = ""
    """How kernels are launched: "eager", "compiled" or "graphs" (CUDA graphs). Empty = that of the software."""
    pipeline_schedule: str = ""
    """Schedule of the pipeline.

    Schedule of the pipeline: "1f1b" (interleaved where stages have several chunks), "gpipe", "zero-bubble" or
    "dualpipe". Empty = that of the software.
    """
    stage_layers: tuple[int, ...] = ()
    """Layers of each pipeline stage, in order; they add up to the model's layers.

    Holds for rows of so many stages. Empty = as even as possible, with the first and the last stage the shorter ones.
    """
    busiest_expert_share: float | None = None
    """Share of all routed tokens that the busiest expert gets, e.g. 0.125 of 8 balanced experts. Absent = not known."""
    expert_capacity: float | None = None
    """Tokens that an expert takes at most, in parts of its balanced share; more are dropped.

    Absent = none are dropped.
    """
    adapter_rank: int | None = None
    """Rank of the adapters on all matrices of frozen layers (LoRA). Absent = their cost is not counted."""
    adapter: str = ""
    """Kind of the adapters: "lora" or "dora" (magnitude and direction apart). Empty = "lora"."""
    document_tokens: float | None = None
    """Mean tokens of the documents that are packed into one sequence; a token attends to its own document alone.

    Absent = to the whole sequence.
    """
    devices_per_worker_count: int | None = None
    """Devices of one worker of a parameter server, which add up their gradients before the worker pushes them.

    Absent = 1.
    """
    encoder: Encoder | None = None
    """The encoder before the transformer, e.g. of images. Absent = there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Encoder(Value):
    """A transformer that turns images or sound into tokens of the model.

    A transformer that turns images or sound into tokens of the model, e.g. the vision tower of a vision-language model.
    """

    layers_count: int = 0
    """Its layers."""
    hidden_size: int = 0
    """Width of its residual stream."""
    attention_heads_count: int = 0
    """Its attention heads."""
    tokens_per_sample: int = 0
    """Tokens that it processes per sample, e.g. the patches of all images of a sample."""
    attended_tokens_count: int | None = None
    """Tokens that attend to each other, e.g. the patches of one image. Absent = tokens_per_sample."""
    feed_forward_size: int | None = None
    """Width of its feed-forward layer. Absent = four times hidden_size."""
    frozen: bool = False
    """It is not trained."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Architectures(Value):
    """Models that differ in these facts alone, as columns, e.g. the candidates of an architecture search.

    The longest column sets how many there are. Every other column is empty (the shared profile says), has one entry
    (which holds for all) or has one entry per architecture. 0 in a row: the shared profile says.
    """

    flops_per_sample: tuple[float, ...] = ()
    """Floating-point operations of forward and backward pass per sample."""
    family_names: tuple[str, ...] = ()
    """Dictionary of families, e.g. "ResNet". One name and no indexes: it holds for all."""
    family_indexes: tuple[int, ...] = ()
    """Architecture to entry of family_names. An entry may be the empty text: the shared profile says."""
    parameter_bytes: tuple[float, ...] = ()
    """Bytes of the parameters."""
    tensors_counts: tuple[int, ...] = ()
    """Tensors that hold them."""
    activation_bytes_per_sample: tuple[float, ...] = ()
    """Bytes that the forward pass keeps for the backward pass, per sample."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Transformer(Value):
    """Dimensions of a transformer."""

    layers_count: int = 0
    """Transformer layers."""
    hidden_size: int = 0
    """Width of the residual stream."""
    attention_heads_count: int = 0
    """Attention heads."""
    sequence_length_tokens: int = 0
    """Tokens per sample."""
    vocabulary_size: int = 0
    """Entries of the vocabulary."""
    key_value_heads_count: int | None = None
    """Key-value heads of grouped-query attention. Absent = attention_heads_count."""
    feed_forward_size: int | None = None
    """Width of the feed-forward layer. Absent = four times hidden_size."""
    experts_count: int | None = None
    """Experts per mixture layer. Absent = dense."""
    experts_per_token_count: int | None = None
    """Experts that each token is sent to. Absent = dense."""
    head_size: int | None = None
    """Width of an attention head. Absent = hidden_size / attention_heads_count."""
    gated_feed_forward: bool = False
    """The feed-forward layer has three matrices and a gate (SwiGLU and its like), not two."""
    untied_embeddings: bool = False
    """The output layer has a matrix of its own. Default: it is that of the input embedding."""
    expert_feed_forward_size: int | None = None
    """Width of one expert. Absent = feed_forward_size."""
    shared_expert_feed_forward_size: int | None = None
    """Width of the experts that every token visits, together. Absent = there are none."""
    expert_layers_count: int | None = None
    """Layers with experts; the others are dense. Absent = all, where there are experts."""
    key_value_latent_size: int | None = None
    """Width of the latent that keys and values are projected from (multi-head latent attention, kv_lora_rank).

    Absent = attention is not latent.
    """
    query_latent_size: int | None = None
    """Width of the latent that queries are projected from (q_lora_rank). Absent = queries are projected directly."""
    rotary_head_size: int | None = None
    """Part of head_size whose rotary positions all heads share in latent attention (qk_rope_head_dim).

    Absent = none.
    """
    value_head_size: int | None = None
    """Width of a head's values. Absent = head_size."""
    attention_window_tokens: int | None = None
    """Tokens that a token attends to at most (sliding window). Absent = all before it."""
    windowed_layers_count: int | None = None
    """Layers whose attention has the window; in the others a token attends to all before it.

    Absent = all, where there is a window.
    """
    attention_layers_count: int | None = None
    """Layers with attention, of hybrid models. Absent = all that have no state space."""
    state_space_layers_count: int | None = None
    """Layers with a state-space mixer (Mamba) in the place of attention. Absent = none."""
    state_space_size: int | None = None
    """Channels of the mixer. Absent = twice hidden_size."""
    state_size: int | None = None
    """Values of state for each channel. Absent = 128."""
    feed_forward_layers_count: int | None = None
    """Layers with a feed-forward part. Absent = all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Layer(Value):
    """One layer of a general network."""

    name: str = ""
    """Name, for people."""
    kind: str = ""
    """Kind, e.g. "dense", "convolution", "recurrent", "embedding"."""
    forward_flops_per_sample: float = 0.0
    """Floating-point operations of the forward pass per sample."""
    parameter_bytes: float = 0.0
    """Bytes of its parameters."""
    activation_bytes_per_sample: float = 0.0
    """Bytes of its output per sample."""
    halo_bytes_per_sample: float | None = None
    """Bytes of its input per sample that a part of it reads beyond each of its two edges.

    Bytes of its input per sample that a part of it reads beyond each of its two edges, where it can be split spatially
    into strips. Absent = it cannot: its parts read all of the input.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Network(Value):
    """Facts about the links of a job."""

    link_bytes_per_second: float | None = None
    """Link of a parameter server or node, bytes per second and direction, as provisioned."""
    half_duplex: bool | None = None
    """Both directions share the link's rate."""
    worker_link_bytes_per_second: float | None = None
    """Highest rate of one worker's link, bytes per second."""
    per_message_seconds: float | None = None
    """Time per message besides its bytes, seconds."""
    round_trip_seconds: float | None = None
    """Round-trip time between worker and server, seconds."""
