"""Data that a backtest holds back besides test rows: whole sources from learning, and rows of a job's evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodewise.domain.columns import Ints, as_ints, freeze
from nodewise.domain.measurements import MeasurementTable
from nodewise.evaluation.cases import Case
from nodewise.evaluation.ordering import canonical_order

__all__ = ["Fold", "folds_of", "shown_of_each"]


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Jobs that are predicted together, and the jobs that estimators may learn from for them."""

    asked: tuple[Case, ...]
    others: tuple[Case, ...]


def folds_of(test_cases: Sequence[Case], cases: Sequence[Case], sources: Sequence[str]) -> tuple[Fold, ...]:
    """One fold per source, by name, with the jobs of all other sources; without sources one, with all jobs.

    Parameters
    ----------
    test_cases, cases : sequence of Case
        Jobs with rows to predict, and all.
    sources : sequence of str
        Source of each job, by its number.
    """
    if not sources:
        return (Fold(tuple(test_cases), tuple(cases)),)
    return tuple(
        Fold(
            tuple(case for case in test_cases if sources[case.job] == name),
            tuple(case for case in cases if sources[case.job] != name),
        )
        for name in sorted({sources[case.job] for case in test_cases})
    )


def shown_of_each(table: MeasurementTable, group: Ints, most: int) -> tuple[MeasurementTable, Ints]:
    """The table with exactly ``most`` train rows in each group that has as many, and the indexes of its rows.

    Train rows are taken before measured test rows, smaller scales (nodes, then workers) before larger ones. Train
    rows beyond are left out: they are neither seen nor scored.

    Parameters
    ----------
    group : int
        Group of each row, such as its job.
    """
    content = np.empty(len(table), dtype=np.int64)
    content[canonical_order(table)] = np.arange(len(table))
    has_measurement = (table.steps_per_s > 0.0) | (table.measured_memory_bytes > 0.0)
    configurations = table.configurations
    usable = np.flatnonzero(table.train | has_measurement)
    columns = (content, configurations.workers, configurations.nodes, ~table.train, group)
    order = usable[np.lexsort([column[usable] for column in columns])]
    _, first, length = np.unique(group[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(first, length)
    train = np.zeros(len(table), dtype=np.bool_)
    train[order[rank < most]] = True
    visible_rows = as_ints(np.flatnonzero(train | ~table.train))
    return replace(table, train=freeze(train)).take(visible_rows), visible_rows
