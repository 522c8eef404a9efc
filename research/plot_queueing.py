"""Draw what `queueing` predicts beside what was measured: `plot_queueing.py TABLE.csv --out research/NAME.svg`.

One panel per job: measured rows that were learned from, measured rows that were held out, and for the latter the
prediction with its 90 % interval, as `nodewise backtest` makes them. The same table gives the same file, byte for byte.
"""

import argparse
import csv
import io
import math
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

NODEWISE = Path(sys.executable).with_name("nodewise")
CURVE, MEASURED = "#1f5fa8", "#222222"
PANEL_INCHES = (2.1, 1.85)
LARGEST_LINEAR_SCALE = 16
"""Workers up to which the scale is linear; beyond, it doubles."""


@dataclass
class Job:
    """Measured and predicted throughputs of one job by its number of workers."""

    sync: str
    learned: dict[int, float] = field(default_factory=dict)
    held_out: dict[int, float] = field(default_factory=dict)
    predicted: dict[int, tuple[float, float, float]] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Mean of |predicted / measured - 1| over the rows that were held out."""
        errors = [abs(self.predicted[count][0] / rate - 1.0) for count, rate in self.held_out.items()]
        return math.fsum(errors) / len(errors)


def predictions_of(table: Path) -> list[dict[str, str]]:
    """Rows of `nodewise backtest --predictions`."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "predictions.csv"
        command = [str(NODEWISE), "backtest", str(table), "--estimator", "queueing", "--json"]
        command += ["--predictions", str(written)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with written.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def jobs_of(table: Path) -> dict[str, Job]:
    """Jobs of a table in its order, with what is predicted of them."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    jobs: dict[str, Job] = {}
    for row in rows:
        job = jobs.setdefault(row["job"], Job(row["sync"]))
        measured = job.learned if row["split"] == "train" else job.held_out
        measured[int(row["workers"])] = float(row["steps_per_s"])
    for found in predictions_of(table):
        if found["status"] == "answered":
            columns = ("steps_per_s", "lower_steps_per_s", "upper_steps_per_s")
            rate, lower, upper = (float(found[name]) for name in columns)
            jobs[found["job"]].predicted[int(rows[int(found["row"])]["workers"])] = rate, lower, upper
    return {name: job for name, job in jobs.items() if job.predicted}


def draw(jobs: dict[str, Job], columns: int, out: Path) -> None:
    """Write one panel per job."""
    lines = math.ceil(len(jobs) / columns)
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * columns, height * lines + 0.35), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes in panels.flat[len(jobs) :]:
        axes.set_visible(False)
    for axes, (name, job) in zip(panels.flat, jobs.items(), strict=False):
        _panel(axes, name, job)
    figure.supxlabel("workers", fontsize=8)
    figure.supylabel("steps per second", fontsize=8)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4 if columns > 2 else 2, frameon=False, fontsize=7.5)
    written = io.StringIO()
    # Whatever changes from day to day or from version to version stays out of the file.
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    out.write_text(shortened(written.getvalue()), encoding="utf-8")


def shortened(picture: str) -> str:
    """The same picture without indentation, to a hundredth of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\1", re.sub(r"\n\s+", "\n", picture))


def _panel(axes: Axes, name: str, job: Job) -> None:
    at = sorted(job.predicted)
    rates, lower, upper = zip(*(job.predicted[count] for count in at), strict=True)
    axes.fill_between(at, lower, upper, color=CURVE, alpha=0.18, linewidth=0, label="90 % interval")
    axes.plot(at, rates, color=CURVE, linewidth=1.2, marker=".", markersize=4, label="predicted")
    for measured, face, label in ((job.learned, MEASURED, "learned from"), (job.held_out, "white", "held out")):
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
    axes.set_title(f"{name}\n{job.sync}, mean error {100.0 * job.error:.1f} %", fontsize=7.5, loc="left")
    counts = sorted({*job.learned, *job.held_out})
    if counts[-1] > LARGEST_LINEAR_SCALE:
        axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(counts)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_ylim(0.0, 1.08 * max(*upper, *job.learned.values(), *job.held_out.values()))
    axes.tick_params(labelsize=6.5, bottom=False, left=False)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _ticks(counts: list[int]) -> list[int]:
    """Those numbers of workers that have room on a small axis."""
    if counts[-1] > LARGEST_LINEAR_SCALE:
        return counts
    return [count for count in counts if count in (1, 2, 4, 6, 8, 12, 16)]


def main() -> int:
    """Draw one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table", type=Path, help="measurements with train and test rows")
    parser.add_argument("--out", type=Path, required=True, help="the picture, ends in .svg")
    parser.add_argument("--columns", type=int, default=4, help="panels side by side")
    arguments = parser.parse_args()
    if arguments.out.suffix != ".svg":
        parser.error(f"--out: must end in .svg, found {str(arguments.out)!r}")
    with mpl.rc_context({"svg.hashsalt": "nodewise", "svg.fonttype": "none"}):
        draw(jobs_of(arguments.table), arguments.columns, arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
