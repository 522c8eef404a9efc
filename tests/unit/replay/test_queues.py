"""Launches that block on a full queue wait for the device, and are no work of the host."""

from __future__ import annotations

import re

import pytest
from recorded_traces import Recorder

from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.graph import EdgeKind
from nodewise_replay.graph.sweep import sweep_times


def _queued(limit: int, kernels: int = 1200, launch_us: float = 4.0, kernel_us: float = 100.0) -> Recorder:
    """Kernels launched one after the other by a driver that holds so many of them."""
    recorder = Recorder()
    ends: list[float] = []
    now, busy = 0.0, 0.0
    for number in range(kernels):
        begin, now = now, now + launch_us
        if number >= limit:
            now = max(now, ends[number - limit])
        recorder.call("cudaLaunchKernel", begin, now, number)
        busy = max(busy, begin + 5) + kernel_us
        recorder.kernel("gemm", busy - kernel_us, busy, number)
        ends.append(busy)
    recorder.step(1, 0, now)
    return recorder


@pytest.mark.parametrize("limit", [256, 1024, 4096])
def test_what_a_launch_takes_is_left_of_one_that_waits(limit: int) -> None:
    graph = build_graph([_queued(limit).trace()])
    queue = graph.edge_kind == EdgeKind.QUEUE
    # The queue is full from where as many wait: 100 us * (n - limit) > 4 us * n.
    assert queue.sum() == pytest.approx(max(1200 - limit / 0.96, 0), abs=1)
    target = graph.target[queue]
    assert (graph.duration_ns[target] == 4_000).all()
    _, end = sweep_times(graph)
    assert (end == graph.end_ns).all()
    # With kernels that take no time nothing blocks: launches take what they take.
    kernels = graph.match_names(re.compile("gemm"))
    duration = graph.duration_ns.copy()
    duration[kernels] = 0
    _, end = sweep_times(graph, duration)
    assert end.max() == pytest.approx(1200 * 4_000, rel=0.01)
