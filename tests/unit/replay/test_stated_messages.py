"""Graphs without times whose ranks send and receive: what is sent leaves before it is asked for."""

from __future__ import annotations

import io
import json

import foreign_traces as foreign
import pytest

from nodewise.plugin import NodewiseError, Trace, TraceSource
from nodewise_replay.building.assembly import build_graph
from nodewise_traces.formats.chakra import ChakraReader


def read(content: bytes, rank: int) -> Trace:
    (found,) = ChakraReader().read(io.BytesIO(content), TraceSource(rank=rank))
    return found


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_ring_of_sends_takes_a_round_after_the_other(ranks: int) -> None:
    graph = build_graph([read(foreign.chakra_ring(rank, ranks), rank) for rank in range(ranks)])
    assert graph.end_ns.max() == 2 * 100_000
    assert len(set(graph.collectives.transfer.tolist())) == 2 * ranks


def test_everyone_who_receives_first_waits_in_a_circle() -> None:
    traces = [read(foreign.chakra_ring(rank, 3, receive_first=True), rank) for rank in range(3)]
    with pytest.raises(NodewiseError, match="wait for each other in a cycle"):
        build_graph(traces)


def test_messages_that_arrive_in_another_order_are_told_apart_by_their_tags() -> None:
    def file(kind: int, ends: dict[str, int], tags: tuple[int, int]) -> bytes:
        nodes = [
            {"Id": place + 1, "Name": "m", "NodeType": kind, "is_cpu_op": False, "runtime": 5, "comm_tag": tag, **ends}
            for place, tag in enumerate(tags)
        ]
        return json.dumps({"workload_graph": nodes}).encode()

    sender, receiver = read(file(5, {"comm_dst": 1}, (0, 1)), 0), read(file(6, {"comm_src": 0}, (1, 0)), 1)
    rows = build_graph([sender, receiver]).collectives
    by_transfer: dict[int, set[int]] = {}
    for transfer, rank, row in zip(rows.transfer.tolist(), rows.rank.tolist(), rows.row.tolist(), strict=True):
        by_transfer.setdefault(transfer, set()).add(int((sender, receiver)[rank].collectives.sequence[row]))
    assert sorted(map(sorted, by_transfer.values())) == [[0], [1]]
