"""Scores of memory: definitions, and what takes no part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measurement_tables import Row, table_of

from nodewise.domain.columns import as_floats, as_ints
from nodewise.evaluation.cases import cases_of
from nodewise.evaluation.memory_scores import MemoryOutcomes, with_memory
from nodewise_values import Metrics

OUTCOMES = MemoryOutcomes(
    predicted_bytes=as_floats([11.0, 20.0, 9.0, 30.0, 0.0, 5.0]),
    measured_bytes=as_floats([10.0, 0.0, 10.0, 0.0, 10.0, 0.0]),
    said_to_fit=np.array([True, True, False, False, False, True]),
    ran=np.array([True, True, True, False, True, False]),
    ran_out=np.array([False, False, False, True, False, True]),
)


def test_bytes_and_verdicts_of_rows_that_are_told() -> None:
    (found,) = with_memory([Metrics(mape=0.5)], OUTCOMES, as_ints(np.zeros(6, dtype=np.int64)))
    assert found.mape == 0.5
    assert found.memory_mape == pytest.approx(0.1)
    assert found.false_fits == pytest.approx(1 / 2)
    assert found.false_refusals == pytest.approx(1 / 3)


def test_a_part_without_such_rows_has_no_score() -> None:
    first, second, third = with_memory([Metrics()] * 3, OUTCOMES, as_ints([0, 1, 1, 1, 1, 1]))
    assert (first.memory_mape, first.false_fits, first.false_refusals) == (pytest.approx(0.1), None, 0.0)
    assert (second.false_fits, second.false_refusals) == (pytest.approx(1 / 2), pytest.approx(1 / 2))
    assert (third.memory_mape, third.false_fits, third.false_refusals) == (None, None, None)


ROWS = [
    Row(job="a", workers=1, steps_per_s=1.0, memory_bytes=7e9, train=True),
    Row(job="a", workers=2, steps_per_s=0.0, memory_bytes=8e9, train=True),
    Row(job="a", workers=4, steps_per_s=0.0, fitted=0, train=True),
    Row(job="a", workers=8, steps_per_s=0.0, train=True),
    Row(job="a", workers=16, steps_per_s=0.0, memory_bytes=9e9, train=False),
    Row(job="a", workers=32, steps_per_s=0.0, fitted=0, train=False),
]


def test_runs_known_by_memory_alone_are_evidence_beside_the_rates() -> None:
    (case,) = cases_of(table_of(ROWS))
    seen, held = case.profile.observations, case.profile.memory_runs
    assert seen.measured_memory_bytes.tolist() == [7e9]
    assert held.configurations.workers.tolist() == [2, 4]
    assert held.measured_memory_bytes.tolist() == [8e9, 0.0]
    assert not held.steps_per_s.any()


def test_nothing_of_a_row_to_be_predicted_is_seen() -> None:
    blind = [replace(row, memory_bytes=0.0, fitted=1) if not row.train else row for row in ROWS]
    (case,), (without,) = cases_of(table_of(ROWS)), cases_of(table_of(blind))
    assert case.profile.digest == without.profile.digest
    (other,) = cases_of(table_of([replace(row, fitted=1) if row.train else row for row in ROWS]))
    assert other.profile.digest != case.profile.digest
