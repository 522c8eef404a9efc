"""Rows of curves and nodes of pools are looked up without a search over all of them."""

from __future__ import annotations

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.schedule import Curves, NodePool
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import schedule_limits

CURVES = Curves(
    offsets=as_ints([0, 3, 3, 5]),
    pool=as_ints([0, 0, 2, 1, 1]),
    devices=as_ints([1, 4, 1, 2, 8]),
    nodes=as_ints([1, 1, 1, 1, 2]),
    samples_per_s=as_floats([10.0, 30.0, 12.0, 5.0, 15.0]),
    configurations=Configurations.of(5),
)


def test_rows_of_a_job_in_a_pool_are_those_of_the_columns() -> None:
    rows_of = {(job, pool): list(CURVES.rows_in(job, pool)) for job in range(3) for pool in range(3)}
    assert {key: rows for key, rows in rows_of.items() if rows} == {(0, 0): [0, 1], (0, 2): [2], (2, 1): [3, 4]}


def test_a_row_of_a_curve_has_exactly_the_devices() -> None:
    rows_of = {
        (job, pool, devices): CURVES.row_of(job, pool, devices)
        for job in range(3)
        for pool in range(3)
        for devices in range(10)
    }
    stated = {key: row for key, row in rows_of.items() if row is not None}
    assert stated == {(0, 0, 1): 0, (0, 0, 4): 1, (0, 2, 1): 2, (2, 1, 2): 3, (2, 1, 8): 4}


def test_of_nodes_with_equal_names_the_first_counts() -> None:
    pool = NodePool(name="p", device="V100", available_devices=as_ints([4, 4, 4]), node_names=("x", "y", "x"))
    assert dict(pool.node_indexes) == {"x": 0, "y": 1}


def test_an_operator_sets_how_many_counts_a_schedule_predicts() -> None:
    assert schedule_limits(Limits(schedule_rows_per_call=700_000), 1).candidate_rows == 700_000
