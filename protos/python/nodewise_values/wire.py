"""The one mapper between values and messages, and between values and JSON: compiled once per type, from descriptors.

    message = to_message(PredictRequest(profile=ProfileSource(profile_id="resnet")))
    answer = from_message(stub.Predict(message), PredictResponse)
    request = from_json(json.load(file), PlanRequest)

Every field is mapped because the descriptor names it: none is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from importlib import import_module
from itertools import compress, count
from operator import attrgetter, is_not
from typing import Any, Final, TypeVar, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from nodewise_values.codecs import EntryError, shown
from nodewise_values.errors import InvalidValueError, Violation
from nodewise_values.value import LazyValue, Value, lazy_value
from nodewise_values.wire_fields import wire_field

__all__ = ["InvalidValueError", "Violation", "from_json", "from_message", "from_own_message", "to_json", "to_message"]

V = TypeVar("V", bound=Value)


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
    found: list[Violation] = []
    try:
        return mapper.create(**mapper.plain(value))
    except EntryError as wrong:
        mapper.explain(value, "", found)
        if not found:  # it was in an iterator, which nobody can look through twice
            found.append(Violation(wrong.field, str(wrong)))
    except (TypeError, ValueError):  # by the message, such as of a number out of its range
        mapper.explain(value, "", found)
        if not found:
            raise
    raise InvalidValueError(found)


def from_message(message: Message, kind: type[V]) -> V:
    """The value that a message says. Fields that this release does not know are left out, words of enums are kept.

    Raises
    ------
    TypeError
        For a message of another type than the value's.
    """
    return cast(V, _mapper_for(message, kind).read(message))


def from_own_message(message: Message, kind: type[V]) -> V:
    """The same of a message that nobody else has, such as a reply.

    Messages of many numbers are read from it later, field by field, as the value's are: seldom all of them.
    """
    return cast(V, _mapper_for(message, kind).read_own(message))


def _mapper_for(message: Message, kind: type[Value]) -> Mapper:
    mapper = _mapper(kind)
    if type(message) is not mapper.create and message.DESCRIPTOR.full_name != mapper.full_name:
        raise TypeError(f"{message.DESCRIPTOR.full_name} is no {mapper.full_name}")
    return mapper


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


class Mapper:
    """The compiled mapper of one type.

    Attributes
    ----------
    full_name : str
        The message's name in the contract.
    create : callable
        Makes a message of its fields.
    """

    def __init__(self, kind: type[Value], descriptor: Descriptor, create: Callable[..., Message]) -> None:
        self.full_name: Final = descriptor.full_name
        self.create: Final = create
        self.kind: Final = kind
        handled = [wire_field(each, _mapper) for each in descriptor.fields]
        self._get: Final = _getter([each.name for each in handled])
        defaults = {each.name: None if each.default is MISSING else each.default for each in fields(kind)}  # type: ignore[arg-type]  # every value is a dataclass
        self._defaults: Final = tuple(defaults[each.name] for each in handled)
        self._fields: Final = tuple((each.name, each.exact, each.plain) for each in handled)
        self._explain: Final = {each.name: each.explain for each in handled}
        self._taken: Final = {each.number: (each.name, each.take) for each in handled}
        self._taken_own: Final = {each.number: (each.name, each.take_own) for each in handled}
        self._readers: Final = {each.name: each.read for each in handled}
        self._parsed: Final = {name: each for each in handled for name in (each.json_name, each.name)}
        self._oneofs: Final = tuple(
            tuple(each.name for each in oneof.fields) for oneof in descriptor.oneofs if len(oneof.fields) > 1
        )

    def plain(self, value: Any) -> dict[str, Any]:
        """What the constructor of the message takes: the fields that are stated, those of its parts in it.

        Raises
        ------
        EntryError
            For the first entry that is wrong; `explain` finds them all.
        """
        if not isinstance(value, self.kind):
            raise EntryError(self._no_value(value))
        said = {}
        held = self._get(value)
        # Of many fields few are stated: what is not is passed over in C, and neither its name nor its mapper looked at.
        for place in compress(count(), map(is_not, held, self._defaults)):
            name, exact, plain = self._fields[place]
            entry = held[place]
            try:
                said[name] = entry if type(entry) is exact else plain(entry)
            except EntryError as wrong:
                wrong.field = f"{name}.{wrong.field}" if wrong.field else name
                raise
        if self._oneofs and len(said) > 1:
            for names in self._oneofs:
                if len(said.keys() & names) > 1:
                    raise EntryError(f"at most one may be given of {', '.join(names)}")
        return said

    def explain(self, value: Any, path: str, found: list[Violation]) -> None:
        """All that is wrong with a value; its fields lie below `path`, which is empty for a request."""
        if not isinstance(value, self.kind):
            found.append(Violation(path, self._no_value(value)))
            return
        below = f"{path}." if path else ""
        held = dict(zip(self._explain, self._get(value), strict=True))
        given = [name for name, default in zip(held, self._defaults, strict=True) if held[name] is not default]
        for name in given:
            self._explain[name](held[name], f"{below}{name}", found)
        for names in self._oneofs:
            _at_most_one([name for name in names if name in given], below, found)

    def _no_value(self, found: Any) -> str:
        return f"must be a {self.kind.__name__}, found {shown(found)}"

    def read(self, message: Message) -> Value:
        """The value of a message."""
        held = {}
        for descriptor, entry in message.ListFields():
            name, take = self._taken[descriptor.number]
            held[name] = entry if take is None else take(entry)
        return self.kind(**held)

    def read_own(self, message: Message) -> Value:
        """The value of a message that nobody else has, now or where it is read."""
        if issubclass(self.kind, LazyValue):
            return lazy_value(self.kind, message, self._readers)
        held = {}
        for descriptor, entry in message.ListFields():
            name, take = self._taken_own[descriptor.number]
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
                found.append(Violation(f"{path}{name}", f"is not a field of {self.kind.__name__}{self._nearest(name)}"))
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


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these attributes, as a tuple however many they are."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _at_most_one(given: Sequence[str], path: str, found: list[Violation]) -> None:
    if len(given) > 1:
        found.append(Violation(f"{path}{given[1]}", f"must not be given beside {given[0]}: at most one of them may be"))


_compiled: Final[dict[Any, Mapper]] = {}


def _mapper(kind: type[Value]) -> Mapper:
    known = _compiled.get(kind)
    if known is None:
        module = kind.__module__
        if not module.startswith("nodewise_values.v1"):
            raise TypeError(f"{kind.__name__} is no value of the contract")
        messages = import_module(f"{module.replace('nodewise_values', 'nodewise_protos')}_pb2")
        message = getattr(messages, kind.__name__)
        known = _compiled[kind] = Mapper(kind, message.DESCRIPTOR, message)
    return known
