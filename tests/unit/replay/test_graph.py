"""What waits for what, in traces small enough to know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_traces import COMMUNICATION, COMPUTE, LANES, MAIN, OTHER, US, Recorder

from nodewise.domain.trace import CollectiveKind, EventKind, SyncKind, Trace
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.graph import EdgeKind, Graph, NodeKind, Origin
from nodewise_replay.graph.sweep import sweep_times


def edges_of(graph: Graph, kind: EdgeKind) -> set[tuple[str, str]]:
    """Names at both ends of the edges of a kind."""
    of_kind = np.flatnonzero(graph.edge_kind == kind)
    name = [graph.names[one] for one in graph.name]
    return {(name[graph.source[edge]], name[graph.target[edge]]) for edge in of_kind}


def node(graph: Graph, name: str, kind: NodeKind) -> int:
    (found,) = np.flatnonzero((graph.name == graph.names.index(name)) & (graph.kind == kind))
    return int(found)


def ends_with(graph: Graph, name: str, kind: NodeKind, scale: float) -> float:
    """When the step ends, us, if what is called so takes so many times as long."""
    duration = graph.duration_ns.copy()
    chosen = node(graph, name, kind)
    duration[chosen] = round(duration[chosen] * scale)
    _, end = sweep_times(graph, duration)
    return float(end[graph.steps.last_node[0, 0]]) / US


def reproduced(graph: Graph) -> bool:
    """Whether a sweep with everything as recorded gives the recorded times."""
    begin, end = sweep_times(graph)
    work = graph.kind >= NodeKind.KERNEL
    return bool((end == graph.end_ns).all() and (begin[work] == graph.begin_ns[work]).all())


def test_host_time_is_cut_into_pieces_that_add_up() -> None:
    record = Recorder()
    record.step(1, 0, 100)
    record.event("outer", 10, 60)
    record.event("inner", 20, 30)
    graph = build_graph([record.trace()])
    assert reproduced(graph)
    own = [int(graph.duration_ns[graph.name == graph.names.index(name)].sum()) // US for name in ("outer", "inner")]
    assert own == [40, 10]
    assert int(graph.duration_ns[graph.kind == NodeKind.GAP].sum()) == 50 * US
    assert ends_with(graph, "inner", NodeKind.OPERATOR, 3.0) == 120


def blocking() -> Recorder:
    record = Recorder()
    record.step(1, 0, 200)
    record.call("cudaLaunchKernel", 10, 15, 1)
    record.kernel("first", 20, 90, 1)
    record.call("cudaLaunchKernel", 16, 20, 2)
    record.kernel("second", 91, 100, 2)
    record.call("cudaDeviceSynchronize", 30, 104)
    return record


def test_a_blocking_call_ends_with_what_it_waits_for() -> None:
    graph = build_graph([blocking().trace()])
    assert reproduced(graph)
    assert edges_of(graph, EdgeKind.HOST_SYNC) == {("second", "cudaDeviceSynchronize")}
    assert ends_with(graph, "first", NodeKind.KERNEL, 2.0) == 270
    # Now the second begins a launch's 10 us after its call, at 26, and ends at 35; 4 us of the call and 96 are left.
    assert ends_with(graph, "first", NodeKind.KERNEL, 0.0) == 35 + 4 + 96
    # The host comes to its wait last once the device takes next to nothing.
    shorter = sweep_times(graph, np.where(graph.kind == NodeKind.KERNEL, 0, graph.duration_ns))[1]
    assert shorter[graph.steps.last_node[0, 0]] == (30 + 4 + 96) * US


def test_a_copy_to_pageable_memory_blocks_inside_its_call() -> None:
    record = Recorder()
    record.step(1, 0, 100)
    record.call("cudaLaunchKernel", 5, 10, 1)
    record.kernel("work", 12, 60, 1)
    record.call("cudaMemcpyAsync", 11, 70, 2)
    record.event("Memcpy DtoH (Device -> Pageable)", 62, 64, lane=COMPUTE, kind=EventKind.COPY, correlation=2)
    graph = build_graph([record.trace()])
    assert reproduced(graph)
    assert ends_with(graph, "work", NodeKind.KERNEL, 1.5) == 124


def communicating(waiter_begins: float = 82) -> Recorder:
    record = Recorder()
    record.step(1, 0, 200)
    record.call("cudaLaunchKernel", 5, 8, 1)
    record.kernel("gradient", 12, 40, 1)
    issue = record.event("record_param_comms", 10, 30)
    record.call("cudaStreamWaitEvent", 12, 13)
    record.event("nccl:all_reduce", 14, 28, kind=EventKind.ANNOTATION)
    record.call("cudaLaunchKernel", 16, 20, 2)
    record.call("cudaStreamWaitEvent", 22, 23)
    exchange = record.kernel("ncclKernel_AllReduce", 42, 80, 2, lane=COMMUNICATION)
    record.collective(exchange, issue, CollectiveKind.ALL_REDUCE, 4096)
    record.event("record_param_comms", 50, 56)
    record.call("cudaStreamWaitEvent", 51, 52)
    record.call("cudaLaunchKernel", 60, 63, 3)
    record.kernel("update", waiter_begins, 100, 3)
    return record


def test_streams_wait_as_the_calls_mean_without_any_record_of_it() -> None:
    graph = build_graph([communicating().trace()])
    assert reproduced(graph)
    assert edges_of(graph, EdgeKind.STREAM_WAIT) == {
        ("gradient", "ncclKernel_AllReduce"),
        ("ncclKernel_AllReduce", "update"),
    }
    inferred = graph.origin[graph.edge_kind == EdgeKind.STREAM_WAIT]
    assert (inferred == Origin.INFERRED).all()
    _, end = sweep_times(graph, np.where(graph.kind == NodeKind.TRANSFER, 2 * graph.duration_ns, graph.duration_ns))
    assert end[node(graph, "update", NodeKind.KERNEL)] == (100 + 38) * US


def test_no_wait_is_inferred_against_the_recorded_times() -> None:
    """The update begins before the collective ends: whatever its call waited for, it was not that."""
    graph = build_graph([communicating(waiter_begins=70).trace()])
    assert ("ncclKernel_AllReduce", "update") not in edges_of(graph, EdgeKind.STREAM_WAIT)
    assert graph.missing[EdgeKind.STREAM_WAIT] == 1
    assert reproduced(graph)


def test_recorded_waits_are_believed() -> None:
    record = Recorder()
    record.step(1, 0, 200)
    record.call("cudaLaunchKernel", 5, 8, 1)
    record.kernel("before the event", 12, 40, 1)
    record.call("cudaEventRecord", 9, 10, 2)
    record.call("cudaLaunchKernel", 11, 14, 3)
    record.kernel("after the event", 41, 90, 3)
    record.call("cudaStreamWaitEvent", 15, 16, 4)
    record.call("cudaLaunchKernel", 17, 20, 5)
    record.kernel("waiter", 43, 60, 5, lane=COMMUNICATION)
    record.syncs.append((SyncKind.STREAM_WAIT, 4, COMMUNICATION, COMPUTE, 2))
    graph = build_graph([record.trace()])
    assert edges_of(graph, EdgeKind.STREAM_WAIT) == {("before the event", "waiter")}
    assert graph.origin[graph.edge_kind == EdgeKind.STREAM_WAIT].tolist() == [Origin.FOUND]


def test_a_recorded_wait_for_an_event_is_for_what_came_before_the_event() -> None:
    record = Recorder()
    record.step(1, 0, 200)
    record.call("cudaLaunchKernel", 5, 8, 1)
    record.kernel("before the event", 12, 40, 1)
    record.call("cudaEventRecord", 9, 10, 2)
    record.call("cudaLaunchKernel", 11, 14, 3)
    record.kernel("after the event", 41, 44, 3)
    record.call("cudaEventSynchronize", 15, 46, 4)
    record.syncs.append((SyncKind.EVENT, 4, COMPUTE, COMPUTE, 2))
    graph = build_graph([record.trace()])
    assert edges_of(graph, EdgeKind.HOST_SYNC) == {("before the event", "cudaEventSynchronize")}
    assert graph.origin[graph.edge_kind == EdgeKind.HOST_SYNC].tolist() == [Origin.FOUND]
    assert reproduced(graph)


def test_work_kept_from_the_device_by_another_stream() -> None:
    record = Recorder()
    record.step(1, 0, 2_000)
    record.call("cudaLaunchKernel", 5, 8, 1)
    record.kernel("big", 12, 1_000, 1)
    record.call("cudaLaunchKernel", 20, 24, 2)
    record.kernel("small", 990, 1_010, 2, lane=COMMUNICATION)
    graph = build_graph([record.trace()])
    assert edges_of(graph, EdgeKind.CONTENTION) == {("big", "small")}
    assert reproduced(graph)
    duration = np.where(graph.name == graph.names.index("big"), 10 * US, graph.duration_ns)
    begin, _ = sweep_times(graph, duration)
    assert begin[node(graph, "small", NodeKind.KERNEL)] < 50 * US


def test_autograds_thread_works_while_the_main_one_waits() -> None:
    record = Recorder()
    record.step(1, 0, 1_000)
    record.event("aten::mm", 10, 110, sequence=1)
    record.event("backward", 120, 900, kind=EventKind.ANNOTATION)
    record.event("MmBackward0", 140, 800, lane=OTHER, sequence=1, forward_lane=MAIN)
    graph = build_graph([record.trace()])
    assert reproduced(graph)
    assert edges_of(graph, EdgeKind.FORWARD_BACKWARD) == {("aten::mm", "MmBackward0")}
    assert ends_with(graph, "MmBackward0", NodeKind.OPERATOR, 0.5) == 1_000 - 330
    assert ends_with(graph, "aten::mm", NodeKind.OPERATOR, 2.0) == 1_100


def test_a_thread_that_runs_beside_the_main_one_holds_nothing_up() -> None:
    record = Recorder()
    record.step(1, 0, 1_000)
    record.event("sleep", 100, 900)
    record.event("loader", 150, 850, lane=OTHER)
    graph = build_graph([record.trace()])
    assert ends_with(graph, "loader", NodeKind.OPERATOR, 5.0) == 1_000


def test_work_whose_launch_was_not_recorded_is_kept_and_counted() -> None:
    record = blocking()
    record.kernel("launched before the recording", 1, 4, 99)
    graph = build_graph([record.trace()])
    assert graph.missing[EdgeKind.LAUNCH] == 1
    assert reproduced(graph)


def test_a_call_may_launch_several_kernels() -> None:
    record = Recorder()
    record.step(1, 0, 100)
    record.call("cudaGraphLaunch", 5, 10, 7)
    record.kernel("one", 15, 20, 7)
    record.kernel("two", 21, 30, 7)
    graph = build_graph([record.trace()])
    assert edges_of(graph, EdgeKind.STREAM) == {("one", "two")}
    assert int((graph.edge_kind == EdgeKind.LAUNCH).sum()) == 2
    assert len(np.unique(graph.key)) == len(graph)


def test_each_step_begins_as_recorded_or_where_the_one_before_ends() -> None:
    record = Recorder()
    for number in (1, 2):
        base = 100.0 * (number - 1)
        record.step(number, base, base + 100)
        record.event("work", base + 10, base + 60)
    graph = build_graph([record.trace()])
    doubled = np.where(graph.name == graph.names.index("work"), 2 * graph.duration_ns, graph.duration_ns)
    _, apart = sweep_times(graph, doubled)
    _, joined = sweep_times(graph, doubled, joined=True)
    last = graph.steps.last_node[:, 0]
    assert (apart[last] // US).tolist() == [150, 250]
    assert (joined[last] // US).tolist() == [150, 300]


# --- traces without times


def untimed() -> Trace:
    record = Recorder()
    record.event("operator", 0, 10)
    record.kernel("first", 1, 6, 1)
    record.kernel("second", 2, 9, 2)
    record.event("last", 3, 4)
    trace = record.trace()
    return replace(trace, begin_ns=np.zeros(4, dtype=np.int64), dependencies=np.array([[0, 1], [0, 3]]), timed=False)


def test_edges_are_those_stated_and_streams_are_chained() -> None:
    graph = build_graph([untimed()])
    assert edges_of(graph, EdgeKind.STATED) == {("operator", "first"), ("operator", "last")}
    assert edges_of(graph, EdgeKind.STREAM) == {("first", "second")}
    assert graph.origin[graph.edge_kind == EdgeKind.STREAM].tolist() == [Origin.INFERRED]
    assert int(graph.end_ns.max()) == (10 + 5 + 7) * US
    assert not graph.timed


def test_a_circle_is_broken_and_told() -> None:
    graph = build_graph([replace(untimed(), dependencies=np.array([[0, 1], [1, 3], [3, 1], [2, 2]]))])
    assert graph.missing[EdgeKind.STATED] == 2
    assert edges_of(graph, EdgeKind.STATED) == {("operator", "first"), ("first", "last")}
    assert any("cyclic" in warning for warning in graph.warnings)


@pytest.mark.parametrize("lane", range(len(LANES)))
def test_a_trace_of_one_event_is_a_graph(lane: int) -> None:
    record = Recorder()
    kind = EventKind.OPERATOR if LANES[lane].is_host else EventKind.KERNEL
    record.event("alone", 5, 9, lane=lane, kind=kind)
    graph = build_graph([record.trace()])
    assert int(sweep_times(graph)[1].max()) == 9 * US
