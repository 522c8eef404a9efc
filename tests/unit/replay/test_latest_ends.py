"""The sweep that diagnoses ask often: the same ends as those of the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_jobs import gloo_job

from nodewise_diagnosis.stopwatch import Edit, Stopwatch, wanted_steps
from nodewise_replay.alignment.clocks import align_clocks
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.sweep import latest_ends, sweep_times


@pytest.mark.parametrize("job", ["ddp_2_ranks_straggler", "ddp_4_ranks_3_buckets", "parameter_server_2_ranks"])
def test_ends_and_the_latest_of_groups(job: str) -> None:
    traces = gloo_job(job)
    graph = build_graph(traces, align_clocks(traces))
    generator = np.random.default_rng(17)
    group = generator.integers(-1, 5, len(graph)).astype(np.int32)
    for _ in range(5):
        durations = graph.duration_ns * generator.uniform(-0.1, 2.0, len(graph))
        whole = np.rint(np.maximum(durations, 0)).astype(np.int64)
        _, expected = sweep_times(graph, whole, joined=True)
        ends, latest = np.zeros(len(graph), dtype=np.int64), np.full(5, -(2**60))
        latest_ends(graph, graph.order, group, durations, graph.lag_ns, graph.release_ns, ends, latest)
        np.testing.assert_array_equal(ends, expected)
        assert latest.tolist() == [int(expected[group == one].max()) for one in range(5)]


def test_a_stopwatch_gives_what_the_whole_graph_gives() -> None:
    traces = gloo_job("ddp_4_ranks_3_buckets")
    graph = build_graph(traces, align_clocks(traces))
    steps = wanted_steps(graph, ())
    half = graph.duration_ns // 2
    halved = Edit(duration_ns=half)
    _, ends = sweep_times(graph, half, joined=True)
    # Without devices a step of a rank is over where its host's last node ends.
    over = ends[graph.steps.last_node]
    took = over[steps] - over[steps - 1]
    assert steps.tolist() == list(range(int(steps[0]), int(steps[-1]) + 1))
    assert Stopwatch(graph, steps).lengths_ns(halved).tolist() == took.max(axis=1).tolist()
    whole = float((over[steps[-1]] - over[steps[0] - 1]).max()) / len(steps)
    assert Stopwatch(graph, steps).step_ns(halved) == pytest.approx(whole, abs=0.5)
