"""Workloads: what a job trains, and the network that it uses.

For what an absent or empty value means, see configuration.proto.
"""

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
    """What a job trains. Every field may be absent; an estimator that needs an absent one names it."""

    model_name: str = ""
    """Name of the model, for people."""
    parameter_bytes: float | None = None
    """Bytes of the parameters (and of the gradient) that each worker sends and receives in a step, per direction."""
    tensors_count: int | None = None
    """Number of tensors in which the parameters are sent."""
    flops_per_sample: float | None = None
    """Floating-point operations of the forward and backward pass per sample."""
    samples_per_epoch: float | None = None
    """Samples in one epoch."""
    epochs_count: float | None = None
    """Epochs to train."""
    transformer: Transformer | None = None
    """The model's dimensions, if it is a transformer."""
    layers: tuple[Layer, ...] = ()
    """The model's layers in the order of the forward pass, if they are known."""
    framework: str = ""
    """Training framework, e.g. "pytorch". Empty = not known."""
    optimizer: str = ""
    """Optimizer, e.g. "adam", "adamw", "sgd", "lion", "adafactor", "muon". Empty = not known."""
    precision: str = ""
    """Number format of weights and activations, e.g. "fp16". Empty = not known."""
    shard_bytes: tuple[float, ...] = ()
    """Bytes of parameters on each parameter server, one entry per server.

    They add up to parameter_bytes if that is known. Empty = not known.
    """
    shard_tensors_counts: tuple[int, ...] = ()
    """Tensors on each parameter server, one entry per server.

    They add up to tensors_count if that is known. Empty = not known.
    """
    dropout: bool | None = None
    """Whether dropout sets values to 0, so its masks occupy memory.

    Absent = not known; estimators state what they assume.
    """
    frozen_weights_share: float | None = None
    """Share of the weights that is not trained, as with adapters (LoRA). Absent = 0: all weights are trained."""
    frozen_weight_bits: float | None = None
    """Bits that store one weight that is not trained, e.g. 4 (QLoRA). Absent = those of the number format."""
    offload: str = ""
    """What is stored in host memory.

    What is stored in host memory: "none", "optimizer" (its states; the host also runs its step) or "parameters" (the
    parameters as well). Empty = none.
    """
    reduction_precision: str = ""
    """Number format in which gradients are summed over replicas, e.g. "bf16". Empty = the software's default."""
    sharding_devices_count: int | None = None
    """Number of devices over which the ZeRO stage splits parameters, gradients and optimizer states.

    Groups of this many devices are replicas of each other (hybrid sharding). Absent = all data-parallel ranks.
    """
    recomputed_share: float | None = None
    """Share of the layers that full recomputation recomputes. Absent = 1."""
    family: str = ""
    """Model family, e.g. "ResNet": models that the same authors built of the same parts.

    Models of one family take a similar time per FLOP. Empty = not known, or the model is the only one of its family.
    """
    activation_bytes_per_sample: float | None = None
    """Bytes per sample that the forward pass stores for the backward pass, without the parameters."""
    master_weights: bool | None = None
    """Whether the optimizer keeps a 32-bit copy of weights that are trained in 16 bits. Absent = not known."""
    optimizer_state_bits: float | None = None
    """Bits of each value of the optimizer's state, e.g. 8 (8-bit Adam).

    Absent = 32 with master weights, else those of the number format.
    """
    fused_loss: bool | None = None
    """Whether the output layer and the loss run as one kernel that never stores all logits. Absent = not known."""
    execution: str = ""
    """How kernels are launched: "eager", "compiled" or "graphs" (CUDA graphs). Empty = the software's default."""
    pipeline_schedule: str = ""
    """Schedule of the pipeline.

    Schedule of the pipeline: "1f1b" (interleaved where stages have several chunks), "gpipe", "zero-bubble" or
    "dualpipe". Empty = the software's default.
    """
    stage_layers: tuple[int, ...] = ()
    """Layers of each pipeline stage, in order.

    They add up to the model's layers, and apply to rows with this many stages. Empty = layers are split as evenly as
    possible, and the first and last stages are the shorter ones.
    """
    busiest_expert_share: float | None = None
    """Share of all routed tokens that the busiest expert gets, e.g. 0.125 with 8 balanced experts.

    Absent = not known.
    """
    expert_capacity: float | None = None
    """Most tokens that an expert processes, as a multiple of its balanced share; further tokens are dropped.

    Absent = none are dropped.
    """
    adapter_rank: int | None = None
    """Rank of the adapters (LoRA), which are on all matrices of frozen layers.

    Absent = the cost of adapters is not counted.
    """
    adapter: str = ""
    """Kind of the adapters: "lora" or "dora" (separate magnitude and direction). Empty = "lora"."""
    document_tokens: float | None = None
    """Mean tokens of the documents that are packed into one sequence.

    A token attends only to its own document. Absent = a token attends to the whole sequence.
    """
    devices_per_worker_count: int | None = None
    """Devices in one worker of a parameter server.

    They sum their gradients before the worker sends them. Absent = 1.
    """
    encoder: Encoder | None = None
    """The encoder whose output the transformer reads, e.g. for images. Absent = there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Encoder(Value):
    """A transformer that turns images or sound into tokens for the model.

    A transformer that turns images or sound into tokens for the model, e.g. the vision tower of a vision-language
    model.
    """

    layers_count: int = 0
    """Layers of the encoder."""
    hidden_size: int = 0
    """Width of the encoder's residual stream."""
    attention_heads_count: int = 0
    """Attention heads of the encoder."""
    tokens_per_sample: int = 0
    """Tokens that the encoder processes per sample, e.g. the patches of all images of a sample."""
    attended_tokens_count: int | None = None
    """Tokens that attend to each other, e.g. the patches of one image. Absent = tokens_per_sample."""
    feed_forward_size: int | None = None
    """Width of the encoder's feed-forward layer. Absent = four times hidden_size."""
    frozen: bool = False
    """The encoder is not trained."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Architectures(Value):
    """Models that differ only in these facts, as columns, e.g. the candidates of an architecture search.

    The longest column sets the number of architectures. Every other column is empty (the shared profile's value holds),
    has one entry (which holds for all) or has one entry per architecture. 0 in a row: the shared profile's value holds.
    """

    flops_per_sample: tuple[float, ...] = ()
    """Floating-point operations of the forward and backward pass per sample."""
    family_names: tuple[str, ...] = ()
    """Dictionary of families, e.g. "ResNet". One name without indexes holds for all."""
    family_indexes: tuple[int, ...] = ()
    """For each architecture, an index into family_names.

    If the entry is the empty text, the shared profile's family holds.
    """
    parameter_bytes: tuple[float, ...] = ()
    """Bytes of the parameters."""
    tensors_counts: tuple[int, ...] = ()
    """Tensors that the parameters consist of."""
    activation_bytes_per_sample: tuple[float, ...] = ()
    """Bytes per sample that the forward pass stores for the backward pass."""


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
    """Experts per mixture-of-experts layer. Absent = the model is dense."""
    experts_per_token_count: int | None = None
    """Experts that each token is sent to. Absent = the model is dense."""
    head_size: int | None = None
    """Width of an attention head. Absent = hidden_size / attention_heads_count."""
    gated_feed_forward: bool = False
    """The feed-forward layer has three matrices and a gate (e.g. SwiGLU) instead of two matrices."""
    untied_embeddings: bool = False
    """The output layer has its own matrix. Default: it shares the matrix of the input embedding."""
    expert_feed_forward_size: int | None = None
    """Width of one expert. Absent = feed_forward_size."""
    shared_expert_feed_forward_size: int | None = None
    """Total width of the experts that process every token. Absent = there are none."""
    expert_layers_count: int | None = None
    """Layers with experts; the others are dense. Absent = all layers, if there are experts."""
    key_value_latent_size: int | None = None
    """Width of the latent vector from which keys and values are projected (multi-head latent attention, kv_lora_rank).

    Absent = attention is not latent.
    """
    query_latent_size: int | None = None
    """Width of the latent vector from which queries are projected (q_lora_rank).

    Absent = queries are projected directly.
    """
    rotary_head_size: int | None = None
    """Part of head_size that holds rotary positions, shared by all heads in latent attention (qk_rope_head_dim).

    Absent = none.
    """
    value_head_size: int | None = None
    """Width of a head's values. Absent = head_size."""
    attention_window_tokens: int | None = None
    """Most tokens that a token attends to (sliding window). Absent = all before it."""
    windowed_layers_count: int | None = None
    """Layers whose attention uses the window; in the other layers a token attends to all tokens before it.

    Absent = all layers, if there is a window.
    """
    attention_layers_count: int | None = None
    """Layers with attention, in hybrid models. Absent = all layers without a state-space mixer."""
    state_space_layers_count: int | None = None
    """Layers with a state-space mixer (Mamba) instead of attention. Absent = none."""
    state_space_size: int | None = None
    """Channels of the state-space mixer. Absent = twice hidden_size."""
    state_size: int | None = None
    """State values per channel. Absent = 128."""
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
    """Halo of a layer that can be split spatially into strips.

    Halo of a layer that can be split spatially into strips: bytes of input per sample that a strip reads beyond each of
    its two edges. Absent = the layer cannot be split; its parts read all of the input.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Network(Value):
    """Facts about the network links of a job."""

    link_bytes_per_second: float | None = None
    """Provisioned rate of the link of a parameter server or node, bytes per second in each direction."""
    half_duplex: bool | None = None
    """Both directions together share the link's rate."""
    worker_link_bytes_per_second: float | None = None
    """Highest rate of one worker's link, bytes per second."""
    per_message_seconds: float | None = None
    """Seconds that each message takes in addition to the transfer of its bytes."""
    round_trip_seconds: float | None = None
    """Round-trip time between worker and server, seconds."""
