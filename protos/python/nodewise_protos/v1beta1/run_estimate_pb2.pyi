from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1beta1 import completion_offer_pb2 as _completion_offer_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemoryFit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_FIT_UNSPECIFIED: _ClassVar[MemoryFit]
    MEMORY_FIT_FITS: _ClassVar[MemoryFit]
    MEMORY_FIT_UNSURE: _ClassVar[MemoryFit]
    MEMORY_FIT_EXCEEDED: _ClassVar[MemoryFit]
MEMORY_FIT_UNSPECIFIED: MemoryFit
MEMORY_FIT_FITS: MemoryFit
MEMORY_FIT_UNSURE: MemoryFit
MEMORY_FIT_EXCEEDED: MemoryFit

class RunFailures(_message.Message):
    __slots__ = ("device_hours_between_failures", "restart_seconds", "checkpoints")
    DEVICE_HOURS_BETWEEN_FAILURES_FIELD_NUMBER: _ClassVar[int]
    RESTART_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    device_hours_between_failures: float
    restart_seconds: float
    checkpoints: _completion_offer_pb2.CompletionCheckpoints
    def __init__(self, device_hours_between_failures: _Optional[float] = ..., restart_seconds: _Optional[float] = ..., checkpoints: _Optional[_Union[_completion_offer_pb2.CompletionCheckpoints, _Mapping]] = ...) -> None: ...

class RunPower(_message.Message):
    __slots__ = ("idle_watts", "training_watts", "host_power_ratio", "power_usage_effectiveness", "grid_grams_per_kilowatt_hour")
    IDLE_WATTS_FIELD_NUMBER: _ClassVar[int]
    TRAINING_WATTS_FIELD_NUMBER: _ClassVar[int]
    HOST_POWER_RATIO_FIELD_NUMBER: _ClassVar[int]
    POWER_USAGE_EFFECTIVENESS_FIELD_NUMBER: _ClassVar[int]
    GRID_GRAMS_PER_KILOWATT_HOUR_FIELD_NUMBER: _ClassVar[int]
    idle_watts: float
    training_watts: float
    host_power_ratio: float
    power_usage_effectiveness: float
    grid_grams_per_kilowatt_hour: float
    def __init__(self, idle_watts: _Optional[float] = ..., training_watts: _Optional[float] = ..., host_power_ratio: _Optional[float] = ..., power_usage_effectiveness: _Optional[float] = ..., grid_grams_per_kilowatt_hour: _Optional[float] = ...) -> None: ...

class RunMemory(_message.Message):
    __slots__ = ("fit", "bytes", "lower_bytes", "upper_bytes", "capacity_bytes")
    FIT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    LOWER_BYTES_FIELD_NUMBER: _ClassVar[int]
    UPPER_BYTES_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_BYTES_FIELD_NUMBER: _ClassVar[int]
    fit: MemoryFit
    bytes: float
    lower_bytes: float
    upper_bytes: float
    capacity_bytes: float
    def __init__(self, fit: _Optional[_Union[MemoryFit, str]] = ..., bytes: _Optional[float] = ..., lower_bytes: _Optional[float] = ..., upper_bytes: _Optional[float] = ..., capacity_bytes: _Optional[float] = ...) -> None: ...

class RunQuantity(_message.Message):
    __slots__ = ("value", "lower", "upper")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    value: float
    lower: float
    upper: float
    def __init__(self, value: _Optional[float] = ..., lower: _Optional[float] = ..., upper: _Optional[float] = ...) -> None: ...

class RunEnergy(_message.Message):
    __slots__ = ("compute_ratio", "device_watts", "joules", "device_joules_per_sample", "co2_grams")
    COMPUTE_RATIO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_WATTS_FIELD_NUMBER: _ClassVar[int]
    JOULES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_JOULES_PER_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    CO2_GRAMS_FIELD_NUMBER: _ClassVar[int]
    compute_ratio: float
    device_watts: RunQuantity
    joules: RunQuantity
    device_joules_per_sample: RunQuantity
    co2_grams: RunQuantity
    def __init__(self, compute_ratio: _Optional[float] = ..., device_watts: _Optional[_Union[RunQuantity, _Mapping]] = ..., joules: _Optional[_Union[RunQuantity, _Mapping]] = ..., device_joules_per_sample: _Optional[_Union[RunQuantity, _Mapping]] = ..., co2_grams: _Optional[_Union[RunQuantity, _Mapping]] = ...) -> None: ...

class RunAssumption(_message.Message):
    __slots__ = ("field", "value", "why")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    field: str
    value: float
    why: str
    def __init__(self, field: _Optional[str] = ..., value: _Optional[float] = ..., why: _Optional[str] = ...) -> None: ...

class RunDoubt(_message.Message):
    __slots__ = ("figure", "why")
    FIGURE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    figure: str
    why: str
    def __init__(self, figure: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...
