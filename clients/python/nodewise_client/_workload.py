"""Workloads: what is trained, and over what network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodewise_protos.v1 import workload_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Dimensions of a transformer."""

    layers: int
    """Transformer layers."""
    hidden_size: int
    """Width of the residual stream."""
    attention_heads: int
    sequence_length: int
    """Tokens per sample."""
    vocabulary_size: int
    """Entries of the vocabulary."""
    key_value_heads: int = 0
    """Heads of grouped-query attention; 0 = `attention_heads`."""
    feed_forward_size: int = 0
    """Width of the feed-forward layer; 0 = four times `hidden_size`."""
    experts: int = 0
    """Experts per mixture layer; 0 = dense."""
    experts_per_token: int = 0
    """Experts that each token is sent to."""
    head_size: int = 0
    """Width of an attention head; 0 = `hidden_size` / `attention_heads`."""
    gated_feed_forward: bool = False
    """Three matrices and a gate (SwiGLU and its like), not two."""
    untied_embeddings: bool = False
    """The output layer has a matrix of its own; else it is that of the input embedding."""
    expert_feed_forward_size: int = 0
    """Width of one expert; 0 = `feed_forward_size`."""
    shared_expert_feed_forward_size: int = 0
    """Width of the experts that every token visits, together."""
    expert_layers: int = 0
    """Layers with experts, the others are dense; 0 = all, where there are experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of a general network."""

    name: str = ""
    """For people."""
    kind: str = ""
    """E.g. "dense", "convolution", "recurrent", "embedding"."""
    forward_flops_per_sample: float = 0.0
    parameter_bytes: int = 0
    activation_bytes_per_sample: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a job trains. Whatever is not known stays away; estimators say what they miss."""

    model_name: str = ""
    """For people."""
    parameter_bytes: int | None = None
    """Bytes of the parameters that cross the network per worker and direction in a step."""
    tensors: int | None = None
    """Tensors that the parameters are sent in."""
    flops_per_sample: float | None = None
    """Floating-point operations of forward and backward pass."""
    samples_per_epoch: int | None = None
    epochs: float | None = None
    """Epochs to train."""
    transformer: Transformer | None = None
    layers: Iterable[Layer] = ()
    """In order of the forward pass."""
    framework: str = ""
    optimizer: str = ""
    precision: str = ""
    """Number format of weights and activations, e.g. "fp16"."""
    shard_bytes: Iterable[int] = ()
    """Bytes of the parameters on each parameter server, one entry per server; empty = not known."""
    shard_tensors: Iterable[int] = ()
    """Tensors on each parameter server, one entry per server; empty = not known."""

    def __post_init__(self) -> None:
        for name in ("layers", "shard_bytes", "shard_tensors"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Facts about the links of a job."""

    link_bytes_per_s: float | None = None
    """Link of a parameter server or node, bytes per second and direction, as provisioned."""
    half_duplex: bool | None = None
    """Both directions share the link's rate."""
    worker_link_bytes_per_s: float | None = None
    """Highest rate of one worker's link, bytes per second."""
    per_message_s: float | None = None
    """Seconds per message besides its bytes."""
    round_trip_s: float | None = None
    """Round-trip time between worker and server, seconds."""


def workload_to_wire(workload: Workload) -> workload_pb2.Workload:
    """A workload's message."""
    transformer = workload.transformer
    return workload_pb2.Workload(
        model_name=workload.model_name,
        parameter_bytes=workload.parameter_bytes,
        tensors_count=workload.tensors,
        flops_per_sample=workload.flops_per_sample,
        samples_per_epoch=workload.samples_per_epoch,
        epochs_count=workload.epochs,
        transformer=None if transformer is None else _transformer_to_wire(transformer),
        layers=[
            workload_pb2.Layer(
                name=layer.name,
                kind=layer.kind,
                forward_flops_per_sample=layer.forward_flops_per_sample,
                parameter_bytes=layer.parameter_bytes,
                activation_bytes_per_sample=layer.activation_bytes_per_sample,
            )
            for layer in workload.layers
        ],
        framework=workload.framework,
        optimizer=workload.optimizer,
        precision=workload.precision,
        shard_bytes=workload.shard_bytes,
        shard_tensors_counts=workload.shard_tensors,
    )


def workload_from_wire(message: workload_pb2.Workload) -> Workload:
    """The workload that a message holds."""
    return Workload(
        model_name=message.model_name,
        parameter_bytes=message.parameter_bytes if message.HasField("parameter_bytes") else None,
        tensors=message.tensors_count if message.HasField("tensors_count") else None,
        flops_per_sample=message.flops_per_sample if message.HasField("flops_per_sample") else None,
        samples_per_epoch=message.samples_per_epoch if message.HasField("samples_per_epoch") else None,
        epochs=message.epochs_count if message.HasField("epochs_count") else None,
        transformer=_transformer_from_wire(message.transformer) if message.HasField("transformer") else None,
        layers=[
            Layer(
                name=layer.name,
                kind=layer.kind,
                forward_flops_per_sample=layer.forward_flops_per_sample,
                parameter_bytes=layer.parameter_bytes,
                activation_bytes_per_sample=layer.activation_bytes_per_sample,
            )
            for layer in message.layers
        ],
        framework=message.framework,
        optimizer=message.optimizer,
        precision=message.precision,
        shard_bytes=message.shard_bytes,
        shard_tensors=message.shard_tensors_counts,
    )


def network_to_wire(network: Network) -> workload_pb2.Network:
    """A network's message."""
    message = workload_pb2.Network(
        link_bytes_per_second=network.link_bytes_per_s,
        worker_link_bytes_per_second=network.worker_link_bytes_per_s,
        per_message_seconds=network.per_message_s,
        round_trip_seconds=network.round_trip_s,
    )
    if network.half_duplex is not None:
        message.half_duplex = network.half_duplex
    return message


def network_from_wire(message: workload_pb2.Network) -> Network:
    """The network that a message holds."""
    return Network(
        link_bytes_per_s=message.link_bytes_per_second if message.HasField("link_bytes_per_second") else None,
        half_duplex=message.half_duplex if message.HasField("half_duplex") else None,
        worker_link_bytes_per_s=(
            message.worker_link_bytes_per_second if message.HasField("worker_link_bytes_per_second") else None
        ),
        per_message_s=message.per_message_seconds if message.HasField("per_message_seconds") else None,
        round_trip_s=message.round_trip_seconds if message.HasField("round_trip_seconds") else None,
    )


def _transformer_to_wire(transformer: Transformer) -> workload_pb2.Transformer:
    return workload_pb2.Transformer(
        layers_count=transformer.layers,
        hidden_size=transformer.hidden_size,
        attention_heads_count=transformer.attention_heads,
        sequence_length_tokens=transformer.sequence_length,
        vocabulary_size=transformer.vocabulary_size,
        key_value_heads_count=transformer.key_value_heads,
        feed_forward_size=transformer.feed_forward_size,
        experts_count=transformer.experts,
        experts_per_token_count=transformer.experts_per_token,
        head_size=transformer.head_size,
        gated_feed_forward=transformer.gated_feed_forward,
        untied_embeddings=transformer.untied_embeddings,
        expert_feed_forward_size=transformer.expert_feed_forward_size,
        shared_expert_feed_forward_size=transformer.shared_expert_feed_forward_size,
        expert_layers_count=transformer.expert_layers,
    )


def _transformer_from_wire(message: workload_pb2.Transformer) -> Transformer:
    return Transformer(
        layers=message.layers_count,
        hidden_size=message.hidden_size,
        attention_heads=message.attention_heads_count,
        sequence_length=message.sequence_length_tokens,
        vocabulary_size=message.vocabulary_size,
        key_value_heads=message.key_value_heads_count,
        feed_forward_size=message.feed_forward_size,
        experts=message.experts_count,
        experts_per_token=message.experts_per_token_count,
        head_size=message.head_size,
        gated_feed_forward=message.gated_feed_forward,
        untied_embeddings=message.untied_embeddings,
        expert_feed_forward_size=message.expert_feed_forward_size,
        shared_expert_feed_forward_size=message.shared_expert_feed_forward_size,
        expert_layers=message.expert_layers_count,
    )
