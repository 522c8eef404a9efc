"""Options that import runs of other tools, and the table that they become."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from typer import Option

from nodewise_cli.console import say
from nodewise_cli.failures import InputError
from nodewise_cli.imports.logged_runs import LoggedRun, Options, Reader
from nodewise_cli.imports.measured_rows import MeasuredRow, measured_row
from nodewise_cli.inputs.aliases import column_named, suggest_column
from nodewise_cli.inputs.columns import COLUMNS, RATES, READ, CellError, RowError
from nodewise_cli.inputs.tables import Table, table_of_cells
from nodewise_cli.views.table import Column, figures, print_table, words

__all__ = ["ImportOptions", "import_document", "import_table", "show_import"]

FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    "tensorboard": ("tensorboard", "read_tensorboard"),
    "wandb": ("wandb", "read_wandb"),
    "mlflow": ("mlflow", "read_mlflow"),
    "sacct": ("slurm", "read_sacct"),
    "jsonl": ("json_lines", "read_json_lines"),
    "log": ("text_logs", "read_log"),
}
"""Readers by name: the module and the function."""
WARM_UP_STEPS: Final = 10
_NEEDED: Final = ("nodes", "workers", "device")
_SHOWN: Final = ("device", "nodes", "workers", "batch_per_worker", "global_batch", "precision")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Runs that another tool logged, and what they do not state."""

    SECTION: ClassVar = "Import"
    format: Annotated[
        str | None,
        Option("--from", metavar="FORMAT", help=f"Read runs as another tool logged them: {', '.join(FORMATS)}."),
    ] = None
    stated: Annotated[
        list[str] | None,
        Option("--set", metavar="COLUMN=VALUE", help="State a column of every run, such as device=A100; repeatable."),
    ] = None
    metric: Annotated[
        str | None, Option("--metric", metavar="NAME", help="Metric of the throughput. Default: the first that is one.")
    ] = None
    pattern: Annotated[
        str | None,
        Option(
            "--pattern",
            metavar="REGEX|NAME",
            help="Lines of a log: a regular expression with groups named as columns, or megatron, deepspeed, "
            "torchtitan, transformers. Default: the first of these that matches.",
        ),
    ] = None
    warm_up_steps: Annotated[
        int, Option("--warm-up-steps", metavar="N", min=0, help="First steps of each run to leave out.")
    ] = WARM_UP_STEPS
    table: Annotated[
        Path | None, Option("--table", metavar="OUT.csv", help="Write the runs as a table, and store nothing.")
    ] = None

    def fail_if_stated(self) -> None:
        """Refuse options that need --from."""
        given = {"--set": self.stated, "--metric": self.metric, "--pattern": self.pattern, "--table": self.table}
        if wrong := [name for name, value in given.items() if value]:
            raise InputError(f"{wrong[0]}: needs --from, the format of the runs")


def import_table(paths: Sequence[Path], options: ImportOptions) -> tuple[Table, list[MeasuredRow]]:
    """The table of the runs in files and directories, and what was read of each.

    Raises
    ------
    InputError
        Naming the file, or the columns that no run states.
    """
    read = _reader(options.format or "")
    stated = _parse_stated(options.stated or ())
    runs: list[LoggedRun] = [run for path in paths for run in read(path, Options(options.pattern))]
    rows = [measured_row(run, stated, options.metric, options.warm_up_steps) for run in runs]
    if not any(not row.problem for row in rows):
        reasons = "; ".join(f"{row.run.source}: {row.problem}" for row in rows[:3])
        raise InputError(f"--from {options.format}: no run has a throughput: {reasons or 'there is no run'}")
    measured = [row for row in rows if not row.problem]
    _fail_if_missing(measured)
    names = list(dict.fromkeys(name for row in measured for name in row.cells))
    cells = {name: [_read_back(name, row.cells.get(name)) for row in measured] for name in names}
    try:
        table = table_of_cells(paths[0], range(1, len(measured) + 1), cells, without_batch=False)
    except RowError as error:
        raise InputError(
            f"{measured[error.row].run.source}: {error.column} {error}; state --set COLUMN=VALUE"
        ) from None
    if options.table is not None:
        _write_table(options.table, names, measured)
    return table, rows


def import_document(rows: Sequence[MeasuredRow]) -> list[dict[str, Any]]:
    """What was read of each run, as JSON."""
    return [
        {
            "source": row.run.source,
            "metric": row.metric,
            "points": row.points,
            "left_out": row.left_out,
            "problem": row.problem,
            "row": {name: value for name, value in row.cells.items() if value is not None},
        }
        for row in rows
    ]


def show_import(rows: Sequence[MeasuredRow]) -> None:
    """What was read of each run, as a table."""
    measured = [row for row in rows if not row.problem]
    shown = [name for name in _SHOWN if any(row.cells.get(name) is not None for row in measured)]
    headings: list[Column] = [
        words("job"),
        *(words(name) if name in ("device", "precision") else figures(name) for name in shown),
    ]
    headings += [figures("throughput"), words("unit"), figures("points"), figures("left out"), words("from")]
    lines = []
    for row in measured:
        unit = next(name for name in RATES if row.cells.get(name) is not None)
        cells = [str(row.cells["job"]), *(_text(row.cells.get(name)) for name in shown)]
        lines.append([*cells, f"{row.cells[unit]:,.4g}", unit, f"{row.points:,}", f"{row.left_out:,}", row.metric])
    print_table(headings, lines)
    for row in rows:
        if row.problem:
            say(f"{row.run.source}: left out, because {row.problem}.")
    ignored = dict.fromkeys(name for row in measured for name in row.ignored)
    if ignored:
        say(f"Settings with values that no column takes: {', '.join(ignored)}; state them by --set if they matter.")


def _reader(name: str) -> Reader:
    if name not in FORMATS:
        raise InputError(f"--from: must be one of {', '.join(FORMATS)}, found {name!r}")
    module, function = FORMATS[name]
    reader: Reader = getattr(import_module(f"nodewise_cli.imports.{module}"), function)
    return reader


def _parse_stated(parts: Sequence[str]) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    for part in parts:
        name, equals, text = part.partition("=")
        column = column_named(name.strip(), READ)
        if not equals or column is None:
            hint = suggest_column(name, READ) if equals else ""
            raise InputError(f"--set: must be COLUMN=VALUE with a column of a measurements table, found {part!r}{hint}")
        try:
            stated[column] = READ[column](text.strip())
        except CellError as error:
            raise InputError(f"--set: {column} {error}, found {text.strip()!r}") from None
    return stated


def _fail_if_missing(rows: Sequence[MeasuredRow]) -> None:
    """Refuse runs that do not state how they ran, naming all that is missing at once."""
    missing: dict[str, list[str]] = {}
    for row in rows:
        per_node = row.cells.get("gpus_per_node") is not None
        counts = [name for name in ("nodes", "workers") if row.cells.get(name) is None]
        for name in _NEEDED:
            if row.cells.get(name) is None and not (name in counts and per_node and len(counts) == 1):
                missing.setdefault(name, []).append(row.run.source)
    if missing:
        sources = next(iter(missing.values()))
        more = f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""
        options = " ".join(f"--set {name}=..." for name in missing)
        text = f"{sources[0]}{more}: no {', '.join(missing)} is stated; add {options}"
        raise InputError(text, violations=[(name, "is not stated") for name in missing])


def _read_back(name: str, value: Any) -> Any:
    """A computed number as a cell of a table is read."""
    if name == "measured_at" and value is not None:
        return COLUMNS[name](f"{value:.3f}")
    return value


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _write_table(path: Path, names: Sequence[str], rows: Sequence[MeasuredRow]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_cell(row.cells.get(name)) for name in names] for row in rows)
    except OSError as error:
        raise InputError(f"--table: {path} cannot be written: {error.strerror}") from None


def _cell(value: Any) -> Any:
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)
