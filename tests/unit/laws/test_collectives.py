"""Collectives: published forms, identities between them, and a measured table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_laws import collectives as law

QUICK = settings(derandomize=True, deadline=None, max_examples=40)
sizes = st.floats(1.0, 1e10)
counts = st.integers(1, 1024).map(float)
latencies = st.floats(0.0, 1e-3)
bandwidths = st.floats(1e6, 1e12)


@QUICK
@given(size=sizes, latency=latencies, rate=bandwidths)
def test_one_rank_waits_for_nobody(size: float, latency: float, rate: float) -> None:
    for collective in (
        law.ring_all_reduce_s,
        law.ring_all_gather_s,
        law.tree_all_reduce_s,
    ):
        assert collective(size, 1.0, latency, rate) == 0.0
    assert law.hierarchical_all_reduce_s(size, 1.0, 1.0, latency, rate, latency, rate) == 0.0


@QUICK
@given(size=sizes, ranks=counts, latency=latencies, rate=bandwidths)
def test_a_ring_all_reduce_is_a_reduce_scatter_and_an_all_gather(
    size: float, ranks: float, latency: float, rate: float
) -> None:
    both = 2.0 * law.ring_all_gather_s(size, ranks, latency, rate)
    assert law.ring_all_reduce_s(size, ranks, latency, rate) == pytest.approx(both, rel=1e-12)


@QUICK
@given(size=sizes, ranks=counts.filter(lambda ranks: ranks > 1.0), rate=bandwidths)
def test_the_bus_carries_what_each_link_of_the_ring_does(size: float, ranks: float, rate: float) -> None:
    seconds = law.ring_all_reduce_s(size, ranks, 0.0, rate)
    assert law.ring_bus_bytes_per_s(size, ranks, seconds) == pytest.approx(rate, rel=1e-12)


@QUICK
@given(size=sizes, ranks=counts, latency=latencies, rate=bandwidths)
def test_one_node_and_one_rank_per_node_are_rings(size: float, ranks: float, latency: float, rate: float) -> None:
    ring = law.ring_all_reduce_s(size, ranks, latency, rate)
    assert law.hierarchical_all_reduce_s(size, ranks, 1.0, latency, rate, 1.0, 1.0) == pytest.approx(ring)
    assert law.hierarchical_all_reduce_s(size, 1.0, ranks, 1.0, 1.0, latency, rate) == pytest.approx(ring)


def test_forms_at_numbers_worked_out_by_hand() -> None:
    assert law.ring_all_reduce_s(8e9, 4.0, 1e-3, 1e9) == pytest.approx(2 * 3 * (1e-3 + 2.0))
    assert law.tree_all_reduce_s(8e9, 4.0, 1e-3, 1e9) == pytest.approx(2 * 2 * 1e-3 + 16.0)
    hierarchical = law.hierarchical_all_reduce_s(8e9, 4.0, 2.0, 1e-3, 1e9, 2e-3, 5e8)
    assert hierarchical == pytest.approx(2 * 3 * (1e-3 + 2.0) + 2 * (2e-3 + 2.0))


def test_arrays_broadcast() -> None:
    ranks = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(
        law.tree_all_reduce_s(1e9, ranks, 0.0, np.array([1e9, 1e9, 1e9])), [0.0, 2.0, 2.0], rtol=1e-12
    )


def test_a_table_is_interpolated_clamped_below_and_proportional_above() -> None:
    sizes, seconds = np.log([1e6, 4e6, 1e9]), np.log([1e-4, 2e-4, 1e-2])
    found = law.interpolated_s([1.0, 1e6, 2e6, 4e6, 1e9, 5e9], sizes, seconds)
    np.testing.assert_allclose(found, [1e-4, 1e-4, np.sqrt(2.0) * 1e-4, 2e-4, 1e-2, 5e-2], rtol=1e-12)


@QUICK
@given(start=st.floats(0.0, 1e-2), rate=st.floats(1e6, 1e12))
def test_a_straight_line_is_found_again(start: float, rate: float) -> None:
    size = np.array([1e6, 1e7, 1e8, 1e9])
    found = law.affine_s(size, start + size / rate)
    np.testing.assert_allclose(found[0] + size * found[1], start + size / rate, rtol=1e-6)


def test_neither_part_of_a_cost_is_negative() -> None:
    start, slope = law.affine_s([1.0, 2.0, 4.0], [1.0, 2.5, 6.0])
    assert start == 0.0
    assert 1.0 < slope < 1.5
    start, slope = law.affine_s([1.0, 2.0, 4.0], [3.0, 2.5, 2.0])
    assert 2.0 < start < 3.0
    assert slope == 0.0


def test_trees_are_quicker_for_many_ranks_and_few_bytes() -> None:
    ranks = np.array([1.0, 2.0, 4.0, 512.0])
    found = law.quickest_all_reduce_s(np.full(4, 1e6), ranks, 2e-5, np.full(4, 1e10))
    ring = law.ring_all_reduce_s(np.full(4, 1e6), ranks, 2e-5, np.full(4, 1e10))
    np.testing.assert_array_equal(found[:2], ring[:2])
    assert found[3] == pytest.approx(2.0 * 9.0 * 2e-5 + 2.0 * 1e6 / 0.92e10)
    assert found[3] < 0.1 * ring[3]
