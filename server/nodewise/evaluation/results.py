"""Results of a backtest."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.columns import Floats, Ints
from nodewise_values import Metrics

__all__ = ["BacktestResult", "EstimatorEvaluation", "RowPredictions"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowPredictions:
    """Predictions of the test rows, in the table's order.

    Attributes
    ----------
    rows : int
        Row of the table.
    steps_per_s, lower_steps_per_s, upper_steps_per_s : float
        Predicted, and the bounds of the 90 % interval; 0 = none.
    memory_bytes : float
        Predicted memory of the fullest device; 0 = none.
    status : int
        Values of RowStatus.
    reasons, reason_index : tuple of str, int
        Reasons of missing answers, ``REASON: text``, and the entry of each row; the first, empty, is for answered rows.
    """

    rows: Ints
    steps_per_s: Floats
    lower_steps_per_s: Floats
    upper_steps_per_s: Floats
    memory_bytes: Floats
    status: Ints
    reasons: tuple[str, ...]
    reason_index: Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EstimatorEvaluation:
    """One estimator's scores.

    Attributes
    ----------
    estimator, version : str
        As requested; the choice of the service ("auto") has no version.
    overall : Metrics
        Over all test rows.
    by_job, by_sync : tuple of (name, Metrics)
        Over the test rows of each job, in the order of the table's dictionary; of each synchronisation mode. Times are
        not separated by mode.
    """

    estimator: str
    version: str
    predictions: RowPredictions
    overall: Metrics
    by_job: tuple[tuple[str, Metrics], ...]
    by_sync: tuple[tuple[str, Metrics], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BacktestResult:
    """Scores of every requested estimator; ``prior`` names the shipped prior in use, "" = none."""

    evaluations: tuple[EstimatorEvaluation, ...]
    prior: str = ""
