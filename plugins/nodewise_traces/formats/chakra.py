"""Chakra execution traces: graphs of operators with durations and dependencies, mostly without times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import (
    NO_EVENT,
    CollectiveKind,
    Collectives,
    EventKind,
    Ints,
    Lane,
    ProcessGroup,
    Trace,
    TraceReport,
    TraceSource,
)
from nodewise_traces.events.collectives import collectives_table
from nodewise_traces.events.correlations import forward_lanes
from nodewise_traces.events.exchange_arguments import SAME_OUT, Exchange, kind_of_name
from nodewise_traces.events.names import KeyNumbers, public_name
from nodewise_traces.events.step_spans import steps_table
from nodewise_traces.formats.chakra_nodes import Node, NodeType, begins_with_node, json_nodes, protobuf_nodes
from nodewise_traces.formats.execution_trace import EVENTS_KEY, execution_nodes, is_execution_trace
from nodewise_traces.formats.protobuf import WireError
from nodewise_traces.refusals import unusable_error
from nodewise_traces.scanning.decode import starts_json
from nodewise_traces.scanning.numbers import integer_or, small_or
from nodewise_traces.scanning.rewound import Rewound
from nodewise_traces.scanning.stream import ChromeStream

__all__ = ["ChakraReader"]

NAME: Final = "chakra"
_JSON_STARTS: Final = frozenset({b"{", b"[", b" ", b"\n", b"\r", b"\t"})
_KINDS: Final = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.BROADCAST,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.REDUCE_SCATTER,  # by blocks
    CollectiveKind.BARRIER,
)
"""By Chakra's ``comm_type``."""
_HEAD_BYTES: Final = 1 << 16
_LATEST_US: Final = 2**52
"""Times and durations beyond this (in the year 2112) are damaged."""


class ChakraReader:
    """Reads ``.et`` files (protobuf), the JSON form with a ``workload_graph``, and PyTorch's own execution traces."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """The JSON form by its list; protobuf by its first two messages, or by the file's name."""
        if starts_json(head):
            return 0.9 if b'"workload_graph"' in head or is_execution_trace(head) else 0.0
        if begins_with_node(head):
            return 0.8
        return 0.5 if source.name.endswith(".et") and not head[:1].isspace() else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """Read the graph of one rank. See TraceReader."""
        counts: Counter[str] = Counter()
        nodes: dict[int, Node] = {}
        try:
            for node in _nodes(stream, counts):
                if node is None or node.number < 0 or max(node.start_us, node.duration_us) > _LATEST_US:
                    counts["malformed"] += 1
                elif node.number in nodes:
                    counts["duplicate_nodes"] += 1
                else:
                    nodes[node.number] = node
        except WireError as error:
            counts["truncated"] += 1
            if not nodes:
                raise unusable_error(source, f"the stream is not a Chakra execution trace ({error})") from None
        if not nodes:
            raise unusable_error(source, "the stream holds no node of a Chakra execution trace")
        return [_trace([nodes[number] for number in sorted(nodes)], source, counts)]


def _nodes(stream: BinaryIO, counts: Counter[str]) -> Iterator[Node | None]:
    """Nodes of any form, distinguished by the first bytes: a message of that length would be shorter than a head."""
    head = bytearray()
    while len(head) < _HEAD_BYTES and (part := stream.read(_HEAD_BYTES - len(head))):
        head += part
    whole = Rewound(bytes(head), stream)
    if bytes(head[:1]) not in _JSON_STARTS:
        yield from protobuf_nodes(whole)
        return
    lacks_times = is_execution_trace(bytes(head))
    document = ChromeStream(whole, events_key=EVENTS_KEY if lacks_times else "workload_graph")
    yield from execution_nodes(document) if lacks_times else json_nodes(document)
    counts["operators_alone"] = int(lacks_times)
    counts.update({key: document.counts[key] for key in ("malformed", "truncated")})


def _trace(nodes: list[Node], source: TraceSource, counts: Counter[str]) -> Trace:
    """Rows in the order of the nodes' numbers, by which a stream without successors can be chained."""
    kind = np.array([_kind(node) for node in nodes], dtype=np.int8)
    lanes: KeyNumbers[tuple[bool, int]] = KeyNumbers()
    on_device = kind >= EventKind.KERNEL
    # The host thread, or the stream, which both are the attribute ``tid``.
    thread_of = [integer_or(node.attributes.get("tid", node.attributes.get("stream")), 0) for node in nodes]
    lane = np.array([lanes[key] for key in zip(on_device.tolist(), thread_of)], dtype=np.int32)
    durations = np.array([node.duration_us for node in nodes], dtype=np.int64)
    starts = np.array([node.start_us for node in nodes], dtype=np.int64)
    has_times = bool((starts > 0).all())
    names: KeyNumbers[str] = KeyNumbers()
    name = np.array([names[node.name] for node in nodes], dtype=np.int32)
    edges = _edges(nodes, counts)
    sequence = np.array([integer_or(node.attributes.get("seq_id"), -1) for node in nodes], dtype=np.int64)
    thread = np.array([max(integer_or(node.attributes.get("fw_tid"), 0), 0) for node in nodes], dtype=np.int64)
    collectives = _collectives(nodes, kind, edges, counts)
    counts["events"] = len(nodes)
    counts["durations"] = int(np.count_nonzero(durations >= 0))
    counts["durations_missing"] = len(nodes) - counts["durations"]
    counts["device_events"] = int(np.count_nonzero(on_device))
    has_end = np.ones(len(nodes), dtype=np.bool_)
    has_end[edges[:, 0]] = False
    counts["device_events_without_successor"] = int(np.count_nonzero(has_end & on_device))
    forward_lane = forward_lanes(thread, sequence, lane, counts)
    order = np.lexsort((-durations, starts)) if has_times else np.arange(len(nodes))
    place = np.argsort(order)
    warnings = _warnings(counts, has_times=has_times, unknown_rank=source.rank < 0)
    return Trace(
        rank=max(source.rank, 0),
        world_size=source.world_size,
        format=NAME,
        names=tuple(public_name(text) for text in names),
        name=name[order],
        lanes=tuple(
            Lane(device=0, number=number, name=f"stream {number}") if device else Lane(device=-1, number=number)
            for device, number in lanes
        ),
        lane=lane[order],
        kind=kind[order],
        begin_ns=starts[order] * 1000 if has_times else np.zeros(len(nodes), dtype=np.int64),
        duration_ns=np.maximum(durations, 0)[order] * 1000,
        correlation=np.full(len(nodes), NO_EVENT, dtype=np.int64),
        sequence=sequence[order],
        forward_lane=forward_lane[order],
        bytes=np.full(len(nodes), NO_EVENT, dtype=np.int64),
        steps=steps_table({}),
        collectives=replace(
            collectives,
            event=place[collectives.event],
            call=np.where(collectives.call >= 0, place[collectives.call], NO_EVENT),
        ),
        dependencies=place[edges],
        timed=has_times,
        report=TraceReport(counts=dict(sorted(counts.items())), warnings=tuple(warnings)),
    )


def _kind(node: Node) -> EventKind:
    if node.attributes.get("is_cpu_op", True):
        return EventKind.OPERATOR
    if node.name.startswith("Memcpy"):
        return EventKind.COPY
    return EventKind.FILL if node.name.startswith("Memset") else EventKind.KERNEL


def _edges(nodes: list[Node], counts: Counter[str]) -> Ints:
    """(before, after) rows. Data dependencies are those that execution waits for; control names an operator's parent.

    In a graph with only control dependencies, execution waits for these.
    """
    row = {node.number: place for place, node in enumerate(nodes)}
    control_alone = not any(node.data for node in nodes)
    pairs: list[tuple[int, int]] = []
    for place, node in enumerate(nodes):
        for number in dict.fromkeys(node.control if control_alone else node.data):
            before = row.get(number)
            if before is None:
                counts["missing_dependencies"] += 1
            else:
                pairs.append((before, place))
        counts["missing_parents"] += sum(number not in row for number in set(node.control))
    counts["dependencies"] = len(pairs)
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    counts["nodes_in_cycles"] = _cyclic(len(nodes), edges)
    return edges


def _cyclic(size: int, edges: Ints) -> int:
    """Nodes in or behind cycles, which no order of execution reaches."""
    waiting = np.bincount(edges[:, 1], minlength=size)
    by_before = edges[np.argsort(edges[:, 0], kind="stable")]
    first = np.searchsorted(by_before[:, 0], np.arange(size + 1))
    ready = np.flatnonzero(waiting == 0).tolist()
    done_count = 0
    while ready:
        node = ready.pop()
        done_count += 1
        for after in by_before[first[node] : first[node + 1], 1].tolist():
            waiting[after] -= 1
            if waiting[after] == 0:
                ready.append(after)
    return size - done_count


def _collectives(nodes: list[Node], kind: NDArray[np.int8], edges: Ints, counts: Counter[str]) -> Collectives:
    """Exchanges on devices; where there are none, those of the host. Host operators beside them only issue them."""
    communicating = [row for row, node in enumerate(nodes) if node.communicates]
    counts["communication_nodes"] = len(communicating)
    counts["communication_nodes_sized"] = sum("comm_size" in nodes[row].attributes for row in communicating)
    rows_used = [row for row in communicating if kind[row] >= EventKind.KERNEL] or communicating
    issuer = {after: before for before, after in edges.tolist() if nodes[before].communicates}
    groups: KeyNumbers[str] = KeyNumbers()
    rows = []
    for row in rows_used:
        node = nodes[row]
        exchange = _exchange_kind(node)
        size = small_or(node.attributes.get("comm_size"), -1)
        group = node.attributes.get("pg_name")
        peer = "comm_dst" if exchange == CollectiveKind.SEND else "comm_src"
        stated_exchange = Exchange(
            kind=exchange,
            in_bytes=size,
            out_bytes=size if exchange in SAME_OUT else NO_EVENT,
            sequence=small_or(node.attributes.get("comm_tag"), -1),
            peer=small_or(node.attributes.get(peer, node.attributes.get("root")), -1),
        )
        number = NO_EVENT if group in {None, ""} else groups[str(group)]
        rows.append((row, issuer.get(row, NO_EVENT), number, stated_exchange))
    counts["collectives"] = len(rows)
    counts["collectives_sized"] = sum(stated_exchange.in_bytes >= 0 for *_, stated_exchange in rows)
    return collectives_table(rows, (ProcessGroup(name=name) for name in groups))


def _exchange_kind(node: Node) -> CollectiveKind:
    if node.type == NodeType.SEND:
        return CollectiveKind.SEND
    if node.type == NodeType.RECEIVE:
        return CollectiveKind.RECEIVE
    number = integer_or(node.attributes.get("comm_type"), -1)
    return _KINDS[number] if 0 <= number < len(_KINDS) else kind_of_name(_exchange_name(node))


def _exchange_name(node: Node) -> str:
    return str(node.attributes.get("collective_name", node.name.split("(", maxsplit=1)[0]))


def _warnings(counts: Counter[str], *, has_times: bool, unknown_rank: bool) -> list[str]:
    alone, durations = counts["device_events_without_successor"], counts["durations_missing"]
    operators = counts["operators_alone"]
    cyclic, missing, parents = counts["nodes_in_cycles"], counts["missing_dependencies"], counts["missing_parents"]
    cases = (
        (cyclic, f"{cyclic} nodes are part of circular dependencies or depend on them"),
        (missing, f"{missing} dependencies name nodes that are not in the file"),
        (parents, f"{parents} nodes name a parent that is not in the file"),
        (unknown_rank, "the trace does not state its rank: rank 0 is assumed"),
        (
            not has_times and not operators,
            "the trace states durations and dependencies, but no begin times",
        ),
        (
            operators,
            (
                "an execution trace holds operators only: for a diagnosis, send the export_chrome_trace file of the "
                "same steps"
            ),
        ),
        (durations and not operators, f"{durations} nodes state no duration: 0 is used"),
        (alone > 1, f"{alone} device events have no successor: the order on their streams was not recorded"),
        (counts["truncated"], "the file ends inside a node: later ones are missing"),
        (counts["malformed"], f"{counts['malformed']} malformed nodes were ignored"),
        (counts["duplicate_nodes"], f"{counts['duplicate_nodes']} nodes with a repeated id were ignored"),
    )
    return [text for applies, text in cases if applies]
