from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from nodewise_protos.v1 import sharing_pb2 as _sharing_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SharingVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SHARING_VERDICT_UNSPECIFIED: _ClassVar[SharingVerdict]
    SHARING_VERDICT_DOES_NOT_FIT: _ClassVar[SharingVerdict]
    SHARING_VERDICT_EXCLUSIVE: _ClassVar[SharingVerdict]
    SHARING_VERDICT_SERIALISED: _ClassVar[SharingVerdict]
    SHARING_VERDICT_CONCURRENT: _ClassVar[SharingVerdict]

class SharingBasis(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SHARING_BASIS_UNSPECIFIED: _ClassVar[SharingBasis]
    SHARING_BASIS_SOLO: _ClassVar[SharingBasis]
    SHARING_BASIS_PARTNER: _ClassVar[SharingBasis]
    SHARING_BASIS_COMPLETED: _ClassVar[SharingBasis]
    SHARING_BASIS_MEASURED: _ClassVar[SharingBasis]
SHARING_VERDICT_UNSPECIFIED: SharingVerdict
SHARING_VERDICT_DOES_NOT_FIT: SharingVerdict
SHARING_VERDICT_EXCLUSIVE: SharingVerdict
SHARING_VERDICT_SERIALISED: SharingVerdict
SHARING_VERDICT_CONCURRENT: SharingVerdict
SHARING_BASIS_UNSPECIFIED: SharingBasis
SHARING_BASIS_SOLO: SharingBasis
SHARING_BASIS_PARTNER: SharingBasis
SHARING_BASIS_COMPLETED: SharingBasis
SHARING_BASIS_MEASURED: SharingBasis

class SharedDevice(_message.Message):
    __slots__ = ("device_name", "memory_bytes", "processors")
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    device_name: str
    memory_bytes: float
    processors: DeviceProcessors
    def __init__(self, device_name: _Optional[str] = ..., memory_bytes: _Optional[float] = ..., processors: _Optional[_Union[DeviceProcessors, _Mapping]] = ...) -> None: ...

class DeviceProcessors(_message.Message):
    __slots__ = ("processors_count", "threads_count", "blocks_count", "registers_count", "shared_bytes")
    PROCESSORS_COUNT_FIELD_NUMBER: _ClassVar[int]
    THREADS_COUNT_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_COUNT_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    SHARED_BYTES_FIELD_NUMBER: _ClassVar[int]
    processors_count: int
    threads_count: int
    blocks_count: int
    registers_count: int
    shared_bytes: int
    def __init__(self, processors_count: _Optional[int] = ..., threads_count: _Optional[int] = ..., blocks_count: _Optional[int] = ..., registers_count: _Optional[int] = ..., shared_bytes: _Optional[int] = ...) -> None: ...

class KernelLaunch(_message.Message):
    __slots__ = ("blocks_count", "threads_per_block", "registers_per_thread", "shared_bytes_per_block")
    BLOCKS_COUNT_FIELD_NUMBER: _ClassVar[int]
    THREADS_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_PER_THREAD_FIELD_NUMBER: _ClassVar[int]
    SHARED_BYTES_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    blocks_count: int
    threads_per_block: int
    registers_per_thread: int
    shared_bytes_per_block: int
    def __init__(self, blocks_count: _Optional[int] = ..., threads_per_block: _Optional[int] = ..., registers_per_thread: _Optional[int] = ..., shared_bytes_per_block: _Optional[int] = ...) -> None: ...

class SharingJob(_message.Message):
    __slots__ = ("name", "model_name", "device_utilization_ratio", "memory_utilization_ratio", "memory_bytes", "step_seconds", "steps_elsewhere", "kernels", "slice_ratio", "slice_memory_bytes", "profile")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEPS_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    SLICE_RATIO_FIELD_NUMBER: _ClassVar[int]
    SLICE_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    name: str
    model_name: str
    device_utilization_ratio: float
    memory_utilization_ratio: float
    memory_bytes: float
    step_seconds: float
    steps_elsewhere: _containers.RepeatedCompositeFieldContainer[StepElsewhere]
    kernels: _containers.RepeatedCompositeFieldContainer[KernelLaunch]
    slice_ratio: float
    slice_memory_bytes: float
    profile: _profile_pb2.ProfileSource
    def __init__(self, name: _Optional[str] = ..., model_name: _Optional[str] = ..., device_utilization_ratio: _Optional[float] = ..., memory_utilization_ratio: _Optional[float] = ..., memory_bytes: _Optional[float] = ..., step_seconds: _Optional[float] = ..., steps_elsewhere: _Optional[_Iterable[_Union[StepElsewhere, _Mapping]]] = ..., kernels: _Optional[_Iterable[_Union[KernelLaunch, _Mapping]]] = ..., slice_ratio: _Optional[float] = ..., slice_memory_bytes: _Optional[float] = ..., profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ...) -> None: ...

class StepElsewhere(_message.Message):
    __slots__ = ("device_name", "step_seconds", "speed_ratio")
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SPEED_RATIO_FIELD_NUMBER: _ClassVar[int]
    device_name: str
    step_seconds: float
    speed_ratio: float
    def __init__(self, device_name: _Optional[str] = ..., step_seconds: _Optional[float] = ..., speed_ratio: _Optional[float] = ...) -> None: ...

class SharedRun(_message.Message):
    __slots__ = ("first_job", "second_job", "first_share", "second_share")
    FIRST_JOB_FIELD_NUMBER: _ClassVar[int]
    SECOND_JOB_FIELD_NUMBER: _ClassVar[int]
    FIRST_SHARE_FIELD_NUMBER: _ClassVar[int]
    SECOND_SHARE_FIELD_NUMBER: _ClassVar[int]
    first_job: str
    second_job: str
    first_share: float
    second_share: float
    def __init__(self, first_job: _Optional[str] = ..., second_job: _Optional[str] = ..., first_share: _Optional[float] = ..., second_share: _Optional[float] = ...) -> None: ...

class SharingSet(_message.Message):
    __slots__ = ("job_names",)
    JOB_NAMES_FIELD_NUMBER: _ClassVar[int]
    job_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_names: _Optional[_Iterable[str]] = ...) -> None: ...

class PredictSharingRequest(_message.Message):
    __slots__ = ("device", "mode", "jobs", "runs", "sets", "coverage", "sharing_model")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SETS_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    SHARING_MODEL_FIELD_NUMBER: _ClassVar[int]
    device: SharedDevice
    mode: _sharing_pb2.SharingMode
    jobs: _containers.RepeatedCompositeFieldContainer[SharingJob]
    runs: _containers.RepeatedCompositeFieldContainer[SharedRun]
    sets: _containers.RepeatedCompositeFieldContainer[SharingSet]
    coverage: float
    sharing_model: str
    def __init__(self, device: _Optional[_Union[SharedDevice, _Mapping]] = ..., mode: _Optional[_Union[_sharing_pb2.SharingMode, str]] = ..., jobs: _Optional[_Iterable[_Union[SharingJob, _Mapping]]] = ..., runs: _Optional[_Iterable[_Union[SharedRun, _Mapping]]] = ..., sets: _Optional[_Iterable[_Union[SharingSet, _Mapping]]] = ..., coverage: _Optional[float] = ..., sharing_model: _Optional[str] = ...) -> None: ...

class SetShares(_message.Message):
    __slots__ = ("job_names", "low_shares", "middle_shares", "high_shares", "low_total", "middle_total", "high_total", "verdict", "basis", "memory_bytes", "why", "warnings", "problem")
    JOB_NAMES_FIELD_NUMBER: _ClassVar[int]
    LOW_SHARES_FIELD_NUMBER: _ClassVar[int]
    MIDDLE_SHARES_FIELD_NUMBER: _ClassVar[int]
    HIGH_SHARES_FIELD_NUMBER: _ClassVar[int]
    LOW_TOTAL_FIELD_NUMBER: _ClassVar[int]
    MIDDLE_TOTAL_FIELD_NUMBER: _ClassVar[int]
    HIGH_TOTAL_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    job_names: _containers.RepeatedScalarFieldContainer[str]
    low_shares: _containers.RepeatedScalarFieldContainer[float]
    middle_shares: _containers.RepeatedScalarFieldContainer[float]
    high_shares: _containers.RepeatedScalarFieldContainer[float]
    low_total: float
    middle_total: float
    high_total: float
    verdict: SharingVerdict
    basis: SharingBasis
    memory_bytes: float
    why: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    problem: _problem_pb2.Problem
    def __init__(self, job_names: _Optional[_Iterable[str]] = ..., low_shares: _Optional[_Iterable[float]] = ..., middle_shares: _Optional[_Iterable[float]] = ..., high_shares: _Optional[_Iterable[float]] = ..., low_total: _Optional[float] = ..., middle_total: _Optional[float] = ..., high_total: _Optional[float] = ..., verdict: _Optional[_Union[SharingVerdict, str]] = ..., basis: _Optional[_Union[SharingBasis, str]] = ..., memory_bytes: _Optional[float] = ..., why: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ...) -> None: ...

class PredictSharingResponse(_message.Message):
    __slots__ = ("sets", "sharing_model", "sharing_model_version", "device_memory_bytes", "coverage")
    SETS_FIELD_NUMBER: _ClassVar[int]
    SHARING_MODEL_FIELD_NUMBER: _ClassVar[int]
    SHARING_MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    sets: _containers.RepeatedCompositeFieldContainer[SetShares]
    sharing_model: str
    sharing_model_version: str
    device_memory_bytes: float
    coverage: float
    def __init__(self, sets: _Optional[_Iterable[_Union[SetShares, _Mapping]]] = ..., sharing_model: _Optional[str] = ..., sharing_model_version: _Optional[str] = ..., device_memory_bytes: _Optional[float] = ..., coverage: _Optional[float] = ...) -> None: ...
