"""Collectives that ranks share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from recorded_traces import MAIN, US, NobodyWaits, Recorder, exchanging, shifted

from nodewise.domain.replay import Replay, ReplayQuestion
from nodewise.domain.trace import CollectiveKind, EventKind, Trace
from nodewise_replay.alignment.clocks import align_clocks
from nodewise_replay.alignment.matching import matched_collectives
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.graph import EdgeKind, NodeKind
from nodewise_replay.graph.sweep import sweep_times
from nodewise_replay.replaying.replayer import replay_steps

ARRIVALS = [[200.0, 210, 190, 205], [500.0, 260, 300, 203], [220.0, 400, 350, 204]]
TRANSFER = 40.0


def ranks() -> list[Trace]:
    ends = [max(rank[step] for rank in ARRIVALS) + TRANSFER for step in range(4)]
    return [exchanging(rank, 3, ARRIVALS[rank], ends) for rank in range(3)]


def replay(traces: list[Trace]) -> Replay:
    return replay_steps(traces, ReplayQuestion(in_sample=True), NobodyWaits())


def test_a_transfer_is_told_from_waiting() -> None:
    first, second, third, fourth = replay(ranks()).collectives
    assert [round(one.transfer_s * 1e6, 3) for one in (first, second, third, fourth)] == [TRANSFER] * 4
    assert [round(wait * 1e6) for wait in first.wait_s] == [300, 0, 280]
    assert (first.late_ranks, round(first.margin_s * 1e6)) == ((1,), 280)
    assert (second.late_ranks, round(second.margin_s * 1e6)) == ((2,), 140)
    assert third.bytes == 4096
    assert third.kind == "all_reduce"
    # Arrivals 205, 203, 204 us by clocks that agree: without any jitter of launches the order is known.
    assert fourth.late_ranks == (0,)


def test_arrivals_within_the_spread_of_the_ends_are_a_tie() -> None:
    traces = ranks()
    last = np.flatnonzero(traces[1].kind == EventKind.KERNEL)[-1]
    longer = traces[1].duration_ns.copy()
    longer[last] += 3 * US
    traces[1] = replace(traces[1], duration_ns=longer)
    tied = replay(traces).collectives[3]
    assert tied.late_ranks == (0, 2, 1)
    assert round(tied.end_spread_s * 1e6) == 3


def test_all_ranks_leave_together_whatever_changes() -> None:
    graph = build_graph(ranks())
    rows = graph.collectives
    operators = (graph.rank == 0) & (graph.kind <= NodeKind.CALL)
    _, end = sweep_times(graph, np.where(operators, 3 * graph.duration_ns, graph.duration_ns))
    for transfer in np.unique(rows.transfer):
        departures = end[rows.departure[rows.transfer == transfer]]
        assert len(set(departures.tolist())) == 1
    assert (end >= graph.end_ns).all()


def test_the_order_of_the_files_does_not_matter() -> None:
    one, other = replay(ranks()), replay(ranks()[::-1])
    assert one.steps == other.steps
    assert one.collectives == other.collectives


def test_a_lost_collective_does_not_shift_those_after_it() -> None:
    """Twelve alike in one step; one rank's recorder lost the fifth."""

    def rank(number: int, lost: int) -> Trace:
        record = Recorder(rank=number, world_size=2)
        record.step(1, 0, 3_000)
        for place in range(12):
            if place == lost:
                continue
            at = 50.0 + 200 * place
            call = record.event("c10d::allreduce_", at, at + 10)
            record.call("cudaLaunchKernel", at + 2, at + 5, place + 1)
            kernel = record.kernel("ncclKernel_AllReduce", at + 12 + number, at + 60, place + 1)
            record.collective(kernel, call, CollectiveKind.ALL_REDUCE, 4096)
        return record.trace()

    traces = [rank(0, lost=-1), shifted(rank(1, lost=4), 20_000_000)]
    matched = matched_collectives(traces)
    ends = [trace.end_ns[trace.collectives.event] for trace in traces]
    together = [np.flatnonzero(matched.member == one) for one in np.unique(matched.member)]
    pairs = [(int(matched.row[a]), int(matched.row[b])) for a, b in (rows for rows in together if len(rows) == 2)]
    assert len(pairs) == 11
    assert matched.alone == 1
    assert all(ends[1][b] - ends[0][a] == 20_000_000 for a, b in pairs)
    assert matched.warnings
    assert align_clocks(traces).offset_ns.tolist() == [0, -20_000_000]


def test_sizes_and_kinds_tell_collectives_apart() -> None:
    def rank(number: int, sizes: list[int]) -> Trace:
        record = Recorder(rank=number, world_size=2)
        record.step(1, 0, 3_000)
        for place, size in enumerate(sizes):
            at = 50.0 + 100 * place + 30 * number
            call = record.event("c10d::allreduce_", at, at + 5)
            kernel = record.kernel("ncclKernel_AllReduce", at + 7, at + 20, place + 1)
            record.collective(kernel, call, CollectiveKind.ALL_REDUCE, size)
        return record.trace()

    matched = matched_collectives([rank(0, [8, 16, 8, 32]), rank(1, [16, 8, 32])])
    together = [matched.row[matched.member == one].tolist() for one in np.unique(matched.member)]
    assert [rows for rows in together if len(rows) == 2] == [[1, 0], [2, 1], [3, 2]]


def test_a_receipt_ends_with_its_message() -> None:
    server, worker = Recorder(rank=0, world_size=2), Recorder(rank=1, world_size=2)
    server.step(1, 0, 1_000)
    span = server.event("receive_push", 10, 700, kind=EventKind.ANNOTATION)
    receive = server.event("c10d::recv_", 20, 30)
    server.collective(receive, receive, CollectiveKind.RECEIVE, 4096)
    worker.step(1, 0, 1_000)
    worker.event("compute", 10, 600)
    send = worker.event("c10d::send", 610, 650)
    worker.collective(send, send, CollectiveKind.SEND, 4096)
    assert span == 1
    graph = build_graph([server.trace(), worker.trace()])
    assert (sweep_times(graph)[1] == graph.end_ns).all()
    compute = (graph.rank == 1) & (graph.name == graph.names.index("compute"))
    _, end = sweep_times(graph, np.where(compute, 2 * graph.duration_ns, graph.duration_ns))
    last = graph.steps.last_node[0]
    assert ((end[last] - graph.end_ns[last]) // US).tolist() == [590, 590]


def test_gradients_are_read_back_when_their_bucket_has_come() -> None:
    record = Recorder(rank=0, world_size=1)
    record.step(1, 0, 1_000)
    for place, (begin, end) in enumerate([(100.0, 300.0), (320.0, 600.0)]):
        issue = record.event("c10d::allreduce_", begin - 20, begin - 10)
        span = record.event("gloo:all_reduce", begin, end, lane=MAIN + 1, kind=EventKind.ANNOTATION)
        record.collective(span, issue, CollectiveKind.ALL_REDUCE, 100 * (place + 1))
    record.event("torch.distributed.ddp.reducer::copy_bucket_to_grad", 400, 410)
    record.event("torch.distributed.ddp.reducer::copy_bucket_to_grad", 620, 630)
    graph = build_graph([record.trace()])
    assert (sweep_times(graph)[1] == graph.end_ns).all()
    assert int((graph.edge_kind == EdgeKind.HOST_SYNC).sum()) == 2
    slower = np.where(graph.kind == NodeKind.TRANSFER, 2 * graph.duration_ns, graph.duration_ns)
    _, end = sweep_times(graph, slower)
    # The second cannot begin before the first is over on the one thread: 300 + 200 + 2 * 280 + 400 to the end.
    assert end[graph.steps.last_node[0, 0]] >= 1_300 * US
