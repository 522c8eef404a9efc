"""Scores of one case by estimator: those of a backtest, what rules of one line would do, and the noise of both."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accuracy.manifest import RULES, Case
from accuracy.predicting import MOST_NODES, Predicted, most_nodes
from nodewise.domain.columns import Floats, as_ints, freeze
from nodewise.evaluation.memory_scores import MemoryOutcomes, with_memory
from nodewise.evaluation.metrics import Outcomes, metrics_by

__all__ = ["FEW_JOBS", "RESAMPLES", "Score", "Scored", "resampled_means", "scored"]

LEVEL: Final = 0.9
"""Coverage of all intervals."""
FEW_JOBS: Final = 8
"""Below so many jobs a bootstrap draws their scales (nodes) as well: it tells little from three or four units."""
RESAMPLES: Final = 2000
SEED: Final = 13

NAMES: Final = (
    *(
        "rows_count",
        "refused_count",
        "mape",
        "median_ape",
        "step_mape",
        "macro_abs_ln",
        "bias",
        "coverage90",
        "width90",
    ),
    *("groups_count", "regret", "hit", "memory_mape", "false_fits", "false_refusals"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """What one estimator scored.

    Attributes
    ----------
    metrics : mapping
        As a backtest names them; None = undefined.
    units : mapping of unit to float
        Mean |ln(predicted / measured)| of each unit that a bootstrap draws: a job, or a job at a scale.
    missed : mapping of unit to float
        Share of its rows outside their intervals; empty = no intervals.
    regrets : mapping of job to float
        Mean regret of its decisions.
    rule_width, rule_coverage : float or None
        Mean ln-width of a conformal interval about it, made of its errors on other sources, and what that covers.
    """

    metrics: Mapping[str, float | int | None]
    units: Mapping[str, float]
    missed: Mapping[str, float]
    regrets: Mapping[str, float]
    rule_width: float | None
    rule_coverage: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The scores of one part of a case by estimator, and the rule that errs least among those that answer most."""

    case: Case
    part: str
    shown: tuple[int, int]
    scores: Mapping[str, Score]
    best_rule: str | None
    prior: str

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.case.name} | {self.part}"


def scored(case: Case, found: Predicted) -> list[Scored]:
    """The scores of every part of a case."""
    parts = []
    for part in case.parts:
        rows = np.flatnonzero([re.search(part.jobs, job) is not None for job in found.jobs])
        some = next(iter(found.outcomes.values()))
        outcomes = {**found.outcomes, MOST_NODES: most_nodes(some, found.nodes)}
        scores = {name: _score(each, found.memory.get(name), found, rows) for name, each in outcomes.items()}
        ranked = [
            (-int(scores[name].metrics["rows_count"] or 0), scores[name].metrics["macro_abs_ln"], name)
            for name in RULES
            if name in scores and scores[name].metrics["rows_count"]
        ]
        parts.append(Scored(case, part.name, found.shown, scores, min(ranked)[2] if ranked else None, found.prior))
    return parts


def _score(outcomes: Outcomes, memory: MemoryOutcomes | None, found: Predicted, rows: NDArray[np.int64]) -> Score:
    of_part, jobs = _taken(outcomes, rows), [found.jobs[row] for row in rows]
    jobs_count = len(set(jobs))
    one = as_ints(np.zeros(len(rows), dtype=np.int64))
    metrics = metrics_by(of_part, one, 1)
    if memory is None:
        rated = {name: getattr(metrics[0], name) for name in ("groups_count", "regret", "hit")}
        return Score(rated, {}, {}, _regrets(of_part), None, None)
    (told,) = with_memory(metrics, _taken(memory, rows), one)
    usable = of_part.answered & (of_part.measured_steps_per_s > 0.0)
    with np.errstate(divide="ignore"):
        error = np.abs(np.log(of_part.predicted_steps_per_s[usable]) - np.log(of_part.measured_steps_per_s[usable]))
    kept = np.flatnonzero(usable)
    units = [_unit(jobs[row], int(found.nodes[rows[row]]), jobs_count) for row in kept]
    within = (of_part.lower_steps_per_s <= of_part.measured_steps_per_s) & (
        of_part.measured_steps_per_s <= of_part.upper_steps_per_s
    )
    interval = of_part.lower_steps_per_s[usable] > 0.0
    width, coverage = _conformal(error, [found.sources[rows[row]] for row in kept], [jobs[row] for row in kept])
    return Score(
        metrics={name: getattr(told, name) for name in NAMES},
        units=_means(units, error),
        missed=_means(units, (~within[usable]).astype(np.float64)) if interval.all() else {},
        regrets=_regrets(of_part),
        rule_width=width,
        rule_coverage=coverage,
    )


def _taken(columns: Any, rows: NDArray[np.int64]) -> Any:
    return type(columns)(**{each.name: freeze(getattr(columns, each.name)[rows]) for each in fields(columns)})


def _unit(job: str, nodes: int, jobs: int) -> str:
    return job if jobs >= FEW_JOBS else f"{job} @ {nodes}"


def _means(units: list[str], values: Floats) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    for unit, value in zip(units, values.tolist(), strict=True):
        sums.setdefault(unit, []).append(value)
    return {unit: math.fsum(each) / len(each) for unit, each in sorted(sums.items())}


def _regrets(outcomes: Outcomes) -> dict[str, float]:
    """By job's number in its table, where it has decisions."""
    jobs, part = np.unique(outcomes.job, return_inverse=True)
    found = metrics_by(outcomes, as_ints(part), len(jobs))
    return {str(job): each.regret for job, each in zip(jobs.tolist(), found) if each.regret is not None}


def _conformal(errors: Floats, sources: list[str], jobs: list[str]) -> tuple[float | None, float | None]:
    """Width and coverage of split conformal intervals (Vovk et al., 2005) about predictions without a spread.

    The errors of other sources, of other jobs where there is one source, of other rows where there is one job, each
    row weighing alike, tell the half-width: their quantile at LEVEL with a finite sample's correction, the largest
    where they are too few.
    """
    groups = next((np.array(each) for each in (sources, jobs) if len(set(each)) > 1), np.arange(len(errors)))
    halves = np.full(len(errors), np.nan)
    for group in np.unique(groups):
        others = np.sort(errors[groups != group])
        if len(others):
            rank = math.ceil(LEVEL * (len(others) + 1))
            halves[groups == group] = others[min(rank, len(others)) - 1]
    if not len(errors) or np.isnan(halves).any():
        return None, None
    return float(2.0 * halves.mean()), float((errors <= halves).mean())


def resampled_means(values: Floats) -> Floats:
    """Means of RESAMPLES bootstrap samples of units, the same draws for equal numbers of units."""
    draws = np.random.default_rng(SEED).integers(0, len(values), (RESAMPLES, len(values)))
    return np.asarray(values[draws].mean(axis=1))
