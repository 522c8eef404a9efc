"""What counts as a decision, what is chosen, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from measurement_tables import Row, table_of

from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import SyncMode
from nodewise.evaluation.decisions import Decisions, batches_of, decisions_of


def decided(
    predicted: Sequence[float],
    measured: Sequence[float],
    cell: Sequence[int] | int = 0,
    batch: Sequence[int] | int = 64,
    configuration: Sequence[int] | None = None,
) -> Decisions:
    rows = len(predicted)
    return decisions_of(
        cell=np.broadcast_to(np.array(cell, dtype=np.int64), rows),
        global_batch=np.broadcast_to(np.array(batch, dtype=np.int64), rows),
        configuration=as_ints(list(range(rows)) if configuration is None else configuration),
        predicted_samples_per_s=np.array(predicted, dtype=np.float64),
        measured_samples_per_s=np.array(measured, dtype=np.float64),
    )


def test_the_predicted_best_is_chosen_and_costs_what_it_lacks() -> None:
    found = decided([3.0, 1.0, 2.0], [8.0, 10.0, 9.0])
    assert found.regret.tolist() == [pytest.approx(0.2)]
    assert found.hit.tolist() == [0.0]


def test_ties_are_averaged() -> None:
    found = decided([3.0, 3.0, 3.0, 1.0], [10.0, 8.0, 6.0, 9.0])
    assert found.regret.tolist() == [pytest.approx(0.2)]
    assert found.hit.tolist() == [pytest.approx(1 / 3)]


def test_every_measured_best_is_a_hit() -> None:
    found = decided([1.0, 3.0, 2.0], [10.0, 10.0, 9.0])
    assert (found.regret.tolist(), found.hit.tolist()) == ([0.0], [1.0])


def test_a_tie_among_equals_costs_nothing_to_the_last_bit() -> None:
    assert decided([1.0] * 7, [0.1] * 7).regret.tolist() == [0.0]


def test_jobs_and_batches_are_decided_apart() -> None:
    found = decided(
        [2.0, 1.0, 1.0, 2.0, 2.0, 1.0],
        [5.0, 10.0, 4.0, 8.0, 1.0, 2.0],
        cell=[0, 0, 0, 0, 1, 1],
        batch=[32, 32, 64, 64, 32, 32],
    )
    assert sorted(zip(found.cell.tolist(), found.regret.tolist())) == [(0, 0.0), (0, 0.5), (1, 0.5)]


def test_one_configuration_measured_twice_is_no_decision() -> None:
    assert len(decided([1.0, 1.0], [1.0, 2.0], configuration=[7, 7]).cell) == 0
    assert len(decided([1.0], [1.0]).cell) == 0
    assert len(decided([], []).cell) == 0


def test_a_configuration_that_is_measured_twice_may_be_one_of_two() -> None:
    found = decided([2.0, 2.0, 1.0], [8.0, 6.0, 10.0], configuration=[7, 7, 9])
    assert found.regret.tolist() == [pytest.approx(0.3)]


def test_rows_of_unknown_batch_are_nobodys_alternative() -> None:
    assert len(decided([1.0, 2.0], [1.0, 2.0], batch=0).cell) == 0
    assert decided([9.0, 2.0, 1.0], [1.0, 4.0, 5.0], batch=[0, 8, 8]).regret.tolist() == [pytest.approx(0.2)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(Row(workers=4, batch=8), (32, 32), id="replicas x batch"),
        pytest.param(Row(workers=4, batch=8, accumulation=3), (96, 96), id="x accumulation"),
        pytest.param(Row(workers=4, batch=8, global_batch=30), (30, 30), id="stated"),
        pytest.param(Row(workers=4), (0, 0), id="unknown"),
        pytest.param(Row(workers=4, batch=8, sync=SyncMode.ASYNC), (32, 8), id="async: a step is a mini-batch"),
        pytest.param(Row(workers=4, batch=8, accumulation=2, sync=SyncMode.ASYNC), (64, 16), id="async, accumulated"),
        pytest.param(Row(workers=4, global_batch=30, sync=SyncMode.ASYNC), (30, 8), id="async, share rounded up"),
        pytest.param(Row(workers=4, batch=8, sync=SyncMode.SYNC), (32, 32), id="sync"),
        pytest.param(Row(workers=4, batch=8, sync=SyncMode.HYBRID), (32, 8), id="hybrid: as async"),
    ],
)
def test_batches(row: Row, expected: tuple[int, int]) -> None:
    everyone, per_step = batches_of(table_of([row]).configurations)
    assert (everyone.tolist(), per_step.tolist()) == ([expected[0]], [expected[1]])


def test_replicas_are_workers_over_the_other_degrees_unless_stated() -> None:
    configurations = table_of([Row(workers=16, batch=2)] * 3).configurations.replaced(
        tensor_parallel=as_ints([2, 2, 2]),
        pipeline_parallel=as_ints([1, 4, 4]),
        data_parallel=as_ints([0, 0, 1]),
    )
    assert batches_of(configurations)[0].tolist() == [16, 4, 2]
