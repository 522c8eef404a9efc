"""Draw what `scaling` predicts beside what was measured: `plot_scaling.py TABLE.csv... --out research`.

Of each table a few jobs, one panel each: step time over nodes, full nodes at one batch per worker (or the job's own,
where one global batch is shared out), measured, and predicted with the 90 % interval. Predictions are those of
`score_scaling.py`: the prior saw no job of the same model. The same tables give the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import matplotlib as mpl

mpl.use("svg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

SCORE: Final = Path(__file__).resolve().with_name("score_scaling.py")
CURVE, MEASURED = "#1f5fa8", "#222222"
PANEL_INCHES = (2.1, 1.85)
COLUMNS: Final = 3

Row = dict[str, str]


@dataclass
class Panel:
    """Step seconds of one job by its number of nodes: means over what is alike."""

    title: str
    learned: dict[int, float] = field(default_factory=dict)
    held_out: dict[int, float] = field(default_factory=dict)
    predicted: dict[int, tuple[float, float, float]] = field(default_factory=dict)


def predictions_of(tables: list[Path]) -> dict[tuple[str, str], list[Row]]:
    """Rows of `score_scaling.py --predictions` by table and job."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "predictions.csv"
        command = [sys.executable, str(SCORE), *map(str, tables), "--json", "--predictions", str(written)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found: dict[tuple[str, str], list[Row]] = defaultdict(list)
        with written.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found[row["table"], row["job"]].append(row)
    return found


def panels_of(table: Path, predictions: dict[tuple[str, str], list[Row]], most: int) -> list[Panel]:
    """The first job of each model, in the order of the table, then others until there are enough."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["job"] for row in rows))
    first = {name.split("/")[0]: name for name in reversed(names)}
    chosen = [name for name in names if name in first.values()]
    chosen = (chosen + [name for name in names if name not in chosen])[:most]
    return [
        _panel_of(name, [row for row in rows if row["job"] == name], predictions[table.stem, name])
        for name in names
        if name in chosen
    ]


def _panel_of(name: str, rows: list[Row], predicted: list[Row]) -> Panel:
    """Full nodes; at the batch of most held-out node counts, then of most learned runs, or of one global batch."""
    learned = [row for row in rows if row["split"] == "train"]
    full = max(int(row["workers"]) // int(row["nodes"]) for row in rows)
    shared = "batch" in name
    reach: dict[int, set[str]] = defaultdict(set)
    for row in predicted:
        if _is_full(row, full):
            reach[int(row["batch_per_worker"])].add(row["nodes"])
    known = [int(row["batch_per_worker"]) for row in learned if _is_full(row, full)]
    batch = max(reach, key=lambda size: (len(reach[size]), known.count(size), -size))
    told = f"{full} workers a node" + ("" if shared else f", {batch} samples")
    panel = Panel(f"{name}\n{told}")

    def alike(row: Row) -> bool:
        return _is_full(row, full) and (shared or int(row["batch_per_worker"]) == batch)

    panel.learned = _means([(row, 1.0 / float(row["steps_per_s"])) for row in learned if alike(row)])
    panel.held_out = _means([(row, float(row["measured_step_s"])) for row in predicted if alike(row)])
    columns = [
        _means([(row, float(row[column])) for row in predicted if alike(row)])
        for column in ("step_s", "lower_step_s", "upper_step_s")
    ]
    panel.predicted = {nodes: (columns[0][nodes], columns[1][nodes], columns[2][nodes]) for nodes in panel.held_out}
    return panel


def _is_full(row: Row, full: int) -> bool:
    return int(row["workers"]) == full * int(row["nodes"])


def _means(values: list[tuple[Row, float]]) -> dict[int, float]:
    found: dict[int, list[float]] = defaultdict(list)
    for row, value in values:
        found[int(row["nodes"])].append(value)
    return {nodes: math.fsum(several) / len(several) for nodes, several in sorted(found.items())}


def draw(panels: list[Panel], out: Path) -> None:
    """Write one picture."""
    lines = math.ceil(len(panels) / COLUMNS)
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * COLUMNS, height * lines + 0.35), layout="constrained")
    drawn = figure.subplots(lines, COLUMNS, squeeze=False)
    for axes in drawn.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(drawn.flat, panels, strict=False):
        _draw(axes, panel)
    figure.supxlabel("nodes", fontsize=8)
    figure.supylabel("seconds per step", fontsize=8)
    handles, labels = drawn.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=7.5)
    written = io.StringIO()
    # Whatever changes from day to day or from version to version stays out of the file.
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    out.write_text(_shortened(written.getvalue()), encoding="utf-8")


def _shortened(picture: str) -> str:
    """The same picture without indentation, to a hundredth of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\1", re.sub(r"\n\s+", "\n", picture))


def _draw(axes: Axes, panel: Panel) -> None:
    at = sorted(panel.predicted)
    step_s, lower, upper = zip(*(panel.predicted[nodes] for nodes in at), strict=True)
    axes.fill_between(at, lower, upper, color=CURVE, alpha=0.18, linewidth=0, label="90 % interval")
    if len(at) == 1:
        axes.vlines(at, lower, upper, color=CURVE, alpha=0.18, linewidth=5.0)
    axes.plot(at, step_s, color=CURVE, linewidth=1.2, marker=".", markersize=4, label="predicted")
    for measured, face, label in ((panel.learned, MEASURED, "learned from"), (panel.held_out, "white", "held out")):
        axes.plot(
            list(measured),
            list(measured.values()),
            color=MEASURED,
            linestyle="none",
            marker="o",
            markersize=3.6,
            markerfacecolor=face,
            markeredgewidth=0.8,
            label=f"measured, {label}",
        )
    axes.set_title(panel.title, fontsize=7.5, loc="left")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({*panel.learned, *panel.held_out})))
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_major_locator(LogLocator(10.0, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    shown = (*lower, *upper, *panel.learned.values(), *panel.held_out.values())
    middle, half = math.sqrt(min(shown) * max(shown)), math.sqrt(max(shown) / min(shown))
    half = max(1.1 * half, 2.0)
    axes.set_ylim(middle / half, middle * half)
    axes.tick_params(labelsize=6.5, bottom=False, left=False)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> int:
    """Draw all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path, help="measurements with train and test rows")
    parser.add_argument("--out", type=Path, required=True, help="folder of the pictures")
    parser.add_argument("--most", type=int, default=3 * COLUMNS, help="jobs of each table")
    arguments = parser.parse_args()
    predictions = predictions_of(arguments.tables)
    with mpl.rc_context({"svg.hashsalt": "nodewise", "svg.fonttype": "none"}):
        for table in arguments.tables:
            out = arguments.out / f"scaling_{table.stem}.svg"
            draw(panels_of(table, predictions, arguments.most), out)
            print(f"{out}: {out.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
