"""What holds of every graph and of all clocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_traces import exchanging, graph_of, shifted

from nodewise.domain.errors import NodewiseError, Reason
from nodewise_replay.alignment.clocks import align_clocks, closest_bounds, robust_line
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.sweep import critical_path, sweep_times


@pytest.fixture(autouse=True, scope="module")
def _compiled_before() -> None:
    """Compile outside of the tests, whose tracing would make that many times slower."""
    graph = graph_of([1, 1], [(0, 1, 0)])
    begin, end = sweep_times(graph)
    critical_path(graph, begin, end, 1)
    traces = [exchanging(rank, 2, [100.0], [200.0]) for rank in range(2)]
    build_graph(traces, align_clocks(traces))


QUICK = settings(derandomize=True, deadline=None, max_examples=24)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int, int]], list[int]]:
    count = draw(st.integers(1, 25))
    durations = draw(st.lists(st.integers(0, 1_000), min_size=count, max_size=count))
    releases = draw(st.lists(st.integers(0, 500), min_size=count, max_size=count))
    # Numbers are shuffled, so that a node's number says nothing about its place in the order.
    names = draw(st.permutations(range(count)))
    pairs = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=60))
    edges = [(names[a], names[b], draw(st.integers(0, 50))) for a, b in sorted(pairs) if a < b]
    return durations, edges, releases


def by_memory(durations: list[int], edges: list[tuple[int, int, int]], releases: list[int]) -> list[int]:
    """Ends by the definition alone, each node asking those before it."""
    ends: dict[int, int] = {}

    def end(node: int) -> int:
        if node not in ends:
            before = [end(source) + lag for source, target, lag in edges if target == node]
            ends[node] = max([releases[node], *before]) + durations[node]
        return ends[node]

    return [end(node) for node in range(len(durations))]


@QUICK
@given(graphs())
def test_a_sweep_finds_the_longest_paths(drawn: tuple[list[int], list[tuple[int, int, int]], list[int]]) -> None:
    begin, end = sweep_times(graph_of(*drawn))
    assert end.tolist() == by_memory(*drawn)
    assert (end - begin).tolist() == drawn[0]


@QUICK
@given(graphs(), st.data())
def test_longer_durations_end_nothing_earlier(
    drawn: tuple[list[int], list[tuple[int, int, int]], list[int]], data: st.DataObject
) -> None:
    graph = graph_of(*drawn)
    _, end = sweep_times(graph)
    more = np.array(data.draw(st.lists(st.integers(0, 100), min_size=len(graph), max_size=len(graph))), dtype=np.int64)
    _, later = sweep_times(graph, graph.duration_ns + more)
    assert (later >= end).all()


@QUICK
@given(graphs(), st.integers(1, 7))
def test_scaling_everything_scales_all_times(
    drawn: tuple[list[int], list[tuple[int, int, int]], list[int]], factor: int
) -> None:
    durations, edges, releases = drawn
    _, end = sweep_times(graph_of(*drawn))
    scaled = graph_of(
        [factor * one for one in durations],
        [(a, b, factor * lag) for a, b, lag in edges],
        [factor * one for one in releases],
    )
    assert (sweep_times(scaled)[1] == factor * end).all()


@QUICK
@given(graphs())
def test_a_critical_path_accounts_for_its_end(
    drawn: tuple[list[int], list[tuple[int, int, int]], list[int]],
) -> None:
    graph = graph_of(*drawn)
    begin, end = sweep_times(graph)
    last = int(end.argmax())
    path = critical_path(graph, begin, end, last)
    assert path[-1] == last
    assert begin[path[0]] == graph.release_ns[path[0]]
    lags = {(a, b): lag for a, b, lag in drawn[1]}
    for before, after in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
        assert begin[after] == end[before] + lags[before, after]


def test_a_circle_is_refused() -> None:
    with pytest.raises(NodewiseError) as caught:
        graph_of([1, 1, 1], [(0, 1, 0), (1, 2, 0), (2, 1, 0)])
    assert caught.value.reason == Reason.CONTRADICTORY_FACTS


offsets = st.lists(st.integers(-50_000_000, 50_000_000), min_size=3, max_size=3)
arrivals = st.lists(st.lists(st.integers(100, 500), min_size=12, max_size=12), min_size=4, max_size=4)


@settings(QUICK, max_examples=10)
@given(offsets, arrivals)
def test_clocks_are_recovered_and_the_graph_does_not_change(off: list[int], comes: list[list[int]]) -> None:
    ends = [max(rank[step] for rank in comes) + 40 for step in range(12)]
    traces = [exchanging(rank, 4, [float(one) for one in comes[rank]], [float(e) for e in ends]) for rank in range(4)]
    moved = [shifted(trace, by) for trace, by in zip(traces, [0, *off], strict=True)]
    clocks = align_clocks(moved)
    assert clocks.offset_ns.tolist() == [0, *(-by for by in off)]
    assert clocks.uncertainty_ns.tolist() == [0.0] * 4
    assert (build_graph(moved, clocks).begin_ns == build_graph(traces, align_clocks(traces)).begin_ns).all()
    assert (sweep_times(build_graph(moved, clocks))[1] == sweep_times(build_graph(traces))[1]).all()


@QUICK
@given(st.floats(-200e-6, 200e-6), st.integers(-(10**9), 10**9), st.integers(0, 2**32 - 1))
def test_a_drift_is_told_from_jitter(drift: float, level: int, seed: int) -> None:
    draws = np.random.default_rng(seed)
    times = np.sort(draws.integers(0, 10**9, 60))
    jitter = draws.integers(-1_000, 1_000, 60)
    found, slope, deviation = robust_line(times, level + np.rint(drift * times).astype(np.int64) + jitter)
    at_end = found + slope * (times[-1] - times[0])
    assert abs(found - level - drift * times[0]) <= max(10_000, 2.5 * deviation)
    assert abs(at_end - level - drift * times[-1]) <= max(10_000, 2.5 * deviation)


@QUICK
@given(st.lists(st.integers(-100, 100), min_size=2, max_size=6), st.data())
def test_bounds_hold_what_is_true_and_find_what_cannot_be(values: list[int], data: st.DataObject) -> None:
    count = len(values)
    slack = data.draw(st.lists(st.integers(0, 20), min_size=count * count, max_size=count * count))
    bounds = np.subtract.outer(values, values) + np.array(slack, dtype=np.float64).reshape(count, count)
    np.fill_diagonal(bounds, 0.0)
    closed = closest_bounds(bounds)
    assert closed is not None
    assert (closed <= bounds).all()
    assert (np.subtract.outer(values, values) <= closed).all()
    bounds[0, 1], bounds[1, 0] = 5.0, -6.0
    assert closest_bounds(bounds) is None
