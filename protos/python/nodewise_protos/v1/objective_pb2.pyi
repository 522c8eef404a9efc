from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Objective(_message.Message):
    __slots__ = ("highest_throughput", "knee", "least_time", "least_cost", "fewest_devices", "confidence", "work", "prices")
    HIGHEST_THROUGHPUT_FIELD_NUMBER: _ClassVar[int]
    KNEE_FIELD_NUMBER: _ClassVar[int]
    LEAST_TIME_FIELD_NUMBER: _ClassVar[int]
    LEAST_COST_FIELD_NUMBER: _ClassVar[int]
    FEWEST_DEVICES_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    highest_throughput: HighestThroughput
    knee: Knee
    least_time: LeastTime
    least_cost: LeastCost
    fewest_devices: FewestDevices
    confidence: float
    work: Work
    prices: _containers.RepeatedCompositeFieldContainer[Price]
    def __init__(self, highest_throughput: _Optional[_Union[HighestThroughput, _Mapping]] = ..., knee: _Optional[_Union[Knee, _Mapping]] = ..., least_time: _Optional[_Union[LeastTime, _Mapping]] = ..., least_cost: _Optional[_Union[LeastCost, _Mapping]] = ..., fewest_devices: _Optional[_Union[FewestDevices, _Mapping]] = ..., confidence: _Optional[float] = ..., work: _Optional[_Union[Work, _Mapping]] = ..., prices: _Optional[_Iterable[_Union[Price, _Mapping]]] = ...) -> None: ...

class HighestThroughput(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Knee(_message.Message):
    __slots__ = ("share",)
    SHARE_FIELD_NUMBER: _ClassVar[int]
    share: float
    def __init__(self, share: _Optional[float] = ...) -> None: ...

class LeastTime(_message.Message):
    __slots__ = ("max_nodes", "max_cost")
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_FIELD_NUMBER: _ClassVar[int]
    max_nodes: int
    max_cost: float
    def __init__(self, max_nodes: _Optional[int] = ..., max_cost: _Optional[float] = ...) -> None: ...

class LeastCost(_message.Message):
    __slots__ = ("deadline_seconds",)
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    deadline_seconds: float
    def __init__(self, deadline_seconds: _Optional[float] = ...) -> None: ...

class FewestDevices(_message.Message):
    __slots__ = ("deadline_seconds",)
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    deadline_seconds: float
    def __init__(self, deadline_seconds: _Optional[float] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("samples", "epochs")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    samples: float
    epochs: float
    def __init__(self, samples: _Optional[float] = ..., epochs: _Optional[float] = ...) -> None: ...

class Price(_message.Message):
    __slots__ = ("device_name", "price_per_node_hour", "currency")
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    PRICE_PER_NODE_HOUR_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    device_name: str
    price_per_node_hour: float
    currency: str
    def __init__(self, device_name: _Optional[str] = ..., price_per_node_hour: _Optional[float] = ..., currency: _Optional[str] = ...) -> None: ...

class Recommendation(_message.Message):
    __slots__ = ("row", "nodes", "workers", "rule", "why", "numbers")
    ROW_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    row: int
    nodes: int
    workers: int
    rule: str
    why: str
    numbers: _containers.RepeatedCompositeFieldContainer[NamedNumber]
    def __init__(self, row: _Optional[int] = ..., nodes: _Optional[int] = ..., workers: _Optional[int] = ..., rule: _Optional[str] = ..., why: _Optional[str] = ..., numbers: _Optional[_Iterable[_Union[NamedNumber, _Mapping]]] = ...) -> None: ...

class NamedNumber(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
