"""`nodewise backtest`: how good the predictions are on measurements that the estimators have not seen."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nodewise_cli.commands.options import AsJson, Server, Wait
from nodewise_cli.console import complain, print_json, print_table, say, shown
from nodewise_cli.failures import CommandError, ExitStatus, InputError
from nodewise_cli.inputs.selections import also_trained
from nodewise_cli.inputs.table_content import measurement_table, timed_rows
from nodewise_cli.inputs.table_errors import in_table
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.service import connected
from nodewise_cli.views.plain import plain
from nodewise_cli.waiting import waiting
from nodewise_client import (
    BacktestRequest,
    BacktestResult,
    EstimatorEvaluation,
    GroupMetrics,
    Metrics,
    NodewiseError,
    RowStatus,
    ScoredRow,
    scored_rows,
)

__all__ = ["backtest"]

_ALSO_TRAIN = "--also-train"


def backtest(
    table: Annotated[Path, typer.Argument(metavar="TABLE.csv", help="Measurements with train and test rows.")],
    estimator: Annotated[
        list[str] | None, typer.Option(help="Estimator's name, auto or all; repeatable. Default: auto.")
    ] = None,
    also_train: Annotated[
        list[str] | None,
        typer.Option(
            _ALSO_TRAIN,
            metavar="EXPR",
            help="Learn from these test rows too: workers=4, 'workers<=4,sync=async'; repeatable: any of them.",
        ),
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(metavar="TABLE2.csv", help="Train rows as evidence about devices and software; never scored."),
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(metavar="OUT.csv", help="Write the prediction of every test row.")
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
    timeout_s: Annotated[float, typer.Option(metavar="SECONDS", help="Longest wait for the scores.")] = 60 * Wait,
) -> None:
    """Fit estimators to a table's train rows in a fresh store, predict its test rows and score them."""
    read = read_table(table)
    if also_train:
        read, count = also_trained(read, also_train, _ALSO_TRAIN)
        if not count:
            complain(f"{_ALSO_TRAIN} selects no test row of {table}")
    calibration = None if calibrate is None else _calibration(calibrate)
    if predictions is not None:
        _writable(predictions, [table] if calibrate is None else [table, calibrate])
    with connected(server, timeout_s) as client, waiting("backtesting") as progress:
        try:
            request = BacktestRequest(
                table=measurement_table(read),
                estimators=tuple(estimator or ("auto",)),
                calibration=None if calibration is None else measurement_table(calibration),
            )
            result = client.backtest(
                request,
                on_progress=lambda found: progress.tell(found.done_count, found.total_count),
                timeout_s=timeout_s,
            )
        except NodewiseError as error:
            raise _located(error, read, calibration) or error from None
    if predictions is not None:
        _write_predictions(predictions, read, result)
    if as_json:
        print_json(_document(result))
    else:
        _show(result)
    rows = [found for evaluation in result.evaluations for found in scored_rows(evaluation.predictions)]
    if rows and all(found.status is RowStatus.REFUSED for found in rows):
        reasons = Counter(found.refusal_reason for found in rows).most_common(1)
        complain(f"every test row was refused: {reasons[0][0]}")
        raise typer.Exit(ExitStatus.REFUSED)


def _calibration(path: Path) -> Table:
    table = read_table(path)
    if not any(table.train):
        raise InputError(f"{path}: has no row of split train to calibrate with")
    return table


def _located(error: NodewiseError, table: Table, calibration: Table | None) -> CommandError | None:
    tables = [("table", table)] if calibration is None else [("table", table), ("calibration", calibration)]
    for path, read in tables:
        every = range(len(read))
        found = in_table(error, read, timed_rows(read, every), f"{path}.phase_timings.") or in_table(
            error, read, every, f"{path}."
        )
        if found is not None:
            return found
    return None


def _writable(path: Path, read: Sequence[Path]) -> None:
    """Refuse before the work what would fail after it, and what would destroy a table."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--predictions: must be a file in a directory that exists, found {path}")
    for table in read:
        if path.exists() and path.samefile(table):
            raise InputError(
                f"--predictions: must be another file than {table}, which is read: it would be overwritten"
            )


def _write_predictions(path: Path, table: Table, result: BacktestResult) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(
                ["row", "job", "estimator", "steps_per_s", "lower_steps_per_s", "upper_steps_per_s", "status"]
            )
            for each in result.evaluations:
                writer.writerows(_line(table, each.estimator, found) for found in scored_rows(each.predictions))
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None


def _line(table: Table, estimator: str, found: ScoredRow) -> list[Any]:
    values = (found.steps_per_second, found.lower_steps_per_second, found.upper_steps_per_second)
    cells = ["" if value is None else repr(value) for value in values]
    return [found.row, table.columns["job"][found.row], estimator, *cells, str(found.status)]


def _document(result: BacktestResult) -> dict[str, Any]:
    return {
        "estimators": {found.estimator: _metrics(found.overall) for found in result.evaluations},
        "jobs": _grouped({found.estimator: found.by_job for found in result.evaluations}),
        "by_sync": _grouped({found.estimator: found.by_sync for found in result.evaluations}),
        "prior": result.prior or None,
        "versions": {found.estimator: found.estimator_version or None for found in result.evaluations},
        "refusals": {found.estimator: _refusals(found) for found in result.evaluations},
    }


def _metrics(found: Metrics | None) -> dict[str, Any]:
    """Scores as JSON."""
    told: dict[str, Any] = plain(found or Metrics())
    return {"n": told.pop("rows")} | told


def _grouped(metrics: dict[str, tuple[GroupMetrics, ...]]) -> dict[str, dict[str, Any]]:
    """From estimator and group to group and estimator."""
    grouped: dict[str, dict[str, Any]] = {}
    for name, groups in metrics.items():
        for group in groups:
            grouped.setdefault(group.name, {})[name] = _metrics(group.metrics)
    return grouped


def _refusals(evaluation: EstimatorEvaluation) -> dict[str, int]:
    """How many rows were refused for which reason."""
    reasons = (found.refusal_reason for found in scored_rows(evaluation.predictions))
    return dict(Counter(reason for reason in reasons if reason is not None))


def _show(result: BacktestResult) -> None:
    rows = []
    for found in result.evaluations:
        rows.append(_row(found.estimator, "all", found.overall))
        rows += [_row(found.estimator, f"sync {group.name}", group.metrics) for group in found.by_sync]
        rows += [_row(found.estimator, group.name, group.metrics) for group in found.by_job]
    headings = ["rows", "refused", "mape", "median", "worst", "bias", "kendall", "90 % covers", "regret"]
    print_table([("estimator", False), ("job", False), *((heading, True) for heading in headings)], rows)
    for found in result.evaluations:
        for reason, count in _refusals(found).items():
            say(f"{found.estimator} refused {count} rows: {reason}")
    say("mape, median, worst: |predicted / measured - 1|; bias: mean of ln(predicted / measured).")
    if result.prior:
        say(f"Prior: {result.prior}")


def _row(estimator: str, group: str, metrics: Metrics | None) -> list[str]:
    found = metrics or Metrics()
    return [
        estimator,
        group,
        str(found.rows_count),
        str(found.refused_count),
        *map(_percent, (found.mape, found.median_ape, found.max_ape)),
        shown(found.bias, 3),
        shown(found.kendall, 3),
        _percent(found.coverage90),
        _percent(found.regret),
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
