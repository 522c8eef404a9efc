"""Workloads and networks: what a job trains and over what links. None = not known."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, TypeVar

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["OFFLOADS", "REDUCTIONS", "Layer", "Network", "Transformer", "Workload", "merged_facts"]

OFFLOADS: Final = ("none", "optimizer", "parameters")
REDUCTIONS: Final = ("fp32", "fp16", "bf16")


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
        Width of the experts that every token visits, together.
    expert_layers : int
        Layers with experts, the others are dense; 0 = all, where there are experts.
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

    def violations(self, path: str) -> list[Violation]:
        """Dimensions that no model has together. ``path`` stands before each field."""
        found = []

        def wrong(name: str, text: str) -> None:
            found.append(Violation(f"{path}.{name}", text))

        heads = self.attention_heads
        if not self.head_size and self.hidden_size % heads:
            text = f"must divide hidden_size ({self.hidden_size}) where head_size is not stated, found {heads}"
            wrong("attention_heads_count", text)
        if self.key_value_heads and heads % self.key_value_heads:
            wrong("key_value_heads_count", f"must divide attention_heads_count ({heads}), found {self.key_value_heads}")
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            text = f"must be 1 to experts_count ({self.experts}), found {self.experts_per_token}"
            wrong("experts_per_token_count", text)
        if self.expert_layers > self.layers:
            wrong("expert_layers_count", f"must be at most layers_count ({self.layers}), found {self.expert_layers}")
        if not self.experts:
            for name, value in (
                ("experts_per_token_count", self.experts_per_token),
                ("expert_feed_forward_size", self.expert_feed_forward_size),
                ("shared_expert_feed_forward_size", self.shared_expert_feed_forward_size),
                ("expert_layers_count", self.expert_layers),
            ):
                if value:
                    wrong(name, f"must be 0 where there are no experts (experts_count 0), found {value}")
        return found


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
    """What is trained.

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
        What is kept in the host's memory: one of :data:`OFFLOADS`.
    reduction_precision : str or None
        Number format that gradients are added up in over replicas.
    sharding_devices : int or None
        Devices that a ZeRO stage splits over; groups of so many are replicas of each other (hybrid sharding).
    recomputed_share : float or None
        Share of the layers that full recomputation computes again.
    family : str or None
        Who built the model of which parts, such as "ResNet".
    activation_bytes_per_sample : float or None
        What the forward pass keeps for the backward pass, parameters aside.
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

    def violations(self, path: str) -> list[Violation]:
        """What contradicts itself: shards that are not those of the whole. ``path`` stands before each field."""
        found = [] if self.transformer is None else self.transformer.violations(f"{path}.transformer")
        parts = (
            ("shard_bytes", self.shard_bytes, "parameter_bytes", self.parameter_bytes),
            ("shard_tensors_counts", self.shard_tensors, "tensors_count", self.tensors),
        )
        for name, shards, whole_name, whole in parts:
            if shards is not None and whole is not None and sum(shards) != whole:
                found.append(
                    Violation(f"{path}.{name}", f"must add up to {whole_name} ({whole}), but add up to {sum(shards)}")
                )
        if self.offload and self.offload not in OFFLOADS:
            found.append(Violation(f"{path}.offload", f"must be one of {', '.join(OFFLOADS)}, found {self.offload!r}"))
        if self.reduction_precision and self.reduction_precision not in REDUCTIONS:
            text = f"must be one of {', '.join(REDUCTIONS)}, found {self.reduction_precision!r}"
            found.append(Violation(f"{path}.reduction_precision", text))
        servers, of_tensors = self.shard_bytes, self.shard_tensors
        if servers is not None and of_tensors is not None and len(servers) != len(of_tensors):
            text = f"must have one entry per server as shard_bytes ({len(servers)}), found {len(of_tensors)}"
            found.append(Violation(f"{path}.shard_tensors_counts", text))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Facts about links.

    Attributes
    ----------
    link_bytes_per_s : float or None
        Link of a server or node per direction, as provisioned.
    half_duplex : bool or None
        Both directions share that rate.
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


def merged_facts(known: FactsT, new: FactsT, path: str) -> FactsT:
    """Both sets of facts in one.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS, naming every field of ``new`` that disagrees with what is known, or that does together
        with it.
    """
    values: dict[str, object] = {}
    violations = []
    for field in fields(known):
        old_value, new_value = getattr(known, field.name), getattr(new, field.name)
        if old_value is not None and new_value is not None and old_value != new_value:
            violations.append(
                Violation(
                    f"{path}.{field.name}", f"is {new_value!r} here but {old_value!r} in what is known of this job"
                )
            )
        values[field.name] = old_value if new_value is None else new_value
    merged = type(known)(**values)  # type: ignore[arg-type]  # each value is that very field's, by name
    if not violations and isinstance(merged, Workload):
        violations = merged.violations(path)
    if violations:
        raise NodewiseError.invalid(violations, Reason.CONTRADICTORY_FACTS)
    return merged
