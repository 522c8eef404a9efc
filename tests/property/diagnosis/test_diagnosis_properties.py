"""Mathematics that a diagnosis rests on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_jobs import gloo_job

from nodewise_diagnosis.recurring import Exchange, explained_ns
from nodewise_diagnosis.shares import Intervals
from nodewise_diagnosis.stopwatch import Edit, Stopwatch, persistence_ns
from nodewise_diagnosis.vocabulary import family
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.sweep import sweep_times

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def _intervals(spans: list[tuple[int, int]]) -> tuple[Intervals, set[int]]:
    begin = np.array([first for first, _ in spans], dtype=np.int64)
    length = np.array([length for _, length in spans], dtype=np.int64)
    return Intervals(begin, begin + length), {t for first, count in spans for t in range(first, first + count)}


@given(SPANS, SPANS, SPANS)
def test_intervals_are_sets_of_moments(
    first: list[tuple[int, int]], second: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    (a, of_a), (b, of_b), (w, of_w) = _intervals(first), _intervals(second), _intervals(windows)

    assert a.total_ns == len(of_a)
    assert (a | b).total_ns == len(of_a | of_b)
    assert a.beyond(b) == len(of_a - of_b)
    assert a.within(w).total_ns == len(of_a & of_w)
    # Whatever there is of two things, their parts add up to the whole.
    assert a.total_ns + b.beyond(a) == (a | b).total_ns


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_less_work_never_makes_a_replay_longer(seed: int, share: float, left: float) -> None:
    graph = build_graph(gloo_job("ddp_2_ranks_3_buckets"))
    watch = Stopwatch(graph, np.arange(len(graph.steps)))
    random = np.random.default_rng(seed)
    chosen = random.random(len(graph)) < share
    duration = graph.duration_ns.copy()
    duration[chosen] = np.floor(duration[chosen] * left)

    _, before = sweep_times(graph, joined=True)
    _, after = sweep_times(graph, duration, joined=True)

    assert (after <= before).all()
    assert watch.step_ns(Edit(duration_ns=duration)) <= watch.step_ns()


@settings(max_examples=10, deadline=None)
@given(st.floats(1.0, 3.0), st.integers(1, 20))
def test_an_untouched_job_replays_as_recorded(factor: float, delay_ms: int) -> None:
    graph = build_graph(gloo_job("ddp_2_ranks_3_buckets"))
    watch = Stopwatch(graph, np.arange(len(graph.steps)))

    assert (sweep_times(graph, joined=True)[1] == graph.end_ns).all()
    # More work never makes it shorter, and no longer than all of it on all ranks.
    duration = np.rint(graph.duration_ns * factor).astype(np.int64)
    duration[0] += delay_ms * 10**6
    longer = watch.step_ns(Edit(duration_ns=duration))
    assert watch.step_ns() <= longer


@given(st.lists(st.floats(1.0, 1e9), min_size=2, max_size=20))
def test_persistence_is_the_mean_difference_from_the_mean_of_the_others(lengths: list[float]) -> None:
    expected = np.mean([abs(one - np.mean(lengths[:i] + lengths[i + 1 :])) for i, one in enumerate(lengths)])

    assert persistence_ns(np.array(lengths)) == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert persistence_ns(np.full(3, 7.0)) == 0
    assert persistence_ns(np.array([5.0])) == 0


def _exchange(size: int, time_ns: float, kind: str = "all-reduce") -> Exchange:
    none = np.zeros(0, dtype=np.int64)
    return Exchange(
        label="", name="", nodes=none, transfers=none, took_ns=np.array([time_ns]), family=(kind,), bytes=size
    )


@given(
    st.floats(0, 1e6), st.floats(1e-3, 10.0), st.lists(st.integers(10**5, 10**7), min_size=3, max_size=8, unique=True)
)
def test_times_that_follow_their_sizes_are_explained(alpha: float, beta: float, sizes: list[int]) -> None:
    exchanges = [_exchange(size, alpha + beta * size) for size in sizes]

    for one in exchanges:
        assert explained_ns(one, exchanges) == pytest.approx(one.usual_ns, rel=1e-6)


@given(st.floats(2.0, 10.0), st.integers(4, 8), st.integers(0, 3))
def test_one_that_takes_longer_than_its_like_is_not(factor: float, count: int, which: int) -> None:
    exchanges = [_exchange(10**6, 1e7 * (factor if place == which else 1)) for place in range(count)]

    assert explained_ns(exchanges[which], exchanges) == pytest.approx(1e7)
    others = [explained_ns(one, exchanges) for place, one in enumerate(exchanges) if place != which]
    assert others == pytest.approx([1e7] * (count - 1))


def test_nothing_is_explained_without_sizes_or_likes() -> None:
    alone, unknown = _exchange(10**6, 1e7), _exchange(-1, 1e7)

    assert explained_ns(alone, [alone]) is None
    assert explained_ns(alone, [alone, unknown]) is None
    assert explained_ns(unknown, [alone, unknown]) is None
    assert explained_ns(alone, [alone, _exchange(10**6, 1e6, kind="broadcast")]) is None
    # One smaller like: in proportion to the bytes at most.
    assert explained_ns(alone, [alone, _exchange(5 * 10**5, 1e6)]) == pytest.approx(2e6)


def test_names_that_count_are_of_one_family() -> None:
    assert family("emulated_link:bucket12") == family("emulated_link:bucket3") != family("emulated_link")
