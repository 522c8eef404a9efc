"""Draw where estimators err: `plot_errors.py --table TABLE.csv PREDICTIONS.csv... --out PICTURE.svg`.

PREDICTIONS.csv is what `nodewise backtest TABLE.csv --estimator ... --predictions PREDICTIONS.csv` wrote. `--table` may
be repeated; rows of all tables are pooled. One panel per cause (workers, device, model, servers, batch, mode, or
any column of the tables), one bar per estimator and value: the mean of |predicted / measured - 1|, with the mean of the
signed error as a dot. A model is a job's name up to its first slash. Columns with one value are left out; numbers of
more than eight values are gathered by doublings. The same files give the same picture, byte for byte.
"""

import argparse
import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plot_queueing import shortened

CAUSES = ("workers", "device", "model", "parameter_servers", "batch_per_worker", "sync", "table")
MOST_VALUES = 8
"""Distinct numbers that have a bar each."""
MOST_NAMES = 16
"""Names that have one; of more, those with the most rows."""
MOST_LETTERS = 70
"""Letters of all labels that have room beside each other."""


@dataclass(frozen=True)
class Error:
    """One answered row: who answered, predicted / measured - 1, and what the table says of it."""

    estimator: str
    error: float
    causes: dict[str, str]


def errors_of(table: Path, predictions: Path) -> list[Error]:
    """Rows of a table that were answered and measured."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    with predictions.open(encoding="utf-8", newline="") as file:
        for answer in csv.DictReader(file):
            row = rows[int(answer["row"])]
            if answer["job"] != row["job"]:
                raise SystemExit(f"{predictions}: row {answer['row']} is of another job than in {table}")
            if answer["status"] != "answered" or not row.get("steps_per_s"):
                continue
            error = float(answer["steps_per_s"]) / float(row["steps_per_s"]) - 1.0
            causes = {**row, "model": row["job"].split("/")[0], "table": table.stem}
            found.append(Error(answer["estimator"], error, causes))
    return found


def values_of(errors: Sequence[Error], cause: str) -> list[str]:
    """Value of a cause for each error; numbers of many values by doublings, empty where the table says nothing."""
    values = [error.causes.get(cause) or "" for error in errors]
    told = {value for value in values if value}
    if len(told) <= MOST_VALUES or not all(_is_number(value) for value in told):
        return values
    return [_doubling(float(value)) if value else "" for value in values]


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).isdigit()


def _doubling(value: float) -> str:
    if value < 1.0:
        return "< 1"
    low = 2 ** int(math.log2(value))
    return str(low) if low == 1 else f"{low}-{2 * low - 1}"


def in_order(values: Sequence[str]) -> list[str]:
    """Distinct values: numbers by size, names by how often they occur; not those that say nothing."""
    told = sorted({value for value in values if value})
    if all(_is_number(value.split("-")[0].removeprefix("< ")) for value in told):
        return sorted(
            told, key=lambda value: (not value.startswith("<"), float(value.split("-")[0].removeprefix("< ")))
        )
    return sorted(told, key=lambda value: (-values.count(value), value))[:MOST_NAMES]


def draw(errors: Sequence[Error], causes: Sequence[str], out: Path) -> int:
    """Write a panel for each cause that has more than one value; how many there are."""
    estimators = sorted({error.estimator for error in errors})
    shown = [(cause, values) for cause in causes if len(in_order(values := values_of(errors, cause))) > 1]
    if not shown:
        raise SystemExit("no cause has more than one value")
    figure = Figure(figsize=(6.4, 1.9 * len(shown) + 0.4), layout="constrained")
    panels = figure.subplots(len(shown), 1, squeeze=False)
    for axes, (cause, values) in zip(panels.flat, shown, strict=True):
        _panel(axes, cause, values, errors, estimators)
    figure.supylabel("error, % of the measured rate (bar: mean; dot: with its sign)", fontsize=8)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=7.5)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    out.write_text(shortened(written.getvalue()), encoding="utf-8")
    return len(shown)


def _panel(axes: Axes, cause: str, values: Sequence[str], errors: Sequence[Error], estimators: Sequence[str]) -> None:
    listed, width = in_order(values), 0.8 / len(estimators)
    for number, estimator in enumerate(estimators):
        at, mean, signed = [], [], []
        for place, value in enumerate(listed):
            here = [
                e.error for e, told in zip(errors, values, strict=True) if told == value and e.estimator == estimator
            ]
            if here:
                at.append(place - 0.4 + (number + 0.5) * width)
                mean.append(100.0 * math.fsum(map(abs, here)) / len(here))
                signed.append(100.0 * math.fsum(here) / len(here))
        colour = f"C{number % 10}"
        axes.bar(at, mean, width=0.9 * width, color=colour, alpha=0.6, label=estimator)
        axes.plot(at, signed, linestyle="none", marker="o", markersize=2.6, color=colour, markeredgecolor="black")
    axes.set_xticks(range(len(listed)), listed)
    if sum(map(len, listed)) > MOST_LETTERS:
        axes.tick_params(axis="x", labelrotation=15)
    axes.set_title(cause.replace("_", " "), fontsize=7.5, loc="left")
    axes.axhline(0.0, color="#222222", linewidth=0.6)
    axes.tick_params(labelsize=6.0, bottom=False, left=False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--table",
        nargs="+",
        type=Path,
        action="append",
        required=True,
        metavar=("TABLE.csv", "PREDICTIONS.csv"),
        help="measurements, and what backtest predicted of them; repeatable",
    )
    parser.add_argument("--by", action="append", help=f"a cause; repeatable; default: {', '.join(CAUSES)}")
    parser.add_argument("--out", type=Path, required=True, help="the picture, ends in .svg")
    arguments = parser.parse_args()
    if arguments.out.suffix != ".svg":
        parser.error(f"--out: must end in .svg, found {str(arguments.out)!r}")
    if any(len(files) < 2 for files in arguments.table):
        parser.error("--table: takes a table and the predictions of it")
    errors = [error for table, *told in arguments.table for each in told for error in errors_of(table, each)]
    with mpl.rc_context({"svg.hashsalt": "nodewise", "svg.fonttype": "none"}):
        panels = draw(errors, arguments.by or CAUSES, arguments.out)
    print(f"{arguments.out}: {len(errors)} answers, {panels} panels")


if __name__ == "__main__":
    main()
