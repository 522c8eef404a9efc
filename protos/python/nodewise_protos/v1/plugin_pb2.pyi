from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PluginKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLUGIN_KIND_UNSPECIFIED: _ClassVar[PluginKind]
    PLUGIN_KIND_ESTIMATOR: _ClassVar[PluginKind]
    PLUGIN_KIND_POLICY: _ClassVar[PluginKind]
    PLUGIN_KIND_TRACE_READER: _ClassVar[PluginKind]
    PLUGIN_KIND_DIAGNOSER: _ClassVar[PluginKind]
    PLUGIN_KIND_SHARING_MODEL: _ClassVar[PluginKind]

class PluginMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLUGIN_MODE_UNSPECIFIED: _ClassVar[PluginMode]
    PLUGIN_MODE_INLINE: _ClassVar[PluginMode]
    PLUGIN_MODE_THREAD: _ClassVar[PluginMode]
    PLUGIN_MODE_PROCESS: _ClassVar[PluginMode]
PLUGIN_KIND_UNSPECIFIED: PluginKind
PLUGIN_KIND_ESTIMATOR: PluginKind
PLUGIN_KIND_POLICY: PluginKind
PLUGIN_KIND_TRACE_READER: PluginKind
PLUGIN_KIND_DIAGNOSER: PluginKind
PLUGIN_KIND_SHARING_MODEL: PluginKind
PLUGIN_MODE_UNSPECIFIED: PluginMode
PLUGIN_MODE_INLINE: PluginMode
PLUGIN_MODE_THREAD: PluginMode
PLUGIN_MODE_PROCESS: PluginMode

class Plugin(_message.Message):
    __slots__ = ("kind", "name", "version", "description", "distribution", "mode", "parameters")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    kind: PluginKind
    name: str
    version: str
    description: str
    distribution: str
    mode: PluginMode
    parameters: _containers.RepeatedCompositeFieldContainer[PluginParameter]
    def __init__(self, kind: _Optional[_Union[PluginKind, str]] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., distribution: _Optional[str] = ..., mode: _Optional[_Union[PluginMode, str]] = ..., parameters: _Optional[_Iterable[_Union[PluginParameter, _Mapping]]] = ...) -> None: ...

class PluginParameter(_message.Message):
    __slots__ = ("name", "description", "default_value", "minimum", "maximum")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    default_value: float
    minimum: float
    maximum: float
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., default_value: _Optional[float] = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ...) -> None: ...

class PluginProblem(_message.Message):
    __slots__ = ("name", "distribution", "kind", "problem")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    name: str
    distribution: str
    kind: PluginKind
    problem: _problem_pb2.Problem
    def __init__(self, name: _Optional[str] = ..., distribution: _Optional[str] = ..., kind: _Optional[_Union[PluginKind, str]] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ...) -> None: ...
