"""Backtests as JSON and for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_number, percent
from nodewise_cli.views.plain import fields_of
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import BacktestResult, EstimatorEvaluation, GroupMetrics, Metrics, scored_rows

__all__ = ["document", "show"]


def document(result: BacktestResult) -> dict[str, Any]:
    """The JSON of a backtest."""
    return {
        "estimators": {found.estimator: _metrics(found.overall) for found in result.evaluations},
        "jobs": _group({found.estimator: found.by_job for found in result.evaluations}),
        "by_sync": _group({found.estimator: found.by_sync for found in result.evaluations}),
        "prior": result.prior or None,
        "versions": {found.estimator: found.estimator_version or None for found in result.evaluations},
        "refusals": {found.estimator: _refusals(found) for found in result.evaluations},
    }


def _metrics(found: Metrics | None) -> dict[str, Any]:
    told = fields_of(found or Metrics())
    return {"n": told.pop("rows")} | told


def _group(metrics: dict[str, tuple[GroupMetrics, ...]]) -> dict[str, dict[str, Any]]:
    """From estimator and group to group and estimator."""
    grouped: dict[str, dict[str, Any]] = {}
    for name, groups in metrics.items():
        for group in groups:
            grouped.setdefault(group.name, {})[name] = _metrics(group.metrics)
    return grouped


def _refusals(evaluation: EstimatorEvaluation) -> dict[str, int]:
    """How many rows were refused for which reason."""
    reasons = (found.refusal_reason for found in scored_rows(evaluation.predictions))
    return dict(Counter(reason for reason in reasons if reason))


def show(result: BacktestResult) -> None:
    """Print the scores, and why rows were refused."""
    rows = []
    for found in result.evaluations:
        rows.append(_row(found.estimator, "all", found.overall))
        rows += [_row(found.estimator, f"sync {group.name}", group.metrics) for group in found.by_sync]
        rows += [_row(found.estimator, group.name, group.metrics) for group in found.by_job]
    headings = ["rows", "refused", "mape", "median", "worst", "bias", "kendall", "90 % covers", "regret", "macro"]
    print_table([words("estimator"), words("job"), *map(figures, headings)], rows)
    for found in result.evaluations:
        for reason, count in _refusals(found).items():
            say(f"{found.estimator} refused {count} rows: {reason}")
    for found in result.evaluations:
        memory = found.overall
        if memory is not None and memory.memory_mape is not None:
            told = [percent(memory.memory_mape), percent(memory.false_fits), percent(memory.false_refusals)]
            verdicts = f"of runs out of memory {told[1]} said to fit, of those that ran {told[2]} said not to"
            say(f"{found.estimator} memory: mape {told[0]}; {verdicts}.")
    say("mape, median, worst: |predicted / measured - 1|; bias: mean of ln(predicted / measured);")
    say("macro: mean over jobs of a job's mean |ln(predicted / measured)|.")
    if result.prior:
        say(f"Prior: {result.prior}")


def _row(estimator: str, group: str, metrics: Metrics | None) -> list[str]:
    found = metrics or Metrics()
    return [
        *(estimator, group, f"{found.rows_count:,}", f"{found.refused_count:,}"),
        *map(percent, (found.mape, found.median_ape, found.max_ape)),
        *(
            format_number(found.bias, 3),
            format_number(found.kendall, 3),
            percent(found.coverage90),
            percent(found.regret),
        ),
        format_number(found.macro_abs_ln, 3),
    ]
