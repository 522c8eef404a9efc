from nodewise_protos.plugin.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListPluginsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPluginsResponse(_message.Message):
    __slots__ = ("records", "problems")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[PluginRecord]
    problems: _containers.RepeatedCompositeFieldContainer[PluginProblem]
    def __init__(self, records: _Optional[_Iterable[_Union[PluginRecord, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[PluginProblem, _Mapping]]] = ...) -> None: ...

class PluginRecord(_message.Message):
    __slots__ = ("kind", "fields", "abilities")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    ABILITIES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    fields: _value_pb2.Value
    abilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kind: _Optional[str] = ..., fields: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., abilities: _Optional[_Iterable[str]] = ...) -> None: ...

class PluginProblem(_message.Message):
    __slots__ = ("name", "kind", "reason", "message")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    reason: str
    message: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class CallRequest(_message.Message):
    __slots__ = ("record", "kept", "method", "reads_attribute", "arguments", "call")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    READS_ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    record: str
    kept: int
    method: str
    reads_attribute: bool
    arguments: _containers.RepeatedCompositeFieldContainer[_value_pb2.Value]
    call: int
    def __init__(self, record: _Optional[str] = ..., kept: _Optional[int] = ..., method: _Optional[str] = ..., reads_attribute: bool = ..., arguments: _Optional[_Iterable[_Union[_value_pb2.Value, _Mapping]]] = ..., call: _Optional[int] = ...) -> None: ...

class CallResponse(_message.Message):
    __slots__ = ("answer", "kept")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    answer: _value_pb2.Value
    kept: KeptObject
    def __init__(self, answer: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., kept: _Optional[_Union[KeptObject, _Mapping]] = ...) -> None: ...

class KeptObject(_message.Message):
    __slots__ = ("number", "type", "abilities")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ABILITIES_FIELD_NUMBER: _ClassVar[int]
    number: int
    type: str
    abilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., type: _Optional[str] = ..., abilities: _Optional[_Iterable[str]] = ...) -> None: ...

class AskRequest(_message.Message):
    __slots__ = ("call", "number", "method", "arguments")
    CALL_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    call: int
    number: int
    method: str
    arguments: _containers.RepeatedCompositeFieldContainer[_value_pb2.Value]
    def __init__(self, call: _Optional[int] = ..., number: _Optional[int] = ..., method: _Optional[str] = ..., arguments: _Optional[_Iterable[_Union[_value_pb2.Value, _Mapping]]] = ...) -> None: ...

class AskResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: _value_pb2.Value
    def __init__(self, answer: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...
