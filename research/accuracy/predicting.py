"""Predictions of what is held back: every loaded estimator, and `auto`, on one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from accuracy.manifest import Case, named
from accuracy.tables import table_of
from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.columns import Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO
from nodewise.evaluation.backtest import ALL, run_backtest
from nodewise.evaluation.held_back import shown_of_each
from nodewise.evaluation.memory_scores import MemoryOutcomes
from nodewise.evaluation.metrics import Outcomes
from nodewise.evaluation.results import RowPredictions
from nodewise.evaluation.truth import Truth
from nodewise.hosting.registry import load_registry

__all__ = ["MOST_NODES", "Predicted", "answers_of", "most_nodes", "predicted"]

MOST_NODES: Final = "most nodes"
"""The rule that takes all there is: it has no rate, so it takes part in decisions alone."""

COLUMNS: Final = ("steps_per_s", "lower_steps_per_s", "upper_steps_per_s", "memory_bytes", "status")


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """What every estimator said of the rows held back.

    Attributes
    ----------
    outcomes, memory : mapping of estimator to its outcomes
    jobs, sources : tuple of str
        Of each row.
    configurations : Configurations
        Of each row.
    workloads : tuple of Workload
        Of each row.
    shown : tuple of int, int
        Rows that are shown of the job of which fewest are, and of that of which most are.
    prior : str
        What answers rest on, as a backtest tells it.
    """

    outcomes: Mapping[str, Outcomes]
    memory: Mapping[str, MemoryOutcomes]
    jobs: tuple[str, ...]
    sources: tuple[str, ...]
    configurations: Configurations
    workloads: tuple[Workload, ...]
    shown: tuple[int, int]
    prior: str

    @property
    def nodes(self) -> Ints:
        """Of each row."""
        return self.configurations.nodes


def answers_of() -> Answers:
    """The shipped estimators and catalogue."""
    return Answers(load_registry(safe_mode=True), catalogue=load_catalogue())


def predicted(answers: Answers, case: Case, folder: Path) -> Predicted:
    """Hold back, ask, gather.

    Parameters
    ----------
    folder : Path
        Where the tables lie.
    """
    table = table_of(_paths(folder, case.tables), case.dropped)
    groups = [named(case.group, job) for job in table.jobs]
    sources = [named(case.source or "", job) for job in table.jobs]
    if case.workers:
        table = replace(table, train=freeze(np.isin(table.configurations.workers, case.workers)))
    elif case.rows is not None:
        number = {group: place for place, group in enumerate(sorted(set(groups)))}
        group = as_ints(np.array([number[each] for each in groups])[table.job_index])
        table, _ = shown_of_each(table, group, case.rows)
    calibration = _shown(table_of(_paths(folder, case.calibration), case.dropped)) if case.calibration else None
    parts: dict[str, list[RowPredictions]] = {}
    priors: dict[str, None] = {}
    for known, fold, rows in _folds(case, table, sources):
        # Jobs of the fold are one source: of each other, they teach nothing.
        told = () if case.source is None else tuple(sources)
        result = run_backtest(answers, fold, calibration=known or calibration, estimators=(ALL, AUTO), sources=told)
        priors[result.prior] = None
        for each in result.evaluations:
            found = replace(each.predictions, rows=freeze(rows[each.predictions.rows]))
            parts.setdefault(each.estimator, []).append(found)
    joined = {name: _joined(found) for name, found in parts.items()}
    truth = Truth.of(table)
    jobs = [table.jobs[job] for job in truth.job.tolist()]
    shown = np.bincount(table.job_index, weights=table.train)[np.unique(truth.job)].astype(np.int64)
    return Predicted(
        outcomes={name: truth.outcomes(each) for name, each in joined.items()},
        memory={name: truth.memory(each) for name, each in joined.items()},
        jobs=tuple(jobs),
        sources=tuple(named(case.source or "", job) for job in jobs),
        configurations=table.configurations.take(truth.rows),
        workloads=tuple(table.workloads[job] for job in truth.job.tolist()),
        shown=(int(shown.min()), int(shown.max())),
        prior="; ".join(filter(None, priors)),
    )


def _paths(folder: Path, tables: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(folder / f"{table}.csv" for table in tables)


def _shown(table: MeasurementTable) -> MeasurementTable:
    """All that was measured, to learn from."""
    measured = (table.steps_per_s > 0.0) | (table.measured_memory_bytes > 0.0) | (table.fitted == 0)
    return replace(table, train=freeze(table.train | measured))


def _folds(
    case: Case, table: MeasurementTable, sources: list[str]
) -> list[tuple[MeasurementTable | None, MeasurementTable, Ints]]:
    """What is known beside it, what is asked, and the table's rows of that."""
    if not case.others_known:
        return [(None, table, as_ints(np.arange(len(table))))]
    of_row = np.array(sources)[table.job_index]
    found: list[tuple[MeasurementTable | None, MeasurementTable, Ints]] = []
    for source in sorted(set(sources)):
        own, others = as_ints(np.flatnonzero(of_row == source)), as_ints(np.flatnonzero(of_row != source))
        found.append((_shown(table.take(others)), table.take(own), own))
    return found


def _joined(parts: list[RowPredictions]) -> RowPredictions:
    """The rows held back, in the table's order; why rows were refused is not kept."""
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    columns = {name: freeze(np.concatenate([getattr(part, name) for part in parts])[order]) for name in COLUMNS}
    unsaid = as_ints(np.zeros(len(rows), dtype=np.int64))
    return RowPredictions(rows=freeze(rows[order]), **columns, reasons=("",), reason_index=unsaid)


def most_nodes(outcomes: Outcomes, nodes: Ints) -> Outcomes:
    """Outcomes of the rule that takes most nodes: of its rates only the order counts."""
    samples_per_s = nodes.astype(np.float64)
    rate = samples_per_s / np.maximum(outcomes.samples_per_step, 1)
    return replace(outcomes, answered=np.ones(len(nodes), dtype=np.bool_), predicted_steps_per_s=freeze(rate))
