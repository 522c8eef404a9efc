"""Backtests as JSON and for people."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_number, percent
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import BacktestResult, EstimatorEvaluation, GroupMetrics, Metrics, scored_rows

__all__ = ["document", "headline", "show"]


def document(result: BacktestResult) -> dict[str, Any]:
    """The JSON of a backtest."""
    return {
        "estimators": {evaluation.estimator: _metrics(evaluation.overall) for evaluation in result.evaluations},
        "jobs": _group({evaluation.estimator: evaluation.by_job for evaluation in result.evaluations}),
        "by_sync": _group({evaluation.estimator: evaluation.by_sync for evaluation in result.evaluations}),
        "prior": result.prior or None,
        "versions": {evaluation.estimator: evaluation.estimator_version or None for evaluation in result.evaluations},
        "refusals": {evaluation.estimator: _refusals(evaluation) for evaluation in result.evaluations},
    }


def _metrics(metrics: Metrics | None) -> dict[str, Any]:
    values = fields_of(metrics or Metrics())
    return {"n": values.pop("rows")} | values


def _group(metrics: dict[str, tuple[GroupMetrics, ...]]) -> dict[str, dict[str, Any]]:
    """From estimator and group to group and estimator."""
    by_group: dict[str, dict[str, Any]] = {}
    for name, groups in metrics.items():
        for group in groups:
            by_group.setdefault(group.name, {})[name] = _metrics(group.metrics)
    return by_group


def _refusals(evaluation: EstimatorEvaluation) -> dict[str, int]:
    """How many rows were refused for which reason."""
    reasons = (row.refusal_reason for row in scored_rows(evaluation.predictions))
    return dict(Counter(reason for reason in reasons if reason))


def headline(table: str, result: BacktestResult) -> str:
    """The comparison in one sentence."""
    names = [evaluation.estimator for evaluation in sorted(result.evaluations, key=_badness)]
    return (
        f"{table}: {names[0]} predicts best of {len(names)} estimators." if len(names) > 1 else f"{table}: {names[0]}."
    )


def show(result: BacktestResult) -> None:
    """Print the scores, the best estimator first, and the reasons of refused rows."""
    evaluations = sorted(result.evaluations, key=_badness)
    best = evaluations[0] if len(evaluations) > 1 and evaluations[0].overall != Metrics() else None
    rows = []
    for evaluation in evaluations:
        for scores, group in _groups(evaluation).items():
            mark = "->" if evaluation is best and group == "all" else ""
            rows.append([mark, evaluation.estimator, group, *scores])
    headings = ["rows", "refused", "mape", "median", "worst", "bias", "kendall", "90 % covers", "regret", "macro"]
    print_table([words(""), words("estimator"), words("job"), *map(figures, headings)], rows)
    if best is not None:
        say(f"->: {best.estimator} is best: the fewest rows refused, then the least macro.")
    for evaluation in evaluations:
        for reason, count in _refusals(evaluation).items():
            say(f"{evaluation.estimator} refused {count} rows: {reason}")
    for evaluation in evaluations:
        memory = evaluation.overall
        if memory is not None and memory.memory_mape is not None:
            shares = [percent(memory.memory_mape), percent(memory.false_fits), percent(memory.false_refusals)]
            verdicts = f"predicted to fit: {shares[1]} of the runs out of memory; not to fit: {shares[2]} of the others"
            say(f"{evaluation.estimator} memory: mape {shares[0]}; {verdicts}.")
    say(
        "mape, median, worst: mean, median and maximum of |predicted / measured - 1|; bias: mean of ln(predicted / "
        "measured); kendall: agreement of the predicted order with the measured one, -1 to 1, mean over jobs; 90 % "
        "covers: measured values within the 90 % interval; regret: throughput lost by the predicted choice; macro: "
        "mean over jobs of a job's mean |ln(predicted / measured)|."
    )
    if result.prior:
        say(f"Prior: {result.prior}")


def _badness(evaluation: EstimatorEvaluation) -> tuple[int, float]:
    """Less is better: rows without an answer, then the mean error of a job."""
    values = evaluation.overall or Metrics()
    error = values.macro_abs_ln
    return (values.refused_count, math.inf if error is None else error)


def _groups(evaluation: EstimatorEvaluation) -> dict[tuple[str, ...], str]:
    """Groups of rows by their scores as they are printed: groups of the same rows share an entry."""
    overall = _scores(evaluation.overall)
    groups = [(f"sync {group.name}", group.metrics) for group in evaluation.by_sync]
    groups += [(group.name, group.metrics) for group in evaluation.by_job]
    is_refused = evaluation.overall is None or not evaluation.overall.rows_count
    names: dict[tuple[str, ...], list[str]] = {overall: ["all"]}
    for name, metrics in () if is_refused else groups:
        names.setdefault(_scores(metrics), []).append(name)
    return {scores: "all" if scores == overall else ", ".join(each) for scores, each in names.items()}


def _scores(metrics: Metrics | None) -> tuple[str, ...]:
    values = metrics or Metrics()
    return (
        *(f"{values.rows_count:,}", f"{values.refused_count:,}"),
        *map(percent, (values.mape, values.median_ape, values.max_ape)),
        *(
            format_number(values.bias, 3),
            format_number(values.kendall, 3),
            percent(values.coverage90),
            percent(values.regret),
        ),
        format_number(values.macro_abs_ln, 3),
    )
