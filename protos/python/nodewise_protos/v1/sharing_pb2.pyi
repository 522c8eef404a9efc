import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SharingMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SHARING_MODE_UNSPECIFIED: _ClassVar[SharingMode]
    SHARING_MODE_TIME_SLICED: _ClassVar[SharingMode]
    SHARING_MODE_MPS: _ClassVar[SharingMode]
    SHARING_MODE_MIG: _ClassVar[SharingMode]
SHARING_MODE_UNSPECIFIED: SharingMode
SHARING_MODE_TIME_SLICED: SharingMode
SHARING_MODE_MPS: SharingMode
SHARING_MODE_MIG: SharingMode

class SharedDeviceRun(_message.Message):
    __slots__ = ("device_name", "mode", "partner_profile_id", "share", "partner_share", "measured_time", "content_sha256")
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PARTNER_PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    PARTNER_SHARE_FIELD_NUMBER: _ClassVar[int]
    MEASURED_TIME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    device_name: str
    mode: SharingMode
    partner_profile_id: str
    share: float
    partner_share: float
    measured_time: _timestamp_pb2.Timestamp
    content_sha256: str
    def __init__(self, device_name: _Optional[str] = ..., mode: _Optional[_Union[SharingMode, str]] = ..., partner_profile_id: _Optional[str] = ..., share: _Optional[float] = ..., partner_share: _Optional[float] = ..., measured_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., content_sha256: _Optional[str] = ...) -> None: ...
