"""Fields of messages, one by one: how each goes into a message, comes out of it, and is read from JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise_values.codecs import INSTANT, SCALARS, Codec, EntryError, Words, enum_codec, shown
from nodewise_values.errors import Violation

if TYPE_CHECKING:
    from nodewise_values.value import Value, Word
    from nodewise_values.wire import Mapper

__all__ = ["WireField", "wire_field"]

_TYPE_NAMES: Final = {getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name for name in SCALARS}
_TIMESTAMP: Final = "google.protobuf.Timestamp"


class WireField:
    """One field: how its value goes into a message, comes out of it, and is read from JSON.

    Attributes
    ----------
    exact : type or None
        Entries of just this type go into a message as they are; what does not fit, the message itself refuses.
    plain : callable
        What the constructor of the message takes for an entry. Raises :class:`EntryError`.
    explain : callable
        (entry, path, found): all that is wrong with an entry.
    take, take_own : callable or None
        What a message holds, to what the value holds; None = the same. The second of a message that nobody else has.
    read : callable
        What the value holds of a message that nobody else has.
    parse : callable
        (entry, path, found): from JSON.
    """

    def __init__(
        self,
        descriptor: FieldDescriptor,
        plain: Callable[[Any], Any],
        explain: Callable[[Any, str, list[Violation]], None],
        take: Callable[[Any], Any] | None,
        parse: Callable[[Any, str, list[Violation]], Any],
        *,
        exact: type | None = None,
        take_own: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name: Final = descriptor.name
        self.json_name: Final = descriptor.json_name
        self.number: Final = descriptor.number
        self.exact: Final = exact
        self.plain: Final = plain
        self.explain: Final = explain
        self.take: Final = take
        self.take_own: Final = take_own or take
        self.read: Final = _reader(descriptor, self.take_own)
        self.parse: Final = parse


def _reader(descriptor: FieldDescriptor, take: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    name, get = descriptor.name, attrgetter(descriptor.name)
    if take is _numbers:
        return lambda message: tuple(get(message)[:])  # the same without a call

    def known(message: Any) -> Any:
        return get(message) if take is None else take(get(message))

    return (lambda message: known(message) if message.HasField(name) else None) if descriptor.has_presence else known


def wire_field(descriptor: FieldDescriptor, mapper_of: Callable[[type[Value]], Mapper]) -> WireField:
    """How a field is mapped, whatever it holds."""
    message = descriptor.message_type
    if message is not None and message.GetOptions().map_entry:
        return _map_field(descriptor, message)
    if message is not None and message.full_name == _TIMESTAMP:
        return _instant_field(descriptor)
    if message is not None:
        mapper = mapper_of(_class_of(message))
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


def _class_of(descriptor: Descriptor | EnumDescriptor) -> Any:
    """The value's class of a message or an enum."""
    module = descriptor.file.name.removeprefix("nodewise/").removesuffix(".proto").replace("/", ".")
    return getattr(import_module(f"nodewise_values.{module}"), descriptor.name)


def _scalar_field(descriptor: FieldDescriptor, codec: Codec, take: Callable[[Any], Any] | None) -> WireField:
    explain = partial(_explain_entry, codec.entry)
    return WireField(descriptor, codec.entry, explain, take, partial(_entry_from_json, codec, take), exact=codec.exact)


def _explain_entry(plain: Callable[[Any], Any], entry: Any, path: str, found: list[Violation]) -> None:
    try:
        plain(entry)
    except EntryError as wrong:
        found.append(Violation(path, str(wrong)))


def _entry_from_json(
    codec: Codec, take: Callable[[Any], Any] | None, entry: Any, path: str, found: list[Violation]
) -> Any:
    try:
        python = codec.from_json(entry)
        return python if take is None else take(codec.entry(python))
    except EntryError as wrong:
        found.append(Violation(path, str(wrong)))
        return None


def _column_field(descriptor: FieldDescriptor, codec: Codec, take: Callable[[Any], Any] | None) -> WireField:
    def plain(held: Any) -> Sequence[Any]:
        entries = _entries(held, codec.name)
        right = codec.column(entries)
        return list(map(codec.entry, entries)) if right is None else right

    return WireField(
        descriptor,
        plain,
        _explain_each(partial(_explain_entry, codec.entry), codec.name),
        _numbers if take is None else lambda column: tuple(map(take, column[:])),
        _each(partial(_entry_from_json, codec, take), codec.name),
    )


def _numbers(column: Any) -> tuple[Any, ...]:
    """A column that is in Python what it is on the wire. A slice is a list at once, quicker than entry by entry."""
    return tuple(column[:])


def _entries(held: Any, name: str) -> Sequence[Any]:
    """What a column holds, as a list or tuple; arrays are asked for theirs."""
    if isinstance(held, list | tuple):
        return held
    if hasattr(held, "tolist"):
        held = held.tolist()
    if not isinstance(held, Iterable) or isinstance(held, str | bytes | Mapping):
        raise EntryError(f"must be a sequence, each entry {name}; found {shown(held)}")
    return tuple(held)


def _explain_each(
    one: Callable[[Any, str, list[Violation]], None], name: str
) -> Callable[[Any, str, list[Violation]], None]:
    """All that is wrong with a column whose entries are explained so."""

    def explain(held: Any, path: str, found: list[Violation]) -> None:
        try:
            entries = _entries(held, name)
        except EntryError as wrong:
            found.append(Violation(path, str(wrong)))
            return
        for number, entry in enumerate(entries):
            one(entry, f"{path}[{number}]", found)

    return explain


def _each(one: Callable[[Any, str, list[Violation]], Any], name: str) -> Callable[[Any, str, list[Violation]], Any]:
    """How a list in JSON is read whose entries are read so."""

    def parse(entry: Any, path: str, found: list[Violation]) -> Any:
        if isinstance(entry, list | tuple):
            return tuple(one(each, f"{path}[{number}]", found) for number, each in enumerate(entry))
        found.append(Violation(path, f"must be a list, each entry {name}; found {shown(entry)}"))
        return ()

    return parse


def _message_field(descriptor: FieldDescriptor, mapper: Mapper) -> WireField:
    return WireField(descriptor, mapper.plain, mapper.explain, mapper.read, _parser(mapper), take_own=mapper.read_own)


def _parser(mapper: Mapper) -> Callable[[Any, str, list[Violation]], Any]:
    return lambda entry, path, found: mapper.parse(entry, f"{path}.", found)


def _messages_field(descriptor: FieldDescriptor, mapper: Mapper) -> WireField:
    what = f"a {mapper.kind.__name__}"
    return WireField(
        descriptor,
        lambda held: list(map(mapper.plain, _entries(held, what))),
        _explain_each(mapper.explain, what),
        lambda column: tuple(map(mapper.read, column)),
        _each(_parser(mapper), what),
    )


def _map_field(descriptor: FieldDescriptor, entry: Descriptor) -> WireField:
    keys, _ = _codec(entry.fields_by_name["key"])
    values, _ = _codec(entry.fields_by_name["value"])

    def plain(held: Any) -> Mapping[Any, Any]:
        if not isinstance(held, Mapping):
            raise EntryError(f"must be a mapping, found {shown(held)}")
        return {keys.entry(key): values.entry(each) for key, each in held.items()}

    def explain(held: Any, path: str, found: list[Violation]) -> None:
        if not isinstance(held, Mapping):
            _explain_entry(plain, held, path, found)
            return
        for key, each in held.items():
            _explain_entry(plain, {key: each}, f"{path}[{shown(key)}]", found)

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

    return WireField(descriptor, plain, explain, dict, parse)


def _instant_field(descriptor: FieldDescriptor) -> WireField:
    def plain(held: Any) -> Timestamp:
        stamp = Timestamp()
        stamp.FromDatetime(INSTANT.entry(held))
        return stamp

    parse = partial(_entry_from_json, INSTANT, lambda instant: instant.astimezone(UTC))
    explain = partial(_explain_entry, INSTANT.entry)
    return WireField(descriptor, plain, explain, lambda message: message.ToDatetime(tzinfo=UTC), parse)
