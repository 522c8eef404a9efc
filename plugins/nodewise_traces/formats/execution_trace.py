"""Nodes of PyTorch's own execution traces (``ExecutionTraceObserver``): operators of the host, without any time.

Fields are those of PyTorch's observer, schemas 1.0.x (all in the node) and 1.1.x (``ctrl_deps`` and ``attrs``):
https://docs.pytorch.org/docs/stable/profiler.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nodewise.plugin import CollectiveKind
from nodewise_traces.events.exchange_arguments import element_bytes, kind_of_name
from nodewise_traces.formats.chakra_nodes import Node, NodeType
from nodewise_traces.scanning.numbers import integer_or, small_or
from nodewise_traces.scanning.stream import ChromeStream

__all__ = ["EVENTS_KEY", "execution_nodes", "is_execution_trace"]

EVENTS_KEY: Final = "nodes"
_RECORD: Final = "record_param_comms"
_ATTRIBUTES: Final = ("seq_id", "tid", "fw_tid", "pg_name")


def is_execution_trace(head: bytes) -> bool:
    """Whether a JSON document that begins so has the observer's fields."""
    return b'"schema"' in head[:4096] and b'"nodes"' in head and (b'"ctrl_deps"' in head or b'"fw_parent"' in head)


def execution_nodes(document: ChromeStream) -> Iterator[Node | None]:
    """Nodes in the order of the file; None for what is none."""
    for batch in document.batches():
        for row in range(len(batch.rows)):
            entry = batch.event(row)
            yield _node(entry) if "id" in entry else None


def _node(entry: Mapping[str, Any]) -> Node:
    attributes = entry.get("attrs")
    fields = dict(entry)
    for one in attributes if isinstance(attributes, list) else ():
        if isinstance(one, dict) and "name" in one:
            fields[str(one["name"])] = one.get("value")
    number = integer_or(entry["id"], -1)
    parent = integer_or(entry.get("ctrl_deps", entry.get("parent")), -1)
    name = str(entry.get("name", ""))
    node = Node(
        number=number,
        name=name,
        type=NodeType.COMPUTE,
        control=[parent] if parent not in {number, -1} else [],  # the root is its own parent
        attributes={key: fields[key] for key in _ATTRIBUTES if isinstance(fields.get(key), int | str)},
    )
    collective = str(fields.get("collective_name", ""))
    if name == _RECORD and kind_of_name(collective) != CollectiveKind.UNKNOWN:
        node.type = NodeType.COLLECTIVE
        node.attributes["collective_name"] = collective
        elements, width = small_or(fields.get("in_msg_nelems"), -1), element_bytes(fields.get("dtype"))
        if elements >= 0 and width > 0:
            node.attributes["comm_size"] = elements * width
    return node
