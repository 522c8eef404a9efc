"""What exchanges cost, and how gradients are put into buckets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.trace import CollectiveKind
from nodewise_replay.changes.gradients import group_by_cap
from nodewise_replay.changes.network import LATENCY_BYTES, bytes_factor, fitted_cost

MEBIBYTE = 1 << 20
positive = st.floats(1e-6, 1.0)


@given(
    fixed=st.floats(1e-6, 1e-2), per_byte=st.floats(1e-12, 1e-7), sizes=st.lists(st.integers(1, 1 << 28), min_size=2)
)
def test_a_straight_line_is_found(fixed: float, per_byte: float, sizes: list[int]) -> None:
    if len(set(sizes)) < 2:
        return
    wire = np.array(sizes, dtype=np.float64)
    cost = fitted_cost(wire, fixed + per_byte * wire)
    assert cost.seconds(wire) == pytest.approx(fixed + per_byte * wire, rel=1e-5)
    assert cost.latency_told


@given(seconds=st.lists(positive, min_size=1, max_size=20), size=st.integers(1, 1 << 30))
def test_bytes_account_for_no_more_than_the_shortest_of_a_size(seconds: list[float], size: int) -> None:
    cost = fitted_cost(np.full(len(seconds), float(size)), np.array(seconds))
    assert not cost.latency_told
    assert 0 < cost.s_per_byte * size <= min(seconds)
    assert float(cost.seconds(size)) == pytest.approx(np.mean(seconds))


def test_of_a_single_size_latency_is_what_links_commonly_have() -> None:
    least, middle, most = (fitted_cost(np.array([1e6]), np.array([1e-3]), each) for each in LATENCY_BYTES)
    assert least.s_per_byte > middle.s_per_byte > most.s_per_byte
    assert middle.fixed_s == pytest.approx(1e-3 * 65536 / (1e6 + 65536))


@given(seconds=positive, wire=st.floats(1.0, 1e9), factor=st.floats(0.1, 10.0))
def test_what_is_not_changed_stays(seconds: float, wire: float, factor: float) -> None:
    cost = fitted_cost(np.array([wire, 2 * wire]), np.array([seconds, 2 * seconds]))
    own, wires = np.array([seconds]), np.array([wire])
    assert cost.rescale(own, wires, wires) == pytest.approx(own)
    slower = cost.rescale(own, wires, wires, bandwidth=1 / factor)
    assert slower == pytest.approx(own * factor)


def test_bytes_per_link() -> None:
    assert bytes_factor(CollectiveKind.ALL_REDUCE, 2) == 1.0
    assert bytes_factor(CollectiveKind.ALL_REDUCE, 4) == 1.5
    assert bytes_factor(CollectiveKind.ALL_GATHER, 4) == 0.75
    assert bytes_factor(CollectiveKind.BROADCAST, 4) == 1.0
    assert bytes_factor(CollectiveKind.ALL_REDUCE, 1) == 0.0


@pytest.mark.parametrize(
    ("known", "asked_elements", "predicted_us", "measured_us"),
    [
        # All-reduces of a recommender on eight V100 (elements, us), each left out in turn; the third lies between.
        ({112: 18, 226_960: 62}, 394_241, 94, 82),
        ({112: 18, 394_241: 82}, 226_960, 55, 62),
    ],
)
def test_a_collective_is_predicted_from_the_others(
    known: dict[int, float], asked_elements: int, predicted_us: float, measured_us: float
) -> None:
    factor = 4 * bytes_factor(CollectiveKind.ALL_REDUCE, 8)
    cost = fitted_cost(factor * np.array(list(known)), 1e-6 * np.array(list(known.values())))
    found_us = 1e6 * float(cost.seconds(factor * asked_elements))
    assert found_us == pytest.approx(predicted_us, abs=1.0)
    assert abs(found_us / measured_us - 1) < 0.16


@given(sizes=st.lists(st.integers(1, 10**8), min_size=1, max_size=200), cap=st.integers(1, 10**8))
def test_a_bucket_closes_as_soon_as_it_reaches_the_cap(sizes: list[int], cap: int) -> None:
    bucket_of = group_by_cap(sizes, cap)
    assert bucket_of == sorted(bucket_of)
    for bucket, members in itertools.groupby(range(len(sizes)), key=lambda place: bucket_of[place]):
        own = [sizes[place] for place in members]
        assert sum(own[:-1]) < cap
        assert sum(own) >= cap or bucket == bucket_of[-1]


def bert_base() -> list[int]:
    """Bytes of every parameter of BERT-base for question answering in the order of its gradients."""
    hidden, inner = 768, 3072
    layer = [hidden * hidden, hidden] * 4 + [hidden, hidden]
    layer += [hidden * inner, inner, inner * hidden, hidden, hidden, hidden]
    parameters = [30_522 * hidden, 512 * hidden, 2 * hidden, hidden, hidden, *(12 * layer), 2 * hidden, 2]
    return [4 * count for count in reversed(parameters)]


@pytest.mark.parametrize(
    ("measured_ms", "all_reduce_ms", "naive_error"),
    [
        # One epoch of SQuAD, BERT-base, 160 a GPU, on A100 (juanmaxtouyaa/HPCtools4AI at ba38c3e6): 391.2 ms a step on
        # one GPU; steps on two of a node, two nodes, two nodes of two, and all-reduces measured alone there.
        (112.37e3 / 277, {1: 0.186, 4: 0.571, 25: 2.911, 100: 9.295, 435.57: 33.997}, -0.036),
        (111.79e3 / 277, {1: 0.196, 4: 0.562, 25: 3.093, 100: 9.852, 435.57: 40.340}, -0.031),
        (57.24e3 / 139, {1: 0.257, 4: 0.565, 25: 3.069, 100: 10.715, 435.57: 42.884}, -0.053),
    ],
)
def test_more_gpus_from_one_are_predicted_closer_than_by_dividing(
    measured_ms: float, all_reduce_ms: dict[float, float], naive_error: float
) -> None:
    one_gpu_ms = 216.73e3 / 554
    naive = one_gpu_ms / measured_ms - 1
    assert naive == pytest.approx(naive_error, abs=0.004)
    sizes = bert_base()
    assert sum(sizes) == pytest.approx(435.57e6, rel=1e-4)
    bucket_of = np.array(group_by_cap(sizes, 25 * MEBIBYTE))
    bytes_of = np.bincount(bucket_of, weights=sizes)
    cost = fitted_cost(1e6 * np.array(list(all_reduce_ms)), 1e-3 * np.array(list(all_reduce_ms.values())))
    # The backward pass takes two of three FLOPs; a layer's gradients come with it, those of the embeddings at the end.
    dense = np.array(sizes, dtype=np.float64)
    dense[-5:] = 0.0
    ready_ms = one_gpu_ms * (1 / 3 + 2 / 3 * np.cumsum(dense) / dense.sum())
    done_ms = 0.0
    for bucket, size in enumerate(bytes_of):
        done_ms = max(done_ms, ready_ms[bucket_of == bucket][-1]) + 1e3 * float(cost.seconds(size))
    assert abs(max(done_ms, one_gpu_ms) / measured_ms - 1) < 0.7 * abs(naive)
