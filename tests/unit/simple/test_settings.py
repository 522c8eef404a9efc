"""Rows by setting, whole columns at a time."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Configurations, Network, as_floats, as_ints
from nodewise_simple.evidence import Points, Rows, near
from nodewise_simple.settings import by_setting


def test_settings_come_in_the_order_of_their_first_rows_and_equal_names_are_one() -> None:
    rows = Configurations.of(5).replaced(
        workers=as_ints([1, 2, 3, 4, 5]),
        devices=("b", "a", "b"),
        device_index=as_ints([0, 1, 2, 0, 1]),
        precisions=("", "bf16"),
        precision_index=as_ints([0, 1, 1, 0, 0]),
        link_bytes_per_s=as_floats([0.0, 1e9, 1e9, 2e9, 0.0]),
        tensor_parallel=as_ints([1, 1, 1, 1, 2]),
    )
    found = by_setting(rows, Network(link_bytes_per_s=1e9), "bf16", np.arange(5))

    said = [(each.device, each.link_bytes_per_s, each.precision, each.partition[0]) for each in found]
    assert said == [("b", 1e9, "bf16", 1), ("a", 1e9, "bf16", 1), ("b", 2e9, "bf16", 1), ("a", 1e9, "bf16", 2)]
    assert [places.tolist() for places in found.values()] == [[0, 2], [1], [3], [4]]


def test_only_the_rows_that_are_meant_have_settings() -> None:
    rows = Configurations.of(3).replaced(zero_stage=as_ints([0, 1, 0]))

    assert [at.tolist() for at in by_setting(rows, Network(), "", np.array([0, 2])).values()] == [[0, 2]]
    assert by_setting(rows, Network(), "", np.array([], dtype=np.int64)) == {}


def test_a_row_is_the_run_that_it_equals_in_everything() -> None:
    draw = np.random.default_rng(5)
    ran = np.unique(draw.integers(1, 4, (40, 4)), axis=0).astype(np.float64)
    asked = draw.integers(1, 5, (600, 4)).astype(np.float64)
    there = near(Points(_rows(ran), np.ones(len(ran))), _rows(asked))

    alike = (asked[:, np.newaxis, :] == ran).all(axis=2)
    assert there.measured.tolist() == alike.any(axis=1).tolist()
    assert (there.point[there.measured] == alike.argmax(axis=1)[there.measured]).all()
    assert 0 < there.measured.sum() < len(asked)


def _rows(columns: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Rows:
    workers, nodes, samples, accumulation = columns.T
    return Rows(workers, nodes, accumulation, samples)
