"""Backtests as JSON and for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import percent, shown
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import BacktestResult, EstimatorEvaluation, Metrics

__all__ = ["document", "show"]


def document(result: BacktestResult) -> dict[str, Any]:
    """The JSON of a backtest."""
    return {
        "estimators": {name: asdict(found.overall) for name, found in result.evaluations.items()},
        "jobs": _grouped({name: found.by_job for name, found in result.evaluations.items()}),
        "by_sync": _grouped({name: found.by_sync for name, found in result.evaluations.items()}),
        "prior": result.prior or None,
        "versions": {name: found.estimator_version or None for name, found in result.evaluations.items()},
        "refusals": {name: _refusals(found) for name, found in result.evaluations.items()},
    }


def _grouped(metrics: dict[str, dict[str, Metrics]]) -> dict[str, dict[str, Any]]:
    """From estimator and group to group and estimator."""
    grouped: dict[str, dict[str, Any]] = {}
    for name, groups in metrics.items():
        for group, found in groups.items():
            grouped.setdefault(group, {})[name] = asdict(found)
    return grouped


def _refusals(evaluation: EstimatorEvaluation) -> dict[str, int]:
    """How many rows were refused for which reason."""
    return dict(Counter(found.refusal_reason for found in evaluation.predictions if found.refusal_reason is not None))


def show(result: BacktestResult) -> None:
    """Print the scores, and why rows were refused."""
    rows = []
    for name, found in result.evaluations.items():
        rows.append(_row(name, "all", found.overall))
        rows += [_row(name, f"sync {group}", metrics) for group, metrics in found.by_sync.items()]
        rows += [_row(name, group, metrics) for group, metrics in found.by_job.items()]
    headings = ["rows", "refused", "mape", "median", "worst", "bias", "kendall", "90 % covers", "regret"]
    print_table([words("estimator"), words("job"), *(figures(heading) for heading in headings)], rows)
    for name, found in result.evaluations.items():
        for reason, count in _refusals(found).items():
            say(f"{name} refused {count} rows: {reason}")
    say("mape, median, worst: |predicted / measured - 1|; bias: mean of ln(predicted / measured).")
    if result.prior:
        say(f"Prior: {result.prior}")


def _row(estimator: str, group: str, found: Metrics) -> list[str]:
    return [
        estimator,
        group,
        f"{found.n:,}",
        f"{found.refused:,}",
        *map(percent, (found.mape, found.median_ape, found.max_ape)),
        shown(found.bias, 3),
        shown(found.kendall, 3),
        percent(found.coverage90),
        percent(found.regret),
    ]
