"""The one mapper between values and messages, and between values and JSON: compiled once per type, from descriptors.

    message = to_message(PredictRequest(profile=ProfileSource(profile_id="resnet")))
    answer = from_message(stub.Predict(message), PredictResponse)
    request = from_json(json.load(file), PlanRequest)

Every field is mapped because the descriptor names it: none is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import UTC
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from nodewise_values.codecs import INSTANT, SCALARS, Codec, EntryError, Words, enum_codec, shown
from nodewise_values.errors import InvalidValueError, Violation
from nodewise_values.value import Value, Word

__all__ = ["InvalidValueError", "Violation", "from_json", "from_message", "to_json", "to_message"]

V = TypeVar("V", bound=Value)

_TYPE_NAMES: Final = {getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name for name in SCALARS}
_TIMESTAMP: Final = "google.protobuf.Timestamp"


def to_message(value: Value) -> Any:
    """The message that a value says.

    Returns
    -------
    google.protobuf.message.Message
        Of the class of the same name in ``nodewise_protos``.

    Raises
    ------
    InvalidValueError
        For entries of a wrong type, numbers out of range or not finite, words that an enum does not have, and two
        fields of which at most one may be given.
    """
    mapper = _mapper(type(value))
    message = mapper.create()
    found: list[Violation] = []
    mapper.write(value, message, "", found)
    if found:
        raise InvalidValueError(found)
    return message


def from_message(message: Message, kind: type[V]) -> V:
    """The value that a message says. Fields that this release does not know are left out, words of enums are kept.

    Raises
    ------
    TypeError
        For a message of another type than the value's.
    """
    mapper = _mapper(kind)
    if message.DESCRIPTOR.full_name != mapper.full_name:
        raise TypeError(f"{message.DESCRIPTOR.full_name} is no {mapper.full_name}")
    return cast(V, mapper.read(message))


def to_json(value: Value) -> dict[str, Any]:
    """The value as protobuf's JSON: names in lowerCamelCase, defaults left out.

    Raises
    ------
    InvalidValueError
        As :func:`to_message`.
    """
    return json_format.MessageToDict(to_message(value))


def from_json(data: Any, kind: type[V]) -> V:
    """The value that protobuf's JSON says, names in lowerCamelCase or as in the contract. Enums may be words as well.

    Raises
    ------
    InvalidValueError
        For everything that the contract does not know or that does not fit it, with its path.
    """
    found: list[Violation] = []
    value = _mapper(kind).parse(data, "", found)
    if found:
        raise InvalidValueError(found)
    return cast(V, value)


class _Mapper:
    """The compiled mapper of one type.

    Attributes
    ----------
    full_name : str
        The message's name in the contract.
    create : callable
        Makes an empty message.
    """

    def __init__(self, kind: type[Value], descriptor: Descriptor, create: Callable[[], Message]) -> None:
        self.full_name: Final = descriptor.full_name
        self.create: Final = create
        self.kind: Final = kind
        handled = [_field(each) for each in descriptor.fields]
        names = tuple(each.name for each in handled)
        get = attrgetter(*names) if names else lambda _: ()
        self._get: Final[Callable[[Any], Any]] = get if len(names) != 1 else lambda value: (get(value),)
        defaults = {each.name: None if each.default is MISSING else each.default for each in fields(kind)}  # type: ignore[arg-type]  # every value is a dataclass
        self._put: Final = tuple((defaults[each.name], each.put) for each in handled)
        self._taken: Final = {each.number: (each.name, each.take) for each in handled}
        self._parsed: Final = {name: each for each in handled for name in (each.json_name, each.name)}
        self._oneofs: Final = tuple(
            tuple(each.name for each in oneof.fields) for oneof in descriptor.oneofs if len(oneof.fields) > 1
        )

    def write(self, value: Any, message: Message, path: str, found: list[Violation]) -> None:
        """Fill an empty message. ``path`` ends with a dot unless it is empty."""
        for (default, put), held in zip(self._put, self._get(value), strict=True):
            if held is not default:
                put(held, message, path, found)
        for names in self._oneofs:
            given = [name for name in names if getattr(value, name) is not None]
            _at_most_one(given, path, found)

    def read(self, message: Message) -> Value:
        """The value of a message."""
        held = {}
        for descriptor, entry in message.ListFields():
            name, take = self._taken[descriptor.number]
            held[name] = entry if take is None else take(entry)
        return self.kind(**held)

    def parse(self, data: Any, path: str, found: list[Violation]) -> Value:
        """The value of an object in JSON."""
        if not isinstance(data, Mapping):
            known = ", ".join(dict.fromkeys(each.name for each in self._parsed.values())) or "nothing"
            what = f"must be an object that holds {known}; found {shown(data)}"
            found.append(Violation(path.removesuffix("."), what))
            return self.kind()
        held: dict[str, Any] = {}
        for name, entry in data.items():
            each = self._parsed.get(name)
            if each is None:
                found.append(Violation(f"{path}{name}", f"is no field of {self.kind.__name__}{self._nearest(name)}"))
            elif each.name in held:
                found.append(Violation(f"{path}{each.name}", f"is given twice, as {each.json_name} and as {each.name}"))
            elif entry is not None:
                held[each.name] = each.parse(entry, f"{path}{each.name}", found)
        for names in self._oneofs:
            _at_most_one([name for name in names if name in held], path, found)
        return self.kind(**held)

    def _nearest(self, name: Any) -> str:
        """The known name that is most like it, in the caller's own spelling."""
        snake = "_" in str(name)
        spelled = {each.name if snake else each.json_name for each in self._parsed.values()}
        near = get_close_matches(str(name), sorted(spelled), 1)
        return f"; the nearest is {near[0]}" if near else f"; it has {', '.join(sorted(spelled)) or 'none'}"


def _at_most_one(given: Sequence[str], path: str, found: list[Violation]) -> None:
    if len(given) > 1:
        found.append(Violation(f"{path}{given[1]}", f"must not be given beside {given[0]}: at most one of them may be"))


_compiled: Final[dict[Any, _Mapper]] = {}


def _mapper(kind: type[Value]) -> _Mapper:
    known = _compiled.get(kind)
    if known is None:
        module = kind.__module__
        if not module.startswith("nodewise_values.v1"):
            raise TypeError(f"{kind.__name__} is no value of the contract")
        messages = import_module(f"{module.replace('nodewise_values', 'nodewise_protos')}_pb2")
        message = getattr(messages, kind.__name__)
        known = _compiled[kind] = _Mapper(kind, message.DESCRIPTOR, message)
    return known


def _class_of(descriptor: Descriptor | EnumDescriptor) -> Any:
    """The value's class of a message or an enum."""
    module = descriptor.file.name.removeprefix("nodewise/").removesuffix(".proto").replace("/", ".")
    return getattr(import_module(f"nodewise_values.{module}"), descriptor.name)


# --- fields


class _Field:
    """One field: how its value goes into a message, comes out of it, and is read from JSON.

    Attributes
    ----------
    put : callable
        (held, message, path, found): write what is not the default.
    take : callable or None
        What a message holds, to what the value holds; None = the same.
    parse : callable
        (entry, path, found): from JSON.
    """

    def __init__(
        self,
        descriptor: FieldDescriptor,
        put: Callable[[Any, Any, str, list[Violation]], None],
        take: Callable[[Any], Any] | None,
        parse: Callable[[Any, str, list[Violation]], Any],
    ) -> None:
        self.name: Final = descriptor.name
        self.json_name: Final = descriptor.json_name
        self.number: Final = descriptor.number
        self.put: Final = put
        self.take: Final = take
        self.parse: Final = parse


def _field(descriptor: FieldDescriptor) -> _Field:
    message = descriptor.message_type
    if message is not None and message.GetOptions().map_entry:
        return _map_field(descriptor, message)
    if message is not None and message.full_name == _TIMESTAMP:
        return _instant_field(descriptor)
    if message is not None:
        mapper = _mapper(_class_of(message))
        return _messages_field(descriptor, mapper) if descriptor.is_repeated else _message_field(descriptor, mapper)
    codec, take = _codec(descriptor)
    return _column_field(descriptor, codec, take) if descriptor.is_repeated else _scalar_field(descriptor, codec, take)


def _codec(descriptor: FieldDescriptor) -> tuple[Codec, Callable[[Any], Any] | None]:
    """The codec of a single entry, and what a message's entry becomes."""
    enum = descriptor.enum_type
    if enum is None:
        return SCALARS[_TYPE_NAMES[descriptor.type]], None
    kind: type[Word] = _class_of(enum)
    names = {each.name: each.number for each in enum.values}
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    numbers = {name.removeprefix(prefix).lower(): number for name, number in names.items() if number}
    return enum_codec(numbers, names), Words(kind, numbers).__getitem__


def _scalar_field(descriptor: FieldDescriptor, codec: Codec, take: Callable[[Any], Any] | None) -> _Field:
    name = descriptor.name

    def put(held: Any, message: Any, path: str, found: list[Violation]) -> None:
        try:
            setattr(message, name, codec.entry(held))
        except EntryError as wrong:
            found.append(Violation(f"{path}{name}", str(wrong)))

    return _Field(descriptor, put, take, partial(_entry_from_json, codec, take))


def _entry_from_json(
    codec: Codec, take: Callable[[Any], Any] | None, entry: Any, path: str, found: list[Violation]
) -> Any:
    try:
        python = codec.from_json(entry)
        return python if take is None else take(codec.entry(python))
    except EntryError as wrong:
        found.append(Violation(path, str(wrong)))
        return None


def _column_field(descriptor: FieldDescriptor, codec: Codec, take: Callable[[Any], Any] | None) -> _Field:
    name = descriptor.name

    def put(held: Any, message: Any, path: str, found: list[Violation]) -> None:
        entries = _entries(held, f"{path}{name}", codec.name, found)
        right = codec.column(entries)
        if right is None:
            right = []
            for number, entry in enumerate(entries):
                try:
                    right.append(codec.entry(entry))
                except EntryError as wrong:
                    found.append(Violation(f"{path}{name}[{number}]", str(wrong)))
        getattr(message, name).extend(right)

    parse = _each(partial(_entry_from_json, codec, take), codec.name)
    return _Field(descriptor, put, tuple if take is None else lambda column: tuple(map(take, column)), parse)


def _entries(held: Any, path: str, name: str, found: list[Violation]) -> Sequence[Any]:
    """What a column holds, as a list or tuple; arrays are asked for theirs."""
    if isinstance(held, list | tuple):
        return held
    if hasattr(held, "tolist"):
        held = held.tolist()
    if not isinstance(held, Iterable) or isinstance(held, str | bytes | Mapping):
        found.append(Violation(path, f"must be a sequence, each entry {name}; found {shown(held)}"))
        return ()
    return tuple(held)


def _each(one: Callable[[Any, str, list[Violation]], Any], name: str) -> Callable[[Any, str, list[Violation]], Any]:
    """How a list in JSON is read whose entries are read so."""

    def parse(entry: Any, path: str, found: list[Violation]) -> Any:
        if isinstance(entry, list | tuple):
            return tuple(one(each, f"{path}[{number}]", found) for number, each in enumerate(entry))
        found.append(Violation(path, f"must be a list, each entry {name}; found {shown(entry)}"))
        return ()

    return parse


def _message_field(descriptor: FieldDescriptor, mapper: _Mapper) -> _Field:
    name = descriptor.name

    def put(held: Any, message: Any, path: str, found: list[Violation]) -> None:
        if not isinstance(held, mapper.kind):
            found.append(_no_value(f"{path}{name}", mapper, held))
            return
        part = getattr(message, name)
        part.SetInParent()
        mapper.write(held, part, f"{path}{name}.", found)

    return _Field(descriptor, put, mapper.read, _parser(mapper))


def _parser(mapper: _Mapper) -> Callable[[Any, str, list[Violation]], Any]:
    return lambda entry, path, found: mapper.parse(entry, f"{path}.", found)


def _messages_field(descriptor: FieldDescriptor, mapper: _Mapper) -> _Field:
    name = descriptor.name
    what = f"a {mapper.kind.__name__}"

    def put(held: Any, message: Any, path: str, found: list[Violation]) -> None:
        column = getattr(message, name)
        for number, each in enumerate(_entries(held, f"{path}{name}", what, found)):
            if isinstance(each, mapper.kind):
                mapper.write(each, column.add(), f"{path}{name}[{number}].", found)
            else:
                found.append(_no_value(f"{path}{name}[{number}]", mapper, each))

    return _Field(descriptor, put, lambda column: tuple(map(mapper.read, column)), _each(_parser(mapper), what))


def _no_value(path: str, mapper: _Mapper, held: Any) -> Violation:
    return Violation(path, f"must be a {mapper.kind.__name__}, found {shown(held)}")


def _map_field(descriptor: FieldDescriptor, entry: Descriptor) -> _Field:
    name = descriptor.name
    keys, _ = _codec(entry.fields_by_name["key"])
    values, _ = _codec(entry.fields_by_name["value"])

    def put(held: Any, message: Any, path: str, found: list[Violation]) -> None:
        if not isinstance(held, Mapping):
            found.append(Violation(f"{path}{name}", f"must be a mapping, found {shown(held)}"))
            return
        target = getattr(message, name)
        for key, each in held.items():
            try:
                target[keys.entry(key)] = values.entry(each)
            except EntryError as wrong:
                found.append(Violation(f"{path}{name}[{shown(key)}]", str(wrong)))

    def parse(entry: Any, path: str, found: list[Violation]) -> Any:
        if not isinstance(entry, Mapping):
            found.append(Violation(path, f"must be an object, found {shown(entry)}"))
            return {}
        return {
            _entry_from_json(keys, None, key, f"{path}[{shown(key)}]", found): _entry_from_json(
                values, None, each, f"{path}[{shown(key)}]", found
            )
            for key, each in entry.items()
        }

    return _Field(descriptor, put, dict, parse)


def _instant_field(descriptor: FieldDescriptor) -> _Field:
    name = descriptor.name

    def put(held: Any, message: Any, path: str, found: list[Violation]) -> None:
        try:
            getattr(message, name).FromDatetime(INSTANT.entry(held))
        except EntryError as wrong:
            found.append(Violation(f"{path}{name}", str(wrong)))

    parse = partial(_entry_from_json, INSTANT, lambda instant: instant.astimezone(UTC))
    return _Field(descriptor, put, lambda message: message.ToDatetime(tzinfo=UTC), parse)
