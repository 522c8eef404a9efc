"""Events that wait for each other are refused by what they are, and why that is likeliest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_traces import Recorder

from nodewise.domain.errors import NodewiseError
from nodewise_replay.building.assembly import build_graph
from nodewise_replay.graph.ordering import a_circle


def test_a_circle_names_rank_events_and_cause() -> None:
    recorder = Recorder(rank=3, world_size=8)
    recorder.step(1, 0, 1000)
    recorder.call("cudaLaunchKernel", 0, 5, 1)
    recorder.kernel("first", 500, 600, 1)
    recorder.call("cudaStreamSynchronize", 10, 650)
    recorder.call("cudaLaunchKernel", 700, 705, 2)
    recorder.kernel("second", 100, 200, 2)  # on the same stream, yet launched after the first was over
    with pytest.raises(NodewiseError, match="ranks 3") as caught:
        build_graph([recorder.trace()])
    told = str(caught.value)
    assert "second of rank 3" in told
    assert "first of rank 3" in told
    assert "overwritten times" in told
    assert "0.600 ms after the begin of second of rank 3" in told


@given(st.integers(2, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_a_circle_leads_back_to_where_it_begins(count: int, edges: list[tuple[int, int]]) -> None:
    kept = [(source % count, target % count) for source, target in edges]
    source, target = np.array(kept, dtype=np.int64).reshape(-1, 2).T
    circle = a_circle(count, source, target)
    reached = [int(target[edge]) for edge in circle]
    assert [int(source[edge]) for edge in circle] == reached[-1:] + reached[:-1]
    # Without a circle nodes can be ordered: each is removed once nothing leads to it.
    left = set(range(count))
    while free := {node for node in left if not any(t == node and s in left for s, t in kept)}:
        left -= free
    assert bool(circle) == bool(left)
