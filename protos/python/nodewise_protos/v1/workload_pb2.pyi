from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Workload(_message.Message):
    __slots__ = ("model_name", "parameter_bytes", "tensors_count", "flops_per_sample", "samples_per_epoch", "epochs_count", "transformer", "layers", "framework", "optimizer", "precision", "shard_bytes", "shard_tensors_counts", "dropout", "frozen_weights_share", "frozen_weight_bits", "offload", "reduction_precision", "sharding_devices_count", "recomputed_share", "family", "activation_bytes_per_sample", "master_weights", "optimizer_state_bits", "fused_loss", "execution", "pipeline_schedule", "stage_layers", "busiest_expert_share", "expert_capacity", "adapter_rank", "adapter", "document_tokens", "devices_per_worker_count", "encoder")
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_BYTES_FIELD_NUMBER: _ClassVar[int]
    TENSORS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FLOPS_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRANSFORMER_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SHARD_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHARD_TENSORS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_FIELD_NUMBER: _ClassVar[int]
    FROZEN_WEIGHTS_SHARE_FIELD_NUMBER: _ClassVar[int]
    FROZEN_WEIGHT_BITS_FIELD_NUMBER: _ClassVar[int]
    OFFLOAD_FIELD_NUMBER: _ClassVar[int]
    REDUCTION_PRECISION_FIELD_NUMBER: _ClassVar[int]
    SHARDING_DEVICES_COUNT_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTED_SHARE_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_BYTES_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    MASTER_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_STATE_BITS_FIELD_NUMBER: _ClassVar[int]
    FUSED_LOSS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    STAGE_LAYERS_FIELD_NUMBER: _ClassVar[int]
    BUSIEST_EXPERT_SHARE_FIELD_NUMBER: _ClassVar[int]
    EXPERT_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_RANK_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_PER_WORKER_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENCODER_FIELD_NUMBER: _ClassVar[int]
    model_name: str
    parameter_bytes: float
    tensors_count: int
    flops_per_sample: float
    samples_per_epoch: float
    epochs_count: float
    transformer: Transformer
    layers: _containers.RepeatedCompositeFieldContainer[Layer]
    framework: str
    optimizer: str
    precision: str
    shard_bytes: _containers.RepeatedScalarFieldContainer[float]
    shard_tensors_counts: _containers.RepeatedScalarFieldContainer[int]
    dropout: bool
    frozen_weights_share: float
    frozen_weight_bits: float
    offload: str
    reduction_precision: str
    sharding_devices_count: int
    recomputed_share: float
    family: str
    activation_bytes_per_sample: float
    master_weights: bool
    optimizer_state_bits: float
    fused_loss: bool
    execution: str
    pipeline_schedule: str
    stage_layers: _containers.RepeatedScalarFieldContainer[int]
    busiest_expert_share: float
    expert_capacity: float
    adapter_rank: int
    adapter: str
    document_tokens: float
    devices_per_worker_count: int
    encoder: Encoder
    def __init__(self, model_name: _Optional[str] = ..., parameter_bytes: _Optional[float] = ..., tensors_count: _Optional[int] = ..., flops_per_sample: _Optional[float] = ..., samples_per_epoch: _Optional[float] = ..., epochs_count: _Optional[float] = ..., transformer: _Optional[_Union[Transformer, _Mapping]] = ..., layers: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ..., framework: _Optional[str] = ..., optimizer: _Optional[str] = ..., precision: _Optional[str] = ..., shard_bytes: _Optional[_Iterable[float]] = ..., shard_tensors_counts: _Optional[_Iterable[int]] = ..., dropout: bool = ..., frozen_weights_share: _Optional[float] = ..., frozen_weight_bits: _Optional[float] = ..., offload: _Optional[str] = ..., reduction_precision: _Optional[str] = ..., sharding_devices_count: _Optional[int] = ..., recomputed_share: _Optional[float] = ..., family: _Optional[str] = ..., activation_bytes_per_sample: _Optional[float] = ..., master_weights: bool = ..., optimizer_state_bits: _Optional[float] = ..., fused_loss: bool = ..., execution: _Optional[str] = ..., pipeline_schedule: _Optional[str] = ..., stage_layers: _Optional[_Iterable[int]] = ..., busiest_expert_share: _Optional[float] = ..., expert_capacity: _Optional[float] = ..., adapter_rank: _Optional[int] = ..., adapter: _Optional[str] = ..., document_tokens: _Optional[float] = ..., devices_per_worker_count: _Optional[int] = ..., encoder: _Optional[_Union[Encoder, _Mapping]] = ...) -> None: ...

class Encoder(_message.Message):
    __slots__ = ("layers_count", "hidden_size", "attention_heads_count", "tokens_per_sample", "attended_tokens_count", "feed_forward_size", "frozen")
    LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_SIZE_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_HEADS_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    ATTENDED_TOKENS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FEED_FORWARD_SIZE_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    layers_count: int
    hidden_size: int
    attention_heads_count: int
    tokens_per_sample: int
    attended_tokens_count: int
    feed_forward_size: int
    frozen: bool
    def __init__(self, layers_count: _Optional[int] = ..., hidden_size: _Optional[int] = ..., attention_heads_count: _Optional[int] = ..., tokens_per_sample: _Optional[int] = ..., attended_tokens_count: _Optional[int] = ..., feed_forward_size: _Optional[int] = ..., frozen: bool = ...) -> None: ...

class Architectures(_message.Message):
    __slots__ = ("flops_per_sample", "family_names", "family_indexes", "parameter_bytes", "tensors_counts", "activation_bytes_per_sample")
    FLOPS_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    FAMILY_NAMES_FIELD_NUMBER: _ClassVar[int]
    FAMILY_INDEXES_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_BYTES_FIELD_NUMBER: _ClassVar[int]
    TENSORS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_BYTES_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    flops_per_sample: _containers.RepeatedScalarFieldContainer[float]
    family_names: _containers.RepeatedScalarFieldContainer[str]
    family_indexes: _containers.RepeatedScalarFieldContainer[int]
    parameter_bytes: _containers.RepeatedScalarFieldContainer[float]
    tensors_counts: _containers.RepeatedScalarFieldContainer[int]
    activation_bytes_per_sample: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, flops_per_sample: _Optional[_Iterable[float]] = ..., family_names: _Optional[_Iterable[str]] = ..., family_indexes: _Optional[_Iterable[int]] = ..., parameter_bytes: _Optional[_Iterable[float]] = ..., tensors_counts: _Optional[_Iterable[int]] = ..., activation_bytes_per_sample: _Optional[_Iterable[float]] = ...) -> None: ...

class Transformer(_message.Message):
    __slots__ = ("layers_count", "hidden_size", "attention_heads_count", "sequence_length_tokens", "vocabulary_size", "key_value_heads_count", "feed_forward_size", "experts_count", "experts_per_token_count", "head_size", "gated_feed_forward", "untied_embeddings", "expert_feed_forward_size", "shared_expert_feed_forward_size", "expert_layers_count", "key_value_latent_size", "query_latent_size", "rotary_head_size", "value_head_size", "attention_window_tokens", "windowed_layers_count", "attention_layers_count", "state_space_layers_count", "state_space_size", "state_size", "feed_forward_layers_count")
    LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_SIZE_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_HEADS_COUNT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_TOKENS_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_SIZE_FIELD_NUMBER: _ClassVar[int]
    KEY_VALUE_HEADS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FEED_FORWARD_SIZE_FIELD_NUMBER: _ClassVar[int]
    EXPERTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXPERTS_PER_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    HEAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    GATED_FEED_FORWARD_FIELD_NUMBER: _ClassVar[int]
    UNTIED_EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    EXPERT_FEED_FORWARD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SHARED_EXPERT_FEED_FORWARD_SIZE_FIELD_NUMBER: _ClassVar[int]
    EXPERT_LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    KEY_VALUE_LATENT_SIZE_FIELD_NUMBER: _ClassVar[int]
    QUERY_LATENT_SIZE_FIELD_NUMBER: _ClassVar[int]
    ROTARY_HEAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    VALUE_HEAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_WINDOW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    WINDOWED_LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATE_SPACE_LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATE_SPACE_SIZE_FIELD_NUMBER: _ClassVar[int]
    STATE_SIZE_FIELD_NUMBER: _ClassVar[int]
    FEED_FORWARD_LAYERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    layers_count: int
    hidden_size: int
    attention_heads_count: int
    sequence_length_tokens: int
    vocabulary_size: int
    key_value_heads_count: int
    feed_forward_size: int
    experts_count: int
    experts_per_token_count: int
    head_size: int
    gated_feed_forward: bool
    untied_embeddings: bool
    expert_feed_forward_size: int
    shared_expert_feed_forward_size: int
    expert_layers_count: int
    key_value_latent_size: int
    query_latent_size: int
    rotary_head_size: int
    value_head_size: int
    attention_window_tokens: int
    windowed_layers_count: int
    attention_layers_count: int
    state_space_layers_count: int
    state_space_size: int
    state_size: int
    feed_forward_layers_count: int
    def __init__(self, layers_count: _Optional[int] = ..., hidden_size: _Optional[int] = ..., attention_heads_count: _Optional[int] = ..., sequence_length_tokens: _Optional[int] = ..., vocabulary_size: _Optional[int] = ..., key_value_heads_count: _Optional[int] = ..., feed_forward_size: _Optional[int] = ..., experts_count: _Optional[int] = ..., experts_per_token_count: _Optional[int] = ..., head_size: _Optional[int] = ..., gated_feed_forward: bool = ..., untied_embeddings: bool = ..., expert_feed_forward_size: _Optional[int] = ..., shared_expert_feed_forward_size: _Optional[int] = ..., expert_layers_count: _Optional[int] = ..., key_value_latent_size: _Optional[int] = ..., query_latent_size: _Optional[int] = ..., rotary_head_size: _Optional[int] = ..., value_head_size: _Optional[int] = ..., attention_window_tokens: _Optional[int] = ..., windowed_layers_count: _Optional[int] = ..., attention_layers_count: _Optional[int] = ..., state_space_layers_count: _Optional[int] = ..., state_space_size: _Optional[int] = ..., state_size: _Optional[int] = ..., feed_forward_layers_count: _Optional[int] = ...) -> None: ...

class Layer(_message.Message):
    __slots__ = ("name", "kind", "forward_flops_per_sample", "parameter_bytes", "activation_bytes_per_sample", "halo_bytes_per_sample")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FORWARD_FLOPS_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_BYTES_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_BYTES_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    HALO_BYTES_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    forward_flops_per_sample: float
    parameter_bytes: float
    activation_bytes_per_sample: float
    halo_bytes_per_sample: float
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., forward_flops_per_sample: _Optional[float] = ..., parameter_bytes: _Optional[float] = ..., activation_bytes_per_sample: _Optional[float] = ..., halo_bytes_per_sample: _Optional[float] = ...) -> None: ...

class Network(_message.Message):
    __slots__ = ("link_bytes_per_second", "half_duplex", "worker_link_bytes_per_second", "per_message_seconds", "round_trip_seconds")
    LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    HALF_DUPLEX_FIELD_NUMBER: _ClassVar[int]
    WORKER_LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    PER_MESSAGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    link_bytes_per_second: float
    half_duplex: bool
    worker_link_bytes_per_second: float
    per_message_seconds: float
    round_trip_seconds: float
    def __init__(self, link_bytes_per_second: _Optional[float] = ..., half_duplex: bool = ..., worker_link_bytes_per_second: _Optional[float] = ..., per_message_seconds: _Optional[float] = ..., round_trip_seconds: _Optional[float] = ...) -> None: ...
