"""METRICS: the scores of predictions against measurements, for all rows and for parts of them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, freeze
from nodewise.evaluation import segments
from nodewise.evaluation.decisions import decisions_of
from nodewise_values import Metrics

__all__ = ["Outcomes", "metrics_by"]

MISS_WEIGHT: Final = 20.0
"""2 / alpha of the interval score, alpha = 0.1 for intervals of 90 % coverage."""
NEAR_BEST: Final = 0.05
"""Regret up to which a decision counts as near the best."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Outcomes:
    """Predictions beside measurements, one entry per row that was to be predicted.

    Attributes
    ----------
    answered : bool
        Whether there is a prediction.
    predicted_steps_per_s, measured_steps_per_s : float
        0 = none.
    lower_steps_per_s, upper_steps_per_s : float
        Bounds of the 90 % interval; 0 = none.
    job : int
        Rows of one job share a number.
    global_batch, samples_per_step : int
        0 = not known.
    configuration : int
        Equal numbers, equal configurations.
    """

    answered: NDArray[np.bool_]
    predicted_steps_per_s: Floats
    lower_steps_per_s: Floats
    upper_steps_per_s: Floats
    measured_steps_per_s: Floats
    job: Ints
    global_batch: Ints
    samples_per_step: Ints
    configuration: Ints

    def __len__(self) -> int:
        return len(self.job)


def metrics_by(outcomes: Outcomes, part: Ints, parts: int, taus: dict[bytes, float] | None = None) -> list[Metrics]:
    """Scores of each part, without times, over answered and measured rows. None = undefined.

    A decision is a group of rows of one job and one global batch. A job without a tau (one row, or all alike) is left
    out of ``kendall``; bounds of an interval lie in it; ``regret`` is a mean over jobs of means over their decisions.

    Parameters
    ----------
    part : int
        The part of each row, from 0.
    parts : int
        Number of parts; one without rows has scores too.
    taus : dict or None
        Kendall's tau by rows, read and added to: for several partitions of the same outcomes.
    """
    scored_rows = np.flatnonzero(outcomes.answered & (outcomes.measured_steps_per_s > 0))
    of = part[scored_rows]
    cells = _Cells.of(of, outcomes.job[scored_rows])
    columns = {
        **_errors(outcomes, scored_rows, of, parts, cells, {} if taus is None else taus),
        **_intervals(outcomes, scored_rows, of, parts, cells),
        **_choices(outcomes, scored_rows, parts, cells),
    }
    rows = segments.counts(of, parts).tolist()
    refusal_counts = segments.counts(part[~outcomes.answered], parts).tolist()
    groups = columns.pop("groups").tolist()
    scores = {name: _or_none(column) for name, column in columns.items()}
    return [
        Metrics(
            rows_count=rows[number],
            refused_count=refusal_counts[number],
            groups_count=int(groups[number]),
            **{name: column[number] for name, column in scores.items()},
        )
        for number in range(parts)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Jobs within parts: ``cell`` of each row, and the part of each cell."""

    cell: Ints
    part: Ints

    @staticmethod
    def of(part: Ints, job: Ints) -> _Cells:
        jobs = int(job.max()) + 1 if len(job) else 1
        pairs, cell = np.unique(part * jobs + job, return_inverse=True)
        return _Cells(cell, freeze(pairs // jobs))

    def __len__(self) -> int:
        return len(self.part)


def _errors(
    outcomes: Outcomes, scored_rows: Ints, part: Ints, parts: int, cells: _Cells, tau_cache: dict[bytes, float]
) -> dict[str, Floats]:
    predicted_rates = outcomes.predicted_steps_per_s[scored_rows]
    measured_rates = outcomes.measured_steps_per_s[scored_rows]
    with np.errstate(over="ignore"):
        error = np.abs(predicted_rates / measured_rates - 1.0)
        step_error = np.abs(measured_rates / predicted_rates - 1.0)
    log_ratio = np.log(predicted_rates) - np.log(measured_rates)
    by_cell = segments.means(np.abs(log_ratio), cells.cell, len(cells))
    taus = _taus(predicted_rates, measured_rates, scored_rows, cells, tau_cache)
    has_tau = ~np.isnan(taus)
    return {
        "mape": segments.means(error, part, parts),
        "median_ape": segments.quantiles(error, part, parts, 0.5),
        "p90_ape": segments.quantiles(error, part, parts, 0.9),
        "max_ape": segments.maxima(error, part, parts),
        "step_mape": segments.means(step_error, part, parts),
        "mean_abs_ln": segments.means(np.abs(log_ratio), part, parts),
        "bias": segments.means(log_ratio, part, parts),
        "macro_abs_ln": segments.means(by_cell, cells.part, parts),
        "kendall": segments.means(taus[has_tau], cells.part[has_tau], parts),
    }


def _taus(
    predicted_rates: Floats, measured_rates: Floats, scored_rows: Ints, cells: _Cells, tau_cache: dict[bytes, float]
) -> Floats:
    """Kendall's tau-b of each cell; NaN where it is undefined."""
    taus = np.full(len(cells), np.nan)
    order = np.argsort(cells.cell, kind="stable")
    ends = np.cumsum(segments.counts(cells.cell, len(cells)))
    for number, rows in enumerate(np.split(order, ends[:-1]) if len(cells) else ()):
        key = scored_rows[rows].tobytes()
        if key not in tau_cache:
            tau_cache[key] = _tau(predicted_rates[rows], measured_rates[rows])
        taus[number] = tau_cache[key]
    return taus


def _tau(first: Floats, second: Floats) -> float:
    from scipy.stats import kendalltau  # noqa: PLC0415 - takes 0.5 s to import, and only a backtest needs it

    if (first == first[0]).all() or (second == second[0]).all():
        return math.nan
    # Only the statistic is used, so the cheaper p-value suffices; SciPy's exact one divides by zero for two rows.
    method: Literal["exact", "asymptotic"] = "asymptotic" if len(first) > 2 else "exact"
    return float(kendalltau(first, second, method=method).statistic)


def _intervals(outcomes: Outcomes, scored_rows: Ints, part: Ints, parts: int, cells: _Cells) -> dict[str, Floats]:
    there = outcomes.lower_steps_per_s[scored_rows] > 0
    rows, of, cell = scored_rows[there], part[there], cells.cell[there]
    rates = outcomes.measured_steps_per_s[rows]
    lower, upper = outcomes.lower_steps_per_s[rows], outcomes.upper_steps_per_s[rows]
    is_covered = (lower <= rates) & (rates <= upper)
    width = np.log(upper) - np.log(lower)
    # Winkler, 1972: the width, and 2 / alpha times the distance of the measurement from the interval.
    distance = np.maximum(np.log(lower) - np.log(rates), 0.0) + np.maximum(np.log(rates) - np.log(upper), 0.0)
    by_cell = segments.means(is_covered, cell, len(cells))
    has_interval = ~np.isnan(by_cell)
    return {
        "coverage90": segments.means(is_covered, of, parts),
        "worst_job_coverage90": segments.minima(by_cell[has_interval], cells.part[has_interval], parts),
        "width90": segments.means(width, of, parts),
        "interval_score90": segments.means(width + MISS_WEIGHT * distance, of, parts),
    }


def _choices(outcomes: Outcomes, scored_rows: Ints, parts: int, cells: _Cells) -> dict[str, Floats]:
    samples_per_step = outcomes.samples_per_step[scored_rows]
    decisions = decisions_of(
        cell=cells.cell,
        global_batch=outcomes.global_batch[scored_rows],
        configuration=outcomes.configuration[scored_rows],
        predicted_samples_per_s=outcomes.predicted_steps_per_s[scored_rows] * samples_per_step,
        measured_samples_per_s=outcomes.measured_steps_per_s[scored_rows] * samples_per_step,
    )
    part = cells.part[decisions.cell]
    by_cell = segments.means(decisions.regret, decisions.cell, len(cells))
    deciding = ~np.isnan(by_cell)
    return {
        "groups": segments.counts(part, parts).astype(np.float64),
        "regret": segments.means(by_cell[deciding], cells.part[deciding], parts),
        "hit": segments.means(decisions.hit, part, parts),
        "within5": segments.means(decisions.regret <= NEAR_BEST, part, parts),
    }


def _or_none(column: Floats) -> list[float | None]:
    """Numbers; None where one is not finite: an empty mean, or an overflow."""
    return [value if there else None for value, there in zip(column.tolist(), np.isfinite(column).tolist())]
