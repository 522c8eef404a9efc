"""Workloads and networks: what a job trains and over what links. None = not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final, TypeVar

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["STATE_SIZE", "WORDS", "Encoder", "Layer", "Network", "Transformer", "Workload", "merged_facts"]

WORDS: Final = {
    "offload": ("none", "optimizer", "parameters"),
    "reduction_precision": ("fp32", "fp16", "bf16"),
    "execution": ("eager", "compiled", "graphs"),
    "pipeline_schedule": ("1f1b", "gpipe", "zero-bubble", "dualpipe"),
    "adapter": ("lora", "dora"),
}
"""Facts that are one of several words."""
STATE_SIZE: Final = 128
"""Values of state for each channel (T. Dao and A. Gu, "Transformers are SSMs", ICML 2024: Mamba-2's models)."""
_PARTS: Final = (
    ("query_latent_size", "query_latent_size", "key_value_latent_size", "key_value_latent_size"),
    ("rotary_head_size", "rotary_head_size", "key_value_latent_size", "key_value_latent_size"),
    ("windowed_layers", "windowed_layers_count", "attention_window", "attention_window_tokens"),
    ("state_space_size", "state_space_size", "state_space_layers", "state_space_layers_count"),
    ("state_size", "state_size", "state_space_layers", "state_space_layers_count"),
)
"""Facts of a part, and the fact without which the part does not exist, each with its name on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Dimensions of a transformer; counts and sizes as in the field's usual notation.

    Attributes
    ----------
    key_value_heads : int
        Of grouped-query attention; 0 = as many as attention heads.
    feed_forward_size : int
        0 = four times the hidden size.
    experts, experts_per_token : int
        Experts of a mixture layer, and those that each token is sent to; 0 = dense.
    head_size : int
        0 = hidden size / attention heads.
    gated_feed_forward : bool
        Three matrices and a gate (SwiGLU and its like), not two.
    untied_embeddings : bool
        The output layer has a matrix of its own.
    expert_feed_forward_size : int
        Width of one expert; 0 = ``feed_forward_size``.
    shared_expert_feed_forward_size : int
        Total width of the experts that every token visits.
    expert_layers : int
        Layers with experts, the others are dense; 0 = all, where there are experts.
    key_value_latent_size, query_latent_size : int
        Widths of the latents that keys and values, and queries, are projected from (multi-head latent attention); 0 =
        they are projected directly.
    rotary_head_size : int
        Part of ``head_size`` whose rotary positions all heads share, in latent attention.
    value_head_size : int
        Width of a head's values; 0 = ``head_size``.
    attention_window, windowed_layers : int
        Most tokens that a token attends to, 0 = all before it; layers with this limit, 0 = all.
    attention_layers : int
        Layers with attention; 0 = all that have no state space.
    state_space_layers, state_space_size, state_size : int
        Layers with a state-space mixer (Mamba), its channels (0 = twice the hidden size), and the values of state for
        each (0 = 128).
    feed_forward_layers : int
        Layers with a feed-forward part; 0 = all.
    """

    layers: int
    hidden_size: int
    attention_heads: int
    sequence_length: int
    vocabulary_size: int
    key_value_heads: int = 0
    feed_forward_size: int = 0
    experts: int = 0
    experts_per_token: int = 0
    head_size: int = 0
    gated_feed_forward: bool = False
    untied_embeddings: bool = False
    expert_feed_forward_size: int = 0
    shared_expert_feed_forward_size: int = 0
    expert_layers: int = 0
    key_value_latent_size: int = 0
    query_latent_size: int = 0
    rotary_head_size: int = 0
    value_head_size: int = 0
    attention_window: int = 0
    windowed_layers: int = 0
    attention_layers: int = 0
    state_space_layers: int = 0
    state_space_size: int = 0
    state_size: int = 0
    feed_forward_layers: int = 0

    @property
    def layers_with_attention(self) -> int:
        """Layers that have attention; the others have a state space, or neither."""
        return self.attention_layers or self.layers - self.state_space_layers

    @property
    def layers_with_feed_forward(self) -> int:
        """Layers that have a feed-forward part, dense or of experts."""
        return self.feed_forward_layers or self.layers

    @property
    def head_sizes(self) -> tuple[float, float]:
        """Widths of a head's queries and keys, and of its values."""
        queries = self.head_size or self.hidden_size / self.attention_heads
        return queries, self.value_head_size or queries

    @property
    def channels(self) -> int:
        """Channels of a state-space mixer."""
        return self.state_space_size or 2 * self.hidden_size

    def attention_elements(self) -> float:
        """Elements of the projections of one layer with attention."""
        width, heads, latent = self.hidden_size, self.attention_heads, self.key_value_latent_size
        queries, values = self.head_sizes
        of_queries, out = width * heads * queries, heads * values * width
        if self.query_latent_size:
            of_queries = self.query_latent_size * (width + heads * queries)
        if not latent:
            return of_queries + width * (self.key_value_heads or heads) * (queries + values) + out
        rotary = self.rotary_head_size
        return of_queries + width * (latent + rotary) + latent * heads * (queries - rotary + values) + out

    def state_space_elements(self) -> float:
        """Elements of the projections of one state-space mixer: to channels, their gates and states, and back."""
        states = self.state_size or STATE_SIZE
        return self.hidden_size * (3.0 * self.channels + 2.0 * states) if self.state_space_layers else 0.0

    def multiplied_elements(self) -> float:
        """Elements of all matrices that one token is multiplied with, without the output layer."""
        inner = self.feed_forward_size or 4 * self.hidden_size
        feed_forward_layers = self.layers_with_feed_forward
        sparse = min(self.expert_layers or feed_forward_layers, feed_forward_layers) if self.experts else 0
        expert_width = self.experts_per_token * (self.expert_feed_forward_size or inner)
        width = (feed_forward_layers - sparse) * inner + sparse * (expert_width + self.shared_expert_feed_forward_size)
        elements = self.layers_with_attention * self.attention_elements()
        elements += self.state_space_layers * self.state_space_elements()
        return elements + self.hidden_size * (3.0 if self.gated_feed_forward else 2.0) * width

    def violations(self, path: str) -> list[Violation]:
        """Dimensions that contradict each other. ``path`` is the prefix of each field."""
        violations = []

        def wrong(name: str, text: str) -> None:
            violations.append(Violation(f"{path}.{name}", text))

        heads = self.attention_heads
        if not self.head_size and self.hidden_size % heads:
            text = f"must divide hidden_size ({self.hidden_size}) where head_size is not stated, found {heads}"
            wrong("attention_heads_count", text)
        if self.key_value_heads and heads % self.key_value_heads:
            wrong("key_value_heads_count", f"must divide attention_heads_count ({heads}), found {self.key_value_heads}")
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            text = f"must be 1 to experts_count ({self.experts}), found {self.experts_per_token}"
            wrong("experts_per_token_count", text)
        if not self.experts:
            for name, value in (
                ("experts_per_token_count", self.experts_per_token),
                ("expert_feed_forward_size", self.expert_feed_forward_size),
                ("shared_expert_feed_forward_size", self.shared_expert_feed_forward_size),
                ("expert_layers_count", self.expert_layers),
            ):
                if value:
                    wrong(name, f"must be 0 where there are no experts (experts_count 0), found {value}")
        return [*violations, *self._of_parts(path)]

    def _of_parts(self, path: str) -> Iterator[Violation]:
        """Kinds of layers that exceed the number of layers, and facts of a part that is not stated."""
        for name in (
            "expert_layers",
            "windowed_layers",
            "attention_layers",
            "state_space_layers",
            "feed_forward_layers",
        ):
            if getattr(self, name) > self.layers:
                text = f"must be at most layers_count ({self.layers}), found {getattr(self, name)}"
                yield Violation(f"{path}.{name}_count", text)
        if self.rotary_head_size and self.rotary_head_size >= (
            self.head_size or self.hidden_size // self.attention_heads
        ):
            text = f"must be below head_size, of which it is a part, found {self.rotary_head_size}"
            yield Violation(f"{path}.rotary_head_size", text)
        for name, field, part_name, other in _PARTS:
            if getattr(self, name) and not getattr(self, part_name):
                text = f"must be 0 where {other} is not stated, found {getattr(self, name)}"
                yield Violation(f"{path}.{field}", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A transformer that turns images or sound into tokens of the model, such as a vision tower.

    Attributes
    ----------
    tokens_per_sample : int
        Tokens of a sample, such as the patches of all images.
    attended_tokens : int
        Tokens that attend to each other, such as the patches of one image; 0 = all of a sample.
    feed_forward_size : int
        0 = four times the hidden size.
    frozen : bool
        Whether it is not trained.
    """

    layers: int
    hidden_size: int
    attention_heads: int
    tokens_per_sample: int
    attended_tokens: int = 0
    feed_forward_size: int = 0
    frozen: bool = False

    def violations(self, path: str) -> list[Violation]:
        """Dimensions that contradict each other. ``path`` is the prefix of each field."""
        violations = []
        if self.hidden_size % self.attention_heads:
            text = f"must divide hidden_size ({self.hidden_size}), found {self.attention_heads}"
            violations.append(Violation(f"{path}.attention_heads_count", text))
        if self.attended_tokens > self.tokens_per_sample:
            text = f"must be at most tokens_per_sample ({self.tokens_per_sample}), found {self.attended_tokens}"
            violations.append(Violation(f"{path}.attended_tokens_count", text))
        return violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of a general network; FLOPs and bytes of its output (activation) per sample.

    Attributes
    ----------
    halo_bytes_per_sample : float or None
        Bytes of its input that a part of it reads beyond each of its two edges, where it can be split spatially into
        strips; None = it cannot, and its parts read all of the input.
    """

    name: str
    kind: str
    forward_flops_per_sample: float
    parameter_bytes: int
    activation_bytes_per_sample: float
    halo_bytes_per_sample: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The model and data of a training job.

    Attributes
    ----------
    parameter_bytes : int or None
        Bytes that cross the network per worker and direction in a step.
    tensors : int or None
        Tensors that they are sent in.
    flops_per_sample : float or None
        Floating-point operations of forward and backward pass.
    samples_per_epoch, epochs : int or None, float or None
        Size of the data set and passes over it.
    shard_bytes, shard_tensors : tuple of int or None
        Parameters and tensors that each parameter server holds, one entry per server; they add up to those of the
        whole where both are known.
    dropout : bool or None
        Whether dropout sets values to 0, so that its masks are kept.
    frozen_weights_share, frozen_weight_bits : float or None
        Share of the weights that are not trained (LoRA), and the bits that each of them is held in (QLoRA).
    offload : str or None
        State that is kept in the host's memory: one of :data:`WORDS`.
    reduction_precision : str or None
        Number format of the sum of gradients over replicas.
    sharding_devices : int or None
        Devices that a ZeRO stage splits over; groups of so many are replicas of each other (hybrid sharding).
    recomputed_share : float or None
        Share of the layers that full recomputation computes again.
    family : str or None
        Family of models that it belongs to, such as "ResNet".
    activation_bytes_per_sample : float or None
        Bytes that the forward pass keeps for the backward pass, without parameters.
    master_weights : bool or None
        Whether the optimizer keeps a 32-bit copy of weights that are trained in 16 bits.
    optimizer_state_bits : float or None
        Bits of each value of the optimizer's state.
    fused_loss : bool or None
        Whether output layer and loss never hold all logits.
    execution, pipeline_schedule, adapter : str or None
        How kernels are launched, the pipeline's schedule, the kind of adapters: one of :data:`WORDS` each.
    stage_layers : tuple of int or None
        Layers of each pipeline stage, in order; they hold for rows of so many stages.
    busiest_expert_share, expert_capacity : float or None
        Share of all routed tokens that the busiest expert gets; tokens that an expert takes at most, in parts of its
        balanced share.
    adapter_rank : int or None
        Of the adapters on all matrices of frozen layers.
    document_tokens : float or None
        Mean tokens of the documents that are packed into one sequence.
    devices_per_worker : int or None
        Devices of one worker of a parameter server, which add up their gradients before it pushes them.
    encoder : Encoder or None
        The encoder before the transformer.
    """

    model_name: str | None = None
    parameter_bytes: int | None = None
    tensors: int | None = None
    flops_per_sample: float | None = None
    samples_per_epoch: int | None = None
    epochs: float | None = None
    transformer: Transformer | None = None
    layers: tuple[Layer, ...] | None = None
    framework: str | None = None
    optimizer: str | None = None
    precision: str | None = None
    shard_bytes: tuple[int, ...] | None = None
    shard_tensors: tuple[int, ...] | None = None
    dropout: bool | None = None
    frozen_weights_share: float | None = None
    frozen_weight_bits: float | None = None
    offload: str | None = None
    reduction_precision: str | None = None
    sharding_devices: int | None = None
    recomputed_share: float | None = None
    family: str | None = None
    activation_bytes_per_sample: float | None = None
    master_weights: bool | None = None
    optimizer_state_bits: float | None = None
    fused_loss: bool | None = None
    execution: str | None = None
    pipeline_schedule: str | None = None
    stage_layers: tuple[int, ...] | None = None
    busiest_expert_share: float | None = None
    expert_capacity: float | None = None
    adapter_rank: int | None = None
    adapter: str | None = None
    document_tokens: float | None = None
    devices_per_worker: int | None = None
    encoder: Encoder | None = None

    def violations(self, path: str) -> list[Violation]:
        """Facts that contradict each other, such as shards and their sum. ``path`` is the prefix of each field."""
        violations = [] if self.transformer is None else self.transformer.violations(f"{path}.transformer")
        if self.encoder is not None:
            violations += self.encoder.violations(f"{path}.encoder")
        if self.transformer is not None and self.stage_layers and sum(self.stage_layers) != self.transformer.layers:
            text = f"must add up to layers_count ({self.transformer.layers}), but add up to {sum(self.stage_layers)}"
            violations.append(Violation(f"{path}.stage_layers", text))
        if self.transformer is not None and self.busiest_expert_share and self.transformer.experts:
            least = 1.0 / self.transformer.experts
            if self.busiest_expert_share < least:
                text = f"must be at least 1 / experts_count ({least:.4g}), found {self.busiest_expert_share:g}"
                violations.append(Violation(f"{path}.busiest_expert_share", text))
        parts = (
            ("shard_bytes", self.shard_bytes, "parameter_bytes", self.parameter_bytes),
            ("shard_tensors_counts", self.shard_tensors, "tensors_count", self.tensors),
        )
        for name, shards, whole_name, whole in parts:
            if shards is not None and whole is not None and sum(shards) != whole:
                violations.append(
                    Violation(f"{path}.{name}", f"must add up to {whole_name} ({whole}), but add up to {sum(shards)}")
                )
        for name, words in WORDS.items():
            word = getattr(self, name)
            if word and word not in words:
                violations.append(Violation(f"{path}.{name}", f"must be one of {', '.join(words)}, found {word!r}"))
        servers, of_tensors = self.shard_bytes, self.shard_tensors
        if servers is not None and of_tensors is not None and len(servers) != len(of_tensors):
            text = f"must have one entry per server as shard_bytes ({len(servers)}), found {len(of_tensors)}"
            violations.append(Violation(f"{path}.shard_tensors_counts", text))
        return violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Facts about links.

    Attributes
    ----------
    link_bytes_per_s : float or None
        Link of a server or node per direction, as provisioned.
    half_duplex : bool or None
        Whether both directions share that rate.
    worker_link_bytes_per_s : float or None
        Highest rate of one worker's link.
    per_message_s, round_trip_s : float or None
        Time per message besides its bytes; round trip between worker and server.
    """

    link_bytes_per_s: float | None = None
    half_duplex: bool | None = None
    worker_link_bytes_per_s: float | None = None
    per_message_s: float | None = None
    round_trip_s: float | None = None


FactsT = TypeVar("FactsT", Workload, Network)


def merged_facts(old: FactsT, new: FactsT, path: str) -> FactsT:
    """Both sets of facts in one.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS, naming every field of ``new`` that contradicts ``old``, alone or together
        with other fields.
    """
    values: dict[str, object] = {}
    violations = []
    for field in fields(old):
        old_value, new_value = getattr(old, field.name), getattr(new, field.name)
        if old_value is not None and new_value is not None and old_value != new_value:
            violations.append(
                Violation(f"{path}.{field.name}", f"is {new_value!r} here but {old_value!r} in the job's profile")
            )
        values[field.name] = old_value if new_value is None else new_value
    result = type(old)(**values)  # type: ignore[arg-type]  # each value is that very field's, by name
    if not violations and isinstance(result, Workload):
        violations = result.violations(path)
    if violations:
        raise NodewiseError.invalid(violations, Reason.CONTRADICTORY_FACTS)
    return result
