"""The page of limits is held to the contract: what sizes work is capped there, or exempt with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from nodewise.ports.limits import Limits
from nodewise.rpc.services import SERVICES
from nodewise_values.facts import BY_MESSAGE

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "limits.md"
WHOLE = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}


def requests() -> Iterator[Descriptor]:
    """Messages that requests are made of, each once."""
    pool, seen = descriptor_pool.Default(), set[str]()
    waiting = [method.input_type for name in SERVICES for method in pool.FindServiceByName(name).methods]
    while waiting:
        message = waiting.pop()
        if message.full_name in seen or not message.full_name.startswith("nodewise."):
            continue
        seen.add(message.full_name)
        yield message
        waiting += [field.message_type for field in message.fields if field.message_type is not None]


def sizes() -> set[str]:
    """Fields that may size work: whole numbers whose facts state no greatest, and lists of messages."""
    found = set()
    for message in requests():
        if message.GetOptions().map_entry:
            continue
        facts = BY_MESSAGE.get(message.full_name, {})
        for field in message.fields:
            fact = facts.get(field.name)
            if (field.cpp_type in WHOLE and (fact is None or fact.maximum is None)) or (
                field.message_type is not None and field.is_repeated
            ):
                found.add(f"{message.name}.{field.name}")
    return found


def listed() -> list[str]:
    """Fields of the page's tables."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([A-Z]\w+\.\w+)`", row.split("|")[1])]


def test_every_number_of_a_request_is_capped_or_exempt() -> None:
    assert sorted(listed()) == sorted(sizes())


def test_the_page_names_settings_that_there_are() -> None:
    named = set(re.findall(r"`limits\.(\w+)`", PAGE.read_text()))
    assert named <= set(Limits.__dataclass_fields__)
