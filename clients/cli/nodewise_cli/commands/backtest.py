"""`nodewise backtest`: accuracy of the predictions on held-out measurements."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Argument, Option

from nodewise_cli.commands.engines import checked_engine
from nodewise_cli.commands.options import AN_HOUR, Call, ReportFile, ReportPath
from nodewise_cli.console import complain
from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.inputs.job_sources import job_sources
from nodewise_cli.inputs.selections import also_trained
from nodewise_cli.inputs.table_content import measurement_table
from nodewise_cli.inputs.table_errors import in_rows
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.outputs import checked_output, writing
from nodewise_cli.refusals import refuse_unanswered
from nodewise_cli.reports import check_report
from nodewise_cli.service import starting
from nodewise_cli.views.backtest import document, headline, show
from nodewise_cli.waiting import waiting
from nodewise_client import BacktestRequest, BacktestResult, NodewiseError, Problem, RowStatus, scored_rows
from nodewise_values.wire import from_message, to_message

__all__ = ["backtest"]

_ALSO_TRAIN = "--also-train"
_LEAVE_OUT = "--leave-out"
_EVIDENCE = "--evidence"
_MOST_EVIDENCE = 2
_MEASURED = ("steps_per_s", "fitted", "measured_memory_bytes")
"""Columns that a test row is scored by."""
_CONFIGURATION: Final = (
    *("device", "nodes", "workers", "sync", "parameter_servers", "placement", "batch_per_worker", "global_batch"),
    *("micro_batch", "accumulation", "tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel"),
    *("expert_parallel", "sequence_parallel", "interleave", "zero_stage", "recompute", "precision"),
)
"""Columns of a configuration, which stand beside its prediction where the table states them."""


def backtest(
    table: Annotated[Path, Argument(metavar="TABLE.csv", help="Measurements with train and test rows.")],
    estimator: Annotated[
        list[str] | None, Option(help="Name of an estimator, auto or all; repeatable. Default: auto.")
    ] = None,
    also_train: Annotated[
        list[str] | None,
        Option(
            _ALSO_TRAIN,
            metavar="EXPR",
            help="Learn from these test rows too: workers=4, 'workers<=4,sync=async'. Repeatable: rows that match any.",
        ),
    ] = None,
    calibrate: Annotated[
        Path | None,
        Option(
            metavar="TABLE2.csv",
            help="Table whose train rows are evidence about devices and software; it is not scored.",
        ),
    ] = None,
    leave_out: Annotated[
        str | None,
        Option(
            _LEAVE_OUT,
            metavar="job|job:N|COLUMN",
            help="Predict each job from jobs of other sources only. A source is a job, the Nth part of job names"
            " between slashes, or the value of a column, such as device.",
        ),
    ] = None,
    evidence: Annotated[
        str,
        Option(
            _EVIDENCE,
            metavar="0|1|2|all",
            help="Number of rows of each job to learn from, the smallest train rows first; all: every train row.",
        ),
    ] = "all",
    predictions: Annotated[
        Path | None, Option(metavar="OUT.csv", help="Write the prediction of every test row to this file.")
    ] = None,
    engine: Annotated[
        str | None,
        Option(metavar="local|ray", help="Score estimators by processes here or on Ray. Default: a server."),
    ] = None,
    processes: Annotated[int | None, Option(help="--engine: estimators at a time. Default: all processors.")] = None,
    ray_address: Annotated[str | None, Option(metavar="ADDRESS", help="Ray cluster. Default: a local one.")] = None,
    resume: Annotated[
        Path | None,
        Option(metavar="FILE", help="--engine: store results here; score only estimators that the file does not hold."),
    ] = None,
    report: ReportPath = None,
    call: Call = AN_HOUR,
) -> None:
    """Fit estimators to a table's train rows in a fresh store, predict its test rows and score them."""
    check_report(report, draws=False)
    read = read_table(table, predicted=True)
    if also_train:
        read, count = also_trained(read, also_train, _ALSO_TRAIN)
        if not count:
            complain(f"{_ALSO_TRAIN} selects no test row of {table}")
    if all(read.train):
        raise InputError(
            f"{table}: has no test row to predict and score; set the column split of some rows to test"
            + (f", or select fewer rows by {_ALSO_TRAIN}" if also_train else "")
        )
    tests = [row for row, train in enumerate(read.train) if not train]
    if predictions is None and not any(read.columns[name][row] is not None for name in _MEASURED for row in tests):
        raise InputError(
            f"{table}: no test row can be scored: state {' or '.join(_MEASURED)} in some test row, or write the"
            " predictions by --predictions"
        )
    sources = () if leave_out is None else job_sources(read, leave_out, _LEAVE_OUT)
    evidence_rows = _count_shown(evidence)
    calibration = None if calibrate is None else read_table(calibrate)
    if calibration is not None and not any(calibration.train):
        raise InputError(f"{calibrate}: has no train row to calibrate with; set the column split of some rows to train")
    if predictions is not None:
        _writable(predictions, [table] if calibrate is None else [table, calibrate])
    request = BacktestRequest(
        table=measurement_table(read),
        estimators=tuple(estimator or ("auto",)),
        calibration=None if calibration is None else measurement_table(calibration),
        job_sources=sources,
        evidence_rows_count=evidence_rows,
    )
    if engine is None and (processes is not None or ray_address is not None or resume is not None):
        raise InputError("--engine: must be local or ray where --processes, --ray-address or --resume is given")
    if engine is not None:
        result = _scored_here(request, checked_engine(engine, processes, ray_address, resume))
    else:
        with call.connect() as client, waiting("backtesting") as progress:
            try:
                result = client.backtest(request, on_progress=progress.follow, timeout_s=call.timeout_s)
            except NodewiseError as error:
                raise _locate(error, read, calibration) or error from None
    if predictions is not None:
        _write_predictions(predictions, read, result)
    call.tell(document, show, result, None if report is None else ReportFile(report, headline(table.name, result)))
    rows = [test_row for evaluation in result.evaluations for test_row in scored_rows(evaluation.predictions)]
    refusals = [test_row.refusal_reason or "" for test_row in rows if test_row.status is RowStatus.REFUSED]
    if refusals and len(refusals) == len(rows):
        ((reason, _),) = Counter(refusals).most_common(1)
        refuse_unanswered([Problem(reason=reason, message=reason)], "test row")


def _scored_here(request: BacktestRequest, engine: dict[str, Any]) -> BacktestResult:
    """Score each estimator in processes of this machine, or on a Ray cluster."""
    # Only here: what a call to a server need not wait for.
    from nodewise.runtime.engine_runs import backtest as scored

    with starting(), waiting("backtesting") as progress:
        message, faults = scored(to_message(request), progress.tell, **engine)
    if faults:
        raise CommandError("\n".join(faults), reason="BACKTEST_FAILED")
    return from_message(message, BacktestResult)


def _count_shown(evidence: str) -> int | None:
    counts = {"all": None} | {str(count): count for count in range(_MOST_EVIDENCE + 1)}
    if evidence not in counts:
        raise InputError(f"{_EVIDENCE}: must be {', '.join(sorted(counts))}, found {evidence!r}")
    return counts[evidence]


def _locate(error: NodewiseError, table: Table, calibration: Table | None) -> CommandError | None:
    tables = {"table": table} | ({} if calibration is None else {"calibration": calibration})
    errors = (in_rows(error, read, range(len(read)), path, ".") for path, read in tables.items())
    return next(filter(None, errors), None)


def _writable(path: Path, read: Sequence[Path]) -> None:
    """Check before the work that the output can be written and overwrites no table."""
    checked_output(path, "--predictions")
    for table in read:
        if path.exists() and path.samefile(table):
            raise InputError(f"--predictions: must not name {table}, which is an input and would be overwritten")


def _write_predictions(path: Path, table: Table, result: BacktestResult) -> None:
    """Write each prediction with its bounds, then its configuration, the measured value and predicted / measured."""
    names = [name for name in _CONFIGURATION if any(cell is not None for cell in table.columns[name])]
    headings = ["row", "job", "estimator", "steps_per_s", "lower_steps_per_s", "upper_steps_per_s", "status"]
    with writing(path), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*headings, *names, "measured_steps_per_s", "ratio"])
        for each in result.evaluations:
            for row in scored_rows(each.predictions):
                rate, measured = row.steps_per_second, table.columns["steps_per_s"][row.row]
                rates = (rate, row.lower_steps_per_second, row.upper_steps_per_second)
                cells = [_cell(table.columns[name][row.row]) for name in names]
                ratio = rate / measured if rate is not None and measured else None
                writer.writerow(
                    [
                        row.row,
                        table.columns["job"][row.row],
                        each.estimator,
                        *rates,
                        row.status,
                        *cells,
                        measured,
                        ratio,
                    ]
                )


def _cell(value: Any) -> Any:
    """A value as a table of measurements states it."""
    if isinstance(value, bool):
        return int(value)
    return "+".join(map(str, value)) if isinstance(value, tuple) else value
