import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LossReaction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_REACTION_UNSPECIFIED: _ClassVar[LossReaction]
    LOSS_REACTION_CONTINUE: _ClassVar[LossReaction]
    LOSS_REACTION_RESTART: _ClassVar[LossReaction]
    LOSS_REACTION_ELASTIC: _ClassVar[LossReaction]
    LOSS_REACTION_ELASTIC_FROM_CHECKPOINT: _ClassVar[LossReaction]

class ChiefLoss(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHIEF_LOSS_UNSPECIFIED: _ClassVar[ChiefLoss]
    CHIEF_LOSS_FAIL: _ClassVar[ChiefLoss]
    CHIEF_LOSS_ROLLBACK: _ClassVar[ChiefLoss]
    CHIEF_LOSS_REELECT: _ClassVar[ChiefLoss]

class LifetimeFamily(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIFETIME_FAMILY_UNSPECIFIED: _ClassVar[LifetimeFamily]
    LIFETIME_FAMILY_EMPIRICAL: _ClassVar[LifetimeFamily]
    LIFETIME_FAMILY_WEIBULL: _ClassVar[LifetimeFamily]
    LIFETIME_FAMILY_EXPONENTIAL: _ClassVar[LifetimeFamily]
    LIFETIME_FAMILY_NEAREST: _ClassVar[LifetimeFamily]
LOSS_REACTION_UNSPECIFIED: LossReaction
LOSS_REACTION_CONTINUE: LossReaction
LOSS_REACTION_RESTART: LossReaction
LOSS_REACTION_ELASTIC: LossReaction
LOSS_REACTION_ELASTIC_FROM_CHECKPOINT: LossReaction
CHIEF_LOSS_UNSPECIFIED: ChiefLoss
CHIEF_LOSS_FAIL: ChiefLoss
CHIEF_LOSS_ROLLBACK: ChiefLoss
CHIEF_LOSS_REELECT: ChiefLoss
LIFETIME_FAMILY_UNSPECIFIED: LifetimeFamily
LIFETIME_FAMILY_EMPIRICAL: LifetimeFamily
LIFETIME_FAMILY_WEIBULL: LifetimeFamily
LIFETIME_FAMILY_EXPONENTIAL: LifetimeFamily
LIFETIME_FAMILY_NEAREST: LifetimeFamily

class CompletionOffer(_message.Message):
    __slots__ = ("name", "groups", "sync_mode", "batch_per_worker_samples", "global_batch_samples", "parameter_servers_count", "kept_price_per_hour", "link_bytes_per_second", "reaction", "restart_seconds", "chief_loss", "chief_setup_seconds", "burst_probability", "burst_others_count", "checkpoints", "speeds", "horizon_seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    SYNC_MODE_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_WORKER_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SERVERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    KEPT_PRICE_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    REACTION_FIELD_NUMBER: _ClassVar[int]
    RESTART_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHIEF_LOSS_FIELD_NUMBER: _ClassVar[int]
    CHIEF_SETUP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BURST_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    BURST_OTHERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    SPEEDS_FIELD_NUMBER: _ClassVar[int]
    HORIZON_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    groups: _containers.RepeatedCompositeFieldContainer[CompletionGroup]
    sync_mode: _configuration_pb2.SyncMode
    batch_per_worker_samples: int
    global_batch_samples: int
    parameter_servers_count: int
    kept_price_per_hour: float
    link_bytes_per_second: float
    reaction: LossReaction
    restart_seconds: float
    chief_loss: ChiefLoss
    chief_setup_seconds: float
    burst_probability: float
    burst_others_count: int
    checkpoints: CompletionCheckpoints
    speeds: CompletionSpeeds
    horizon_seconds: float
    def __init__(self, name: _Optional[str] = ..., groups: _Optional[_Iterable[_Union[CompletionGroup, _Mapping]]] = ..., sync_mode: _Optional[_Union[_configuration_pb2.SyncMode, str]] = ..., batch_per_worker_samples: _Optional[int] = ..., global_batch_samples: _Optional[int] = ..., parameter_servers_count: _Optional[int] = ..., kept_price_per_hour: _Optional[float] = ..., link_bytes_per_second: _Optional[float] = ..., reaction: _Optional[_Union[LossReaction, str]] = ..., restart_seconds: _Optional[float] = ..., chief_loss: _Optional[_Union[ChiefLoss, str]] = ..., chief_setup_seconds: _Optional[float] = ..., burst_probability: _Optional[float] = ..., burst_others_count: _Optional[int] = ..., checkpoints: _Optional[_Union[CompletionCheckpoints, _Mapping]] = ..., speeds: _Optional[_Union[CompletionSpeeds, _Mapping]] = ..., horizon_seconds: _Optional[float] = ...) -> None: ...

class CompletionGroup(_message.Message):
    __slots__ = ("name", "device_name", "nodes", "workers_per_node", "tier", "region", "price_per_node_hour", "prices", "ages_seconds", "lifetime", "cap_seconds", "replacement")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    PRICE_PER_NODE_HOUR_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    AGES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    CAP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_name: str
    nodes: int
    workers_per_node: int
    tier: _objective_pb2.CapacityTier
    region: str
    price_per_node_hour: float
    prices: NodePrices
    ages_seconds: _containers.RepeatedScalarFieldContainer[float]
    lifetime: LifetimeLaw
    cap_seconds: float
    replacement: NodeReplacement
    def __init__(self, name: _Optional[str] = ..., device_name: _Optional[str] = ..., nodes: _Optional[int] = ..., workers_per_node: _Optional[int] = ..., tier: _Optional[_Union[_objective_pb2.CapacityTier, str]] = ..., region: _Optional[str] = ..., price_per_node_hour: _Optional[float] = ..., prices: _Optional[_Union[NodePrices, _Mapping]] = ..., ages_seconds: _Optional[_Iterable[float]] = ..., lifetime: _Optional[_Union[LifetimeLaw, _Mapping]] = ..., cap_seconds: _Optional[float] = ..., replacement: _Optional[_Union[NodeReplacement, _Mapping]] = ...) -> None: ...

class NodePrices(_message.Message):
    __slots__ = ("since_seconds", "prices_per_node_hour")
    SINCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PRICES_PER_NODE_HOUR_FIELD_NUMBER: _ClassVar[int]
    since_seconds: _containers.RepeatedScalarFieldContainer[float]
    prices_per_node_hour: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, since_seconds: _Optional[_Iterable[float]] = ..., prices_per_node_hour: _Optional[_Iterable[float]] = ...) -> None: ...

class NodeReplacement(_message.Message):
    __slots__ = ("delays_seconds", "group_name", "bills_startup")
    DELAYS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    GROUP_NAME_FIELD_NUMBER: _ClassVar[int]
    BILLS_STARTUP_FIELD_NUMBER: _ClassVar[int]
    delays_seconds: _containers.RepeatedScalarFieldContainer[float]
    group_name: str
    bills_startup: bool
    def __init__(self, delays_seconds: _Optional[_Iterable[float]] = ..., group_name: _Optional[str] = ..., bills_startup: bool = ...) -> None: ...

class LifetimeLaw(_message.Message):
    __slots__ = ("data_set", "empirical", "observed", "weibull", "exponential", "fleet", "availability", "revocations", "family", "origin")
    DATA_SET_FIELD_NUMBER: _ClassVar[int]
    EMPIRICAL_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    WEIBULL_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_FIELD_NUMBER: _ClassVar[int]
    FLEET_FIELD_NUMBER: _ClassVar[int]
    AVAILABILITY_FIELD_NUMBER: _ClassVar[int]
    REVOCATIONS_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    data_set: str
    empirical: EmpiricalLifetimes
    observed: ObservedLifetimes
    weibull: WeibullLifetimes
    exponential: ExponentialLifetimes
    fleet: FleetRecord
    availability: AvailabilityRecord
    revocations: KnownRevocations
    family: LifetimeFamily
    origin: LifetimeOrigin
    def __init__(self, data_set: _Optional[str] = ..., empirical: _Optional[_Union[EmpiricalLifetimes, _Mapping]] = ..., observed: _Optional[_Union[ObservedLifetimes, _Mapping]] = ..., weibull: _Optional[_Union[WeibullLifetimes, _Mapping]] = ..., exponential: _Optional[_Union[ExponentialLifetimes, _Mapping]] = ..., fleet: _Optional[_Union[FleetRecord, _Mapping]] = ..., availability: _Optional[_Union[AvailabilityRecord, _Mapping]] = ..., revocations: _Optional[_Union[KnownRevocations, _Mapping]] = ..., family: _Optional[_Union[LifetimeFamily, str]] = ..., origin: _Optional[_Union[LifetimeOrigin, _Mapping]] = ...) -> None: ...

class LifetimeDataSet(_message.Message):
    __slots__ = ("name", "law")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAW_FIELD_NUMBER: _ClassVar[int]
    name: str
    law: LifetimeLaw
    def __init__(self, name: _Optional[str] = ..., law: _Optional[_Union[LifetimeLaw, _Mapping]] = ...) -> None: ...

class LifetimeOrigin(_message.Message):
    __slots__ = ("name", "device_name", "region", "measured_time", "machines_count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    MEASURED_TIME_FIELD_NUMBER: _ClassVar[int]
    MACHINES_COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_name: str
    region: str
    measured_time: _timestamp_pb2.Timestamp
    machines_count: int
    def __init__(self, name: _Optional[str] = ..., device_name: _Optional[str] = ..., region: _Optional[str] = ..., measured_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., machines_count: _Optional[int] = ...) -> None: ...

class EmpiricalLifetimes(_message.Message):
    __slots__ = ("ages_seconds", "revoked_shares")
    AGES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_SHARES_FIELD_NUMBER: _ClassVar[int]
    ages_seconds: _containers.RepeatedScalarFieldContainer[float]
    revoked_shares: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, ages_seconds: _Optional[_Iterable[float]] = ..., revoked_shares: _Optional[_Iterable[float]] = ...) -> None: ...

class ObservedLifetimes(_message.Message):
    __slots__ = ("lives_seconds", "revoked")
    LIVES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    lives_seconds: _containers.RepeatedScalarFieldContainer[float]
    revoked: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, lives_seconds: _Optional[_Iterable[float]] = ..., revoked: _Optional[_Iterable[bool]] = ...) -> None: ...

class WeibullLifetimes(_message.Message):
    __slots__ = ("scale_seconds", "shape")
    SCALE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    scale_seconds: float
    shape: float
    def __init__(self, scale_seconds: _Optional[float] = ..., shape: _Optional[float] = ...) -> None: ...

class ExponentialLifetimes(_message.Message):
    __slots__ = ("mean_seconds",)
    MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    mean_seconds: float
    def __init__(self, mean_seconds: _Optional[float] = ...) -> None: ...

class FleetRecord(_message.Message):
    __slots__ = ("times_seconds", "added", "nodes")
    TIMES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    times_seconds: _containers.RepeatedScalarFieldContainer[float]
    added: _containers.RepeatedScalarFieldContainer[bool]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, times_seconds: _Optional[_Iterable[float]] = ..., added: _Optional[_Iterable[bool]] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class AvailabilityRecord(_message.Message):
    __slots__ = ("since_seconds", "nodes_counts", "length_seconds")
    SINCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NODES_COUNTS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    since_seconds: _containers.RepeatedScalarFieldContainer[float]
    nodes_counts: _containers.RepeatedScalarFieldContainer[int]
    length_seconds: float
    def __init__(self, since_seconds: _Optional[_Iterable[float]] = ..., nodes_counts: _Optional[_Iterable[int]] = ..., length_seconds: _Optional[float] = ...) -> None: ...

class KnownRevocations(_message.Message):
    __slots__ = ("times_seconds",)
    TIMES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    times_seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, times_seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class CompletionCheckpoints(_message.Message):
    __slots__ = ("seconds", "saved", "interval_seconds", "interval_samples", "stopped_ratio")
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SAVED_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    STOPPED_RATIO_FIELD_NUMBER: _ClassVar[int]
    seconds: float
    saved: SavedBytes
    interval_seconds: float
    interval_samples: float
    stopped_ratio: float
    def __init__(self, seconds: _Optional[float] = ..., saved: _Optional[_Union[SavedBytes, _Mapping]] = ..., interval_seconds: _Optional[float] = ..., interval_samples: _Optional[float] = ..., stopped_ratio: _Optional[float] = ...) -> None: ...

class SavedBytes(_message.Message):
    __slots__ = ("weights_bytes", "graph_bytes", "measured_seconds", "measured_weights_bytes", "measured_graph_bytes")
    WEIGHTS_BYTES_FIELD_NUMBER: _ClassVar[int]
    GRAPH_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEASURED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_WEIGHTS_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEASURED_GRAPH_BYTES_FIELD_NUMBER: _ClassVar[int]
    weights_bytes: float
    graph_bytes: float
    measured_seconds: _containers.RepeatedScalarFieldContainer[float]
    measured_weights_bytes: _containers.RepeatedScalarFieldContainer[float]
    measured_graph_bytes: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, weights_bytes: _Optional[float] = ..., graph_bytes: _Optional[float] = ..., measured_seconds: _Optional[_Iterable[float]] = ..., measured_weights_bytes: _Optional[_Iterable[float]] = ..., measured_graph_bytes: _Optional[_Iterable[float]] = ...) -> None: ...

class CompletionSpeeds(_message.Message):
    __slots__ = ("samples_per_second",)
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    samples_per_second: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, samples_per_second: _Optional[_Iterable[float]] = ...) -> None: ...
