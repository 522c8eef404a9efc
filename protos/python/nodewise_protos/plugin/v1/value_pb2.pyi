from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Value(_message.Message):
    __slots__ = ("boolean", "integer", "number", "text", "content", "array", "list", "tuple", "set", "mapping", "record", "member", "remaining_seconds", "opaque", "kept", "given", "long_integer", "unsendable")
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    TUPLE_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    MAPPING_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    REMAINING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    OPAQUE_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    LONG_INTEGER_FIELD_NUMBER: _ClassVar[int]
    UNSENDABLE_FIELD_NUMBER: _ClassVar[int]
    boolean: bool
    integer: int
    number: float
    text: str
    content: bytes
    array: Array
    list: Items
    tuple: Items
    set: Items
    mapping: Items
    record: Record
    member: Member
    remaining_seconds: float
    opaque: bytes
    kept: int
    given: Given
    long_integer: str
    unsendable: str
    def __init__(self, boolean: bool = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., text: _Optional[str] = ..., content: _Optional[bytes] = ..., array: _Optional[_Union[Array, _Mapping]] = ..., list: _Optional[_Union[Items, _Mapping]] = ..., tuple: _Optional[_Union[Items, _Mapping]] = ..., set: _Optional[_Union[Items, _Mapping]] = ..., mapping: _Optional[_Union[Items, _Mapping]] = ..., record: _Optional[_Union[Record, _Mapping]] = ..., member: _Optional[_Union[Member, _Mapping]] = ..., remaining_seconds: _Optional[float] = ..., opaque: _Optional[bytes] = ..., kept: _Optional[int] = ..., given: _Optional[_Union[Given, _Mapping]] = ..., long_integer: _Optional[str] = ..., unsendable: _Optional[str] = ...) -> None: ...

class Items(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, items: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Array(_message.Message):
    __slots__ = ("type", "shape", "data")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    type: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, type: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("type", "fields", "values")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    type: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, type: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("type", "value")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    type: str
    value: Value
    def __init__(self, type: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Given(_message.Message):
    __slots__ = ("number", "kind", "facts")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    kind: str
    facts: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, number: _Optional[int] = ..., kind: _Optional[str] = ..., facts: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...
