"""Measured all-reduces and matrix products of a device stand in for what is assumed of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import CATALOGUE, SMALL, KnownContext, a100, profile, rows

from nodewise.plugin import Catalogue, MeasuredTable, Options, catalogue_key
from nodewise_partitioning.block import block_of
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.hardware import Device, device_of
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.links import all_reduce_in_node_s
from nodewise_partitioning.software import Software
from nodewise_partitioning.workload import Dimensions

NAME = catalogue_key("A100-80GB")
SLOW = MeasuredTable(sizes=(1e6, 1e8), seconds=(2e-4, 2e-2), source="ours")
SLOWER = MeasuredTable(sizes=(1e6, 1e8), seconds=(4e-4, 3e-2), source="ours")


def measured(all_reduces: dict[int, MeasuredTable], products: MeasuredTable | None = None) -> Catalogue:
    by_format = {} if products is None else {NAME: {"fp16": products}}
    return replace(CATALOGUE, digest="own", all_reduces={NAME: all_reduces}, matrix_products=by_format)


def device(catalogue: Catalogue) -> Device:
    found = device_of(catalogue, "A100-80GB", "fp16")
    assert isinstance(found, Device)
    return found


def test_measured_sizes_and_ranks_are_taken_as_they_are() -> None:
    own = device(measured({2: SLOW, 4: SLOWER}))
    size = np.array([1e6, 1e7, 1e8, 1e5])
    found = all_reduce_in_node_s(size, np.full(4, 2.0), own)
    # Between sizes by their logarithms; below the smallest as long as it.
    np.testing.assert_allclose(found, [2e-4, 2e-3, 2e-2, 2e-4], rtol=1e-12)
    np.testing.assert_allclose(all_reduce_in_node_s(size, np.full(4, 4.0), own)[[0, 2]], [4e-4, 3e-2], rtol=1e-12)


def test_other_counts_of_ranks_scale_with_what_they_move() -> None:
    own = device(measured({4: SLOW}))
    two, three, four, eight = all_reduce_in_node_s(np.full(4, 1e8), np.array([2.0, 3.0, 4.0, 8.0]), own)
    assert two < three < four < eight
    # This table has no time that does not depend on the size.
    assert two / four == pytest.approx((1.0 / 2.0) / (3.0 / 4.0))
    assert eight / four == pytest.approx((7.0 / 8.0) / (3.0 / 4.0))


def test_the_bus_bandwidth_is_what_experts_and_contexts_get() -> None:
    gains = device(measured({2: SLOW})).gains
    assert gains.replica_link_efficiency * Software().replica_link_efficiency == pytest.approx(0.02, rel=0.2)
    assert gains.gemm_efficiency == gains.gemm_ramp_s == 1.0


def test_matrix_products_correct_efficiency_and_ramp() -> None:
    peak = a100().flops_per_s
    flops = np.array([1e9, 1e11, 1e13])
    table = MeasuredTable(sizes=tuple(flops), seconds=tuple(2e-5 + flops / (0.6 * peak)), source="ours")
    own = device(measured({}, table))
    assert own.gains.gemm_efficiency * Software().gemm_efficiency == pytest.approx(0.6)
    assert own.gains.gemm_ramp_s * Software().gemm_ramp_s == pytest.approx(2e-5)
    layout = Layout.of(1, micro_batch=64.0)
    own_s, plain_s = (block_of(Dimensions.of(SMALL), layout, each, Software()).compute_s[0] for each in (own, a100()))
    assert 1.1 < own_s / plain_s < 0.79 / 0.6
    # Without a table of its number format a device is as every other.
    other = device_of(measured({}, table), "A100-80GB", "bf16")
    assert isinstance(other, Device)
    assert other.gains.gemm_efficiency == 1.0


def test_slower_links_slow_what_uses_them() -> None:
    asked = rows(2, workers=8, nodes=1, global_batch=64, batch_per_worker=2, tensor_parallel=[1, 8])
    plain, own = (
        PartitioningEstimator().fit(profile(), KnownContext(catalogue=each)).predict(asked, Options())
        for each in (CATALOGUE, measured({8: SLOWER}))
    )
    assert (own.breakdown_s["tensor_parallel"][1] > 2.0 * plain.breakdown_s["tensor_parallel"][1]).all()
    assert own.breakdown_s["data_parallel"][0] > 2.0 * plain.breakdown_s["data_parallel"][0]
    np.testing.assert_allclose(own.breakdown_s["compute"], plain.breakdown_s["compute"], rtol=1e-12)
