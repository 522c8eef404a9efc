"""Nodes of a Chakra execution trace, from either of its two forms.

Fields are those of MLCommons Chakra's ``et_def.proto``: https://github.com/mlcommons/chakra/blob/main/schema/protobuf.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from nodewise_traces.formats.protobuf import WireError, fields_of, integers_of, messages, signed_integer, zigzag
from nodewise_traces.scanning.numbers import integer_or
from nodewise_traces.scanning.stream import ChromeStream, Source

__all__ = ["Node", "NodeType", "begins_with_node", "json_nodes", "protobuf_nodes"]

Value = int | float | str | None

_SIGNED: Final = frozenset({7, 9, 19, 21, 23, 25})
_ZIGZAG: Final = frozenset({15, 17})
_UNSIGNED: Final = frozenset({11, 13, 27})


class NodeType(IntEnum):
    """What a node does."""

    INVALID = 0
    METADATA = 1
    MEMORY_LOAD = 2
    MEMORY_STORE = 3
    COMPUTE = 4
    SEND = 5
    RECEIVE = 6
    COLLECTIVE = 7


_TYPES: Final = frozenset(NodeType)


@dataclass(slots=True)
class Node:
    """One node; ``start_us`` and ``duration_us`` -1 = not stated."""

    number: int = -1
    name: str = ""
    type: int = 0
    control: list[int] = field(default_factory=list)
    data: list[int] = field(default_factory=list)
    start_us: int = -1
    duration_us: int = -1
    attributes: dict[str, Value] = field(default_factory=dict)

    @property
    def communicates(self) -> bool:
        """Whether it exchanges something with other ranks."""
        return NodeType.SEND <= self.type <= NodeType.COLLECTIVE


def begins_with_node(head: bytes) -> bool:
    """Whether a file begins as ``.et`` files do: with a head that may be empty, and a node that makes sense."""
    stream = messages(io.BytesIO(head))
    try:
        message = next(stream, b"")
        node = _node(next(stream, b"") if _is_metadata(message) else message)
    except (WireError, struct.error):
        return False
    return bool(node.name) and node.type in _TYPES and "" not in node.attributes


def protobuf_nodes(stream: Source) -> Iterator[Node | None]:
    """Nodes of an ``.et`` file; None for a message that is none, after which it may go on.

    Raises
    ------
    WireError
        The stream stops making sense.
    """
    for place, message in enumerate(messages(stream)):
        if place == 0 and _is_metadata(message):
            continue
        try:
            yield _node(message)
        except (WireError, struct.error):
            yield None


def _is_metadata(message: bytes) -> bool:
    """Whether the first message is the file's head: of two fields, the second of which are attributes."""
    numbers = {number for number, _ in fields_of(message)}
    return numbers <= {1, 2} and 1 not in {number for number, value in fields_of(message) if isinstance(value, int)}


def _node(message: bytes) -> Node:
    node = Node()
    for number, value in fields_of(message):
        if number == 4:
            node.control.extend(integers_of(value))
        elif number == 5:
            node.data.extend(integers_of(value))
        elif number == 2 and isinstance(value, bytes):
            node.name = value.decode("utf-8", errors="replace")
        elif number == 10 and isinstance(value, bytes):
            name, content = _attribute(value)
            node.attributes[name] = content
        elif isinstance(value, int):
            if number == 1:
                node.number = value
            elif number == 3:
                node.type = value
            elif number == 6:
                node.start_us = value
            elif number == 7:
                node.duration_us = value
    node.number = max(node.number, 0)  # proto3 leaves zeros out
    return node


def _attribute(message: bytes) -> tuple[str, Value]:
    name, content = "", None
    for number, value in fields_of(message):
        if number == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", errors="replace")
        elif number > 2:
            content = _value(number, value)
    return name, content


def _value(number: int, value: int | bytes) -> Value:
    """One alternative of an attribute's value; lists and bytes are not of interest."""
    if isinstance(value, bytes):
        if number == 29:
            return value.decode("utf-8", errors="replace")
        if number == 3:
            return float(struct.unpack("<d", value)[0])
        if number == 5:
            return float(struct.unpack("<f", value)[0])
        return signed_integer(value) if number in _SIGNED and len(value) in {4, 8} else None
    if number in _SIGNED:
        return signed_integer(value)
    if number in _ZIGZAG:
        return zigzag(value)
    return value if number in _UNSIGNED else None


def json_nodes(document: ChromeStream) -> Iterator[Node | None]:
    """Nodes of the JSON form, whose list is ``workload_graph``."""
    for batch in document.batches():
        for row in range(len(batch.rows)):
            event = batch.event(row)
            yield _json_node(event) if "Id" in event else None


def _json_node(entry: Mapping[str, Any]) -> Node:
    known_keys = {"Id", "Name", "NodeType", "ctrlDeps", "ctrl_deps", "data_deps", "runtime"}
    return Node(
        number=integer_or(entry["Id"], -1),
        name=str(entry.get("Name", "")),
        type=integer_or(entry.get("NodeType"), 0),
        control=_numbers(entry.get("ctrlDeps", entry.get("ctrl_deps"))),
        data=_numbers(entry.get("data_deps")),
        duration_us=integer_or(entry.get("runtime"), -1),
        attributes={
            key: value for key, value in entry.items() if key not in known_keys and isinstance(value, int | float | str)
        },
    )


def _numbers(value: Any) -> list[int]:
    return [integer_or(one, -1) for one in value] if isinstance(value, list) else []
