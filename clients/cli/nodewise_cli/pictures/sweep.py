"""The picture of a sweep: mean response time over load, a line per policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodewise.runtime.embedded import Estimate
from nodewise_cli.outputs import writing
from nodewise_cli.views.sweep import SweepRow, compared

__all__ = ["draw"]

_COLOURS: Final = ("#1f5fa8", "#d1495b", "#2e8b57", "#e0a030", "#6a4c93", "#4a4a4a", "#00838f", "#8d6e63")
_STYLES: Final = ("-", "--", ":", "-.")
"""Of prediction errors; colours are policies'."""


def draw(path: Path, rows: Sequence[SweepRow]) -> None:
    """Mean response time over load with its confidence, a line per policy (and prediction error).

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    # Only here: an extra, and slow to import.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), dpi=160, layout="constrained")
    axes = figure.add_subplot()
    lines: dict[tuple[str, str], list[tuple[float, Estimate]]] = {}
    for (label, load, job_sigma, row_sigma), estimates in compared(rows).items():
        if "average_jct_s" in estimates:
            error = f", errors {job_sigma:g}/{row_sigma:g}" if job_sigma or row_sigma else ""
            lines.setdefault((label, error), []).append((load, estimates["average_jct_s"]))
    policies, errors = (list(dict.fromkeys(key[part] for key in lines)) for part in range(2))
    for (label, error), points in lines.items():
        points.sort(key=lambda point: point[0])
        half = [_half(estimate) for _, estimate in points]
        axes.errorbar(
            [load for load, _ in points],
            [estimate.mean for _, estimate in points],
            yerr=half,
            color=_COLOURS[policies.index(label) % len(_COLOURS)],
            linestyle=_STYLES[errors.index(error) % len(_STYLES)],
            marker="o",
            markersize=4,
            capsize=3,
            linewidth=1.4,
            label=label + error,
        )
    axes.set_xlabel("load factor (inter-arrival times divided by it)")
    axes.set_ylabel("mean response time (s), 95 % confidence over seeds")
    axes.set_ylim(bottom=0)
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if lines:
        axes.legend(frameon=False, fontsize=8)
    with writing(path):
        figure.savefig(path)


def _half(estimate: Estimate) -> float:
    return 0.0 if estimate.upper is None else estimate.upper - estimate.mean
