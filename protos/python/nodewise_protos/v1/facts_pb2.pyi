from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor
FACTS_FIELD_NUMBER: _ClassVar[int]
facts: _descriptor.FieldDescriptor

class FieldFacts(_message.Message):
    __slots__ = ("row_name", "csv_name", "unit", "default_value", "minimum", "maximum", "exclusive_minimum", "maximum_length", "whole", "required", "same_as")
    ROW_NAME_FIELD_NUMBER: _ClassVar[int]
    CSV_NAME_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_LENGTH_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    SAME_AS_FIELD_NUMBER: _ClassVar[int]
    row_name: str
    csv_name: str
    unit: str
    default_value: float
    minimum: float
    maximum: float
    exclusive_minimum: bool
    maximum_length: int
    whole: bool
    required: bool
    same_as: str
    def __init__(self, row_name: _Optional[str] = ..., csv_name: _Optional[str] = ..., unit: _Optional[str] = ..., default_value: _Optional[float] = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ..., exclusive_minimum: bool = ..., maximum_length: _Optional[int] = ..., whole: bool = ..., required: bool = ..., same_as: _Optional[str] = ...) -> None: ...
