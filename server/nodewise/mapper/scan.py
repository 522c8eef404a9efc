"""What a request holds, counted on the wire: entries of lists by their lengths, before anything is decoded.

Decoding makes an object of every entry, and reading a value of every object: ten bytes on the wire become hundreds of
memory and microseconds of work. Counting needs neither, and stops at the first list that is longer than its cap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["Excess", "Plan", "plan_of", "scan"]

LEAST_ENTRY_BYTES: Final = 2
"""An empty message or name in a list: its tag and its length."""
_VARINT, _FIXED64, _LENGTH, _GROUP, _GROUP_END, _FIXED32 = range(6)
_FIXED_BYTES: Final = {
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_FLOAT: 4,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
}


@dataclass(frozen=True, slots=True)
class Excess:
    """The first list that is too long.

    Attributes
    ----------
    field : str
        Its path; empty = the parts of the whole request together.
    limit : str
        Name of the cap.
    found, value : int
        Entries as far as they were counted, at least one more than the cap; the cap.
    """

    field: str
    limit: str
    count: int
    value: int


@dataclass(slots=True)
class _Field:
    """A field that is counted, or that holds some that are.

    Attributes
    ----------
    cap : int
        Most entries of the list in one message; 0 = not a list that is counted.
    element_bytes : int
        Of an entry of a packed list; 0 = as each says.
    packable : bool
        Whether entries may come together under one tag.
    repeated : bool
        Whether it is a list at all.
    """

    name: str
    cap: int
    limit: str
    element_bytes: int
    packable: bool
    repeated: bool
    below: Plan | None


class Plan:
    """What is counted in a message.

    Attributes
    ----------
    fields : dict
        Fields by number; all others are stepped over.
    quiet_bytes : int
        A message of at most so many bytes holds nothing above a cap, whatever they are.
    """

    __slots__ = ("fields", "quiet_bytes")

    def __init__(self) -> None:
        self.fields: dict[int, _Field] = {}
        self.quiet_bytes = 0


def plan_of(message_type: Descriptor, cap_of: Callable[[FieldDescriptor], tuple[str, int] | None]) -> Plan:
    """What is counted in messages of a type, and below it.

    Parameters
    ----------
    cap_of : callable
        Name and value of the cap of a repeated field; None = it is not counted.
    """
    plans: dict[str, Plan] = {}
    plan = _plan_for(message_type, cap_of, plans)
    plan.quiet_bytes = min(_least_bytes(each) for each in plans.values())
    return plan


def _plan_for(
    message_type: Descriptor, cap_of: Callable[[FieldDescriptor], tuple[str, int] | None], plans: dict[str, Plan]
) -> Plan:
    existing = plans.get(message_type.full_name)
    if existing is not None:
        return existing
    plan = plans[message_type.full_name] = Plan()
    for field in message_type.fields:
        limit, cap = (cap_of(field) if field.is_repeated else None) or ("", 0)
        below = None if field.message_type is None else _plan_for(field.message_type, cap_of, plans)
        if below is not None and not below.fields:
            below = None
        if cap or below is not None:
            packable = field.type not in (
                FieldDescriptor.TYPE_MESSAGE,
                FieldDescriptor.TYPE_STRING,
                FieldDescriptor.TYPE_BYTES,
            )
            element_bytes = _FIXED_BYTES.get(field.type, 0)
            plan.fields[field.number] = _Field(
                field.name, cap, limit, element_bytes, packable, field.is_repeated, below
            )
    return plan


def _least_bytes(plan: Plan) -> int:
    """Below this many bytes no list of a message exceeds its cap."""
    capped = [field for field in plan.fields.values() if field.cap]
    least = (field.cap * ((field.element_bytes or 1) if field.packable else LEAST_ENTRY_BYTES) for field in capped)
    return min(least, default=1 << 62)


def scan(data: bytes, plan: Plan, parts_cap: int) -> Excess | None:
    """The first list above its cap; None = there is none, or the bytes are no message and will not be decoded.

    Parameters
    ----------
    parts_cap : int
        Most entries of lists of messages and names in the whole request, and fields on the way to them.
    """
    if len(data) <= plan.quiet_bytes and len(data) <= parts_cap * LEAST_ENTRY_BYTES:
        return None
    scanner = _Scanner(data, parts_cap)
    try:
        scanner.walk(plan, 0, len(data), "", _EntryCounts())
    except _ExcessError as error:
        return error.excess
    except (IndexError, RecursionError):
        return None  # cut off within a number, or deeper than the decoder goes: it will say so
    return None


class _ExcessError(Exception):  # ends the walk, is no failure
    def __init__(self, excess: Excess) -> None:
        self.excess = excess


class _EntryCounts:
    """Entries that lists of one message have so far, wherever on the wire its parts are.

    A message that is no entry of a list may come in several pieces, which the decoder puts together.
    """

    __slots__ = ("below", "entries")

    def __init__(self) -> None:
        self.entries: dict[int, int] = {}
        self.below: dict[int, _EntryCounts] = {}


class _Scanner:
    """One look at one message."""

    def __init__(self, data: bytes, parts_cap: int) -> None:
        self._data = data
        self._parts = 0
        self._parts_cap = parts_cap

    def walk(  # noqa: C901, PLR0912, PLR0915  # one loop, no calls in it
        self, plan: Plan, at: int, end: int, path: str, totals: _EntryCounts
    ) -> None:
        """Count between two places."""
        data, fields, counts = self._data, plan.fields, totals.entries
        groups = 0
        parts, most = 0, self._parts_cap - self._parts
        while at < end:
            parts += 1
            if parts > most:
                part_count = self._parts_cap + 1
                raise _ExcessError(Excess("", "parts_per_call", part_count, self._parts_cap))
            key = data[at]
            at += 1
            if key > 127:
                key, at = _varint(data, at - 1)
            kind = key & 7
            length = 0
            if kind == _LENGTH:
                length = data[at]
                at += 1
                if length > 127:
                    length, at = _varint(data, at - 1)
            elif kind == _VARINT:
                while data[at] > 127:
                    at += 1
                at += 1
            elif kind == _FIXED64:
                at += 8
            elif kind == _FIXED32:
                at += 4
            elif kind == _GROUP:
                groups += 1  # no message here has any: the decoder steps over them, and so does the count
            elif kind == _GROUP_END and groups:
                groups -= 1
            else:
                return  # no message: the decoder's to say
            if groups:
                at += length
                continue
            number = key >> 3
            field = fields.get(number)
            if field is not None:
                if field.cap:
                    entries = 1
                    if kind == _LENGTH and field.packable:
                        parts -= 1
                        entries = self._count_packed(field, at, length)
                    count = counts[number] = counts.get(number, 0) + entries
                    if count > field.cap:
                        raise _ExcessError(Excess(path + field.name, field.limit, count, field.cap))
                if field.below is not None and kind == _LENGTH and length > LEAST_ENTRY_BYTES:
                    self._parts += parts
                    if field.cap:
                        place, inner = f"[{counts[number] - 1}]", _EntryCounts()
                    elif field.repeated:
                        place, inner = "", _EntryCounts()
                    else:
                        place, inner = "", totals.below.setdefault(number, _EntryCounts())
                    self.walk(field.below, at, min(at + length, end), f"{path}{field.name}{place}.", inner)
                    parts, most = 0, self._parts_cap - self._parts
            at += length
        self._parts += parts

    def _count_packed(self, field: _Field, at: int, length: int) -> int:
        """Entries of a packed list."""
        if field.element_bytes:
            return length // field.element_bytes
        # The last byte of a number has its top bit clear.
        return int(np.count_nonzero(np.frombuffer(self._data, np.uint8)[at : at + length] < 128))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError
