"""Requests by chance, from the contract's descriptors: right ones that are spoilt, wild ones, bytes that are none.

What is drawn comes from a `random.Random`, which Hypothesis, a fuzzer's bytes or a seed may stand behind.
"""

from __future__ import annotations

import random
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from nodewise_protos.v1 import facts_pb2

DEEPEST: Final = 7
_WORDS: Final = (
    "", "a", "auto", "queueing", "scaling", "partitioning", "replay", "fifo", "efficiency-capped", "V100", "T4", "K80",
    "tiny", "job", "default", "a/b", "../x", " ", "é", "x" * 200, "n\n", "\x00", "configurations.nodes", "mean", "bf16",
)  # fmt: skip
_NUMBERS: Final = (
    0.0,
    -0.0,
    1.0,
    2.0,
    0.5,
    16.0,
    1e-9,
    1e9,
    -1.0,
    5e-324,
    1e308,
    float("nan"),
    float("inf"),
    -float("inf"),
)
_COUNTS: Final = (0, 1, 2, 3, 4, 7, 8, 16, 100, 1024, 4096, -1, 2**31 - 1, -(2**31))
_WIDE: Final = (2**53, 2**63 - 1, -(2**63))
_WIDE_TYPES: Final = frozenset({FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64})
_LENGTHS: Final = (0, 1, 1, 2, 2, 3, 4, 17)


def random_message(kind: type[Message], chance: random.Random, depth: int = 0) -> Message:
    """A message some of whose fields hold something of their type."""
    message = kind()
    fields = message.DESCRIPTOR.fields
    for _ in range(chance.randrange(1, 5)):
        if fields:
            put(message, chance.choice(fields), chance, depth)
    return message


def mutated(message: Message, chance: random.Random) -> Message:
    """A copy of which one to three fields, anywhere in it, are changed, emptied, lengthened or cut."""
    changed = type(message)()
    changed.CopyFrom(message)
    for _ in range(chance.randrange(1, 4)):
        place = _walked(changed, chance)
        fields = place.DESCRIPTOR.fields
        if not fields:
            continue
        held = [field for field, _ in place.ListFields()]
        field = chance.choice(held) if held and chance.random() < 0.7 else chance.choice(fields)
        if field.is_repeated and not _is_map(field) and len(getattr(place, field.name)):
            _relength(getattr(place, field.name), field, chance)
        elif chance.random() < 0.2:
            place.ClearField(field.name)
        else:
            put(place, field, chance, DEEPEST - 3)
    return changed


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some of them changed, cut, doubled or put in."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(changed) + 1)
        way = chance.randrange(4)
        if way == 0 and at < len(changed):
            changed[at] = chance.randrange(256)
        elif way == 1:
            del changed[at : at + chance.randrange(1, 9)]
        elif way == 2:
            changed[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        else:
            changed[at:at] = changed[at : at + chance.randrange(1, 33)]
    return bytes(changed)


def put(message: Message, field: FieldDescriptor, chance: random.Random, depth: int) -> None:
    """Something of its type into a field."""
    if _is_map(field):
        _put_entries(message, field, chance)
    elif field.message_type is not None:
        if depth >= DEEPEST:
            return
        if field.is_repeated:
            target = getattr(message, field.name)
            for _ in range(chance.choice(_LENGTHS[:6])):
                target.add().CopyFrom(random_message(_class(field), chance, depth + 1))
        else:
            getattr(message, field.name).CopyFrom(random_message(_class(field), chance, depth + 1))
    elif field.is_repeated:
        target = getattr(message, field.name)
        target.extend(_entry(field, chance) for _ in range(chance.choice(_LENGTHS)))
    else:
        setattr(message, field.name, _entry(field, chance))


def _walked(message: Message, chance: random.Random) -> Message:
    """A message somewhere within, or this one."""
    while True:
        within = [
            (field, value)
            for field, value in message.ListFields()
            if field.message_type is not None and not _is_map(field)
        ]
        if not within or chance.random() < 0.3:
            return message
        field, value = chance.choice(within)
        message = chance.choice(value) if field.is_repeated else value


def _relength(values: Any, field: FieldDescriptor, chance: random.Random) -> None:
    way = chance.randrange(4)
    if way == 0:
        del values[chance.randrange(len(values)) :]
    elif way == 1:
        values.extend(list(values)[: chance.choice(_LENGTHS)])
    elif field.message_type is not None:
        values[chance.randrange(len(values))].CopyFrom(random_message(_class(field), chance, DEEPEST - 3))
    elif way == 2:
        values[chance.randrange(len(values))] = _entry(field, chance)
    else:
        values.append(_entry(field, chance))


def _put_entries(message: Message, field: FieldDescriptor, chance: random.Random) -> None:
    value = field.message_type.fields_by_name["value"]
    entries = getattr(message, field.name)
    for _ in range(chance.randrange(1, 4)):
        entries[chance.choice(_WORDS)] = _entry(value, chance)


def _entry(field: FieldDescriptor, chance: random.Random) -> Any:
    if field.enum_type is not None:
        return chance.choice([*(value.number for value in field.enum_type.values), 99, -1])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice(_WORDS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.randbytes(chance.choice((0, 1, 30, 300)))
    real = field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
    bound = _at_a_bound(field, chance, real=real) if chance.random() < 0.25 else None
    if bound is not None:
        return bound
    if real:
        return chance.choice(_NUMBERS) if chance.random() < 0.5 else 10.0 ** (chance.random() * 12.0 - 6.0)
    return chance.choice((*_COUNTS, *_WIDE) if field.type in _WIDE_TYPES else _COUNTS)


def _at_a_bound(field: FieldDescriptor, chance: random.Random, *, real: bool) -> float | int | None:
    """A value at a bound that the contract states, or just beyond it; None where it states none."""
    facts = field.GetOptions().Extensions[facts_pb2.facts]
    stated = [getattr(facts, name) for name in ("minimum", "maximum", "default_value") if facts.HasField(name)]
    if not stated:
        return None
    bound = chance.choice(stated)
    if real:
        return bound * chance.choice((1.0, 1.000001, 0.999999))
    most = 2**63 - 1 if field.type in _WIDE_TYPES else 2**31 - 1
    return max(-most - 1, min(most, int(bound) + chance.randrange(-1, 2)))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _class(field: FieldDescriptor) -> type[Message]:
    return field.message_type._concrete_class
